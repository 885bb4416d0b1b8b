package maintenance_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/workflowtest"
)

// The record has what all attempts did, also where there is no attempt when the maintenance ends.
func TestTheRecordHasWhatEveryAttemptDid(t *testing.T) {
	blocked := api.DrainProgress{
		Total: 5, Evicted: 2, Remaining: 3, Pods: []api.EndedPod{{Pod: "default/a", How: "evicted"}}, MorePods: 1,
		Blockers: []api.Blocker{{Pod: "default/web", Reason: "DisruptionBudget", Message: "budget web allows 0 disruptions"}},
	}
	prepare := func(t *testing.T) *workflowtest.Site {
		s := workflowtest.New(t)
		s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour})
		s.SignalAt(10*time.Minute, api.SignalDrainBlocked, blocked)
		return s
	}
	t.Run("cancelled between two attempts", func(t *testing.T) {
		s := prepare(t)
		s.ExpectAt(time.Hour+2*time.Minute, api.Pending, "the next attempt")
		s.SignalAt(time.Hour+3*time.Minute, api.MsgCancel, nil)
		r := api.RecordOf(s.Run(workflowtest.InputWith(nil)), "")
		if r.Drain == nil || r.Drain.Evicted != 2 || r.Drain.Total != 5 || len(r.Drain.Pods) != 1 || r.Drain.MorePods != 1 {
			t.Errorf("the drain is recorded as %+v", r.Drain)
		}
		if len(r.Blockers) != 1 || r.Blockers[0].Pod != "default/web" || r.Blockers[0].Until.IsZero() {
			t.Errorf("blockers %+v", r.Blockers)
		}
	})
	t.Run("completed in the second", func(t *testing.T) {
		s := prepare(t)
		s.Answer("Drain", workflowtest.Reply{After: time.Minute, Value: api.DrainProgress{Total: 3, Evicted: 3, Pods: []api.EndedPod{{Pod: "default/b", How: "evicted"}}, MorePods: 2}})
		s.DoneAt(2 * time.Hour)
		r := api.RecordOf(s.Run(workflowtest.InputWith(nil)), "")
		if r.Drain == nil || r.Drain.Evicted != 5 || r.Drain.Total != 5 || len(r.Drain.Pods) != 2 || r.Drain.MorePods != 3 {
			t.Errorf("the drain is recorded as %+v", r.Drain)
		}
	})
}

// What a drain says last, when it ends, is known in no other way.
func TestWhatADrainDidCountsHoweverItEnds(t *testing.T) {
	last := api.DrainProgress{Total: 5, Evicted: 4, Remaining: 1}
	for name, c := range map[string]struct {
		ended   error
		evicted int
	}{
		"cancelled":                 {temporal.NewCanceledError(last), 4},
		"cancelled before it began": {temporal.NewCanceledError("ACTIVITY_ID_NOT_STARTED"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.Answer("Drain", workflowtest.Reply{After: 10 * time.Minute, Err: c.ended}, workflowtest.Reply{After: 24 * time.Hour})
			s.SignalAt(9*time.Minute, api.SignalDrainBlocked, api.DrainProgress{Total: 5, Evicted: 1, Remaining: 4})
			s.SignalAt(20*time.Minute, api.MsgCancel, nil)
			status := s.Run(workflowtest.InputWith(nil))
			if status.Drain == nil || status.Drain.Evicted != c.evicted {
				t.Errorf("the drain is known as %+v", status.Drain)
			}
		})
	}
}
