package maintenance

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/notices"
)

// downFor is how long one of the receivers does not answer.
const downFor = time.Minute

// TestSlowEveryStateIsToldOnEveryChannel is the table of NotifyMaintenance as outside receivers see it.
func TestSlowEveryStateIsToldOnEveryChannel(t *testing.T) {
	s := site.Prepare(t, "")
	canaries := map[string]string{
		"the webhook of Slack": "canary-slack-webhook", "the bot's token": "xoxb-canary-of-the-bot", "the mail password": "canary-of-the-mail",
		"the signing key": base64.StdEncoding.EncodeToString([]byte("canary-of-the-signature!")), "a header": "canary-of-the-header",
		"the AWS key": "canaryofsecretaccesskey",
	}
	signingKey := "whsec_" + canaries["the signing key"]
	r := s.Receivers(signingKey, canaries["the mail password"])
	r.Down.Store(true)
	late := time.Now()
	s.Options.Config += fmt.Sprintf(`
scheduler: {maxParallel: 3}
channels:
  chat: {default: true, slack: {webhook: %[2]s}}
  bot: {default: true, thread: maintenance, slack: {token: %[3]s, channel: C1, apiURL: "%[1]s/api/"}}
  mail: {default: true, email: {host: 127.0.0.1, port: %[4]s, username: drydock, password: %[5]s, from: drydock@example.com, to: [ops@example.com], caFile: %[6]s}}
  events: {default: true, webhook: {url: "%[1]s/events", secret: %[7]s, headers: {Authorization: %[8]s}}}
  late: {default: true, webhook: {url: "%[1]s/late", secret: %[7]s}}
  digest: {default: true, digest: 45s, webhook: {url: "%[1]s/digest", secret: %[7]s}, filter: {events: [MaintenanceUnknown]}}
  topic: {default: true, sns: {topicARN: "arn:aws:sns:eu-central-1:123456789012:maintenance", endpoint: "%[1]s/sns/", accessKeyID: %[9]s, secretAccessKey: %[10]s}}
  nodes: {default: true, kubernetes: {}, filter: {events: [ObjectsDrained]}}
`, r.HTTP.URL, r.Secret("slack", r.HTTP.URL+"/slack/"+canaries["the webhook of Slack"]), r.Secret("bot", canaries["the bot's token"]),
		r.MailPort, r.Secret("mail", canaries["the mail password"]), r.MailCA, r.Secret("signing", signingKey),
		r.Secret("header", "Bearer "+canaries["a header"]), r.Secret("aws-id", "AKIDEXAMPLE"), r.Secret("aws-key", canaries["the AWS key"]))
	s.StartWorker()

	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	run := s.BeginWith("worker-01", `"owner":"team-metal","ticket":"CHG-7","sla":{"after":"15s"},"validation":{"signal":true}`)
	other := s.BeginWith("worker-02", `"approval":true`)
	s.Until(other, api.AwaitingApproval)
	s.Exits(s.Drydock("approve", "worker-03"), 1)
	s.MustDrydock("deny", "worker-02", "--comment", "not now")
	s.MustEnd(other, api.Cancelled)

	s.BlockedBy(run, "DisruptionBudget")
	s.Within(site.Patience, "the SLA expires", func() error {
		if events := r.Events("/events", run.GetRunID()); len(events) < 4 {
			return fmt.Errorf("told %v", site.StatesOf(events))
		}
		return nil
	})
	s.Allow(ns, "web")
	s.Until(run, api.Ready)
	s.MustDrydock("fail", "worker-01", "--comment", "no power")
	s.MustDrydock("retry", "worker-01")
	s.MustDrydock("done", "worker-01")
	s.Until(run, api.Validating)
	s.Exits(s.Drydock("status", "worker-01"), 0, "MaintenanceIncomplete", "no power", "team-metal", "Validating")
	s.MustDrydock("validation", "pass", "worker-01", "--comment", "burn-in passed")
	s.MustEnd(run, api.Completed)
	if refusedSoFar(r) == 0 {
		t.Error("nothing was refused: the dead channel was not tried")
	}

	table := []notices.State{
		notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.SLAExpired, notices.ObjectsDrained,
		notices.MaintenanceIncomplete, notices.ObjectsDrained, notices.Validating, notices.MaintenanceEnded, notices.MaintenanceComplete,
	}
	denied := []notices.State{notices.MaintenanceUnknown, notices.AwaitingApproval, notices.MaintenanceEnded, notices.MaintenanceCancelled}
	events := r.UntilTold("/events", run, table...)
	for i, phase := range []api.Phase{
		"Pending", "Pending", "Cordoning", "Draining", "Ready", "RequestorFailed", "Ready", "Validating", "Validating", "Completed",
	} {
		if e := events[i]; e.Phase != string(phase) || e.Ticket != "CHG-7" || e.Owner != "team-metal" || e.Node != "worker-01" {
			t.Errorf("%s was told with %+v, want phase %s", e.State, e, phase)
		}
	}
	if blockers := events[3].Blockers; len(blockers) != 1 || !strings.Contains(blockers[0], "web") {
		t.Errorf("SLAExpired names %q", blockers)
	}
	if status := s.MustStatus(run); len(status.States) != len(table) {
		t.Errorf("the status has %+v", status.States)
	}
	r.UntilTold("/events", other, denied...)

	s.Sub("a receiver that was down gets everything", func(s *site.Site) {
		s.Within(downFor, "a minute to be over", func() error {
			if left := downFor - time.Since(late); left > 0 {
				return fmt.Errorf("%s are left", left)
			}
			return nil
		})
		r.Down.Store(false)
		r.UntilTold("/late", run, table...)
		r.UntilTold("/late", other, denied...)
	})
	othersWereTold(r, len(table)+len(denied))
	s.MustNotLeak(s.Written(2*8), canaries)
}

func refusedSoFar(r *site.Receivers) int {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return r.Refused
}

// othersWereTold checks chat, threads, mail, SNS, digests and the node's Events.
func othersWereTold(r *site.Receivers, events int) {
	r.Helper()
	r.Eventually("chat, mail and topic are told", func() error {
		r.Mu.Lock()
		defer r.Mu.Unlock()
		for what, n := range map[string]int{
			"chat": len(r.Got["/slack/canary-slack-webhook"]), "bot": len(r.Got["/api/chat.postMessage"]), "mail": len(r.Mails), "topic": len(r.Got["/sns/"]),
		} {
			if n != events {
				return fmt.Errorf("%s was told %d events, want %d", what, n, events)
			}
		}
		return nil
	})
	begun, answers := 0, map[string]int{}
	for _, post := range r.Requests("/api/chat.postMessage") {
		thread := post.Form.Get("thread_ts")
		if thread == "" {
			begun++
		}
		answers[thread]++
	}
	if begun != 2 || len(answers) != 3 {
		r.Errorf("threads %v", answers)
	}
	if !slices.ContainsFunc(r.Mails, func(m string) bool { return strings.Contains(m, "Subject: ") && strings.Contains(m, "worker-01") }) {
		r.Errorf("mails %q", r.Mails)
	}
	if publish := r.Requests("/sns/")[0].Form; publish.Get("Action") != "Publish" || publish.Get("TopicArn") == "" || publish.Get("Message") == "" {
		r.Errorf("published %v", publish)
	}
	r.Eventually("the digest is told", func() error {
		if digests := r.Requests("/digest"); len(digests) != 1 || !strings.Contains(digests[0].Body, "worker-01") || !strings.Contains(digests[0].Body, "worker-02") {
			return fmt.Errorf("digests %+v", digests)
		}
		return nil
	})
	if found := r.NodeEvents("worker-01", string(notices.ObjectsDrained)); len(found) != 2 {
		r.Errorf("Events %+v", found)
	}
	for _, post := range r.Requests("/events") {
		if post.Header.Get("Authorization") != "Bearer canary-of-the-header" || post.Header.Get("Idempotency-Key") == "" {
			r.Errorf("headers %v", post.Header)
		}
	}
}
