package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/delivery"
	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/notices"
	planrules "drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/plan"
)

// site is the world around a plan: nodes, and maintenances that end as the test says.
type site struct {
	*testing.T
	env   *testsuite.TestWorkflowEnvironment
	nodes []planrules.Facts
	// lasts is how long a maintenance lasts, ends how the next ones of a node end; without they are completed.
	lasts time.Duration
	ends  map[string][]error
	// lingers is how long a maintenance goes on after its signal that the node is back; zero sends none.
	lingers time.Duration
	// log is what was begun and ended, in order; running are those that run, and most is how many ran at once.
	log           []string
	running, most int
	notified      []string
	prepared      settings.Prepared
	packed        []byte
	// begun are the maintenances that are found, finds how long that takes.
	begun api.List[planactivity.Begun]
	finds time.Duration
	// calls are those of the bridge.
	calls []spec.Object
	// denied is why nodes cannot be listed before deniedUntil.
	denied      error
	deniedUntil time.Time
}

const planID = "maintenance-plan/kernel"

func newSite(t *testing.T, names ...string) *site {
	s := &site{T: t, lasts: time.Minute, ends: map[string][]error{}}
	for _, name := range names {
		s.nodes = append(s.nodes, planrules.Facts{Name: name})
	}
	s.begin(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return s
}

func (s *site) begin(now time.Time) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s.env = suite.NewTestWorkflowEnvironment()
	s.env.SetStartTime(now)
	s.env.SetTestTimeout(time.Minute)
	s.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute, Interceptors: workflows.Interceptors()})
	s.env.SetWorkflowRunTimeout(100 * 24 * time.Hour)
	s.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: planID, TaskQueue: api.DefaultTaskQueue})
	s.env.RegisterWorkflowWithOptions(plan.MaintenancePlan, workflow.RegisterOptions{Name: api.MaintenancePlanType})
	s.env.RegisterWorkflowWithOptions(s.maintain, workflow.RegisterOptions{Name: api.NodeMaintenanceType})
	s.env.RegisterWorkflowWithOptions(func(_ workflow.Context, ref api.Reference) error {
		s.log = append(s.log, "record of "+ref.WorkflowID)
		return nil
	}, workflow.RegisterOptions{Name: api.AuditRecordType})
	s.env.RegisterActivityWithOptions(func(_ context.Context, o spec.Object) error {
		s.calls = append(s.calls, o)
		return nil
	}, activity.RegisterOptions{Name: api.ReconcileObject})
	s.env.RegisterActivity(call.Plans)
	s.env.RegisterActivity(call.Deliveries)
	s.env.RegisterActivity((*settings.Activities)(nil).Prepare)
	s.env.OnActivity(call.Settings.Prepare, mock.Anything, mock.Anything).Return(s.prepared, nil)
	s.env.OnActivity(call.Plans.ListPlanNodes, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in planactivity.ListInput) (planactivity.Listed, error) {
			if s.denied != nil && s.env.Now().Before(s.deniedUntil) {
				return planactivity.Listed{}, s.denied
			}
			digest := fmt.Sprint(s.nodes)
			return planactivity.Listed{Digest: digest, Unchanged: digest == in.Digest, Nodes: s.nodes, All: len(s.nodes) + 1}, nil
		})
	s.env.OnActivity(call.Plans.FindBegun, mock.Anything, mock.Anything).AfterFn(func() time.Duration { return s.finds }).Return(
		func(_ context.Context, in planactivity.FindInput) (api.List[planactivity.Begun], error) {
			return s.find(in)
		})
	s.env.OnActivity(call.Deliveries.Deliver, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in delivery.DeliverInput) (notify.Receipt, error) {
			s.notified = append(s.notified, fmt.Sprintf("%s: %s", in.Channel, in.Events[0].State))
			return notify.Receipt{}, nil
		})
}

// find finds the maintenances that were begun.
func (s *site) find(in planactivity.FindInput) (api.List[planactivity.Begun], error) {
	if in.Requestor != "plan-kernel" && in.Requestor != "plans" || in.RunID != runID || in.Since.IsZero() {
		s.Errorf("it asks for %+v", in)
	}
	return s.begun, nil
}

// maintain is a maintenance that ends as the test says.
func (s *site) maintain(ctx workflow.Context, input json.RawMessage) (api.Result, error) {
	m, err := spec.Decode(input, nil)
	if err != nil {
		return api.Result{}, err
	}
	s.log = append(s.log, "begin "+m.Node)
	s.running++
	s.most = max(s.most, s.running)
	defer func() { s.running-- }()
	result := api.Result{Node: m.Node, Phase: api.Completed}
	if s.cancelled(ctx) {
		result.Phase = api.Cancelled
		return result, temporal.NewCanceledError(result)
	}
	if s.lingers > 0 {
		news := api.NodeNews{Node: m.Node, RunID: workflow.GetInfo(ctx).WorkflowExecution.RunID, Back: true}
		s.at(0, func() { s.env.SignalWorkflow(api.SignalNodeNews, news) })
		if err := workflow.Sleep(ctx, s.lingers); err != nil {
			return api.Result{}, err
		}
	}
	if ends := s.ends[m.Node]; len(ends) > 0 {
		s.ends[m.Node] = ends[1:]
		return result, ends[0]
	}
	s.log = append(s.log, "end "+m.Node)
	return result, nil
}

// cancelled waits for as long as a maintenance lasts, and reports whether it was cancelled meanwhile.
func (s *site) cancelled(ctx workflow.Context) bool {
	var payload json.RawMessage
	ok, _ := workflow.GetSignalChannel(ctx, api.MsgCancel).ReceiveWithTimeout(ctx, s.lasts, &payload)
	return ok
}

func (s *site) at(d time.Duration, do func()) { s.env.RegisterDelayedCallback(do, d) }

func (s *site) signalAt(d time.Duration, name string, payload any) {
	s.at(d, func() { s.env.SignalWorkflow(name, payload) })
}

// run runs the plan to its end, or to where it continues as new.
func (s *site) run(input string) (result api.PlanResult, err error) {
	s.Helper()
	s.env.ExecuteWorkflow(api.MaintenancePlanType, json.RawMessage(input), s.packed)
	if !s.env.IsWorkflowCompleted() {
		s.Fatal("the plan does not end")
	}
	if err = s.env.GetWorkflowError(); err == nil {
		err = s.env.GetWorkflowResult(&result)
	}
	return result, err
}

func (s *site) status() api.PlanStatus {
	s.Helper()
	value, err := s.env.QueryWorkflow(api.QueryStatus)
	var status api.PlanStatus
	if err == nil {
		err = value.Get(&status)
	}
	if err != nil {
		s.Fatal(err)
	}
	return status
}

func (s *site) ended(input string, phase api.PlanPhase, counts planrules.Counts) api.PlanStatus {
	s.Helper()
	_, err := s.run(input)
	status := s.status()
	if status.Phase != phase || status.Counts != counts {
		s.Errorf("it is %s with %+v (%v): %s; want %s with %+v", status.Phase, status.Counts, err, status.Failure, phase, counts)
	}
	if (err == nil) != (phase == api.PlanCompleted) {
		s.Errorf("it ends %s with error %v", phase, err)
	}
	return status
}

func (s *site) logged(want ...string) {
	s.Helper()
	if !slices.Equal(s.log, want) {
		s.Errorf("log %q, want %q", s.log, want)
	}
}

func TestAPlanTakesItsNodesInOrder(t *testing.T) {
	s := newSite(t, "b", "a", "c")
	s.ended(`{"all":true}`, api.PlanCompleted, planrules.Counts{Total: 3, Done: 3})
	s.logged("begin a", "end a", "begin b", "end b", "begin c", "end c")
}

// A plan whose nodes the worker may not list says so at once, and goes on once it may.
func TestAPlanShowsAMissingPermissionAndGoesOn(t *testing.T) {
	const why = "may not list nodes (grant it with rbac.yaml)"
	s := newSite(t, "a", "b")
	s.denied = temporal.NewNonRetryableApplicationError(why, api.ErrorMissingPermission, nil)
	s.deniedUntil = s.env.Now().Add(5 * time.Minute)
	s.at(10*time.Second, func() {
		if status := s.status(); status.Phase.Ended() || len(status.Troubles) != 1 || status.Troubles[0].Why != why {
			t.Errorf("%+v", status)
		}
	})
	s.at(6*time.Minute+time.Second, func() {
		if status := s.status(); len(status.Troubles) != 0 {
			t.Errorf("%+v", status.Troubles)
		}
	})
	s.ended(`{"all":true}`, api.PlanCompleted, planrules.Counts{Total: 2, Done: 2})
}

func TestAPlanTakesAsManyAsItMay(t *testing.T) {
	s := newSite(t, "a", "b", "c", "d", "e")
	s.ended(`{"all":true,"strategy":{"maxParallel":"40%"}}`, api.PlanCompleted, planrules.Counts{Total: 5, Done: 5})
	if s.most != 2 {
		t.Errorf("%d at once", s.most)
	}
}

// TestAPlanEndsWhenItsTimeToBeginNodesIsOver has a maintenance take longer than that, and a plan that is paused when it is over.
func TestAPlanEndsWhenItsTimeToBeginNodesIsOver(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	status := s.ended(`{"all":true,"strategy":{"beginWithin":"1s"}}`, api.PlanIncomplete, planrules.Counts{Total: 3, Done: 1, Waiting: 2})
	s.logged("begin a", "end a")
	if status.Failure != "2 of 3 nodes were left when the time of beginWithin, 1s, was over" {
		t.Errorf("it says %q", status.Failure)
	}
	paused := newSite(t, "a", "b", "c")
	paused.signalAt(time.Second, api.MsgPause, map[string]any{})
	paused.ended(`{"all":true,"strategy":{"beginWithin":"48h"}}`, api.PlanIncomplete, planrules.Counts{Total: 3, Done: 1, Waiting: 2})
}

func TestAPlanPausesWithTooManyFailures(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	s.ends["a"] = []error{temporal.NewNonRetryableApplicationError("broken", api.ErrorMaintenanceFailed, nil)}
	s.at(time.Hour, func() {
		if status := s.status(); status.Phase != api.PlanPaused || status.Counts.Running > 0 || status.Nodes[0].Note != "broken" {
			t.Errorf("%+v", status)
		}
	})
	s.signalAt(2*time.Hour, api.MsgResume, api.Simple{Message: api.Message{By: "ops"}})
	s.signalAt(2*time.Hour+90*time.Second, api.MsgRetry, api.NodeOfPlan{Node: "a"})
	s.ended(`{"all":true}`, api.PlanCompleted, planrules.Counts{Total: 3, Done: 3})
	s.logged("begin a", "begin b", "end b", "begin c", "end c", "begin a", "end a")
}

func TestACanaryIsWaitedForSoaksAndIsApproved(t *testing.T) {
	s := newSite(t, "a", "b", "c", "d")
	s.prepared.Channels = []notices.Channel{{Name: "oncall", RetryFor: notices.DefaultRetryFor}}
	s.begin(s.env.Now())
	s.at(50*time.Minute, func() {
		if w := s.status().WaitingFor; w != "the canary's soak" {
			t.Errorf("it waits for %q", w)
		}
	})
	s.at(2*time.Hour, func() {
		if w := s.status().WaitingFor; w != "approval after the canary" {
			t.Errorf("it waits for %q", w)
		}
	})
	s.signalAt(3*time.Hour, api.MsgApprove, api.Simple{Message: api.Message{By: "amy"}})
	s.ended(`{"all":true,"strategy":{"maxParallel":4,"canary":{"nodes":2,"soak":"1h","approval":true}}}`,
		api.PlanCompleted, planrules.Counts{Total: 4, Done: 4})
	if s.most != 2 {
		t.Errorf("%d at once", s.most)
	}
	if want := []string{"oncall: PlanBegun", "oncall: PlanCanaryWaits", "oncall: PlanEnded"}; !slices.Equal(s.notified, want) {
		t.Errorf("notified %q, want %q", s.notified, want)
	}
}

// Somebody who approves a canary while it runs has not seen it fail.
func TestACanaryThatFailsIsApprovedAgain(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	s.ends["a"] = []error{broken()}
	s.signalAt(time.Second, api.MsgApprove, nil)
	s.at(time.Hour, func() {
		if status := s.status(); status.Phase != api.PlanPaused {
			t.Errorf("it is %s: %s", status.Phase, status.WaitingFor)
		}
	})
	s.signalAt(2*time.Hour, api.MsgResume, nil)
	s.at(3*time.Hour, func() {
		if status := s.status(); status.WaitingFor != planrules.AwaitsApproval || status.Counts.Waiting != 2 {
			t.Errorf("after it was resumed it waits for %q: %+v", status.WaitingFor, status.Counts)
		}
	})
	s.signalAt(4*time.Hour, api.MsgApprove, nil)
	status := s.ended(`{"all":true,"strategy":{"canary":{"nodes":1,"approval":true}}}`, api.PlanIncomplete, planrules.Counts{Total: 3, Done: 2, Failed: 1})
	if all := fmt.Sprint(status.Events); strings.Contains(all, "has passed") {
		t.Errorf("it says that the canary has passed: %s", all)
	}
}

func TestAPlanWithoutNodesSaysSo(t *testing.T) {
	for input, want := range map[string]api.PlanPhase{`{"selector":"pool=gpu"}`: api.PlanCompleted, `{"nodes":["no-such"]}`: api.PlanIncomplete} {
		s := newSite(t)
		if status := s.ended(input, want, planrules.Counts{}); status.Failure == "" {
			t.Errorf("%s says nothing", input)
		}
	}
}

func notDrained() error {
	return temporal.NewNonRetryableApplicationError("the node could not be emptied", api.ErrorNotDrained, nil)
}

func TestABlockedNodeIsSkippedAndComesBack(t *testing.T) {
	s := newSite(t, "a", "b")
	s.ends["a"] = []error{notDrained()}
	s.ended(`{"all":true,"strategy":{"onBlocked":"skip"}}`, api.PlanCompleted, planrules.Counts{Total: 2, Done: 2})
	s.logged("begin a", "begin b", "end b", "begin a", "end a")
}

func TestABlockedNodeFailsAfterItsTries(t *testing.T) {
	s := newSite(t, "a", "b")
	s.ends["a"] = []error{notDrained(), notDrained()}
	status := s.ended(`{"all":true,"strategy":{"onBlocked":"skip","tries":2}}`, api.PlanIncomplete, planrules.Counts{Total: 2, Done: 1, Failed: 1})
	if n := status.Nodes[0]; n.Node != "a" || n.Tries != 2 || !strings.Contains(n.Note, "could not be emptied") {
		t.Errorf("%+v", n)
	}
}

func TestABlockedNodeEndsAPlanThatAborts(t *testing.T) {
	s := newSite(t, "a", "b")
	s.ends["a"] = []error{notDrained()}
	s.ended(`{"all":true,"strategy":{"onBlocked":"abort"}}`, api.PlanAborted, planrules.Counts{Total: 2, Waiting: 1, Failed: 1})
	s.logged("begin a")
}

func TestACancelledPlanGivesBackWhatIsNotReady(t *testing.T) {
	s := newSite(t, "a", "b")
	s.prepared.Audited = true
	s.begin(s.env.Now())
	s.lasts = time.Hour
	s.signalAt(time.Minute, api.MsgCancel, api.Cancel{Message: api.Message{By: "amy", Comment: "not today"}})
	status := s.ended(`{"all":true}`, api.PlanCancelled, planrules.Counts{Total: 2, Waiting: 1, Skipped: 1})
	if status.Failure != "cancelled by amy: not today" {
		t.Errorf("%q", status.Failure)
	}
	s.logged("begin a", "record of "+planID)
}

func TestANodeIsSkipped(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	s.signalAt(10*time.Second, api.MsgSkip, api.NodeOfPlan{Node: "a"})
	s.signalAt(10*time.Second, api.MsgSkip, api.NodeOfPlan{Node: "c", Message: api.Message{By: "amy", Comment: "sold"}})
	s.signalAt(11*time.Second, api.MsgSkip, api.NodeOfPlan{Node: "x"})
	status := s.ended(`{"all":true}`, api.PlanCompleted, planrules.Counts{Total: 3, Done: 1, Skipped: 2})
	s.logged("begin a", "begin b", "end b")
	if m := status.Messages[len(status.Messages)-1]; m.Outcome != api.Ignored || !strings.Contains(m.Effect, `no node "x"`) {
		t.Errorf("%+v", m)
	}
}

func TestAPlanThatDidNothingSaysSo(t *testing.T) {
	s := newSite(t, "a")
	s.signalAt(10*time.Second, api.MsgSkip, api.NodeOfPlan{Node: "a"})
	status := s.ended(`{"all":true}`, api.PlanCompleted, planrules.Counts{Total: 1, Skipped: 1})
	if want := "no node went through its maintenance"; status.Failure != want {
		t.Errorf("it says %q, want %q", status.Failure, want)
	}
}

func TestNodesThatComeAreTakenAndThoseThatGoAreLeftAlone(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	s.at(30*time.Second, func() { s.nodes = []planrules.Facts{{Name: "a"}, {Name: "c"}, {Name: "d"}} })
	s.ended(`{"all":true}`, api.PlanCompleted, planrules.Counts{Total: 3, Done: 3, Gone: 1})
	s.logged("begin a", "end a", "begin c", "end c", "begin d", "end d")
}

func TestTheNextNodeIsBegunWhenTheOneBeforeIsBack(t *testing.T) {
	s := newSite(t, "a", "b")
	s.lingers = time.Hour
	s.at(10*time.Minute, func() {
		if status := s.status(); status.Phase != api.PlanRunning || status.Counts.Done != 2 {
			t.Errorf("%+v", status)
		}
	})
	s.ended(`{"all":true}`, api.PlanCompleted, planrules.Counts{Total: 2, Done: 2})
	s.logged("begin a", "begin b", "end a", "end b")
}

func TestANodeThatWasBackCountsByTheEndOfItsMaintenance(t *testing.T) {
	s := newSite(t, "a", "b")
	s.lingers = time.Minute
	s.ends["a"] = []error{temporal.NewNonRetryableApplicationError("broken", api.ErrorMaintenanceFailed, nil)}
	s.ended(`{"all":true,"strategy":{"maxFailures":1}}`, api.PlanIncomplete, planrules.Counts{Total: 2, Done: 1, Failed: 1})
	s.logged("begin a", "begin b", "end b")
}

// TestTheNextRunWaitsForWhatTheOneBeforeBegan: the server reports the end of a child only to the run that began it.
func TestTheNextRunWaitsForWhatTheOneBeforeBegan(t *testing.T) {
	const input = `{"all":true,"strategy":{"maxParallel":2}}`
	s := newSite(t, "a", "b", "c")
	s.lasts = time.Hour
	s.at(time.Minute, func() {
		s.env.SetContinueAsNewSuggested(true)
		s.env.SignalWorkflow(api.MsgApprove, nil)
	})
	_, err := s.run(input)
	var again *workflow.ContinueAsNewError
	if !errors.As(err, &again) {
		t.Fatal(err)
	}
	s.packed = again.Input.GetPayloads()[1].GetData()
	if string(again.Input.GetPayloads()[1].GetMetadata()["encoding"]) != "binary/plain" {
		t.Fatalf("%s", again.Input.GetPayloads()[1].GetMetadata())
	}
	s.begin(s.env.Now())
	s.env.SetContinuedExecutionRunID("the-run-before")
	var waited []string
	s.env.OnActivity(call.Plans.AwaitEnds, mock.Anything, mock.Anything).Return(
		func(_ context.Context, awaited api.List[planactivity.Execution]) ([]planactivity.Ended, error) {
			for _, f := range awaited {
				waited = append(waited, f.WorkflowID)
			}
			return []planactivity.Ended{{Execution: awaited[0], Phase: api.Completed}}, nil
		})
	s.log = nil
	s.ended(input, api.PlanCompleted, planrules.Counts{Total: 3, Done: 3})
	a, b := "node-maintenance/a/plan-kernel", "node-maintenance/b/plan-kernel"
	if want := []string{a, b, b}; !slices.Equal(waited, want) {
		t.Errorf("waited for %q, want %q", waited, want)
	}
	s.logged("begin c", "end c")
}

func TestAnInputIsRefusedWithItsFields(t *testing.T) {
	for input, want := range map[string]string{
		`{}`:                               "nodes: want exactly one of",
		`{"all":true,"strategi":{}}`:       "strategi: unknown field",
		`{"all":true,"nodes":["x y"]}`:     "nodes[0]: ",
		`{"all":true,"requestor":"plans"}`: `requestor: "plans" is that of the maintenances which plans of strategy allAtOnce share`,
	} {
		s := newSite(t, "a")
		_, err := s.run(input)
		var refused *temporal.ApplicationError
		if !errors.As(err, &refused) || refused.Type() != api.ErrorInvalidSpec || !strings.Contains(refused.Error(), want) {
			t.Errorf("%s: %v, want %s", input, err, want)
		}
	}
	s := newSite(t, "a")
	s.prepared.Unknown = `notify[0]: the worker's configuration has no channel "x" (channels)`
	s.begin(s.env.Now())
	if _, err := s.run(`{"all":true}`); err == nil || !strings.Contains(err.Error(), "maintenance.notify[0]: the worker's configuration has no channel") {
		t.Error(err)
	}
	s = newSite(t, "a") // what somebody gives in place of the run before is not read
	s.packed = []byte("forged")
	s.ended(`{"all":true}`, api.PlanCompleted, planrules.Counts{Total: 1, Done: 1})
}
