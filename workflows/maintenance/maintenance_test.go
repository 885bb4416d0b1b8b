package maintenance_test

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

	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/maintenance"
	"drydock.dev/drydock/workflows/workflowtest"
)

func TestMaintenanceGoesThroughItsPhasesInOrder(t *testing.T) {
	const cordonAndDrain, announced = "HoldNode Drain", " AnnouncePhase "
	for name, c := range map[string]struct {
		in     workflowtest.Input
		phases []api.Phase
		steps  string
	}{
		"evict": {
			in:     workflowtest.Input{"reason": "kernel", "ticket": "CHG-7"},
			phases: []api.Phase{api.Draining},
			steps:  cordonAndDrain + announced,
		},
		"wait": {
			in:     workflowtest.Input{"drain": workflowtest.Input{"mode": "wait"}},
			phases: []api.Phase{api.Draining},
			steps:  cordonAndDrain + announced,
		},
		"none": {
			in:     workflowtest.Input{"drain": workflowtest.Input{"mode": "none"}},
			phases: []api.Phase{api.Draining},
			steps:  "HoldNode" + announced,
		},
		"pods complete first": {
			in:     workflowtest.Input{"waitForPodCompletion": workflowtest.Input{"podSelector": "app=batch"}},
			phases: []api.Phase{api.WaitingForPods, api.Draining},
			steps:  "HoldNode WaitForPods Drain" + announced,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.DoneAt(time.Hour / 2)
			status := s.Run(workflowtest.InputWith(c.in))
			result := s.ExpectCompleted()
			want := []api.Phase{api.Pending, api.Scheduled, api.Cordoning}
			want = append(append(want, c.phases...), api.Ready, api.Releasing, api.Completed)
			s.ExpectPhases(status, want...)
			s.ExpectLog(strings.Fields("slot-request " + c.steps + " ReleaseNode slot-release")...)
			if result.Phase != api.Completed || result.WorkflowID != workflowtest.ID || result.Node != workflowtest.Node ||
				result.Requestor != workflowtest.Requestor || result.RunID != workflowtest.RunID || len(result.Transitions) != len(status.Transitions) {
				t.Errorf("result = %+v", result)
			}
			if !slices.IsSortedFunc(status.Transitions, func(a, b api.Transition) int { return a.At.Compare(b.At) }) {
				t.Errorf("transitions are out of order: %+v", status.Transitions)
			}
		})
	}
}

func TestActivitiesGetTheRequestorAndReasonOfTheMaintenance(t *testing.T) {
	s := workflowtest.New(t)
	s.DoneAt(time.Hour / 2)
	s.Run(workflowtest.InputWith(workflowtest.Input{"reason": "kernel", "ticket": "CHG-7", "cordon": false, "drain": workflowtest.Input{"gracePeriodSeconds": 5, "force": true}}))
	hold := workflowtest.InputOf[node.HoldInput](s, "HoldNode", 0)
	if hold.Node != workflowtest.Node || hold.Requestor != workflowtest.Requestor || hold.RunID != workflowtest.RunID || hold.Cordon || hold.UID != "" ||
		!strings.Contains(hold.Event.Message, "kernel") || !strings.Contains(hold.Event.Message, "CHG-7") {
		t.Errorf("HoldNode got %+v", hold)
	}
	drain := workflowtest.InputOf[drain.Input](s, "Drain", 0)
	if drain.UID != "uid-1" || drain.RunID != workflowtest.RunID || !drain.Drain.Force || *drain.Drain.GracePeriodSeconds != 5 {
		t.Errorf("Drain got %+v", drain)
	}
	release := workflowtest.InputOf[node.ReleaseInput](s, "ReleaseNode", 0)
	if release.WorkflowID != "" || release.RunID != workflowtest.RunID || release.Node != workflowtest.Node {
		t.Errorf("ReleaseNode got %+v", release)
	}
}

func TestMaintenanceOfANamedClusterAsksThatClustersScheduler(t *testing.T) {
	s := workflowtest.NewAs(t, api.MaintenanceID("prod", workflowtest.Node, workflowtest.Requestor), api.TaskQueue("prod", "drydock"))
	s.DoneAt(time.Hour / 2)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	s.ExpectLog("slot-request", "HoldNode", "Drain", "AnnouncePhase", "ReleaseNode", "slot-release")
}

func TestMaintenanceUnderAnotherIDStartsTheCanonicalOne(t *testing.T) {
	s := workflowtest.NewAs(t, "whatever", api.DefaultTaskQueue)
	s.Prepared.Defaults = json.RawMessage(`{"drain":{"force":true}}`)
	var child json.RawMessage
	var childQueue string
	s.Env.OnWorkflow(api.NodeMaintenanceType, mock.Anything, mock.Anything, mock.Anything).Return(
		func(ctx workflow.Context, in, carried converter.RawValue) (api.Result, error) {
			if info := workflow.GetInfo(ctx); info.WorkflowExecution.ID == workflowtest.ID {
				child, childQueue = in.Payload().GetData(), info.TaskQueueName
				return api.Result{}, nil
			}
			return maintenance.NodeMaintenance(ctx, in, carried)
		})
	s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, workflowtest.InputWith(workflowtest.Input{"reason": "kernel"}).Payload(t), workflowtest.Raw(""))
	result := s.ExpectCompleted()
	if result.WorkflowID != workflowtest.ID || result.Node != workflowtest.Node || !strings.Contains(result.Message, "started") {
		t.Errorf("result = %+v", result)
	}
	var got map[string]any
	if err := json.Unmarshal(child, &got); err != nil {
		t.Fatalf("the child's input %q: %v", child, err)
	}
	if got["reason"] != "kernel" || got["readyTimeout"] != "1h0m0s" || childQueue != api.DefaultTaskQueue {
		t.Errorf("the child runs on %s with %s", childQueue, child)
	}
	if force, _ := got["drain"].(map[string]any)["force"].(bool); !force {
		t.Errorf("the child lacks the worker's defaults: %s", child)
	}
	s.ExpectLog()
}

func TestMaintenanceUnderAnotherIDFindsTheCanonicalOneRunning(t *testing.T) {
	running := func(change func(*api.Status)) workflowtest.Reply {
		first := workflowtest.New(t)
		first.DoneAt(time.Hour / 2)
		status := first.Run(workflowtest.InputWith(workflowtest.Input{"reason": "kernel"}))
		change(&status)
		answer, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		return workflowtest.Reply{Value: []execution.Answered{{Answer: answer}}}
	}
	for name, c := range map[string]struct {
		answer              workflowtest.Reply
		kind, failure, want string
	}{
		"the same": {answer: running(func(*api.Status) {}), want: "already runs with the same specification"},
		"another": {
			answer: running(func(s *api.Status) { s.Spec.Reason = "disk" }),
			kind:   api.ErrorConflict, failure: `"reason":"disk"`,
		},
		"ended meanwhile": {answer: workflowtest.Reply{Value: []execution.Answered{{Gone: true}}}, failure: "start again"},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.NewAs(t, "parent", api.DefaultTaskQueue)
			s.Env.SetDetachedChildWait(false)
			s.Scheduler = func(string, any) error { return nil }
			s.Answer("Query", c.answer)
			// The environment knows children only: a parent starts first the canonical maintenance, then the other.
			s.Env.ExecuteWorkflow(func(ctx workflow.Context) (api.Result, error) {
				start := func(id string) workflow.ChildWorkflowFuture {
					ctx := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: id})
					return workflow.ExecuteChildWorkflow(ctx, api.NodeMaintenanceType, workflowtest.InputWith(workflowtest.Input{"reason": "kernel"}))
				}
				if err := start(workflowtest.ID).GetChildWorkflowExecution().Get(ctx, nil); err != nil {
					return api.Result{}, err
				}
				var result api.Result
				err := start("whatever").Get(ctx, &result)
				return result, err
			})
			if c.failure == "" {
				if result := s.ExpectCompleted(); result.WorkflowID != workflowtest.ID || !strings.Contains(result.Message, c.want) {
					t.Errorf("result = %+v", result)
				}
				return
			}
			err := s.Env.GetWorkflowError()
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
			s := workflowtest.New(t)
			s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, workflowtest.Raw(c.input), workflowtest.Raw(""))
			s.ExpectFailure(api.ErrorInvalidSpec, c.want)
			s.ExpectLog()
		})
	}
}

func TestMaintenanceTakesTheWorkersDefaultsUnderItsInput(t *testing.T) {
	s := workflowtest.New(t)
	s.Prepared.Defaults = json.RawMessage(`{"readyTimeout":"2h","drain":{"force":true,"mode":"wait"}}`)
	s.DoneAt(time.Hour / 2)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"drain": workflowtest.Input{"mode": "evict"}}))
	if got := status.Spec; got.ReadyTimeout.Std() != 2*time.Hour || !got.Drain.Force || got.Drain.Mode != "evict" {
		t.Errorf("spec = %+v", got)
	}
}

func TestMaintenanceSetsSearchAttributesOnlyWhereTheyExist(t *testing.T) {
	for name, have := range map[string]bool{"registered": true, "not registered": false} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.Prepared.SearchAttributes = have
			upserts := 0
			s.Env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(mock.Arguments) { upserts++ }).Return(nil).Maybe()
			s.DoneAt(time.Hour / 2)
			s.Run(workflowtest.InputWith(nil))
			if (upserts > 0) != have {
				t.Errorf("%d upserts", upserts)
			}
		})
	}
}

// silent is a scheduler that takes every signal and says nothing.
func silent(string, any) error { return nil }

// Until its window opens a maintenance has nothing to say.
func TestWhoWaitsForAWindowDoesNotAskAgainBeforeItOpens(t *testing.T) {
	s := workflowtest.New(t)
	var asked []api.SlotRequest
	s.Scheduler = func(_ string, arg any) error {
		if r, ok := arg.(api.SlotRequest); ok {
			asked = append(asked, r)
		}
		return nil
	}
	opens := s.Env.Now().Add(10 * time.Hour)
	s.At(time.Second, func() {
		s.Env.SignalWorkflow(api.SignalSlotPending, api.SlotAnswer{
			RequestID: workflowtest.RunID + "/1", Code: schedule.Window, Reason: "window nights opens later", OpensAt: &opens,
		})
	})
	s.ExpectAt(time.Hour, api.Pending, "a slot: window nights opens later")
	s.At(10*time.Hour+45*time.Minute, func() { s.Grant(workflowtest.RunID + "/1") })
	s.DoneAt(11 * time.Hour)
	start := s.Env.Now()
	s.Run(workflowtest.InputWith(workflowtest.Input{
		"windows": []string{"nights"}, "expectedDuration": "2h", "ignoreWindows": workflowtest.Input{"reason": "the disk burns"},
	}))
	s.ExpectCompleted()
	if len(asked) != 2 || len(s.RequestTimes) != 2 || s.RequestTimes[1].Sub(start).Round(time.Minute) != 10*time.Hour+30*time.Minute {
		t.Fatalf("asked at %v", s.RequestTimes)
	}
	if r := asked[0]; !slices.Equal(r.Windows, []string{"nights"}) || r.ExpectedDuration.Std() != 2*time.Hour || r.IgnoreWindows != "the disk burns" {
		t.Errorf("asked for %+v", r)
	}
}

func TestSlotRequestIsRepeatedWithBackoffUntilItIsAcknowledged(t *testing.T) {
	s := workflowtest.New(t)
	s.Scheduler = silent
	s.ExpectAt(time.Second, api.Pending, "the scheduler")
	s.At(4*time.Minute, func() {
		s.Env.SignalWorkflow(api.SignalSlotPending, api.SlotAnswer{
			RequestID: workflowtest.RunID + "/1", Code: schedule.MaxParallel, Reason: "maxParallel 1: the slot is taken (n2)",
		})
	})
	s.ExpectAt(5*time.Minute, api.Pending, "the slot is taken (n2)")
	s.At(3*time.Hour, func() { s.Grant(workflowtest.RunID + "/1") })
	s.DoneAt(3*time.Hour + 10*time.Minute)
	start := s.Env.Now()
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	var offsets []time.Duration
	for _, at := range s.RequestTimes {
		offsets = append(offsets, at.Sub(start).Round(time.Second))
	}
	// Once acknowledged it is repeated every half hour only.
	want := []time.Duration{0, 5, 15, 35, 75, 155}
	for i := range want {
		want[i] *= time.Second
	}
	for at := 34 * time.Minute; at < 3*time.Hour; at += 30 * time.Minute {
		want = append(want, at)
	}
	if !slices.Equal(offsets, want) {
		t.Errorf("asked after %v, want %v", offsets, want)
	}
	if len(s.Requested) != 1 {
		t.Errorf("the repeated request has %d IDs", len(s.Requested))
	}
}

func TestSlotReasonFollowsTheScheduler(t *testing.T) {
	s := workflowtest.New(t)
	s.Scheduler = silent
	pending := func(reason string) api.SlotAnswer {
		return api.SlotAnswer{RequestID: workflowtest.RunID + "/1", Reason: reason}
	}
	s.SignalAt(time.Second, api.SignalSlotPending, pending("first"))
	s.ExpectAt(2*time.Second, api.Pending, "first")
	s.SignalAt(3*time.Second, api.SignalSlotPending, pending("second"))
	s.ExpectAt(4*time.Second, api.Pending, "second")
	s.SignalAt(5*time.Second, api.SignalSlotPending, api.SlotAnswer{RequestID: "of-another-run/1", Reason: "late"})
	s.SignalAt(6*time.Second, api.SignalSlotGranted, api.SlotAnswer{RequestID: "of-another-run/1"})
	s.ExpectAt(7*time.Second, api.Pending, "second")
	s.At(8*time.Second, func() { s.Grant(workflowtest.RunID + "/1") })
	s.DoneAt(time.Hour / 2)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
}

func TestSlotRequestSurvivesASchedulerThatDoesNotRun(t *testing.T) {
	s := workflowtest.New(t)
	tries := 0
	s.Scheduler = func(name string, arg any) error {
		if tries++; tries <= 20 {
			return errUnknown
		}
		if r, ok := arg.(api.SlotRequest); ok {
			s.Grant(r.ID)
		}
		return nil
	}
	s.ExpectAt(30*time.Second, api.Pending, "the scheduler, which is not running")
	s.ExpectAt(110*time.Second, api.Draining, "")
	s.DoneAt(time.Hour / 2)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
}

func TestSlotRefusedEndsTheMaintenance(t *testing.T) {
	for name, c := range map[string]struct {
		seen  bool
		phase api.Phase
	}{
		"never there": {false, api.Failed},
		"seen before": {true, api.NodeGone},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.Scheduler = func(_ string, arg any) error {
				s.Refuse(arg.(api.SlotRequest).ID, api.SlotAnswer{
					Code: schedule.NodeMissing, Reason: "there is no node n1; did you mean n11?", Seen: c.seen,
				})
				return nil
			}
			status := s.Run(workflowtest.InputWith(nil))
			s.ExpectPhases(status, api.Pending, c.phase)
			if c.seen {
				if result := s.ExpectCompleted(); result.Phase != api.NodeGone {
					t.Errorf("result = %+v", result)
				}
			} else {
				s.ExpectFailure(api.ErrorNodeNotFound, "did you mean n11?")
			}
			s.ExpectLog("slot-request", "AskSlot")
		})
	}
}

func TestARefusalThatIsForgedChangesNothing(t *testing.T) {
	for name, known := range map[string]workflowtest.Reply{
		"of a request that waits":         {Value: api.SlotHeld{Waiting: true}},
		"of a slot that was granted":      {Value: api.SlotHeld{Held: true}},
		"while the scheduler begins anew": {Value: api.SlotHeld{Rebuilding: true}},
		"while the scheduler is away":     {Err: workflowtest.Failing("Away", "it does not answer")},
	} {
		for code, forged := range map[string]api.SlotAnswer{
			"missing": {Code: schedule.NodeMissing, Reason: "there is no node n1"}, "quota": {Code: schedule.Quota, Reason: "quota: ops has too many"},
		} {
			t.Run(name+", "+code, func(t *testing.T) {
				s := workflowtest.New(t)
				s.Scheduler = silent
				s.Answer("AskSlot", known)
				forged.RequestID = workflowtest.RunID + "/1"
				s.SignalAt(time.Second, api.SignalSlotRefused, forged)
				s.At(time.Minute, func() { s.Grant(workflowtest.RunID + "/1") })
				s.DoneAt(10 * time.Minute)
				status := s.Run(workflowtest.InputWith(nil))
				if result := s.ExpectCompleted(); result.Phase != api.Completed || s.Count("AskSlot") != 1 || len(s.Requested) != 1 {
					t.Errorf("result = %+v after %v", result, s.Log)
				}
				note := "the scheduler does not confirm it"
				if known.Err != nil {
					note += ": it does not answer"
				}
				if !strings.Contains(workflowtest.MessagesOf(status), note) {
					t.Errorf("messages:\n%s", workflowtest.MessagesOf(status))
				}
			})
		}
	}
}

func TestNodeThatWasHeldOnceIsGoneAndNotUnknown(t *testing.T) {
	s := workflowtest.New(t)
	s.Usual["Drain"] = workflowtest.Reply{After: 24 * time.Hour}
	s.Scheduler = func(_ string, arg any) error {
		if r, ok := arg.(api.SlotRequest); ok {
			if strings.HasSuffix(r.ID, "/1") {
				s.Grant(r.ID)
			} else {
				s.Refuse(r.ID, api.SlotAnswer{Code: schedule.NodeMissing, Reason: "there is no node n1"})
			}
		}
		return nil
	}
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"drain": workflowtest.Input{"escalation": []workflowtest.Input{{"after": "30m", "do": "giveBack"}}}}))
	if status.Phase != api.NodeGone {
		t.Errorf("the node was held in attempt 1, and the end is %s: %s", status.Phase, status.Failure)
	}
}

// deadline is the error of an activity whose whole time is over.
func deadline() error { return temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil) }

// errUnknown is what a signal to a workflow that does not run ends with.
var errUnknown = errors.New("unknown external workflow execution")
