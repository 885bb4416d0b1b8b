package plan_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/temporal"

	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/call"
)

func broken() error {
	return temporal.NewNonRetryableApplicationError("broken", api.ErrorMaintenanceFailed, nil)
}

// TestARepairedNodeLeavesNoFailureOver: what somebody forgave was that node's failure, and no other's.
func TestARepairedNodeLeavesNoFailureOver(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	s.ends["b"] = []error{broken()}
	s.at(10*time.Second, func() {
		s.env.SignalWorkflow(api.SignalNodeNews, api.NodeNews{Node: "a", RunID: s.status().Nodes[0].RunID, Held: true, Why: "the disk"})
	})
	s.signalAt(20*time.Second, api.MsgResume, api.Simple{})
	s.at(10*time.Minute, func() {
		if status := s.status(); status.Phase != api.PlanPaused || status.Counts.Done != 1 || status.Counts.Failed != 1 {
			t.Errorf("it is %s with %+v", status.Phase, status.Counts)
		}
	})
	s.signalAt(11*time.Minute, api.MsgResume, api.Simple{})
	s.ended(`{"all":true}`, api.PlanIncomplete, plan.Counts{Total: 3, Done: 2, Failed: 1})
}

// TestAForgivenFailureIsForgivenUntilTheNodeFailsAnew: whoever gives up a node that was forgiven does not fail it again.
func TestAForgivenFailureIsForgivenUntilTheNodeFailsAnew(t *testing.T) {
	for name, c := range map[string]struct {
		ends  []error
		then  func(s *site, run string)
		phase api.PlanPhase
		last  plan.Counts
	}{
		"it is cancelled": {
			then: func(s *site, _ string) {
				if err := s.env.SignalWorkflowByID("node-maintenance/a/plan-kernel", api.MsgCancel, api.Cancel{}); err != nil {
					s.Error(err)
				}
			},
			phase: api.PlanRunning, last: plan.Counts{Total: 3, Done: 2, Failed: 1},
		},
		"it waits for somebody again": {
			then: func(s *site, run string) {
				s.env.SignalWorkflow(api.SignalNodeNews, api.NodeNews{Node: "a", RunID: run, Held: true, Why: "the fan"})
			},
			phase: api.PlanPaused, last: plan.Counts{Total: 3, Done: 3},
		},
		"it fails": {
			ends: []error{broken()}, then: func(*site, string) {},
			phase: api.PlanPaused, last: plan.Counts{Total: 3, Done: 2, Failed: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "a", "b", "c")
			s.ends["a"] = c.ends
			var run string
			s.at(10*time.Second, func() {
				run = s.status().Nodes[0].RunID
				s.env.SignalWorkflow(api.SignalNodeNews, api.NodeNews{Node: "a", RunID: run, Held: true, Why: "the disk"})
			})
			s.signalAt(20*time.Second, api.MsgResume, api.Simple{})
			s.at(30*time.Second, func() { s.env.SignalWorkflow(api.SignalNodeNews, api.NodeNews{Node: "a", RunID: run}) })
			s.at(40*time.Second, func() { c.then(s, run) })
			s.at(65*time.Second, func() {
				if status := s.status(); status.Phase != c.phase {
					t.Errorf("it is %s with %+v, want it %s", status.Phase, status.Nodes, c.phase)
				}
			})
			s.signalAt(11*time.Minute, api.MsgResume, api.Simple{}) // where it is paused; else it is over, or refused
			end := api.PlanCompleted
			if c.last.Failed > 0 {
				end = api.PlanIncomplete
			}
			s.ended(`{"all":true}`, end, c.last)
		})
	}
}

func TestANodeThatCeasedToMatchIsNotBegunAnew(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	s.ends["a"] = []error{broken()}
	s.at(30*time.Second, func() { s.nodes = s.nodes[1:] })
	s.signalAt(90*time.Second, api.MsgRetry, api.NodeOfPlan{Node: "a"})
	s.ended(`{"all":true,"strategy":{"maxFailures":3}}`, api.PlanCompleted, plan.Counts{Total: 2, Done: 2, Gone: 1})
	s.logged("begin a", "begin b", "end b", "begin c", "end c")
}

func TestNoServerIsAskedForMoreThanItTakes(t *testing.T) {
	s := newSite(t)
	for i := range plan.MaxAtOnce + 100 {
		s.nodes = append(s.nodes, plan.Facts{Name: fmt.Sprint("n", i)})
	}
	s.ended(`{"all":true,"strategy":{"maxParallel":"100%"}}`, api.PlanCompleted, plan.Counts{Total: len(s.nodes), Done: len(s.nodes)})
	if s.most != plan.MaxAtOnce {
		t.Errorf("%d ran at once", s.most)
	}
}

// unknownRun is a plan that knows that the maintenance of a runs, and not which run that is.
func unknownRun(t *testing.T) *site {
	s := newSite(t, "a", "b")
	packed, err := api.Pack(map[string]any{
		"phase": api.PlanRunning, "digest": "before", "prepared": map[string]any{}, "mayRun": true, "createdAt": s.env.Now(),
		"nodes": []plan.Node{{Facts: plan.Facts{Name: "a"}, State: plan.Running, Tries: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.packed = packed
	s.env.SetContinuedExecutionRunID("the-run-before")
	return s
}

// TestAMaintenanceWhoseRunIsUnknownIsFound: whoever works on its node, and what it says of itself, goes by its run.
func TestAMaintenanceWhoseRunIsUnknownIsFound(t *testing.T) {
	s := unknownRun(t)
	s.begun = api.List[planactivity.Begun]{{Node: "a", RunID: "r1", Held: true, Why: "the disk"}}
	s.awaitsEnds(10*time.Minute, func(awaited api.List[planactivity.Execution]) {
		if len(awaited) != 1 || awaited[0].RunID != "r1" {
			t.Errorf("asked for %+v", awaited)
		}
	})
	s.at(45*time.Second, func() {
		if status := s.status(); status.Phase != api.PlanPaused || status.Nodes[0].RunID != "r1" || status.Nodes[0].Note != "the disk" {
			t.Errorf("%s with %+v", status.Phase, status.Nodes)
		}
	})
	s.signalAt(2*time.Minute, api.MsgResume, api.Simple{})
	s.at(15*time.Minute, func() {
		if status := s.status(); status.Counts.Done != 1 || status.Counts.Running != 1 {
			t.Errorf("%+v", status.Counts)
		}
	})
	s.lasts = 20 * time.Minute
	s.ended(`{"all":true}`, api.PlanCompleted, plan.Counts{Total: 2, Done: 2})
}

// awaitsEnds has the first of the maintenances whose end is awaited be completed after a while.
func (s *site) awaitsEnds(after time.Duration, look func(api.List[planactivity.Execution])) {
	s.env.OnActivity(call.Plans.AwaitEnds, mock.Anything, mock.Anything).After(after).Return(
		func(_ context.Context, awaited api.List[planactivity.Execution]) ([]planactivity.Ended, error) {
			look(awaited)
			return []planactivity.Ended{{Execution: awaited[0], Phase: api.Completed}}, nil
		})
}

// TestAMessageGoesToThePlansOwnMaintenance: not to one that has the same ID and is somebody else's.
func TestAMessageGoesToThePlansOwnMaintenance(t *testing.T) {
	for name, c := range map[string]struct {
		begun api.List[planactivity.Begun]
		want  int
		phase plan.Counts
	}{
		"its own":         {api.List[planactivity.Begun]{{Node: "a", RunID: "r1"}}, 1, plan.Counts{Total: 1, Skipped: 1}},
		"somebody else's": {nil, 0, plan.Counts{Total: 1, Waiting: 1}},
		"an earlier plan's, refused": {
			api.List[planactivity.Begun]{{Node: "a", RunID: "r1", Earlier: true, Refused: "reason differs"}}, 0, plan.Counts{Total: 1, Waiting: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := unknownRun(t)
			s.begun, s.finds = c.begun, time.Minute
			sent := 0
			s.env.OnSignalExternalWorkflow(mock.Anything, "node-maintenance/a/plan-kernel", mock.Anything, api.MsgCancel, mock.Anything).Return(
				func(_, _, _, _ string, said any) error {
					if m := said.(api.Cancel); !m.BeforeReady || m.Run != "r1" {
						t.Errorf("it is sent %+v", m)
					}
					sent++
					return nil
				})
			s.env.OnActivity(call.Plans.AwaitEnds, mock.Anything, mock.Anything).After(time.Minute).Return(
				func(_ context.Context, awaited api.List[planactivity.Execution]) ([]planactivity.Ended, error) {
					return []planactivity.Ended{{Execution: awaited[0], Phase: api.Cancelled}}, nil
				})
			s.signalAt(time.Second, api.MsgCancel, api.Cancel{})
			s.ended(`{"all":true}`, api.PlanCancelled, c.phase)
			if sent != c.want {
				t.Errorf("it was sent %d messages, want %d", sent, c.want)
			}
		})
	}
}
