package plan_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/call"
)

// timers counts those of a plan: all that were set, and the most that were pending at once. Children have timers of their lengths.
type timers struct {
	mu                sync.Mutex
	pending           map[string]bool
	set, most         int
	shortest, longest time.Duration
}

func (s *site) timers(shortest, longest time.Duration) *timers {
	c := &timers{pending: map[string]bool{}, shortest: shortest, longest: longest}
	over := func(id string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pending, id)
	}
	s.env.SetOnTimerScheduledListener(func(id string, d time.Duration) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if d >= c.shortest && d <= c.longest {
			c.pending[id] = true
			c.set++
			c.most = max(c.most, len(c.pending))
		}
	})
	s.env.SetOnTimerFiredListener(over)
	s.env.SetOnTimerCanceledListener(over)
	return c
}

func TestAPlanHasOneTimer(t *testing.T) {
	s := newSite(t, "a", "b")
	c := s.timers(10*time.Minute, 24*time.Hour)
	for i := range 20 {
		s.signalAt(10*time.Minute+time.Duration(i)*time.Second, api.MsgResume, nil)
	}
	s.ended(`{"all":true,"strategy":{"canary":{"nodes":1,"soak":"2h"}}}`, api.PlanCompleted, plan.Counts{Total: 2, Done: 2})
	if c.most != 1 || len(c.pending) > 0 {
		t.Errorf("%d timers at once, %d are left", c.most, len(c.pending))
	}
}

func TestNewsThatComesWithTheStartOfItsMaintenanceCounts(t *testing.T) {
	s := newSite(t, "a", "b")
	s.lasts = time.Hour
	env := s.env
	env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, _ converter.EncodedValues) {
		if info.WorkflowExecution.ID == "node-maintenance/a/plan-kernel" {
			env.SignalWorkflowSkippingWorkflowTask(api.SignalNodeNews, api.NodeNews{Node: "a", RunID: info.WorkflowExecution.RunID, Held: true, Why: "the disk"})
		}
	})
	s.at(10*time.Minute, func() {
		if status := s.status(); status.Phase != api.PlanPaused || status.Counts.Held != 1 {
			t.Errorf("it is %s with %+v", status.Phase, status.Counts)
		}
	})
	s.signalAt(2*time.Hour, api.MsgResume, nil)
	s.ended(`{"all":true}`, api.PlanCompleted, plan.Counts{Total: 2, Done: 2})
}

func TestAStagedPlanBacksOffWhileItsNodesCannotBeListed(t *testing.T) {
	l := newLockstep(t, "a")
	l.denied = temporal.NewNonRetryableApplicationError("may not list nodes", api.ErrorMissingPermission, nil)
	l.deniedUntil = l.env.Now().Add(20 * time.Minute)
	c := l.timers(time.Second, 24*time.Hour)
	l.at(20*time.Minute, func() {
		if c.set > 10 {
			t.Errorf("it has set %d timers in 20 minutes", c.set)
		}
	})
	l.set(time.Hour, plan.Complete)
	l.ended(in("Cordon"), api.PlanCompleted, plan.Counts{Total: 1, Done: 1})
}

func TestACarriedStateThatCannotBeReadFailsTheTask(t *testing.T) {
	s := newSite(t, "a")
	s.packed = []byte("no state")
	s.env.SetContinuedExecutionRunID("the-run-before")
	_, err := s.run(`{"all":true}`)
	var panicked *temporal.PanicError
	if !errors.As(err, &panicked) {
		t.Errorf("%v", err)
	}
}

func TestAnEarlierPlansMaintenanceTakesAPlace(t *testing.T) {
	s := newSite(t, "a", "b")
	s.begun = api.List[planactivity.Begun]{{Node: "b", RunID: "r1", Earlier: true}}
	s.env.OnActivity(call.Plans.AwaitEnds, mock.Anything, mock.Anything).After(30 * time.Minute).Return(
		func(_ context.Context, awaited api.List[planactivity.Execution]) ([]planactivity.Ended, error) {
			return []planactivity.Ended{{Execution: awaited[0], Phase: api.Completed}}, nil
		})
	s.at(10*time.Minute, func() {
		if status := s.status(); status.Counts.Running != 1 || len(s.log) > 0 {
			t.Errorf("%+v: %q", status.Counts, s.log)
		}
	})
	s.ended(`{"all":true}`, api.PlanCompleted, plan.Counts{Total: 2, Done: 2})
	s.logged("begin a", "end a")
}
