package health

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/period"
)

func TestUnsentEventsOfAChannelAreHandedOver(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.channels = []notices.Channel{{Name: "ops", RetryFor: period.Duration(10 * time.Minute)}}
	s.deafUntil = 7 * time.Minute
	s.ill(10*time.Second, 0, "b")
	s.at(6*time.Minute, func() { // a server would soon end a run with as long a history
		s.env.SetContinueAsNewSuggested(true)
		s.env.SetCurrentHistoryLength(20_001)
		s.signal("no-such-message", 1)
	})
	s.well(10*time.Minute, "b")
	s.live(12 * time.Minute)
	want := []string{"HealthCheckEnabled check workers", "NodeUnhealthy node b", "RemediationBegun node b", "RemediationEnded node b"}
	if s.runs != 2 || len(s.received) != len(want) {
		t.Fatalf("in %d runs the channel was sent %q", s.runs, s.received)
	}
	for i, sent := range s.received {
		if state, _, _ := strings.Cut(want[i], " "); !strings.HasPrefix(sent, state) {
			t.Errorf("sent %q, want %q", s.received, want)
		}
	}
}

func TestACarriedStateThatCannotBeReadFailsTheTask(t *testing.T) {
	s := newSite(t, oneStep(""), "a")
	s.packed = []byte("no state")
	s.begin()
	s.env.ExecuteWorkflow(api.HealthCheckType, []byte(s.spec), s.packed)
	var panicked *temporal.PanicError
	if err := s.env.GetWorkflowError(); !errors.As(err, &panicked) {
		t.Errorf("%v", err)
	}
}

// received is what came of the messages of a name, the first one coming first.
func received(st api.HealthStatus, name string) (all []string) {
	for _, m := range st.Messages {
		if m.Name == name {
			all = append(all, string(m.Outcome)+": "+m.Effect)
		}
	}
	return all
}

func TestACancellationRemovesTheCheckUnlessItRemediates(t *testing.T) {
	const name = "cancellation of the workflow"
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.cancels = true
	s.ill(10*time.Second, 0, "b")
	s.at(6*time.Minute, func() { s.env.CancelWorkflow() })
	s.stands(7*time.Minute, func(st api.HealthStatus) {
		if got := received(st, name); len(got) != 1 || !strings.HasPrefix(got[0], "ignored: ignored: nodes are being remediated") {
			t.Errorf("%q", got)
		}
		s.env.SetContinueAsNewSuggested(true)
		s.signal("no-such-message", 1)
	})
	s.well(10*time.Minute, "b")
	s.at(11*time.Minute, func() { s.env.CancelWorkflow() })
	s.live(12 * time.Minute)
	if got := received(s.status(), name); !s.ended || s.runs != 2 || len(got) != 2 || !strings.HasPrefix(got[1], "applied: removed") {
		t.Errorf("ended %v in %d runs: %q", s.ended, s.runs, got)
	}
}

// answered is what came of an update.
type answered struct {
	effect string
	err    error
}

func (a *answered) Accept()          {}
func (a *answered) Reject(err error) { a.err = err }
func (a *answered) Complete(result any, err error) {
	a.effect, _ = result.(string)
	a.err = err
}

func TestWhoConfiguresHearsWhatTheWorkerDoesNotKnow(t *testing.T) {
	s := newSite(t, oneStep(""), "a")
	var first, second, third answered
	update := func(when time.Duration, id, spec string, a *answered) {
		s.at(when, func() {
			s.env.UpdateWorkflow(api.MsgConfigure, id, a, api.ConfigureHealth{Message: api.Message{ID: id, By: "ann"}, Spec: []byte(spec)})
		})
	}
	s.at(time.Minute, func() { s.unknown = "channel ops is not known" })
	update(2*time.Minute, "unknown", oneStep(`,"minHealthy":2`), &first)
	s.at(3*time.Minute, func() { s.unknown = "" })
	update(4*time.Minute, "known", oneStep(`,"minHealthy":3`), &second)
	update(5*time.Minute, "wrong", `{"selector":{}}`, &third)
	s.live(6 * time.Minute)
	if first.err == nil || !strings.Contains(first.err.Error(), "the spec is refused: channel ops is not known") {
		t.Errorf("%+v", first)
	}
	if second.err != nil || !strings.HasPrefix(second.effect, "configured") || third.err == nil {
		t.Errorf("%+v, %+v", second, third)
	}
	if spec := s.status().Spec; spec.Required(5) != 3 {
		t.Errorf("%+v", spec)
	}
}

func TestACheckWhoseSpecTheWorkerDoesNotKnowDoesNotBegin(t *testing.T) {
	s := newSite(t, oneStep(""), "a")
	s.unknown = "channel ops is not known"
	s.begin()
	s.env.ExecuteWorkflow(api.HealthCheckType, []byte(s.spec), []byte(nil))
	var refused *temporal.ApplicationError
	if err := s.env.GetWorkflowError(); !errors.As(err, &refused) || !refused.NonRetryable() || refused.Message() != s.unknown {
		t.Errorf("%v", err)
	}
}

func TestEventsAreRecordedAndSentBeforeARemovedCheckEnds(t *testing.T) {
	s := newSite(t, oneStep(""), "a", "b", "c")
	s.channels = []notices.Channel{{Name: "ops", RetryFor: period.Duration(10 * time.Minute)}}
	s.ill(10*time.Second, 0, "b")
	s.well(10*time.Minute, "b")
	s.at(10*time.Minute+2*time.Second, func() { s.deafUntil = 11*time.Minute + 30*time.Second })
	s.at(11*time.Minute, func() { s.signal(api.MsgRemove, api.HealthMessage{Message: api.Message{ID: "1", By: "ann"}}) })
	s.live(20 * time.Minute)
	if !s.ended || s.now() > 12*time.Minute || !slices.ContainsFunc(s.received, func(sent string) bool { return strings.HasPrefix(sent, "RemediationEnded") }) {
		t.Errorf("ended %v at %s, sent %q", s.ended, s.now(), s.received)
	}
}
