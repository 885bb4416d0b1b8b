package e2e

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
)

// downFor is how long one of the receivers does not answer.
const downFor = time.Minute

// statesOf are the states of events, in their order.
func statesOf(events []notices.Event) []notices.State {
	var states []notices.State
	for _, e := range events {
		states = append(states, e.State)
	}
	return states
}

// untilTold waits until a signed webhook was told the end of a run, and checks what it was told: each event once, in order.
func (r *receivers) untilTold(path string, run client.WorkflowRun, want ...notices.State) []notices.Event {
	r.Helper()
	var events []notices.Event
	r.eventually("what "+path+" is told", func() error {
		if events = r.events(path, run.GetRunID()); !slices.Equal(statesOf(events), want) {
			return fmt.Errorf("%v, want %v", statesOf(events), want)
		}
		return nil
	})
	for i, e := range events {
		if e.Sequence != i+1 || e.ID != api.EventID(run.GetID(), run.GetRunID(), api.Moment{Sequence: i + 1, At: e.At}) {
			r.Errorf("event %d of %s is %s", i+1, path, e.ID)
		}
	}
	return events
}

// TestEveryStateIsToldOnEveryChannel is the table of NotifyMaintenance as outside receivers see it.
func TestEveryStateIsToldOnEveryChannel(t *testing.T) {
	slow(t)
	s := prepareSite(t, "")
	canaries := map[string]string{
		"the webhook of Slack": "canary-slack-webhook", "the bot's token": "xoxb-canary-of-the-bot", "the mail password": "canary-of-the-mail",
		"the signing key": base64.StdEncoding.EncodeToString([]byte("canary-of-the-signature!")), "a header": "canary-of-the-header",
		"the AWS key": "canaryofsecretaccesskey",
	}
	signingKey := "whsec_" + canaries["the signing key"]
	r := s.receivers(signingKey, canaries["the mail password"])
	r.down.Store(true)
	late := time.Now()
	s.options.Config += fmt.Sprintf(`
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
`, r.http.URL, r.secret("slack", r.http.URL+"/slack/"+canaries["the webhook of Slack"]), r.secret("bot", canaries["the bot's token"]),
		r.mailPort, r.secret("mail", canaries["the mail password"]), r.mailCA, r.secret("signing", signingKey),
		r.secret("header", "Bearer "+canaries["a header"]), r.secret("aws-id", "AKIDEXAMPLE"), r.secret("aws-key", canaries["the AWS key"]))
	s.startWorker()

	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	run := s.beginWith("worker-01", `"owner":"team-metal","ticket":"CHG-7","sla":{"after":"15s"},"validation":{"signal":true}`)
	other := s.beginWith("worker-02", `"approval":true`)
	s.until(other, api.AwaitingApproval)
	s.exits(s.drydock("approve", "worker-03"), 1)
	s.mustDrydock("deny", "worker-02", "--comment", "not now")
	s.mustEnd(other, api.Cancelled)

	s.blockedBy(run, "DisruptionBudget")
	s.within(patience, "the SLA expires", func() error {
		if events := r.events("/events", run.GetRunID()); len(events) < 4 {
			return fmt.Errorf("told %v", statesOf(events))
		}
		return nil
	})
	s.allow(ns, "web")
	s.until(run, api.Ready)
	s.mustDrydock("failed", "worker-01", "--reason", "no power")
	s.mustDrydock("retry", "worker-01")
	s.mustDrydock("done", "worker-01")
	s.until(run, api.Validating)
	s.exits(s.drydock("status", "worker-01"), 0, "MaintenanceIncomplete", "no power", "team-metal", "Validating")
	s.mustDrydock("validated", "worker-01", "--comment", "burn-in passed")
	s.mustEnd(run, api.Completed)
	if r.refusedSoFar() == 0 {
		t.Error("nothing was refused: the dead channel was not tried")
	}

	table := []notices.State{
		notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.SLAExpired, notices.ObjectsDrained,
		notices.MaintenanceIncomplete, notices.ObjectsDrained, notices.Validating, notices.MaintenanceEnded, notices.MaintenanceComplete,
	}
	denied := []notices.State{notices.MaintenanceUnknown, notices.AwaitingApproval, notices.MaintenanceEnded, notices.MaintenanceCancelled}
	events := r.untilTold("/events", run, table...)
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
	if status := s.mustStatus(run); len(status.States) != len(table) {
		t.Errorf("the status has %+v", status.States)
	}
	r.untilTold("/events", other, denied...)

	s.sub("a receiver that was down gets everything", func(s *site) {
		s.within(downFor, "a minute to be over", func() error {
			if left := downFor - time.Since(late); left > 0 {
				return fmt.Errorf("%s are left", left)
			}
			return nil
		})
		r.down.Store(false)
		r.untilTold("/late", run, table...)
		r.untilTold("/late", other, denied...)
	})
	r.othersWereTold(len(table) + len(denied))
	s.mustNotLeak(s.written(2*8), canaries)
}

func (r *receivers) refusedSoFar() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// othersWereTold checks chat, threads, mail, SNS, digests and the node's Events.
func (r *receivers) othersWereTold(events int) {
	r.Helper()
	r.eventually("chat, mail and topic are told", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for what, n := range map[string]int{
			"chat": len(r.got["/slack/canary-slack-webhook"]), "bot": len(r.got["/api/chat.postMessage"]), "mail": len(r.mails), "topic": len(r.got["/sns/"]),
		} {
			if n != events {
				return fmt.Errorf("%s was told %d events, want %d", what, n, events)
			}
		}
		return nil
	})
	begun, answers := 0, map[string]int{}
	for _, post := range r.requests("/api/chat.postMessage") {
		thread := post.form.Get("thread_ts")
		if thread == "" {
			begun++
		}
		answers[thread]++
	}
	if begun != 2 || len(answers) != 3 {
		r.Errorf("threads %v", answers)
	}
	if !slices.ContainsFunc(r.mails, func(m string) bool { return strings.Contains(m, "Subject: ") && strings.Contains(m, "worker-01") }) {
		r.Errorf("mails %q", r.mails)
	}
	if publish := r.requests("/sns/")[0].form; publish.Get("Action") != "Publish" || publish.Get("TopicArn") == "" || publish.Get("Message") == "" {
		r.Errorf("published %v", publish)
	}
	r.eventually("the digest is told", func() error {
		if digests := r.requests("/digest"); len(digests) != 1 || !strings.Contains(digests[0].body, "worker-01") || !strings.Contains(digests[0].body, "worker-02") {
			return fmt.Errorf("digests %+v", digests)
		}
		return nil
	})
	if found := r.nodeEvents("worker-01", string(notices.ObjectsDrained)); len(found) != 2 {
		r.Errorf("Events %+v", found)
	}
	for _, post := range r.requests("/events") {
		if post.header.Get("Authorization") != "Bearer canary-of-the-header" || post.header.Get("Idempotency-Key") == "" {
			r.Errorf("headers %v", post.header)
		}
	}
}
