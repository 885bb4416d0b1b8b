package maintain_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/maintain"
)

// rollOut runs a workflow that does this work on the nodes of a plan, and returns what Nodes has returned.
func (s *site) rollOut(in maintain.PlanInput, work maintain.Work) (result error) {
	s.Helper()
	if in.Fields == nil {
		in.Fields = map[string]any{"nodes": []string{"worker-01", "worker-02", "worker-03", "worker-04"}, "strategy": map[string]any{"maxParallel": 2, "maxFailures": 1}}
	}
	s.ExecuteWorkflow(func(ctx workflow.Context) error {
		result = maintain.Nodes(ctx, in, work)
		free, _ := workflow.NewDisconnectedContext(ctx)
		return workflow.Sleep(free, s.goesOn)
	})
	if err := s.GetWorkflowError(); err != nil {
		s.Fatal(err)
	}
	return result
}

// planned is the ID of the maintenance of a node of plan bios.
func planned(node string) string { return api.MaintenanceID("", node, "plan-bios") }

func TestEachNodeOfAPlanIsWorkedOnWhileItIsHeld(t *testing.T) {
	s := newSite(t)
	working, most := 0, 0
	var held []string
	err := s.rollOut(maintain.PlanInput{Name: "bios", Reason: "BIOS 2.4"}, func(ctx workflow.Context, m *maintain.Held) error {
		if m.WorkflowID != planned(m.Node) || m.RunID == "" || m.Requestor != "plan-bios" {
			t.Errorf("held %+v", *m)
		}
		held = append(held, m.Node)
		working++
		most = max(most, working)
		defer func() { working-- }()
		return workflow.Sleep(ctx, time.Hour)
	})
	told := s.Told()
	slices.Sort(told)
	if want := []string{"worker-01: done", "worker-02: done", "worker-03: done", "worker-04: done"}; err != nil || !slices.Equal(told, want) || most != 2 || len(held) != 4 {
		t.Errorf("returned %v; told %q, held %q, %d at once", err, told, held, most)
	}
}

func TestThePlanGoesOnWhereWorkFails(t *testing.T) {
	s := newSite(t)
	flash := errors.New("flash: wrong checksum")
	err := s.rollOut(maintain.PlanInput{Name: "bios"}, func(_ workflow.Context, m *maintain.Held) error {
		if m.Node == "worker-02" {
			return flash
		}
		return nil
	})
	ended, is := errors.AsType[*maintain.PlanEndedError](err)
	if !is || ended.Phase != api.PlanIncomplete || !errors.Is(err, flash) || !strings.Contains(err.Error(), "worker-02: flash") {
		t.Errorf("returned %v", err)
	}
	if told := s.Told(); len(told) != 4 || !slices.Contains(told, "worker-02: failed: flash: wrong checksum") {
		t.Errorf("told %q", told)
	}
}

func TestANodeThatIsTriedAgainIsWorkedOnAgain(t *testing.T) {
	for name, awaits := range map[string]bool{"awaited": true, "not awaited": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.RegisterDelayedCallback(func() {
				if err := s.SignalWorkflowByID(planned("worker-02"), api.MsgRetry, api.Simple{}); err != nil {
					t.Error(err)
				}
			}, 30*time.Minute)
			works := map[string]int{}
			err := s.rollOut(maintain.PlanInput{Name: "bios", AwaitDecision: awaits}, func(ctx workflow.Context, m *maintain.Held) error {
				if works[m.Node]++; m.Node == "worker-02" && works[m.Node] == 1 {
					return errors.New("no link")
				}
				return workflow.Sleep(ctx, time.Hour)
			})
			if err != nil || works["worker-02"] != 2 || works["worker-01"] != 1 {
				t.Errorf("returned %v after %v", err, works)
			}
		})
	}
}

func TestANodeOfAPlanThatIsLostIsWorkedOnAgain(t *testing.T) {
	s := newSite(t)
	s.Lost = map[string]time.Duration{"worker-03": time.Minute}
	works := map[string]int{}
	err := s.rollOut(maintain.PlanInput{Name: "bios"}, func(ctx workflow.Context, m *maintain.Held) error {
		works[m.Node]++
		return workflow.Sleep(ctx, 5*time.Minute)
	})
	if err != nil || works["worker-03"] != 2 || works["worker-04"] != 1 {
		t.Errorf("returned %v after %v", err, works)
	}
}

func TestACancelledCallerEndsItsPlan(t *testing.T) {
	for name, c := range map[string]struct {
		after    time.Duration
		giveBack bool
		told     []string
	}{
		"before a node is Ready":   {after: 30 * time.Second, told: []string{"plan: cancel", "worker-01: cancel", "worker-02: cancel"}},
		"during the work":          {after: 2 * time.Minute, told: []string{"plan: cancel", "worker-01: failed: canceled", "worker-02: failed: canceled"}},
		"during the work, as told": {after: 2 * time.Minute, giveBack: true, told: []string{"plan: cancel", "worker-01: cancel", "worker-02: cancel"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.goesOn = time.Hour
			s.RegisterDelayedCallback(s.CancelWorkflow, c.after)
			err := s.rollOut(maintain.PlanInput{Name: "bios", GiveBackOnCancel: c.giveBack}, lasting(time.Hour))
			told := s.Told()
			slices.Sort(told)
			if !temporal.IsCanceledError(err) || !slices.Equal(told, c.told) {
				t.Errorf("returned %v, told %q", err, told)
			}
		})
	}
}

func TestAPlanPausesAfterFailuresUntilItIsResumed(t *testing.T) {
	s := newSite(t)
	s.RegisterDelayedCallback(func() {
		if err := s.SignalWorkflowByID(api.PlanID("", "bios"), api.MsgResume, api.Simple{}); err != nil {
			t.Error(err)
		}
	}, 10*time.Hour)
	var begun []string
	err := s.rollOut(maintain.PlanInput{Name: "bios", Fields: map[string]any{"nodes": []string{"worker-01", "worker-02"}}}, func(ctx workflow.Context, m *maintain.Held) error {
		begun = append(begun, fmt.Sprintf("%s after %d h", m.Node, workflow.Now(ctx).Sub(workflow.GetInfo(ctx).WorkflowStartTime)/time.Hour))
		if m.Node == "worker-01" {
			return errors.New("no link")
		}
		return nil
	})
	if want := []string{"worker-01 after 0 h", "worker-02 after 10 h"}; err == nil || !slices.Equal(begun, want) {
		t.Errorf("returned %v, began %q", err, begun)
	}
}

// Somebody finishes a node whose work has failed by hand: the plan completes.
func TestANodeThatSomebodyFinishesIsDone(t *testing.T) {
	s := newSite(t)
	s.RegisterDelayedCallback(func() {
		if err := s.SignalWorkflowByID(planned("worker-01"), api.MsgDone, api.Done{}); err != nil {
			t.Error(err)
		}
	}, 30*time.Minute)
	err := s.rollOut(maintain.PlanInput{Name: "bios"}, func(ctx workflow.Context, m *maintain.Held) error {
		if m.Node == "worker-01" {
			return errors.New("no link")
		}
		return workflow.Sleep(ctx, time.Hour)
	})
	if err != nil {
		t.Errorf("returned %v", err)
	}
}

// A workflow calls Nodes twice for one plan: each call has a plan of its own, one after the other.
func TestCallsForOnePlanGoOneAfterTheOther(t *testing.T) {
	s := newSite(t)
	in := maintain.PlanInput{Fields: map[string]any{"nodes": []string{"worker-01"}}}
	runs := map[string]bool{}
	s.ExecuteWorkflow(func(ctx workflow.Context) error {
		both := workflow.NewWaitGroup(ctx)
		var failed []error
		for range 2 {
			both.Add(1)
			workflow.Go(ctx, func(ctx workflow.Context) {
				defer both.Done()
				failed = append(failed, maintain.Nodes(ctx, in, func(ctx workflow.Context, m *maintain.Held) error {
					runs[m.RunID] = true
					return workflow.Sleep(ctx, time.Minute)
				}))
			})
		}
		both.Wait(ctx)
		return errors.Join(failed...)
	})
	if err := s.GetWorkflowError(); err != nil || len(runs) != 2 {
		t.Errorf("returned %v after %d maintenances", err, len(runs))
	}
}

func TestABadPlanStartsNothing(t *testing.T) {
	for want, in := range map[string]maintain.PlanInput{
		"maintain.PlanInput.Name:":              {Name: "A plan"},
		"maintain.PlanInput.Fields: requestor:": {Name: "bios", Fields: map[string]any{"requestor": "me"}},
		"plan bios ended Failed":                {Name: "bios", Fields: map[string]any{"nodes": []string{"worker-01"}, "strategy": map[string]any{"maxParallel": 0}}},
	} {
		s := newSite(t)
		if err := s.rollOut(in, lasting(0)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v returned %v, and not %s", in, err, want)
		}
	}
}
