package remediation_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	activity "drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/schedule"
)

func newControlPlane(t *testing.T, steps ...health.Remediation) *site {
	s := newSite(t, steps...)
	s.in.ControlPlane, s.in.Since = true, s.start.Add(-time.Hour)
	return s
}

// healthy has the check order the end.
func (s *site) healthy(when time.Duration) {
	s.order(when, health.Order{Node: "b", Revision: 2, Healthy: true})
}

// says has somebody answer the request of the remediation.
func (s *site) says(when time.Duration, signal string, answer api.SlotAnswer) {
	s.env.RegisterDelayedCallback(func() {
		if answer.RequestID == "" {
			answer.RequestID = s.slot().ID
		}
		s.env.SignalWorkflow(signal, answer)
	}, when)
}

// slot is the remediation's own word on its slot.
func (s *site) slot() (word api.SlotWanted) {
	s.t.Helper()
	value, err := s.env.QueryWorkflow(api.QuerySlot)
	if err == nil {
		err = value.Get(&word)
	}
	if err != nil {
		s.t.Error(err)
	}
	return word
}

func TestAControlPlaneNodeIsRemediatedWithASlot(t *testing.T) {
	s := newControlPlane(t, template("soft"))
	s.grants = new(time.Minute)
	s.env.RegisterDelayedCallback(func() {
		if w := s.slot(); !w.Wants || w.GrantedAt != nil || w.Kind != schedule.KindControlPlane || !w.Created.Equal(s.in.Since) {
			t.Errorf("before the grant it says %+v", w)
		}
	}, 30*time.Second)
	s.env.RegisterDelayedCallback(func() {
		if w := s.slot(); !w.Wants || w.GrantedAt == nil {
			t.Errorf("with the grant it says %+v", w)
		}
	}, 5*time.Minute)
	s.healthy(10 * time.Minute)
	s.run()
	s.want("0s slot-request", "10s slot-request", "30s slot-request", "1m0s make step 1", "10m0s remove 1", "10m0s slot-release")
	if w := s.slot(); w.Wants {
		t.Errorf("at the end it says %+v", w)
	}
}

// No answer, no step: and an order to end takes the request back.
func TestWithoutASlotNothingIsDoneToAControlPlaneNode(t *testing.T) {
	s := newControlPlane(t, template("soft"))
	s.says(15*time.Second, api.SignalSlotPending, api.SlotAnswer{Code: schedule.ControlPlane, Reason: "one control-plane node is remediated at a time, now a"})
	s.healthy(25 * time.Second)
	s.run()
	s.want("0s slot-request", "10s slot-request", "25s slot-release", "25s remove 0")
	waits := func(p health.Progress) bool { return strings.Contains(p.Waiting, "one control-plane node") }
	if !slices.ContainsFunc(s.said, waits) {
		t.Errorf("the check was not reported why it waits: %+v", s.said)
	}
}

func TestASchedulerThatDoesNotRunIsAskedAgain(t *testing.T) {
	s := newControlPlane(t, template("soft"))
	s.asleep, s.grants = true, new(time.Second)
	s.at(100*time.Second, func() { s.asleep = false })
	s.healthy(5 * time.Minute)
	s.run()
	s.want("2m0s slot-request", "2m1s make step 1", "5m0s remove 1", "5m0s slot-release")
}

func TestForgedAnswersGrantNothing(t *testing.T) {
	s := newControlPlane(t, template("soft"))
	s.says(time.Second, api.SignalSlotGranted, api.SlotAnswer{RequestID: checkRun + "/1"})
	// This one names the request: the activity finds out that it is not true.
	s.says(2*time.Second, api.SignalSlotGranted, api.SlotAnswer{})
	s.ensures = []activity.EnsuredObject{{NeedsSlot: true}}
	s.healthy(8 * time.Second)
	s.run()
	s.want("0s slot-request", "2s refuse step 1", "2s slot-request", "8s slot-release", "8s remove 0")
}

// A label may say later than the check that a node is one of the control plane.
func TestWhoActsFindsOutThatANodeIsOfTheControlPlane(t *testing.T) {
	for name, c := range map[string]struct {
		step health.Remediation
		want []string
	}{
		"by an object": {template("soft"), []string{
			"0s refuse step 1", "0s slot-request", "1s make step 1", "2m0s remove 1", "2m0s slot-release",
		}},
		"by a maintenance": {health.Remediation{Maintenance: &health.Repair{}}, []string{
			"0s lease", "0s refuse maintenance", "0s slot-request", "1s maintain", "2m0s end maintenance, healthy true", "3m1s remove 0", "3m1s slot-release",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.step)
			s.grants, s.ensures = new(time.Second), []activity.EnsuredObject{{NeedsSlot: true}}
			s.ends(3 * time.Minute)
			s.healthy(2 * time.Minute)
			s.run()
			s.want(c.want...)
		})
	}
}

func TestTheNextRunGivesBackTheSlotOfTheOneBefore(t *testing.T) {
	s := newControlPlane(t, template("soft"))
	s.grants = new(time.Second)
	s.at(time.Minute, func() { s.env.SetContinueAsNewSuggested(true) })
	s.order(2*time.Minute, health.Order{Node: "b", Revision: 2})
	s.env.ExecuteWorkflow(api.NodeRemediationType, s.in, []byte(nil))
	s.want("0s slot-request", "1s make step 1")
	var next *workflow.ContinueAsNewError
	if err := s.env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatal(err)
	}
	var input converter.RawValue
	var packed []byte
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &input, &packed); err != nil {
		t.Fatal(err)
	}
	s = newControlPlane(t, template("soft"))
	s.env.SetContinuedExecutionRunID(checkRun)
	s.order(time.Minute, health.Order{Node: "b", Revision: 3, Healthy: true})
	s.env.ExecuteWorkflow(api.NodeRemediationType, s.in, packed)
	if err := s.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	s.want("1m0s remove 1", "1m0s slot-release")
}
