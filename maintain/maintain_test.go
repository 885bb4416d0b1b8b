package maintain_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/maintain"
	"drydock.dev/drydock/maintain/maintaintest"
	"drydock.dev/drydock/rules/spec"
)

// site is a workflow that maintains worker-01, in a test environment.
type site struct {
	*testing.T
	*testsuite.TestWorkflowEnvironment
	*maintaintest.Maintenances
	in    maintain.Input
	works int
	// goesOn is how long the workflow goes on after Node.
	goesOn time.Duration
	// result is what Node has returned.
	result error
}

func newSite(t *testing.T) *site {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &site{T: t, TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), in: maintain.Input{Node: "worker-01", Reason: "BIOS 2.4"}}
	s.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	s.Maintenances = maintaintest.Register(s.TestWorkflowEnvironment)
	s.SetTestTimeout(10 * time.Second)
	return s
}

// run runs a workflow whose work this is, and compares what its maintenance was told.
func (s *site) run(work maintain.Work, told ...string) {
	s.Helper()
	s.ExecuteWorkflow(func(ctx workflow.Context) error {
		s.result = maintain.Node(ctx, s.in, func(ctx workflow.Context, m *maintain.Held) error {
			s.works++
			return work(ctx, m)
		})
		free, _ := workflow.NewDisconnectedContext(ctx)
		return workflow.Sleep(free, s.goesOn) // what Node has left behind is to be seen
	})
	if err := s.GetWorkflowError(); err != nil {
		s.Fatal(err)
	}
	if !slices.Equal(s.Told(), told) {
		s.Errorf("told %q, and not %q", s.Told(), told)
	}
}

func (s *site) id() string {
	return api.MaintenanceID("", "worker-01", maintain.RequestorOf("default-test-workflow-id"))
}

func lasting(d time.Duration) maintain.Work {
	return func(ctx workflow.Context, _ *maintain.Held) error { return workflow.Sleep(ctx, d) }
}

func TestTheNodeIsHeldForTheWorkAndGivenBackAfterIt(t *testing.T) {
	s := newSite(t)
	s.run(func(ctx workflow.Context, m *maintain.Held) error {
		want := maintain.Held{Node: "worker-01", Requestor: maintain.RequestorOf("default-test-workflow-id"), WorkflowID: s.id(), RunID: m.RunID}
		if *m != want || m.RunID == "" {
			t.Errorf("held %+v, and not %+v", *m, want)
		}
		return nil
	}, "worker-01: done")
	if s.result != nil || s.works != 1 {
		t.Errorf("returned %v after %d works", s.result, s.works)
	}
}

func TestFailedWorkLeavesTheNodeToADecision(t *testing.T) {
	s := newSite(t)
	s.goesOn = time.Hour
	flash := errors.New("flash: wrong checksum")
	s.run(func(workflow.Context, *maintain.Held) error { return flash }, "worker-01: failed: flash: wrong checksum")
	if !errors.Is(s.result, flash) {
		t.Errorf("returned %v", s.result)
	}
}

func TestARetryDoesTheWorkAgain(t *testing.T) {
	s := newSite(t)
	s.in.AwaitDecision = true
	s.RegisterDelayedCallback(func() {
		if err := s.SignalWorkflowByID(s.id(), api.MsgRetry, api.Simple{}); err != nil {
			t.Error(err)
		}
	}, time.Hour)
	s.run(func(workflow.Context, *maintain.Held) error {
		if s.works == 1 {
			return errors.New("no link")
		}
		return nil
	}, "worker-01: failed: no link", "worker-01: done")
	if s.result != nil || s.works != 2 {
		t.Errorf("returned %v after %d works", s.result, s.works)
	}
}

func TestANodeThatSomebodyGivesBackAfterAFailureFails(t *testing.T) {
	s := newSite(t)
	s.in.AwaitDecision = true
	s.RegisterDelayedCallback(func() {
		if err := s.SignalWorkflowByID(s.id(), api.MsgCancel, api.Cancel{Release: true, Message: api.Message{By: "ops"}}); err != nil {
			t.Error(err)
		}
	}, time.Hour)
	s.run(func(workflow.Context, *maintain.Held) error { return errors.New("no link") }, "worker-01: failed: no link", "worker-01: cancel")
	ended, is := errors.AsType[*maintain.EndedError](s.result)
	if !is || ended.Phase != api.Cancelled || !strings.Contains(s.result.Error(), "no link") {
		t.Errorf("returned %v", s.result)
	}
}

func TestTheHoldIsExtendedWhileTheWorkIsDone(t *testing.T) {
	s := newSite(t)
	s.ReadyTimeout = time.Hour
	s.run(lasting(100*time.Minute), "worker-01: extend", "worker-01: extend", "worker-01: extend", "worker-01: done")
	if s.result != nil || s.works != 1 {
		t.Errorf("returned %v after %d works", s.result, s.works)
	}
}

func TestWorkOnALostNodeIsStoppedAndBeginsAgain(t *testing.T) {
	s := newSite(t)
	s.Lost = map[string]time.Duration{"worker-01": time.Minute}
	var ends []error
	s.run(func(ctx workflow.Context, _ *maintain.Held) error {
		err := workflow.Sleep(ctx, 5*time.Minute)
		ends = append(ends, err)
		return err
	}, "worker-01: done")
	if s.result != nil || len(ends) != 2 || !temporal.IsCanceledError(ends[0]) || ends[1] != nil {
		t.Errorf("returned %v, the works ended %v", s.result, ends)
	}
}

func TestAMaintenanceThatFailsIsAnEndedError(t *testing.T) {
	s := newSite(t)
	s.Refused = map[string]string{"worker-01": "node worker-01 does not exist"}
	s.run(lasting(0))
	ended, is := errors.AsType[*maintain.EndedError](s.result)
	if !is || *ended != (maintain.EndedError{Node: "worker-01", Phase: api.Failed, Message: "node worker-01 does not exist"}) || s.works != 0 {
		t.Errorf("returned %v after %d works", s.result, s.works)
	}
}

func TestACancelledCallerLeavesNoNodeBehind(t *testing.T) {
	for name, c := range map[string]struct {
		after    time.Duration
		giveBack bool
		ignores  bool
		lost     time.Duration
		told     []string
	}{
		"before the node is Ready":     {after: 30 * time.Second, told: []string{"worker-01: cancel"}},
		"during the work":              {after: 2 * time.Minute, told: []string{"worker-01: failed: canceled"}},
		"during the work, as told":     {after: 2 * time.Minute, giveBack: true, told: []string{"worker-01: cancel"}},
		"while the node is lost":       {after: 150 * time.Second, lost: time.Minute, told: []string{"worker-01: cancel"}},
		"during work that is finished": {after: 2 * time.Minute, ignores: true, told: []string{"worker-01: done"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.in.GiveBackOnCancel, s.goesOn = c.giveBack, time.Hour
			if c.lost > 0 {
				s.Lost = map[string]time.Duration{"worker-01": c.lost}
			}
			s.RegisterDelayedCallback(s.CancelWorkflow, c.after)
			s.run(func(ctx workflow.Context, _ *maintain.Held) error {
				if c.ignores {
					ctx, _ = workflow.NewDisconnectedContext(ctx)
				}
				return workflow.Sleep(ctx, time.Hour)
			}, c.told...)
			if !temporal.IsCanceledError(s.result) {
				t.Errorf("returned %v", s.result)
			}
		})
	}
}

// One workflow has a node maintained twice, one call after the other or both at once: each has a maintenance of its own.
func TestCallsForOneNodeGoOneAfterTheOther(t *testing.T) {
	for name, atOnce := range map[string]bool{"after the other": false, "at once": true} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			var runs []string
			working := 0
			call := func(ctx workflow.Context) error {
				return maintain.Node(ctx, s.in, func(ctx workflow.Context, m *maintain.Held) error {
					if working++; working > 1 {
						t.Error("two work on the node at once")
					}
					defer func() { working-- }()
					runs = append(runs, m.RunID)
					return workflow.Sleep(ctx, time.Minute)
				})
			}
			s.ExecuteWorkflow(func(ctx workflow.Context) error {
				both := workflow.NewWaitGroup(ctx)
				var failed []error
				for range 2 {
					both.Add(1)
					workflow.Go(ctx, func(ctx workflow.Context) {
						defer both.Done()
						failed = append(failed, call(ctx))
					})
					if !atOnce {
						both.Wait(ctx)
					}
				}
				both.Wait(ctx)
				return errors.Join(failed...)
			})
			if err := s.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			if want := []string{"worker-01: done", "worker-01: done"}; !slices.Equal(s.Told(), want) || len(runs) != 2 || runs[0] == runs[1] {
				t.Errorf("told %q in the maintenances %q", s.Told(), runs)
			}
		})
	}
}

func TestABadInputStartsNothing(t *testing.T) {
	for want, in := range map[string]maintain.Input{
		"maintain.Input.Node:":             {Node: "a/b"},
		"maintain.Input.Requestor:":        {Node: "worker-01", Requestor: "x"},
		"maintain.Input.Fields: reportTo:": {Node: "worker-01", Fields: map[string]any{"reportTo": "me"}},
	} {
		s := newSite(t)
		s.in = in
		s.run(lasting(0))
		if s.result == nil || !strings.Contains(s.result.Error(), want) {
			t.Errorf("%+v returned %v, and not %s", in, s.result, want)
		}
	}
}

func TestRequestorsOfWorkflowsAreNamesAndDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"a", "firmware/2026", "firmware-2026", "é", strings.Repeat("x", 900), strings.Repeat("x", 901), "../..", "-"} {
		name := maintain.RequestorOf(id)
		if err := spec.RequestorName(name); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("%q and %q are both %s", id, other, name)
		}
		seen[name] = id
	}
}

// FlashBIOS stands for an activity of the caller's.
func FlashBIOS(context.Context, string) error { return nil }

func ExampleNode() {
	rollout := func(ctx workflow.Context, nodes []string) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Hour})
		for _, node := range nodes {
			err := maintain.Node(ctx, maintain.Input{Node: node, Reason: "BIOS 2.4"}, func(ctx workflow.Context, m *maintain.Held) error {
				return workflow.ExecuteActivity(ctx, FlashBIOS, m.Node).Get(ctx, nil)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}

	// A test of it needs no cluster.
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	env.RegisterActivity(FlashBIOS)
	maintenances := maintaintest.Register(env)
	env.ExecuteWorkflow(rollout, []string{"worker-01", "worker-02"})
	fmt.Println(maintenances.Told(), env.GetWorkflowError())
	// Output: [worker-01: done worker-02: done] <nil>
}
