package pagerduty_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/notify/pagerduty"
	"drydock.dev/drydock/rules/notices"
)

var kinds = notify.Kinds{pagerduty.Kind}

func senders(t *testing.T, r *notifytest.Receiver) *notify.Senders {
	return notifytest.Senders(t, kinds, `{"pagerduty": {"routingKey": %s, "url": %q}}`, notifytest.File(notifytest.SecretFile(t, "canary")), r.URL+"/v2/enqueue")
}

type sent struct {
	RoutingKey string `json:"routing_key"`
	Action     string `json:"event_action"`
	DedupKey   string `json:"dedup_key"`
	Payload    *struct {
		Summary, Source, Severity, Timestamp string
		Details                              map[string]string `json:"custom_details"`
	} `json:"payload"`
}

func TestAnIncidentIsOpenedAndResolved(t *testing.T) {
	r := notifytest.Receive(t, func(w http.ResponseWriter, _ notifytest.Received) { w.WriteHeader(http.StatusAccepted) })
	s := senders(t, r)
	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.MaintenanceUnknown)))
	if len(r.All()) > 0 {
		t.Fatalf("what needs nobody was sent: %s", r.All()[0].Body)
	}
	long := notifytest.Event(notices.SLAExpired)
	long.Reason = strings.Repeat("long ", 10_000)
	notifytest.Deliver(t, s, notifytest.Message(long))
	got := r.Last(t, 1)
	opened := notifytest.Decode[sent](t, got.Body)
	if got.Path != "/v2/enqueue" || opened.RoutingKey != "canary" || opened.Action != "trigger" || opened.DedupKey != "node-maintenance/worker-1/ops/run" || opened.Payload == nil {
		t.Fatalf("%s %s", got.Path, got.Body)
	}
	if p := opened.Payload; !strings.HasPrefix(p.Summary, "[eu] worker-1: not empty in the agreed time") || p.Source != "worker-1" || p.Severity != "error" ||
		p.Timestamp != "2026-03-10T10:00:00Z" || !strings.Contains(p.Details["text"], "Reason: long") || len(got.Body) > 20_000 {
		t.Errorf("%d bytes: %+v", len(got.Body), p)
	}
	// A digest has both.
	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.SLAExpired), notifytest.Event(notices.Validating), notifytest.Event(notices.MaintenanceComplete)))
	all := r.All()
	if len(all) != 3 {
		t.Fatalf("%d requests, want 3", len(all))
	}
	if resolved := notifytest.Decode[sent](t, all[2].Body); resolved.Action != "resolve" || resolved.DedupKey != opened.DedupKey || resolved.Payload != nil {
		t.Errorf("%s", all[2].Body)
	}
}

// The nodes of a health check share its workflow: that one of them recovers ends neither the trouble of another nor a storm.
func TestAHealthCheckHasAnIncidentForEachNode(t *testing.T) {
	r := notifytest.Receive(t, func(w http.ResponseWriter, _ notifytest.Received) { w.WriteHeader(http.StatusAccepted) })
	s := senders(t, r)
	event := func(state notices.State, node string) notices.Event {
		return notices.Event{ID: "id", State: state, Node: node, HealthCheck: "kubelet", WorkflowID: "health-check/kubelet", RunID: "run"}
	}
	open := map[string]bool{}
	for _, c := range []struct {
		event notices.Event
		open  int
	}{
		{event(notices.RemediationFailed, "worker-1"), 1},
		{event(notices.RemediationFailed, "worker-2"), 2},
		{event(notices.HealthStorm, ""), 3},
		{event(notices.HealthCheckDisabled, ""), 4},
		{event(notices.RemediationEnded, "worker-1"), 3},
		{event(notices.HealthCheckEnabled, ""), 2},
		{event(notices.HealthStormEnded, ""), 1},
		{event(notices.RemediationEnded, "worker-2"), 0},
	} {
		notifytest.Deliver(t, s, notifytest.Message(c.event))
		all := r.All()
		out := notifytest.Decode[sent](t, all[len(all)-1].Body)
		if out.Action == "resolve" {
			delete(open, out.DedupKey)
		} else {
			open[out.DedupKey] = true
		}
		if len(open) != c.open {
			t.Errorf("after %s of %q %d incidents are open, want %d: %v", c.event.State, c.event.Node, len(open), c.open, open)
		}
	}
}

// What people are called for ends before the maintenance does.
func TestAnIncidentEndsWithItsReason(t *testing.T) {
	for state, ends := range map[notices.State]notices.State{
		notices.AwaitingApproval: notices.MaintenanceScheduled, // with its approval
		notices.SLAExpired:       notices.ObjectsDrained,
		notices.Escalated:        notices.MaintenanceScheduled, // it was given back
	} {
		r := notifytest.Receive(t, func(w http.ResponseWriter, _ notifytest.Received) { w.WriteHeader(http.StatusAccepted) })
		s := senders(t, r)
		notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(state)))
		notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(ends)))
		if all := r.All(); len(all) != 2 || notifytest.Decode[sent](t, all[1].Body).Action != "resolve" {
			t.Errorf("%s does not resolve %s", ends, state)
		}
	}
}

func TestErrors(t *testing.T) {
	for status, permanent := range map[int]bool{400: true, 429: false, 503: false} {
		r := notifytest.Receive(t, func(w http.ResponseWriter, _ notifytest.Received) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(status)
			_, _ = w.Write([]byte("no service has the key canary"))
		})
		_, err := senders(t, r).Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.SLAExpired)))
		if err == nil || notify.Permanent(err) != permanent || notify.RetryAfter(err) != 30*time.Second || strings.Contains(err.Error(), "canary") {
			t.Errorf("%d: %v, permanent %v, after %s", status, err, notify.Permanent(err), notify.RetryAfter(err))
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{}`: "routingKey: is missing",
		`{"routingKey": {"env": "KEY"}, "url": "http://pagerduty.example"}`:       "url",
		`{"routingKey": {"env": "KEY"}, "url": "https://user:pw@pagerduty.test"}`: "url",
	} {
		if _, err := notifytest.Parse(t, kinds, `{"oncall": {"pagerduty": %s}}`, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
