package workflows_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities"
	"drydock/workflows"
	"drydock/workflows/schedule"
)

func TestMaintenanceGoesThroughItsPhasesInOrder(t *testing.T) {
	const cordonAndDrain, announced = "HoldNode Drain", " AnnouncePhase "
	for name, c := range map[string]struct {
		in     input
		phases []workflows.Phase
		steps  string
	}{
		"evict": {
			in:     input{"reason": "kernel", "ticket": "CHG-7"},
			phases: []workflows.Phase{workflows.Draining},
			steps:  cordonAndDrain + announced,
		},
		"wait": {
			in:     input{"drain": input{"mode": "wait"}},
			phases: []workflows.Phase{workflows.Draining},
			steps:  cordonAndDrain + announced,
		},
		"none": {
			in:     input{"drain": input{"mode": "none"}},
			phases: []workflows.Phase{workflows.Draining},
			steps:  "HoldNode" + announced,
		},
		"pods complete first": {
			in:     input{"waitForPodCompletion": input{"podSelector": "app=batch"}},
			phases: []workflows.Phase{workflows.WaitingForPods, workflows.Draining},
			steps:  "HoldNode WaitForPods Drain" + announced,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.doneAt(time.Hour / 2)
			status := s.run(of(c.in))
			result := s.expectCompleted()
			want := []workflows.Phase{workflows.Pending, workflows.Scheduled, workflows.Cordoning}
			want = append(append(want, c.phases...), workflows.Ready, workflows.Releasing, workflows.Completed)
			s.expectPhases(status, want...)
			s.expectLog(strings.Fields("slot-request " + c.steps + " ReleaseNode slot-release")...)
			if result.Phase != workflows.Completed || result.WorkflowID != testID || result.Node != testNode ||
				result.Requestor != testRequestor || result.RunID != testRun || len(result.Transitions) != len(status.Transitions) {
				t.Errorf("result = %+v", result)
			}
			if !slices.IsSortedFunc(status.Transitions, func(a, b workflows.Transition) int { return a.At.Compare(b.At) }) {
				t.Errorf("transitions are out of order: %+v", status.Transitions)
			}
		})
	}
}

func TestMaintenanceTellsItsActivitiesWhoAskedAndWhatFor(t *testing.T) {
	s := newSite(t)
	s.doneAt(time.Hour / 2)
	s.run(of(input{"reason": "kernel", "ticket": "CHG-7", "cordon": false, "drain": input{"gracePeriodSeconds": 5, "force": true}}))
	hold := inputOf[activities.HoldInput](s, "HoldNode", 0)
	if hold.Node != testNode || hold.Requestor != testRequestor || hold.RunID != testRun || hold.Cordon || hold.UID != "" ||
		!strings.Contains(hold.Event.Message, "kernel") || !strings.Contains(hold.Event.Message, "CHG-7") {
		t.Errorf("HoldNode got %+v", hold)
	}
	drain := inputOf[activities.DrainInput](s, "Drain", 0)
	if drain.UID != "uid-1" || drain.RunID != testRun || !drain.Drain.Force || *drain.Drain.GracePeriodSeconds != 5 {
		t.Errorf("Drain got %+v", drain)
	}
	release := inputOf[activities.ReleaseInput](s, "ReleaseNode", 0)
	if release.WorkflowID != testID || release.RunID != testRun || release.Node != testNode {
		t.Errorf("ReleaseNode got %+v", release)
	}
}

func TestMaintenanceOfANamedClusterAsksThatClustersScheduler(t *testing.T) {
	s := newSiteAs(t, workflows.MaintenanceID("prod", testNode, testRequestor), workflows.TaskQueue("prod", "drydock"))
	s.doneAt(time.Hour / 2)
	s.run(of(nil))
	s.expectCompleted()
	s.expectLog("slot-request", "HoldNode", "Drain", "AnnouncePhase", "ReleaseNode", "slot-release")
}

func TestMaintenanceUnderAnotherIDStartsTheCanonicalOne(t *testing.T) {
	s := newSiteAs(t, "whatever", workflows.DefaultTaskQueue)
	s.defaults = `{"drain":{"force":true}}`
	var child json.RawMessage
	var childQueue string
	s.env.OnWorkflow(workflows.NodeMaintenanceType, mock.Anything, mock.Anything).Return(
		func(ctx workflow.Context, in converter.RawValue) (workflows.Result, error) {
			if info := workflow.GetInfo(ctx); info.WorkflowExecution.ID == testID {
				child, childQueue = in.Payload().GetData(), info.TaskQueueName
				return workflows.Result{}, nil
			}
			return workflows.NodeMaintenance(ctx, in)
		})
	s.env.ExecuteWorkflow(workflows.NodeMaintenance, of(input{"reason": "kernel"}).payload(t))
	result := s.expectCompleted()
	if result.WorkflowID != testID || result.Node != testNode || !strings.Contains(result.Message, "started") {
		t.Errorf("result = %+v", result)
	}
	var got map[string]any
	if err := json.Unmarshal(child, &got); err != nil {
		t.Fatalf("the child's input %q: %v", child, err)
	}
	if got["reason"] != "kernel" || got["readyTimeout"] != "1h0m0s" || childQueue != workflows.DefaultTaskQueue {
		t.Errorf("the child runs on %s with %s", childQueue, child)
	}
	if force, _ := got["drain"].(map[string]any)["force"].(bool); !force {
		t.Errorf("the child lacks the worker's defaults: %s", child)
	}
	s.expectLog()
}

func TestMaintenanceUnderAnotherIDFindsTheCanonicalOneRunning(t *testing.T) {
	running := func(change func(*workflows.Status)) reply {
		first := newSite(t)
		first.doneAt(time.Hour / 2)
		status := first.run(of(input{"reason": "kernel"}))
		change(&status)
		answer, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		return reply{value: []activities.Answered{{Answer: answer}}}
	}
	for name, c := range map[string]struct {
		answer              reply
		kind, failure, want string
	}{
		"the same": {answer: running(func(*workflows.Status) {}), want: "already runs with the same specification"},
		"another": {
			answer: running(func(s *workflows.Status) { s.Spec.Reason = "disk" }),
			kind:   workflows.ErrorConflict, failure: `"reason":"disk"`,
		},
		"ended meanwhile": {answer: reply{value: []activities.Answered{{Gone: true}}}, failure: "start again"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSiteAs(t, "parent", workflows.DefaultTaskQueue)
			s.env.SetDetachedChildWait(false)
			s.scheduler = func(string, any) error { return nil }
			s.answer("Query", c.answer)
			// The environment knows children only: a parent starts first the canonical maintenance, then the other.
			s.env.ExecuteWorkflow(func(ctx workflow.Context) (workflows.Result, error) {
				start := func(id string) workflow.ChildWorkflowFuture {
					ctx := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: id})
					return workflow.ExecuteChildWorkflow(ctx, workflows.NodeMaintenanceType, of(input{"reason": "kernel"}))
				}
				if err := start(testID).GetChildWorkflowExecution().Get(ctx, nil); err != nil {
					return workflows.Result{}, err
				}
				var result workflows.Result
				err := start("whatever").Get(ctx, &result)
				return result, err
			})
			if c.failure == "" {
				if result := s.expectCompleted(); result.WorkflowID != testID || !strings.Contains(result.Message, c.want) {
					t.Errorf("result = %+v", result)
				}
				return
			}
			err := s.env.GetWorkflowError()
			if err == nil || !strings.Contains(err.Error(), c.failure) {
				t.Errorf("error = %v, want one with %s", err, c.failure)
			}
			var cause *temporal.ApplicationError
			if c.kind != "" && (!errors.As(err, &cause) || cause.Type() != c.kind) {
				t.Errorf("error = %v, want type %s", err, c.kind)
			}
		})
	}
}

func TestMaintenanceRefusesAWrongInputAndTouchesNothing(t *testing.T) {
	for name, c := range map[string]struct{ input, want string }{
		"empty object":   {`{}`, "node: required"},
		"a string":       {`"n1"`, "want a JSON object, got a string"},
		"an array":       {`["n1"]`, "want a JSON object, got a list"},
		"a number":       {`7`, "want a JSON object, got a number"},
		"null":           {`null`, "want a JSON object, got null"},
		"nothing":        {``, "no input"},
		"not JSON":       {`{"node"`, "not valid JSON"},
		"unknown field":  {`{"node":"n1","nodes":["n2"]}`, "nodes: unknown field"},
		"wrong type":     {`{"node":"n1","priority":"high"}`, "priority: want a whole number"},
		"bad selector":   {`{"node":"n1","drain":{"podSelector":"a=("}}`, "drain.podSelector"},
		"negative grace": {`{"node":"n1","drain":{"gracePeriodSeconds":-1}}`, "gracePeriodSeconds"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.env.ExecuteWorkflow(workflows.NodeMaintenance, raw(c.input))
			s.expectFailure(workflows.ErrorInvalidSpec, c.want)
			s.expectLog()
		})
	}
}

func TestMaintenanceTakesTheWorkersDefaultsUnderItsInput(t *testing.T) {
	s := newSite(t)
	s.defaults = `{"readyTimeout":"2h","drain":{"force":true,"mode":"wait"}}`
	s.doneAt(time.Hour / 2)
	status := s.run(of(input{"drain": input{"mode": "evict"}}))
	if got := status.Spec; got.ReadyTimeout.Std() != 2*time.Hour || !got.Drain.Force || got.Drain.Mode != "evict" {
		t.Errorf("spec = %+v", got)
	}
}

func TestMaintenanceSetsSearchAttributesOnlyWhereTheyExist(t *testing.T) {
	for name, have := range map[string]bool{"registered": true, "not registered": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.attributes = have
			upserts := 0
			s.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(mock.Arguments) { upserts++ }).Return(nil).Maybe()
			s.doneAt(time.Hour / 2)
			s.run(of(nil))
			if (upserts > 0) != have {
				t.Errorf("%d upserts", upserts)
			}
		})
	}
}

// silent is a scheduler that takes every signal and says nothing.
func silent(string, any) error { return nil }

func TestSlotRequestIsRepeatedWithBackoffUntilItIsAcknowledged(t *testing.T) {
	s := newSite(t)
	s.scheduler = silent
	s.expectAt(time.Second, workflows.Pending, "an answer from the scheduler")
	s.at(4*time.Minute, func() {
		s.env.SignalWorkflow(workflows.SignalSlotPending, workflows.SlotAnswer{
			RequestID: testRun + "/1", Code: schedule.MaxParallel, Reason: "maxParallel 1: the slot is taken (n2)",
		})
	})
	s.expectAt(5*time.Minute, workflows.Pending, "the slot is taken (n2)")
	s.at(3*time.Hour, func() { s.grant(testRun + "/1") })
	s.doneAt(3*time.Hour + 10*time.Minute)
	start := s.env.Now()
	s.run(of(nil))
	s.expectCompleted()
	var offsets []time.Duration
	for _, at := range s.requestTimes {
		offsets = append(offsets, at.Sub(start).Round(time.Second))
	}
	// Once acknowledged it is repeated every half hour only.
	want := []time.Duration{0, 5, 15, 35, 75, 135, 195}
	for i := range want {
		want[i] *= time.Second
	}
	for at := 34 * time.Minute; at < 3*time.Hour; at += 30 * time.Minute {
		want = append(want, at)
	}
	if !slices.Equal(offsets, want) {
		t.Errorf("asked after %v, want %v", offsets, want)
	}
	if len(s.requested) != 1 {
		t.Errorf("the repeated request has %d IDs", len(s.requested))
	}
}

func TestSlotReasonFollowsTheScheduler(t *testing.T) {
	s := newSite(t)
	s.scheduler = silent
	pending := func(reason string) workflows.SlotAnswer {
		return workflows.SlotAnswer{RequestID: testRun + "/1", Reason: reason}
	}
	s.signalAt(time.Second, workflows.SignalSlotPending, pending("first"))
	s.expectAt(2*time.Second, workflows.Pending, "first")
	s.signalAt(3*time.Second, workflows.SignalSlotPending, pending("second"))
	s.expectAt(4*time.Second, workflows.Pending, "second")
	s.signalAt(5*time.Second, workflows.SignalSlotPending, workflows.SlotAnswer{RequestID: "of-another-run/1", Reason: "late"})
	s.signalAt(6*time.Second, workflows.SignalSlotGranted, workflows.SlotAnswer{RequestID: "of-another-run/1"})
	s.expectAt(7*time.Second, workflows.Pending, "second")
	s.at(8*time.Second, func() { s.grant(testRun + "/1") })
	s.doneAt(time.Hour / 2)
	s.run(of(nil))
	s.expectCompleted()
}

func TestSlotRequestSurvivesASchedulerThatDoesNotRun(t *testing.T) {
	s := newSite(t)
	tries := 0
	s.scheduler = func(name string, arg any) error {
		if tries++; tries <= 20 {
			return errUnknown
		}
		if r, ok := arg.(workflows.SlotRequest); ok {
			s.grant(r.ID)
		}
		return nil
	}
	s.expectAt(30*time.Second, workflows.Pending, "the scheduler, which does not run")
	s.expectAt(110*time.Second, workflows.Draining, "")
	s.doneAt(time.Hour / 2)
	s.run(of(nil))
	s.expectCompleted()
}

func TestSlotRefusedEndsTheMaintenance(t *testing.T) {
	for name, c := range map[string]struct {
		seen  bool
		phase workflows.Phase
	}{
		"never there": {false, workflows.Failed},
		"seen before": {true, workflows.NodeGone},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.scheduler = func(_ string, arg any) error {
				s.refuse(arg.(workflows.SlotRequest).ID, workflows.SlotAnswer{
					Code: schedule.NodeMissing, Reason: "there is no node n1; did you mean n11?", Seen: c.seen,
				})
				return nil
			}
			status := s.run(of(nil))
			s.expectPhases(status, workflows.Pending, c.phase)
			if c.seen {
				if result := s.expectCompleted(); result.Phase != workflows.NodeGone {
					t.Errorf("result = %+v", result)
				}
			} else {
				s.expectFailure(workflows.ErrorNodeNotFound, "did you mean n11?")
			}
			s.expectLog("slot-request")
		})
	}
}

func TestNodeThatWasHeldOnceIsGoneAndNotUnknown(t *testing.T) {
	s := newSite(t)
	s.usual["Drain"] = reply{after: 24 * time.Hour}
	s.scheduler = func(_ string, arg any) error {
		if r, ok := arg.(workflows.SlotRequest); ok {
			if strings.HasSuffix(r.ID, "/1") {
				s.grant(r.ID)
			} else {
				s.refuse(r.ID, workflows.SlotAnswer{Code: schedule.NodeMissing, Reason: "there is no node n1"})
			}
		}
		return nil
	}
	status := s.run(of(input{"drain": input{"escalation": []input{{"after": "30m", "do": "giveBack"}}}}))
	if status.Phase != workflows.NodeGone {
		t.Errorf("the node was held in attempt 1, and the end is %s: %s", status.Phase, status.Failure)
	}
}

// deadline is the error of an activity whose whole time is over.
func deadline() error { return temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil) }

// errUnknown is what a signal to a workflow that does not run ends with.
var errUnknown = errors.New("unknown external workflow execution")
