package scheduler_test

import (
	"context"
	"crypto/sha256"
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
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/activities/doctor"
	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/activities/windows"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/window"
	"drydock.dev/drydock/workflows"
	"drydock.dev/drydock/workflows/scheduler"
	oldercluster "drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	olderinbox "drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/inbox"
	older "drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/scheduler"
)

// latency is how long an activity takes: what comes back at once would hide a loop.
const latency = 20 * time.Millisecond

// fleet is the world around the scheduler: nodes, the maintenances that ask for them, and a clock that jumps. It goes
// on across continue-as-new, as the world does.
type fleet struct {
	t     *testing.T
	env   *testsuite.TestWorkflowEnvironment
	state scheduler.State
	// packed are the pending requests that the state leaves out.
	packed []byte
	start  time.Time
	// runs counts the runs of the scheduler.
	runs int

	mu     sync.Mutex
	log    []string
	events []*event
	nodes  map[string]*fleetNode
	// asking are the maintenances by run.
	asking map[string]*asking
	// watching is the input of the watch that begins, watches counts them.
	watching cluster.WatchInput
	watches  int
	observed []cluster.ObserveInput
	// fail makes an activity or a signal fail, by its entry in the log; gone is the error of a signal to nobody.
	fail      map[string]error
	inventory execution.Inventory
	answers   map[string]execution.Answered
	end       time.Duration
	// sizes are the largest payloads that were seen, in bytes, by what they are.
	sizes map[string]int
	// stubborn: no maintenance manages to restore its cordon.
	stubborn bool
	// leased is until when nodes are leased for their remediations.
	leased map[string]time.Duration
	// forged: the state is given by somebody, and not by a run before.
	forged bool
	// cron is the schedule by which the scheduler was started.
	cron string
	// signalTakes is how long a signal is under way; signals counts those that are, mostSignals the most that were.
	signalTakes          time.Duration
	signals, mostSignals int
	// until010 is until when the history is of workers of 0.1.0.
	until010 time.Duration
	// windows are those of the worker's configuration.
	windows map[string]window.Window
	// workers are those of several workers, asked in turns; empty if there is one configuration.
	workers []map[string]window.Window
	// marks are those on nodes that may be a surprise; nil are none.
	marks func() cluster.MarksSeen
	// is010 has the code of 0.1.0 run a run; nil has it run none.
	is010 func(run int) bool
	// blind: the worker that decides knows nothing of the nodes by itself.
	blind bool
}

type event struct {
	at   time.Duration
	do   func()
	done bool
}

type fleetNode struct {
	down       bool
	missing    bool
	uncordoned bool
	labels     map[string]string
	// marked is the run that holds the node.
	marked string
	// from is when the node became what it is now; watches wake up then.
	changes []time.Duration
}

// asking is one maintenance, as the scheduler sees it.
type asking struct {
	request api.SlotRequest
	// work is how long it keeps the node once it has it; 0 keeps it.
	work    time.Duration
	granted []time.Duration
	refused *api.SlotAnswer
	pending []api.SlotAnswer
	holds   []api.FreezeNotice
	changed []api.NodeChange
	dead    bool
	// over: it wants its slot no more.
	over bool
}

// isUnmarked: it is no maintenance, and marks no node.
func (a *asking) isUnmarked() bool { return a.request.Kind != schedule.KindMaintenance }

var errGone = &temporal.UnknownExternalWorkflowExecutionError{}

// newFleet prepares nodes n1 to nN, all available, and a scheduler that knows its holders: none.
func newFleet(t *testing.T, nodes int) *fleet {
	f := &fleet{
		t: t, start: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), nodes: map[string]*fleetNode{}, asking: map[string]*asking{},
		fail: map[string]error{}, sizes: map[string]int{}, answers: map[string]execution.Answered{}, state: scheduler.State{Rebuilt: true},
	}
	for i := range nodes {
		f.nodes[fmt.Sprintf("n%d", i+1)] = &fleetNode{}
	}
	return f
}

func (f *fleet) begin() {
	began := f.start
	if f.env != nil {
		began = f.env.Now()
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	f.env = suite.NewTestWorkflowEnvironment()
	f.env.SetTestTimeout(time.Minute)
	f.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute, Interceptors: append(workflows.Interceptors(), &olderinbox.Interceptor{})}) // the race detector slows thousands of requests down
	f.env.SetDataConverter(scales{converter.GetDefaultDataConverter(), f})
	f.env.SetStartTime(began)
	if f.runs > 0 || (f.state.Rebuilt && !f.forged) {
		f.env.SetContinuedExecutionRunID(runOf("before", "this"))
	}
	f.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: api.SchedulerID(""), TaskQueue: api.DefaultTaskQueue, CronSchedule: f.cron})
	workflows.Register(f.env, workflows.Activities{
		Nodes: &node.Activities{}, Drains: &drain.Activities{}, Cluster: &cluster.Activities{},
		Executions: &execution.Activities{}, Settings: &settings.Activities{}, Preflights: &preflight.Activities{}, Doctors: &doctor.Activities{},
		Windows: &windows.Activities{}, Health: &health.Activities{},
	})
	if f.is010 != nil {
		f.env.RegisterWorkflow(schedulerOf010)
	}
	if f.runs010(f.runs) { // a local activity, whose input is not written as JSON
		f.env.RegisterActivityWithOptions((*oldercluster.Activities)(nil).SeeGivenBack, activity.RegisterOptions{
			Name: "SeeGivenBack", DisableAlreadyRegisteredCheck: true,
		})
	}
	f.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
		if info.ActivityType.Name == "WatchCluster" {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.watching = cluster.WatchInput{}
			if err := args.Get(&f.watching); err != nil {
				f.t.Errorf("input of WatchCluster: %v", err)
			}
			f.watches++
		}
	})
	if f.until010 > 0 {
		f.env.OnGetVersion(mock.Anything, workflow.DefaultVersion, workflow.Version(1)).Return(
			func(_ string, least, most workflow.Version) workflow.Version {
				if f.now() < f.until010 {
					return least
				}
				return most
			})
	}
	f.env.OnActivity("ObserveNodes", mock.Anything, mock.Anything).After(latency).Return(f.observe)
	f.env.OnActivity("GlanceNodes", mock.Anything, mock.Anything).Return(func(ctx context.Context, in cluster.ObserveInput) (cluster.Observed, error) {
		f.note("GlanceNodes")
		if f.blind {
			return cluster.Observed{}, errors.New("no watch of the nodes runs on this worker")
		}
		return f.observe(ctx, in)
	})
	f.env.OnActivity("WatchCluster", mock.Anything, mock.Anything).AfterFn(f.untilSomethingHappens).Return(
		func(_ context.Context, in cluster.WatchInput) (cluster.WatchReport, error) {
			return f.see(in), f.failure("WatchCluster")
		})
	if f.runs010(f.runs) {
		f.env.OnActivity("SeeGivenBack", mock.Anything, mock.Anything).Return(f.givenBackOf010)
	} else {
		f.env.OnActivity("SeeGivenBack", mock.Anything, mock.Anything).Return(f.givenBack)
	}
	f.env.OnActivity("ReleaseNode", mock.Anything, mock.Anything).After(latency).Return(f.releaseNode)
	f.env.OnActivity("AnnouncePhase", mock.Anything, mock.Anything).After(latency).Return(
		func(_ context.Context, in node.AnnounceInput) error {
			f.note("AnnouncePhase " + in.Node + " " + in.Phase)
			return f.failure("AnnouncePhase " + in.Node)
		})
	f.env.OnActivity("TakeInventory", mock.Anything, mock.Anything).After(latency).Return(
		func(context.Context, execution.InventoryInput) (execution.Inventory, error) {
			f.note("TakeInventory")
			return f.inventory, f.failure("TakeInventory")
		})
	f.env.OnActivity("SendGrants", mock.Anything, mock.Anything).After(latency).Return(f.sendGrants)
	f.env.OnActivity("Query", mock.Anything, mock.Anything).After(latency).Return(f.query)
	f.env.OnActivity("SeeLeftWork", mock.Anything, mock.Anything).After(latency).Return(func(_ context.Context, in health.LeftInput) (bool, error) {
		_, node, err := api.ParseHolderID(in.WorkflowID)
		return f.now() < f.leased[node], err
	})
	f.env.OnActivity("AskFate", mock.Anything, mock.Anything).After(latency).Return(f.fate)
	f.env.OnActivity("ComputeOpenings", mock.Anything, mock.Anything).After(latency).Return(f.openings)
	f.env.OnActivity("ThisRun", mock.Anything).Return("this run", nil)
	f.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).AfterFn(f.signalBegins).Return(f.signalled)
}

// now is the time since the world began.
func (f *fleet) now() time.Duration { return f.env.Now().Sub(f.start) }

// at does something at a time since the world began, in whichever run of the scheduler that is.
func (f *fleet) at(when time.Duration, do func()) *fleet {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := &event{at: when, do: do}
	f.events = append(f.events, e)
	if f.env != nil {
		f.register(e)
	}
	return f
}

func (f *fleet) register(e *event) {
	env := f.env
	env.RegisterDelayedCallback(func() {
		if !e.done && !env.IsWorkflowCompleted() {
			e.done = true
			e.do()
		}
	}, max(e.at-f.now(), time.Nanosecond))
}

// run lets the world go on until the time end.
func (f *fleet) run(end time.Duration) {
	f.t.Helper()
	f.end = end
	f.at(end, func() { f.env.CancelWorkflow() })
	for {
		f.begin()
		f.runs++
		for _, e := range f.events {
			if !e.done {
				f.register(e)
			}
		}
		if f.runs010(f.runs - 1) {
			text, err := json.Marshal(f.state)
			if err != nil {
				f.t.Fatal(err)
			}
			f.env.ExecuteWorkflow(schedulerOf010, as[older.State](f.t, text), f.packed)
		} else {
			f.env.ExecuteWorkflow(scheduler.Scheduler, f.state, f.packed)
		}
		err := f.env.GetWorkflowError()
		var again *workflow.ContinueAsNewError
		if !errors.As(err, &again) {
			if !temporal.IsCanceledError(err) {
				f.t.Fatalf("the scheduler ended by itself: %v", err)
			}
			return
		}
		f.state, f.packed = scheduler.State{}, nil
		f.sizes["continue-as-new"] = max(f.sizes["continue-as-new"], proto.Size(again.Input))
		if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &f.state, &f.packed); err != nil {
			f.t.Fatal(err)
		}
		if f.runs > 500 {
			f.t.Fatalf("the scheduler continues as new without end")
		}
	}
}

// scales notes how large the payloads are that everybody sends, by the types in them.
type scales struct {
	converter.DataConverter
	f *fleet
}

func (s scales) ToPayload(value any) (*commonpb.Payload, error) {
	payload, err := s.DataConverter.ToPayload(value)
	s.note(proto.Size(payload), value)
	return payload, err
}

func (s scales) ToPayloads(values ...any) (*commonpb.Payloads, error) {
	payloads, err := s.DataConverter.ToPayloads(values...)
	s.note(proto.Size(payloads), values...)
	return payloads, err
}

func (s scales) note(size int, values ...any) {
	var types []string
	for _, value := range values {
		types = append(types, fmt.Sprintf("%T", value))
	}
	what := strings.Join(types, " ")
	if strings.HasPrefix(what, "scheduler.State") {
		return // what a test begins with is sent by nobody
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.sizes[what] = max(s.f.sizes[what], size)
}

func (f *fleet) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf("%s %s", f.now().Truncate(time.Second), what))
}

func (f *fleet) failure(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fail[what]
}

// count returns how many entries of the log contain a text.
func (f *fleet) count(text string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, entry := range f.log {
		if strings.Contains(entry, text) {
			n++
		}
	}
	return n
}

// signal sends a signal to the scheduler, to the next run where the present one ends before it is delivered. Signals of
// one instant come in one workflow task.
func (f *fleet) signal(name string, payload any) {
	f.mu.Lock()
	e := &event{at: f.now()}
	e.do = func() { f.signal(name, payload) }
	f.events = append(f.events, e)
	env := f.env
	f.mu.Unlock()
	env.SignalWorkflowSkippingWorkflowTask(name, payload)
	env.RegisterDelayedCallback(func() { e.done = true }, 0)
	env.RegisterDelayedCallback(func() {}, time.Nanosecond)
}

// runOf is the ID of the run that maintains a node for a requestor.
func runOf(node, requestor string) string {
	sum := sha256.Sum256([]byte(node + "/" + requestor))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// request lets a maintenance ask for a node, and keep it for a time. Its run is that of node and requestor.
func (f *fleet) request(when time.Duration, node, requestor string, work time.Duration) *asking {
	run, created := runOf(node, requestor), f.start.Add(when)
	if when > 100*time.Hour {
		created = f.start // it does not ask within the test
	}
	a := &asking{work: work, request: api.SlotRequest{RunID: run, Request: schedule.Request{
		ID: run + "/1", Node: node, Requestor: requestor, Created: created,
	}}}
	f.asking[a.request.RunID] = a
	f.at(when, func() { f.signal(api.SignalSlotRequest, a.request) })
	return a
}

// release lets a maintenance give its node and its slot back.
func (f *fleet) release(a *asking) {
	f.mu.Lock()
	if n := f.nodes[a.request.Node]; n != nil && n.marked == a.request.RunID {
		n.marked = ""
	}
	a.over = a.isUnmarked()
	f.mu.Unlock()
	f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: a.request.ID})
}

// givenBack are the requests of the slots whose node carries no mark.
func (f *fleet) givenBack(_ context.Context, slots []cluster.HeldSlot) (back []string, err error) {
	f.note("SeeGivenBack")
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range slots {
		if n := f.nodes[s.Node]; n == nil || n.marked != s.RunID {
			back = append(back, s.RequestID)
		}
	}
	return back, f.fail["SeeGivenBack"]
}

// runs010 says whether a run has the code of 0.1.0.
func (f *fleet) runs010(run int) bool { return f.is010 != nil && f.is010(run) }

// schedulerOf010 has a name of its own: the environment knows workflows by the names of their functions.
func schedulerOf010(ctx workflow.Context, given older.State, packed []byte) error {
	return older.Scheduler(ctx, given, packed)
}

func (f *fleet) givenBackOf010(ctx context.Context, slots []oldercluster.HeldSlot) ([]string, error) {
	text, err := json.Marshal(slots)
	if err != nil {
		return nil, err
	}
	return f.givenBack(ctx, as[[]cluster.HeldSlot](f.t, text))
}

// signalBegins counts a signal, and returns how long it takes.
func (f *fleet) signalBegins() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signals++
	f.mostSignals = max(f.mostSignals, f.signals)
	return f.signalTakes
}

// signalled is a signal of the scheduler to a maintenance.
func (f *fleet) signalled(_, id, run, name string, arg any) error {
	arg = ours(f.t, name, arg)
	f.mu.Lock()
	f.signals--
	asked, _, _ := strings.Cut(aboutRequest(arg), "/")
	a := f.asking[asked]
	f.mu.Unlock()
	if a == nil || run != "" || id != a.request.WorkflowID("") {
		f.t.Errorf("signal %s to workflow %s run %s about %s, which is nobody's", name, id, run, asked)
		return errGone
	}
	who := a.request.Node + "/" + a.request.Requestor
	f.note(name + " " + who)
	if err := f.failure(name + " " + who); err != nil {
		return err
	}
	if a.dead {
		return errGone
	}
	// What follows is arranged for before the signal counts as delivered: the clock would jump past it otherwise.
	if follows := f.receive(a, name, arg); follows != nil {
		follows()
	}
	return nil
}

// sendGrants is an activity that signals holders, as if the scheduler did.
func (f *fleet) sendGrants(_ context.Context, in execution.GrantInput) (gone []string, err error) {
	f.note("SendGrants")
	for _, h := range in.Holders {
		f.signalBegins()
		err := f.signalled("", api.MaintenanceID(in.Cluster, h.Node, h.Requestor), "", api.SignalSlotGranted, api.SlotAnswer{RequestID: h.RequestID})
		switch {
		case errors.Is(err, errGone):
			gone = append(gone, h.RequestID)
		case err != nil:
			return nil, err
		}
	}
	return gone, f.failure("SendGrants")
}

// ours is what a scheduler of 0.1.0 says, in the types of this release.
func ours(t *testing.T, signal string, arg any) any {
	if aboutRequest(arg) != "" {
		return arg
	}
	text, err := json.Marshal(arg)
	if err != nil {
		t.Error(err)
	}
	switch signal {
	case api.SignalHold:
		return as[api.FreezeNotice](t, text)
	case api.SignalNodeChanged:
		return as[api.NodeChange](t, text)
	default:
		return as[api.SlotAnswer](t, text)
	}
}

func as[T any](t *testing.T, text []byte) (value T) {
	if err := json.Unmarshal(text, &value); err != nil {
		t.Error(err)
	}
	return value
}

// aboutRequest is the request that a signal names.
func aboutRequest(arg any) string {
	switch arg := arg.(type) {
	case api.SlotAnswer:
		return arg.RequestID
	case api.FreezeNotice:
		return arg.RequestID
	case api.NodeChange:
		return arg.RequestID
	}
	return ""
}

// fate is what became of a maintenance.
func (f *fleet) fate(_ context.Context, h execution.HolderRef) (execution.Found, error) {
	f.note("AskFate " + h.WorkflowID)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch a := f.asking[h.RunID]; {
	case a == nil:
		return execution.Found{Fate: execution.Unknown, Status: "not found"}, nil
	case a.dead:
		return execution.Found{Fate: execution.Ended, Status: "Terminated"}, nil
	}
	return execution.Found{Fate: execution.Alive, Status: "Running"}, nil
}

// receive is what a maintenance does with a signal; what it does later is returned.
func (f *fleet) receive(a *asking, name string, arg any) (follows func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch arg := arg.(type) {
	case api.SlotAnswer:
		if arg.RequestID != a.request.ID {
			f.t.Errorf("signal %s for request %s reached %s", name, arg.RequestID, a.request.ID)
		}
		return f.answer(a, name, arg)
	case api.FreezeNotice:
		a.holds = append(a.holds, arg)
	case api.NodeChange:
		a.changed = append(a.changed, arg)
		if arg.Uncordoned && !f.stubborn {
			n := f.nodes[a.request.Node]
			return func() { f.at(f.now()+300*time.Millisecond, func() { n.uncordoned = false }) }
		}
	default:
		f.t.Errorf("signal %s carries %T", name, arg)
	}
	return nil
}

func (f *fleet) answer(a *asking, name string, answer api.SlotAnswer) (follows func()) {
	switch name {
	case api.SignalSlotPending:
		a.pending = append(a.pending, answer)
	case api.SignalSlotRefused:
		a.refused = &answer
	case api.SignalSlotGranted:
		a.granted = append(a.granted, f.now())
		if n := f.nodes[a.request.Node]; n != nil && !a.isUnmarked() {
			n.marked = a.request.RunID
		}
		if a.work > 0 && len(a.granted) == 1 {
			return func() { f.at(f.now()+a.work, func() { f.release(a) }) }
		}
	}
	return nil
}

// change lets something happen to a node; a watch under way sees it.
func (f *fleet) change(when time.Duration, node string, do func(*fleetNode)) *fleet {
	n := f.nodes[node]
	if n == nil {
		n = &fleetNode{missing: true}
		f.nodes[node] = n
	}
	n.changes = append(n.changes, when)
	return f.at(when-time.Millisecond, func() { f.mu.Lock(); defer f.mu.Unlock(); do(n) })
}

// kill ends a maintenance without a word.
func (f *fleet) kill(when time.Duration, a *asking) *fleet {
	f.nodes[a.request.Node].changes = append(f.nodes[a.request.Node].changes, when+5*time.Second)
	return f.at(when, func() { f.mu.Lock(); defer f.mu.Unlock(); a.dead = true })
}

func (f *fleet) observe(_ context.Context, in cluster.ObserveInput) (cluster.Observed, error) {
	f.note("ObserveNodes")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observed = append(f.observed, in)
	if err := f.fail["ObserveNodes"]; err != nil {
		return cluster.Observed{}, err
	}
	grouper, err := schedule.NewGrouper(in.Groups)
	if err != nil {
		return cluster.Observed{}, err
	}
	o := schedule.Observation{At: f.env.Now(), Revision: in.Revision, Groups: map[string]schedule.GroupCount{}, Facts: map[string]schedule.NodeFacts{}}
	asked := map[string]bool{}
	for _, name := range in.Names {
		asked[name] = true
	}
	for name, n := range f.nodes {
		if n.missing {
			continue
		}
		down := n.down || n.marked != "" && !slices.Contains(in.Ours, name)
		o.Nodes++
		if down {
			o.Unavailable++
		}
		for _, key := range grouper.Keys(n.labels) {
			c := o.Groups[key]
			c.Nodes++
			if down {
				c.Unavailable++
			}
			o.Groups[key] = c
		}
		if asked[name] {
			o.Facts[name] = schedule.NodeFacts{Unavailable: down, Groups: grouper.Keys(n.labels)}
		}
	}
	for _, name := range in.Names {
		if n := f.nodes[name]; n == nil || n.missing {
			o.Facts[name] = schedule.NodeFacts{Missing: true}
		}
	}
	observed := cluster.Observed{Observation: o, Digest: f.digest(in.Groups)}
	if f.marks != nil {
		observed.Marks = f.surprises(in.Known)
	}
	return observed.Pack(in.Names), nil
}

// surprises are the marks that are not known.
func (f *fleet) surprises(known []cluster.KnownMark) cluster.MarksSeen {
	if f.marks == nil {
		return cluster.MarksSeen{}
	}
	seen := f.marks()
	seen.Unknown = slices.DeleteFunc(seen.Unknown, func(m api.StrayMark) bool {
		return slices.ContainsFunc(known, func(k cluster.KnownMark) bool { return k.Node == m.Node && k.RunID == m.RunID })
	})
	return seen
}

// digest is what others than Drydock can change.
func (f *fleet) digest(groups []schedule.Group) string {
	down, all := 0, 0
	for _, n := range f.nodes {
		if !n.missing {
			all++
			if n.down && n.marked == "" {
				down++
			}
		}
	}
	return fmt.Sprintf("%d/%d of %d groups", down, all, len(groups))
}

// see is what a watch notices now.
func (f *fleet) see(in cluster.WatchInput) cluster.WatchReport {
	f.mu.Lock()
	defer f.mu.Unlock()
	report := cluster.WatchReport{Stale: in.Digest != "" && in.Digest != f.digest(in.Groups)}
	known := slices.Clone(in.Known)
	for _, h := range in.Holders {
		known = append(known, cluster.KnownMark{Node: h.Node, RunID: h.RunID})
	}
	report.Unknown = f.surprises(known).Unknown
	for _, h := range in.Holders {
		n, a := f.nodes[h.Node], f.asking[h.RunID]
		switch {
		case a == nil || a.dead:
			report.Ended = append(report.Ended, cluster.EndedHolder{WatchedHolder: h, Status: "Terminated"})
		case h.Unmarked:
		case n == nil || n.missing:
			report.Changes = append(report.Changes, api.NodeChange{RequestID: h.RequestID, Missing: true})
		case n.uncordoned:
			report.Changes = append(report.Changes, api.NodeChange{RequestID: h.RequestID, Uncordoned: true})
		}
	}
	return report
}

// untilSomethingHappens is how long the watch that begins runs.
func (f *fleet) untilSomethingHappens() time.Duration {
	report := f.see(f.watching)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watches > 500 {
		if f.watches == 501 {
			f.t.Errorf("500 watches in %s: a loop", f.now())
		}
		return 1000 * time.Hour
	}
	if report.Stale || len(report.Changes)+len(report.Unknown) > 0 {
		return latency
	}
	if len(report.Ended) > 0 {
		return 10 * time.Second
	}
	next, now := 1000*time.Hour, f.now()
	for _, n := range f.nodes {
		for _, at := range n.changes {
			if at > now {
				next = min(next, at-now)
			}
		}
	}
	return next
}

func (f *fleet) releaseNode(_ context.Context, in node.ReleaseInput) (node.Released, error) {
	f.note("ReleaseNode " + in.Node)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail["ReleaseNode "+in.Node]; err != nil {
		return node.Released{}, err
	}
	n := f.nodes[in.Node]
	if n == nil || n.missing {
		return node.Released{Gone: true}, nil
	}
	if n.marked != in.RunID {
		return node.Released{Foreign: true}, nil
	}
	n.marked = ""
	return node.Released{Uncordoned: true}, nil
}

func (f *fleet) query(_ context.Context, in execution.QueryInput) ([]execution.Answered, error) {
	f.note(fmt.Sprintf("Query %s of %d", in.Query, len(in.Executions)))
	if err := f.failure("Query"); err != nil {
		return nil, err
	}
	answers := make([]execution.Answered, len(in.Executions))
	for i, e := range in.Executions {
		if e.RunID == "" {
			answers[i] = f.word(e.WorkflowID)
			continue
		}
		answer, ok := f.answers[e.RunID+string(in.Args)]
		if !ok {
			answer, ok = f.answers[e.RunID]
		}
		if !ok {
			answer = execution.Answered{Gone: true}
		}
		answers[i] = answer
	}
	return answers, nil
}

// word is what a maintenance says of its slot: what a test has it say, or else what is so.
func (f *fleet) word(id string) execution.Answered {
	f.mu.Lock()
	defer f.mu.Unlock()
	for run, a := range f.asking {
		if a.request.WorkflowID("") != id || a.dead {
			continue
		}
		if said, ok := f.answers[run]; ok {
			return said
		}
		wanted := api.SlotWanted{SlotRequest: a.request, Wants: !a.over}
		if n := f.nodes[a.request.Node]; n != nil && n.marked == run || a.isUnmarked() && len(a.granted) > 0 {
			wanted.GrantedAt = &f.start
		}
		return answered(f.t, wanted)
	}
	return execution.Answered{Gone: true}
}

// query asks the scheduler for its state.
func (f *fleet) stateNow(args ...any) api.State {
	f.t.Helper()
	value, err := f.env.QueryWorkflow(api.QueryState, args...)
	if err != nil {
		f.t.Fatalf("state: %v", err)
	}
	var state api.State
	if err := value.Get(&state); err != nil {
		f.t.Fatalf("state: %v", err)
	}
	return state
}

// slotsHeld asks which of some requests hold their slots.
func (f *fleet) slotsHeld(requests ...string) (held api.SlotsHeld) {
	f.t.Helper()
	value, err := f.env.QueryWorkflow(api.QuerySlotsHeld, api.SlotQuestion{RequestIDs: requests})
	if err == nil {
		err = value.Get(&held)
	}
	if err != nil {
		f.t.Errorf("slots held: %v", err)
	}
	return held
}

// expectAt checks who holds a slot and who waits, as node/requestor.
func (f *fleet) expectAt(when time.Duration, holders, pending string) *fleet {
	f.t.Helper()
	return f.at(when, func() {
		f.t.Helper()
		state := f.stateNow()
		var held, waiting []string
		for _, h := range state.Holders {
			held = append(held, h.Node+"/"+h.Requestor)
		}
		for _, p := range state.Pending {
			waiting = append(waiting, p.Node+"/"+p.Requestor)
		}
		if got := strings.Join(held, " "); got != holders {
			f.t.Errorf("after %s the slots are held by %q, want %q", when, got, holders)
		}
		if got := strings.Join(waiting, " "); got != pending {
			f.t.Errorf("after %s there wait %q, want %q", when, got, pending)
		}
	})
}

// update sends an update; its outcome is known once the run is over.
func (f *fleet) update(when time.Duration, name string, payload any) *stateOutcome {
	out := &stateOutcome{}
	f.at(when, func() {
		f.env.UpdateWorkflow(name, "", &testsuite.TestUpdateCallback{
			OnReject:   func(err error) { out.rejected = err },
			OnAccept:   func() { out.accepted = true },
			OnComplete: func(value any, err error) { out.done, out.err = true, err },
		}, payload)
	})
	return out
}

type stateOutcome struct {
	accepted, done bool
	rejected, err  error
}

// grants are the grants in order, as node/requestor.
func (f *fleet) grants() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, entry := range f.log {
		if _, who, ok := strings.Cut(entry, api.SignalSlotGranted+" "); ok {
			all = append(all, who)
		}
	}
	return all
}

// errUnknownCause is an error that says nothing about whether a workflow or a node is there.
var errUnknownCause = errors.New("no such luck")
