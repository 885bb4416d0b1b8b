package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
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
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller/controllertest"
	"drydock.dev/drydock/workflows/inbox"
	"drydock.dev/drydock/workflows/plan"
)

// latency is how long an activity takes: what comes back at once would hide a loop.
const latency = 20 * time.Millisecond

// world is what a plan acts on over many runs: the maintenances, the lockstep and the channels go on while the plan continues as new.
type world struct {
	t     *testing.T
	input string
	// continueAfter is after how many events the plan continues as new, resetAt when it finds that it came by reset; 0 is never.
	continueAfter int
	resetAt       time.Duration
	env           *testsuite.TestWorkflowEnvironment
	start         time.Time
	packed        []byte
	runs          int
	acts          []act
	// cancels is the one of them that cancels the workflow.
	cancels *act
	// resetTo is the length of the history at the reset, -1 before it.
	resetTo int
	err     error

	mu           sync.Mutex
	maintenances []*maintained
	most         int
	sent         map[string]int
	// intents are what the lockstep was sent, by stage.
	intents []api.PlanIntent
}

// act is something that happens at a time.
type act struct {
	at   time.Duration
	do   func()
	done bool
}

// maintained is a maintenance, which lasts for three minutes unless it is cancelled.
type maintained struct {
	node, run string
	ends      time.Time
	cancelled bool
}

func newWorld(t *testing.T, input string) *world {
	return &world{t: t, input: input, start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), sent: map[string]int{}, resetTo: -1}
}

func (w *world) at(d time.Duration, do func()) { w.acts = append(w.acts, act{at: d, do: do}) }

// live runs the plan to its end.
func (w *world) live() (status api.PlanStatus) {
	w.t.Helper()
	if w.resetAt > 0 {
		w.at(w.resetAt, func() {
			w.resetTo = 1000
			w.env.SetCurrentHistoryLength(w.resetTo)
			w.env.SignalWorkflow("no-such-message", nil)
		})
	}
	for now := w.start; ; now = w.env.Now() {
		w.begin(now)
		w.env.ExecuteWorkflow(api.MaintenancePlanType, json.RawMessage(w.input), w.packed)
		w.err = w.env.GetWorkflowError()
		var again *workflow.ContinueAsNewError
		if !errors.As(w.err, &again) {
			break
		}
		var input json.RawMessage
		if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &input, &w.packed); err != nil {
			w.t.Fatal(err)
		}
		if w.runs++; w.runs > 500 {
			w.t.Fatal("it continues as new without end")
		}
		w.keepCancellation()
	}
	return w.status()
}

func (w *world) status() (status api.PlanStatus) {
	w.t.Helper()
	value, err := w.env.QueryWorkflow(api.QueryStatus)
	if err == nil {
		err = value.Get(&status)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return status
}

// cancellations counts how often a status says that the workflow was cancelled.
func cancellations(status api.PlanStatus) (said int) {
	for _, m := range status.Messages {
		if m.Name == "cancellation of the workflow" && m.Outcome == api.Applied {
			said++
		}
	}
	return said
}

// cancelAt cancels the workflow.
func (w *world) cancelAt(d time.Duration) {
	w.at(d, func() { w.env.CancelWorkflow() })
	w.cancels = &w.acts[len(w.acts)-1]
}

// keepCancellation has the next run cancelled where the one before has ended without a look at it: a server has such a run look at it
// first, the test environment forgets it.
func (w *world) keepCancellation() {
	if w.cancels != nil && w.cancels.done && cancellations(w.status()) == 0 {
		w.cancels.done = false
	}
}

func (w *world) begin(now time.Time) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	w.mu.Lock()
	w.env = env
	w.mu.Unlock()
	env.SetStartTime(now)
	env.SetTestTimeout(time.Minute)
	interceptors := []interceptor.WorkerInterceptor{&inbox.Interceptor{}}
	if w.resetAt > 0 {
		interceptors = append(interceptors, &controllertest.AsReset{})
	}
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute, Interceptors: interceptors})
	if len(w.packed) > 0 {
		env.SetContinuedExecutionRunID("the-run-before")
	}
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: planID, TaskQueue: api.DefaultTaskQueue})
	env.RegisterWorkflowWithOptions(plan.ContinuedAfter(w.continueAfter), workflow.RegisterOptions{Name: api.MaintenancePlanType})
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context, input json.RawMessage) (api.Result, error) {
		return w.maintain(ctx, env, input)
	}, workflow.RegisterOptions{Name: api.NodeMaintenanceType})
	for _, stubs := range []any{call.Plans, call.Deliveries, call.Executions} {
		env.RegisterActivity(stubs)
	}
	env.RegisterActivity((*settings.Activities)(nil).Prepare)
	if w.resetAt > 0 {
		env.OnGetVersion(mock.Anything, workflow.DefaultVersion, workflow.Version(1)).Return(func(change string, _, _ workflow.Version) workflow.Version {
			if change == fmt.Sprintf("reset-at-%d", w.resetTo) {
				return 1
			}
			return workflow.DefaultVersion
		})
	}
	env.OnActivity(call.Settings.Prepare, mock.Anything, mock.Anything).Return(settings.Prepared{
		Channels: []notices.Channel{{Name: "ops", RetryFor: notices.DefaultRetryFor}},
	}, nil)
	env.OnActivity(call.Executions.ThisRun, mock.Anything).Return("this run", nil)
	env.OnActivity(call.Plans.ListPlanNodes, mock.Anything, mock.Anything).After(latency).Return(w.list)
	env.OnActivity(call.Plans.AwaitPlanNodes, mock.Anything, mock.Anything).After(20 * time.Second).Return(w.list)
	env.OnActivity(call.Plans.FindBegun, mock.Anything, mock.Anything).After(latency).Return(w.find)
	env.OnActivity(call.Plans.AwaitEnds, mock.Anything, mock.Anything).After(5 * time.Second).Return(w.ends)
	env.OnActivity(call.Plans.SendIntent, mock.Anything, mock.Anything).After(latency).Return(w.takeIntent)
	env.OnActivity(call.Deliveries.Deliver, mock.Anything, mock.Anything).After(latency).Return(
		func(_ context.Context, in delivery.DeliverInput) (notify.Receipt, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, e := range in.Events {
				w.sent[in.Key+" "+e.ID+" "+string(e.State)]++
			}
			return notify.Receipt{}, nil
		})
	env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(w.cancel)
	for i := range w.acts {
		if a := &w.acts[i]; !a.done {
			env.RegisterDelayedCallback(func() {
				if !a.done && w.env == env && !env.IsWorkflowCompleted() {
					a.done = true
					a.do()
				}
			}, max(w.start.Add(a.at).Sub(now), time.Nanosecond))
		}
	}
}

// maintain is the maintenance of a node as the run sees it that began it. It goes on in the world where that continues as new.
func (w *world) maintain(ctx workflow.Context, env *testsuite.TestWorkflowEnvironment, input json.RawMessage) (api.Result, error) {
	var in struct {
		Node string `json:"node"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return api.Result{}, err
	}
	m := w.add(in.Node, workflow.GetInfo(ctx).WorkflowExecution.RunID, workflow.Now(ctx))
	for !w.isOver(m, workflow.Now(ctx)) && !env.IsWorkflowCompleted() {
		if err := workflow.Sleep(ctx, time.Second); err != nil {
			return api.Result{}, err
		}
	}
	return w.resultOf(m)
}

func (w *world) add(node, run string, now time.Time) *maintained {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := &maintained{node: node, run: run, ends: now.Add(3 * time.Minute)}
	w.maintenances = append(w.maintenances, m)
	running := 0
	for _, other := range w.maintenances {
		if other.ends.After(now) {
			running++
		}
	}
	w.most = max(w.most, running)
	return m
}

func (w *world) isOver(m *maintained, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !m.ends.After(now)
}

func (w *world) resultOf(m *maintained) (api.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.cancelled {
		result := api.Result{Node: m.node, Phase: api.Cancelled}
		return result, temporal.NewCanceledError(result)
	}
	return api.Result{Node: m.node, Phase: api.Completed}, nil
}

// cancel has a maintenance end now.
func (w *world) cancel(_, id, _, name string, _ any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.env.Now()
	for _, m := range w.maintenances {
		if name == api.MsgCancel && id == api.MaintenanceID("", m.node, "plan-kernel") && m.ends.After(now) {
			m.ends, m.cancelled = now, true
		}
	}
	return nil
}

func (w *world) list(_ context.Context, in planactivity.ListInput) (planactivity.Listed, error) {
	listed := planactivity.Listed{Digest: "d", Unchanged: in.Digest == "d", All: 5}
	for i := range 4 {
		listed.Nodes = append(listed.Nodes, planrules.Facts{Name: fmt.Sprint("n", i)})
	}
	return listed, nil
}

func (w *world) find(context.Context, planactivity.FindInput) (all api.List[planactivity.Begun], err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.maintenances {
		all = append(all, planactivity.Begun{Node: m.node, RunID: m.run, Ended: !m.ends.After(w.env.Now())})
	}
	return all, nil
}

// ends returns the ends of those that have ended; that none has as well: the activity of the worker waits for that.
func (w *world) ends(_ context.Context, awaited api.List[planactivity.Execution]) (ended []planactivity.Ended, err error) {
	w.mu.Lock()
	now := w.env.Now()
	all := slices.Clone(w.maintenances)
	w.mu.Unlock()
	for _, f := range awaited {
		for _, m := range all {
			if f.WorkflowID == api.MaintenanceID("", m.node, "plan-kernel") && m.run == f.RunID && w.isOver(m, now) {
				result, err := w.resultOf(m)
				ended = append(ended, planactivity.EndOf(f, result, err))
			}
		}
	}
	return ended, nil
}

// takeIntent is the lockstep: it does at once what a plan intends, and says so.
func (w *world) takeIntent(_ context.Context, in planactivity.IntentInput) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.intents = append(w.intents, in.Intent)
	p := api.PlanProgress{RunID: in.Intent.RunID, Revision: in.Intent.Revision, Complete: in.Intent.Stage == planrules.Complete}
	for _, node := range in.Intent.Nodes {
		one := api.SharedProgress{Node: node, Phase: api.Cordoned}
		if p.Complete {
			one.Phase, one.Left = api.Completed, true
		}
		p.Nodes = append(p.Nodes, one)
	}
	w.env.SignalWorkflow(api.SignalPlanProgress, p)
	return nil
}

const fourNodes = `{"all":true,"strategy":{"maxParallel":2}}`

// isRolledOver reports whether each node was maintained once, two at a time, and each event was sent once.
func (w *world) isRolledOver(status api.PlanStatus) error {
	begun := map[string]int{}
	for _, m := range w.maintenances {
		begun[m.node]++
	}
	switch {
	case w.err != nil || status.Counts != planrules.Counts{Total: 4, Done: 4}:
		return fmt.Errorf("%+v: %w", status.Counts, w.err)
	case len(begun) != 4 || len(w.maintenances) != 4 || w.most > 2:
		return fmt.Errorf("begun %v, %d at once", begun, w.most)
	}
	return w.hasSent("PlanBegun", "PlanEnded")
}

// hasSent reports whether the channel was sent these events, each under one key.
func (w *world) hasSent(want ...string) error {
	var sent []string
	for key := range w.sent {
		sent = append(sent, key[strings.LastIndex(key, " ")+1:])
	}
	slices.Sort(sent)
	if late := w.env.Now().Sub(w.start); late < 6*time.Minute && len(w.maintenances) == 4 && w.err == nil {
		return fmt.Errorf("it has ended after %s", late)
	}
	if !slices.Equal(sent, want) {
		return fmt.Errorf("sent %q, want %q", sent, want)
	}
	return nil
}

func TestAPlanGoesOnOverManyRuns(t *testing.T) {
	for _, every := range []int{0, 1, 2, 3, 5, 7, 11} {
		w := newWorld(t, fourNodes)
		w.continueAfter = every
		if err := w.isRolledOver(w.live()); err != nil || (w.runs > 0) != (every > 0) {
			t.Errorf("every %d, %d runs: %v", every, w.runs, err)
		}
	}
}

func TestAPlanThatIsResetGoesOn(t *testing.T) {
	for _, every := range []int{0, 3} {
		for at := time.Millisecond; at < 6*time.Minute; at += 37 * time.Second {
			w := newWorld(t, fourNodes)
			w.continueAfter, w.resetAt = every, at
			if err := w.isRolledOver(w.live()); err != nil || w.resetTo < 0 {
				t.Errorf("every %d, reset at %s (%d): %v", every, at, w.resetTo, err)
			}
		}
	}
}

func TestAPlanThatIsCancelledEnds(t *testing.T) {
	for _, every := range []int{0, 1, 3} {
		for at := time.Duration(0); at < 6*time.Minute; at += 29 * time.Second {
			w := newWorld(t, fourNodes)
			w.continueAfter = every
			w.cancelAt(at + time.Millisecond)
			status := w.live()
			var cancelled *temporal.CanceledError
			if !errors.As(w.err, &cancelled) || status.Phase != api.PlanCancelled || status.Counts.Running > 0 || status.Counts.Failed > 0 {
				t.Errorf("every %d, at %s: %s, %+v, %v", every, at, status.Phase, status.Counts, w.err)
			}
			for _, m := range w.maintenances {
				if m.ends.After(w.env.Now()) {
					t.Errorf("every %d, at %s: %s goes on", every, at, m.node)
				}
			}
			if err := w.hasSent("PlanBegun", "PlanEnded"); err != nil || cancellations(status) != 1 {
				t.Errorf("every %d, at %s: recorded %d times, %v", every, at, cancellations(status), err)
			}
		}
	}
}

func TestAStagedPlanGoesOnOverManyRuns(t *testing.T) {
	for _, every := range []int{0, 1, 2, 3, 5, 7} {
		for _, reset := range []time.Duration{0, 90 * time.Second} {
			w := newWorld(t, in("Idle"))
			w.continueAfter, w.resetAt = every, reset
			for at, stage := range map[time.Duration]api.Stage{time.Minute: planrules.Cordon, 3 * time.Minute: planrules.Complete} {
				w.at(at, func() { w.env.SignalWorkflow(api.MsgSetStage, api.SetStage{Stage: stage}) })
			}
			status := w.live()
			var stages []string
			highest := 0
			for _, i := range w.intents {
				if len(stages) == 0 || stages[len(stages)-1] != string(i.Stage) {
					stages = append(stages, string(i.Stage))
				}
				if i.Revision < highest {
					t.Errorf("every %d, reset %s: revision %d after %d", every, reset, i.Revision, highest)
				}
				highest = i.Revision
			}
			if w.err != nil || status.Counts != (planrules.Counts{Total: 4, Done: 4}) || !slices.Equal(stages, []string{"Cordon", "Complete"}) {
				t.Errorf("every %d, reset %s: %+v, %v, %v", every, reset, status.Counts, stages, w.err)
			}
			if err := w.hasSent("PlanBegun", "PlanEnded", "PlanStage", "PlanStage"); err != nil {
				t.Errorf("every %d, reset %s: %v", every, reset, err)
			}
		}
	}
}
