package health

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	sdkactivity "go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/delivery"
	activity "drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/controller/controllertest"
	"drydock.dev/drydock/workflows/inbox"
)

// latency is how long an activity takes: what comes back at once would hide a loop.
const latency = 20 * time.Millisecond

const debug = false

const checkID = "health-check/workers"

// site is the world around a check: nodes, a watch that reports them, remediations that do what is ordered, and a clock
// that jumps. It goes on across continue-as-new.
type site struct {
	t             *testing.T
	env           *testsuite.TestWorkflowEnvironment
	start         time.Time
	spec          string
	packed        []byte
	continueAfter int
	runs          int
	// calls counts those of the bridge.
	calls int
	run   string
	// resets are when the run finds that it came by reset; length is that of the history, reseted what it was at the latest reset.
	resets          []time.Duration
	length, reseted int
	check           *check
	// over: the test is. cancels: a cancellation is one of the check.
	over, cancels bool

	mu       sync.Mutex
	events   events
	log      []string
	nodes    map[string]*seenNode
	upgrade  string
	disabled [2]string
	overlap  health.Overlap
	// watching is the watch that runs, nil if none does; watches are the inputs of all.
	watching *watching
	watches  []activity.WatchInput
	// denied is why remediations cannot be found, blind why nodes cannot be watched; nil is that they can. unseen is what a watch may not look at.
	denied, blind error
	unseen        string
	// remediations are those that run or ran, by node; most is how many ran at once.
	remediations map[string]*remedied
	most         int
	// makes is how long it takes to make an object, removes to remove all.
	makes, removes time.Duration
	begun          int
	// recorded are the Events on nodes, messages their texts.
	recorded []string
	messages map[string]string
	received []string
	channels []notices.Channel
	// deafUntil is until when no channel takes anything.
	deafUntil time.Duration
	// sent are the messages that a channel was sent, by their keys.
	sent map[string]string
	// unknown is what of a spec the worker does not know; empty is nothing.
	unknown string
	ended   bool
	err     error
}

// events are added by activities and by the workflow's own thread.
type events struct {
	mu  sync.Mutex
	all []*event
}

func (e *events) add(one *event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, one)
}

func (e *events) list() []*event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// watching is a watch that runs.
type watching struct {
	in    activity.WatchInput
	token []byte
	env   *testsuite.TestWorkflowEnvironment
}

type event struct {
	at   time.Duration
	do   func()
	done bool
}

// seenNode is a node.
type seenNode struct {
	facts health.Facts
	// ill is since when it has which condition; nil is none.
	ill map[int]time.Time
}

// remedied is the remediation of a node.
type remedied struct {
	in    api.RemediationInput
	p     health.Progress
	order health.Order
	over  bool
	// silent: it does not answer. lost: its workflow does not run.
	silent, lost bool
	done         func()
	env          *testsuite.TestWorkflowEnvironment
	history      []string
}

const twoSteps = `{"selector":{"matchLabels":{"role":"worker"}},"minHealthy":1,"escalatingRemediations":[
	{"order":1,"timeout":"2m","remediationTemplate":{"apiVersion":"r/v1","kind":"RebootTemplate","namespace":"n","name":"soft"}},
	{"order":2,"timeout":"3m","remediationTemplate":{"apiVersion":"r/v1","kind":"RebootTemplate","namespace":"n","name":"hard"}}]}`

func oneStep(more string) string {
	return `{"selector":{"matchLabels":{"role":"worker"}},"remediationTemplate":{"apiVersion":"r/v1","kind":"RebootTemplate","namespace":"n","name":"soft"}` + more + `}`
}

func newSite(t *testing.T, spec string, names ...string) *site {
	s := &site{
		t: t, start: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), spec: spec, nodes: map[string]*seenNode{}, run: "default-test-run-id", reseted: -1,
		remediations: map[string]*remedied{}, sent: map[string]string{}, messages: map[string]string{}, makes: time.Second, removes: 2 * time.Second,
	}
	for _, name := range names {
		s.add(name)
	}
	return s
}

func (s *site) add(name string) *seenNode {
	n := &seenNode{facts: health.Facts{Name: name, UID: "uid-" + name}, ill: map[int]time.Time{}}
	s.nodes[name] = n
	return n
}

func runOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func (s *site) now() time.Duration { return s.env.Now().Sub(s.start) }

func (s *site) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%s ", s.now().Truncate(time.Second))+fmt.Sprintf(format, args...))
}

// at does something at a time since the world began, in whichever run that is.
func (s *site) at(when time.Duration, do func()) {
	e := &event{at: when, do: do}
	s.events.add(e)
	if s.env != nil {
		s.register(e)
	}
}

func (s *site) register(e *event) {
	env := s.env
	env.RegisterDelayedCallback(func() {
		if !e.done && !env.IsWorkflowCompleted() {
			e.done = true
			e.do()
		}
	}, max(e.at-s.now(), time.Nanosecond))
}

func (s *site) signal(name string, payload any) {
	e := &event{at: s.now()}
	e.do = func() { s.signal(name, payload) }
	s.events.add(e)
	env := s.env
	env.SignalWorkflowSkippingWorkflowTask(name, payload)
	env.RegisterDelayedCallback(func() { e.done = true }, 0)
	env.RegisterDelayedCallback(func() {}, time.Nanosecond)
}

func (s *site) begin() {
	began := s.start
	if s.env != nil {
		began = s.env.Now()
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	s.mu.Lock() // a watch of the run before may just report
	s.env = env
	s.mu.Unlock()
	s.env.SetTestTimeout(50 * time.Second)
	interceptors := []interceptor.WorkerInterceptor{&inbox.Interceptor{}}
	if len(s.resets) > 0 {
		interceptors = append(interceptors, &controllertest.AsReset{})
	}
	s.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute, Interceptors: interceptors})
	s.env.SetStartTime(began)
	s.env.SetWorkflowRunTimeout(100 * 24 * time.Hour)
	if len(s.packed) > 0 {
		s.env.SetContinuedExecutionRunID(runOf("before"))
	}
	s.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: checkID, TaskQueue: api.DefaultTaskQueue})
	s.env.RegisterWorkflowWithOptions(s.workflow, workflow.RegisterOptions{Name: api.HealthCheckType})
	s.env.RegisterWorkflowWithOptions(s.remediate, workflow.RegisterOptions{Name: api.NodeRemediationType})
	for _, stubs := range []any{call.Health, call.Nodes, call.Deliveries, call.Executions} {
		s.env.RegisterActivity(stubs)
	}
	s.env.RegisterActivity((*settings.Activities)(nil).Prepare)
	s.env.RegisterActivityWithOptions(func(context.Context, spec.Object) error {
		s.calls++
		return nil
	}, sdkactivity.RegisterOptions{Name: api.ReconcileObject})
	if len(s.resets) > 0 {
		s.env.OnGetVersion(mock.Anything, workflow.DefaultVersion, workflow.Version(1)).Return(func(change string, _, _ workflow.Version) workflow.Version {
			if change == fmt.Sprintf("reset-at-%d", s.reseted) {
				return 1
			}
			return workflow.DefaultVersion
		})
	}
	s.env.OnActivity(call.Settings.Prepare, mock.Anything, mock.Anything).Return(func(context.Context, json.RawMessage) (settings.Prepared, error) {
		return settings.Prepared{Channels: s.channels, Unknown: s.unknown}, nil
	})
	s.env.OnActivity(call.Health.WatchHealth, mock.Anything, mock.Anything).Return(s.watch)
	s.env.OnActivity(call.Health.FindRemediations, mock.Anything, mock.Anything).After(latency).Return(s.find)
	s.env.OnActivity(call.Nodes.RecordNodeEvents, mock.Anything, mock.Anything).After(latency).Return(s.record)
	s.env.OnActivity(call.Deliveries.Deliver, mock.Anything, mock.Anything).AfterFn(func() time.Duration {
		return max(s.deafUntil-s.now(), latency)
	}).Return(s.deliver)
	s.env.OnActivity(call.Executions.ThisRun, mock.Anything).Return("this run", nil)
	s.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(s.hearOrder)
}

// live lets the world go on until the time end, or the end of the check.
func (s *site) live(end time.Duration) {
	s.t.Helper()
	s.at(end, func() {
		s.over = true
		for _, name := range slices.Sorted(maps.Keys(s.remediations)) {
			s.remediations[name].done()
		}
		s.env.CancelWorkflow()
	})
	for {
		s.begin()
		s.runs++
		for _, e := range s.events.list() {
			if !e.done {
				s.register(e)
			}
		}
		if debug {
			s.at(end-time.Nanosecond, func() { s.t.Log("\n" + strings.Join(s.log, "\n")) })
		}
		s.env.ExecuteWorkflow(api.HealthCheckType, json.RawMessage(s.spec), s.packed)
		err := s.env.GetWorkflowError()
		var again *workflow.ContinueAsNewError
		if !errors.As(err, &again) {
			if s.err = err; err != nil && !s.over {
				s.t.Fatalf("it ended by itself: %v", err)
			}
			s.ended = err == nil
			return
		}
		var input json.RawMessage
		s.packed = nil
		if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &input, &s.packed); err != nil {
			s.t.Fatal(err)
		}
		if s.runs > 300 {
			s.t.Fatal("it continues as new without end")
		}
	}
}

// workflow is the check. At the end it is stopped whatever it does.
func (s *site) workflow(root workflow.Context, input converter.RawValue, packed []byte) error {
	c, err := newCheck(controller.Identify(root), inbox.Payload(input))
	if err != nil {
		return err
	}
	c.ContinueAfter = s.continueAfter
	s.check = c
	ctx := root
	if !s.cancels {
		ctx, _ = workflow.NewDisconnectedContext(root)
	}
	done := false
	workflow.Go(ctx, func(ctx workflow.Context) {
		err = c.run(ctx, input, packed)
		done = true
	})
	end, _ := workflow.NewDisconnectedContext(root)
	if ended := workflow.Await(end, func() bool { return done || s.over }); ended != nil || !done {
		return errStopped
	}
	if workflow.IsContinueAsNewError(err) {
		// The environment waits for children; in the world they go on.
		for _, name := range slices.Sorted(maps.Keys(s.remediations)) {
			if r := s.remediations[name]; r.env == s.env && !r.over && !r.lost {
				_ = workflow.SignalExternalWorkflow(end, api.RemediationID("", "workers", name), "", "over", nil).Get(end, nil)
			}
		}
	}
	return err
}

var errStopped = errors.New("the test is over")

// reset has the run find that it came by reset.
func (s *site) reset(when time.Duration) {
	s.resets = append(s.resets, when)
	s.at(when, func() {
		s.length++
		s.reseted = s.length
		s.env.SetCurrentHistoryLength(s.length)
		s.note("reset")
	})
}

// watch is WatchHealth. It reports when something is not as the check knows it.
func (s *site) watch(ctx context.Context, in activity.WatchInput) (activity.WatchResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = append(s.watches, in)
	if s.blind != nil {
		return activity.WatchResult{}, s.blind
	}
	s.watching = &watching{in, sdkactivity.GetInfo(ctx).TaskToken, s.env}
	s.at(s.now()+latency, s.report)
	return activity.WatchResult{}, sdkactivity.ErrResultPending
}

// report has the watch end that has something to report.
func (s *site) report() {
	s.mu.Lock()
	w := s.watching
	if w == nil || w.env != s.env {
		s.mu.Unlock()
		return
	}
	result := s.look(w.in)
	if result.Observation == nil && result.Denied == nil && len(result.Ended) == 0 {
		s.mu.Unlock()
		return
	}
	s.watching = nil
	s.mu.Unlock()
	if err := w.env.CompleteActivity(w.token, result, nil); err != nil {
		s.t.Error(err)
	}
}

// look is what is not as the check knows it.
func (s *site) look(in activity.WatchInput) (result activity.WatchResult) {
	o := health.Observation{Full: !in.Known.All, At: s.env.Now(), Upgrading: s.upgrade, Disabled: s.disabled[0], DisabledReason: s.disabled[1], Overlap: s.overlap}
	all := health.GroupCount{}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[name]
		f := n.facts
		for _, i := range slices.Sorted(maps.Keys(n.ill)) {
			f.Matches = append(f.Matches, health.Match{Index: i, Since: n.ill[i]})
		}
		if !f.Left {
			all.Nodes++
			if len(f.Matches) > 0 {
				all.Matching++
			}
		}
		hash := ""
		if slices.Contains(in.Remediating, name) || !f.Left && len(f.Matches) > 0 {
			hash = fmt.Sprint(f)
		}
		if hash == in.Known.Nodes[name] && !slices.Contains(in.Intent.Unseen, name) {
			continue
		}
		o.Nodes, result.Hashes = append(o.Nodes, f), append(result.Hashes, hash)
	}
	o.Groups = []health.GroupCount{all}
	digest := fmt.Sprint(o.Groups, o.Upgrading, o.Disabled, o.Overlap)
	if o.Full || len(o.Nodes) > 0 || digest != in.Known.Digest {
		result.Observation, result.Digest = &o, digest
	}
	if s.unseen != in.Known.Denied {
		result.Denied = &s.unseen
	}
	for _, run := range in.Runs {
		if r := s.remediations[run.Node]; r == nil || r.over || r.lost || r.p.RunID != run.RunID {
			result.Ended = append(result.Ended, run.Node)
		}
	}
	return result
}

// ill has nodes fall ill at a time, by the condition of an index.
func (s *site) ill(when time.Duration, index int, names ...string) {
	s.at(when, func() {
		for _, name := range names {
			s.nodes[name].ill = map[int]time.Time{index: s.start.Add(when)}
		}
		s.note("ill: %s", strings.Join(names, " "))
		s.report()
	})
}

// well has nodes recover.
func (s *site) well(when time.Duration, names ...string) {
	s.at(when, func() {
		for _, name := range names {
			s.nodes[name].ill = map[int]time.Time{}
		}
		s.note("well: %s", strings.Join(names, " "))
		s.report()
	})
}

// change changes something that the watch sees.
func (s *site) change(when time.Duration, do func()) {
	s.at(when, func() { do(); s.report() })
}

func (s *site) running() (n int) {
	for _, r := range s.remediations {
		if !r.over && !r.lost {
			n++
		}
	}
	return n
}

// remediate is a NodeRemediation.
func (s *site) remediate(ctx workflow.Context, in api.RemediationInput, _ []byte) error {
	s.mu.Lock()
	run := workflow.GetInfo(ctx).WorkflowExecution.RunID
	if before := s.remediations[in.Node]; before != nil && !before.over && !before.lost {
		s.t.Errorf("two remediations of %s", in.Node)
	}
	r := &remedied{env: s.env, in: in, order: health.Order{Step: in.Step, Revision: in.Revision}}
	env, id := s.env, workflow.GetInfo(ctx).WorkflowExecution.ID
	r.done = func() {
		if !env.IsWorkflowCompleted() {
			_ = env.SignalWorkflowByID(id, "over", nil)
		}
	}
	r.p = health.Progress{
		Node: in.Node, UID: in.UID, RunID: run, Revision: in.Revision, Step: in.Step, StartedAt: workflow.Now(ctx), Steps: in.Left,
		ControlPlane: in.ControlPlane,
	}
	s.remediations[in.Node] = r
	s.begun++
	s.most = max(s.most, s.running())
	s.note("begin %s at step %d", in.Node, in.Step+1)
	if !in.Resume {
		s.at(s.now()+s.makes, func() { s.make(r, in.Step) })
	}
	s.mu.Unlock()
	over := false
	chosen := workflow.NewSelector(ctx)
	chosen.AddReceive(workflow.GetSignalChannel(ctx, "over"), func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil); over = true })
	chosen.AddReceive(workflow.GetSignalChannel(ctx, api.SignalRemediationOrder), func(c workflow.ReceiveChannel, _ bool) {
		var o api.RemediationOrder
		c.Receive(ctx, &o)
		if err := s.hearOrder("", id, "", api.SignalRemediationOrder, o); err != nil {
			s.t.Error(err)
		}
	})
	for !over {
		chosen.Select(ctx)
	}
	return nil
}

// make makes the object of a step.
func (s *site) make(r *remedied, step int) {
	if r.over || r.lost || r.order.Healthy {
		return
	}
	started := s.env.Now()
	r.p.Step = step
	r.p.Steps = append(slices.Clone(r.p.Steps), health.StepState{Index: step, StartedAt: started, Resource: &health.Resource{
		APIVersion: "r/v1", Kind: "Reboot", Namespace: "n", Name: fmt.Sprintf("%s-%d", r.in.Node, step),
	}})
	s.note("object %d of %s", step+1, r.in.Node)
	s.say(r)
}

func (s *site) say(r *remedied) {
	if !r.silent && !r.lost {
		p := r.p
		p.Steps = slices.Clone(p.Steps)
		s.signal(api.SignalRemediationProgress, p)
	}
}

// hearOrder is a remediation that hears an order.
func (s *site) hearOrder(_, id, _, name string, arg any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, check, node, err := api.ParseRemediationID(id)
	o, ok := arg.(api.RemediationOrder)
	if err != nil || check != "workers" || !ok || name != api.SignalRemediationOrder {
		s.t.Errorf("signal %s to %s: %v", name, id, err)
		return nil
	}
	r := s.remediations[node]
	if r == nil || r.over || r.lost {
		return &temporal.UnknownExternalWorkflowExecutionError{}
	}
	if r.silent {
		return nil
	}
	if o.Revision > r.order.Revision {
		before := r.order
		r.order, r.p.Revision = o.Order, o.Revision
		r.history = append(r.history, fmt.Sprintf("step %d healthy %v timedOut %v", o.Step+1, o.Healthy, o.TimedOut))
		for i := range r.p.Steps {
			if slices.Contains(o.TimedOut, r.p.Steps[i].Index) && r.p.Steps[i].TimedOut == nil {
				now := s.env.Now()
				r.p.Steps[i].TimedOut = &now
			}
		}
		switch {
		case o.Healthy && !before.Healthy:
			s.at(s.now()+s.removes, func() { s.end(r, "") })
		case o.Step > before.Step:
			s.at(s.now()+s.makes, func() { s.make(r, o.Step) })
		}
	}
	s.at(s.now()+latency, func() { s.say(r) })
	return nil
}

// end ends a remediation.
func (s *site) end(r *remedied, failure string) {
	if r.over || r.lost {
		return
	}
	r.p.Ended, r.p.Failure, r.p.Recovered = true, failure, r.order.Healthy
	s.note("removed %s", r.in.Node)
	s.say(r)
	r.over = true
	r.done()
}

func (s *site) find(context.Context, activity.RemediationsInput) (activity.FoundRemediations, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.denied != nil {
		return activity.FoundRemediations{}, s.denied
	}
	var found activity.FoundRemediations
	for _, name := range slices.Sorted(maps.Keys(s.remediations)) {
		if r := s.remediations[name]; !r.over && !r.lost {
			found.Remediations = append(found.Remediations, activity.RunningRemediation{Node: name, RunID: r.p.RunID})
		}
	}
	s.note("found %d", len(found.Remediations))
	return found, nil
}

func (s *site) record(_ context.Context, in node.EventsInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range in.Events {
		what := string(e.Event.Reason) + " " + e.Node
		s.recorded, s.messages[what] = append(s.recorded, what), e.Event.Message
	}
	return nil
}

func (s *site) deliver(_ context.Context, in delivery.DeliverInput) (notify.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprint(in.Events)
	if before := s.sent[in.Key]; before != "" { // a receiver takes it for the same message
		if before != text {
			s.t.Errorf("another message has the key %s", in.Key)
		}
		return notify.Receipt{}, nil
	}
	s.sent[in.Key] = text
	for _, e := range in.Events {
		s.received = append(s.received, fmt.Sprintf("%s %s", e.State, e.Subject()))
	}
	return notify.Receipt{}, nil
}

// status is that of the check.
func (s *site) status() api.HealthStatus {
	s.t.Helper()
	value, err := s.env.QueryWorkflow(api.QueryStatus)
	var status api.HealthStatus
	if err == nil {
		err = value.Get(&status)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return status
}

// stands looks at the check at a time.
func (s *site) stands(when time.Duration, look func(api.HealthStatus)) {
	s.at(when, func() { look(s.status()) })
}

// logged are the entries of the log that begin with one of the words.
func (s *site) logged(words ...string) (found []string) {
	for _, entry := range s.log {
		_, what, _ := strings.Cut(entry, " ")
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(what, w) }) {
			found = append(found, entry)
		}
	}
	return found
}

func (s *site) want(want []string, words ...string) {
	s.t.Helper()
	if got := s.logged(words...); !slices.Equal(got, want) {
		s.t.Errorf("log %q, want %q\n%s", got, want, strings.Join(s.log, "\n"))
	}
}

func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%04d", prefix, i))
	}
	return all
}
