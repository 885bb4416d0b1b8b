package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/views"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/controller/controllertest"
	"drydock.dev/drydock/workflows/inbox"
	"drydock.dev/drydock/workflows/workflowtest"
)

// toy carries out jobs: it makes an object, starts a child, tells it until that acknowledges, and awaits its end.
type toy struct {
	controller.Base
	Jobs    []job `json:"jobs,omitempty"`
	Closed  bool  `json:"closed,omitempty"`
	Known   bool  `json:"known,omitempty"`
	Cancels int   `json:"cancels,omitempty"`
	Resets  int   `json:"resets,omitempty"`
	// Found is what there was after a reset.
	Found []job `json:"found,omitempty"`
	every int
	// world counts the turns; nil if nobody does.
	world *world
}

// The stages of a job, in their order.
const (
	wanted = iota
	made
	running
	reported
	over
)

type job struct {
	Name  string `json:"name"`
	Stage int    `json:"stage,omitempty"`
	Run   string `json:"run,omitempty"`
}

type add struct {
	api.Message
	Job string `json:"job"`
}

func (m add) Check(y *toy, _ time.Time) error {
	if y.Closed {
		return errors.New("it is closed")
	}
	return nil
}

func (m add) Apply(y *toy, _ time.Time) string {
	y.Jobs = append(y.Jobs, job{Name: m.Job})
	y.takeUp()
	return "added " + m.Job
}

type closing struct{ api.Message }

func (closing) Check(*toy, time.Time) error { return nil }
func (closing) Apply(y *toy, _ time.Time) string {
	y.Closed = true
	return "closed"
}

// ack is what a child says. Its run has to be known by then.
type ack struct {
	Job string `json:"job"`
	Run string `json:"run,omitempty"`
}

func (m ack) Check(y *toy, _ time.Time) error {
	if j := y.job(m.Job); j == nil || j.Stage < running || m.Run != "" && j.Run != m.Run {
		return fmt.Errorf("job %s has no run %s", m.Job, m.Run)
	}
	return nil
}

func (m ack) Apply(y *toy, _ time.Time) string {
	y.advance(m.Job, reported)
	return "acknowledged"
}

func (y *toy) job(name string) *job {
	i := slices.IndexFunc(y.Jobs, func(j job) bool { return j.Name == name })
	if i < 0 {
		return nil
	}
	return &y.Jobs[i]
}

func (y *toy) advance(name string, stage int) {
	if j := y.job(name); j != nil {
		j.Stage = max(j.Stage, stage)
	}
}

func key(kind, of string) controller.Key { return controller.Key{Kind: kind, Of: of} }

func meta(kind, of string) controller.Meta {
	return controller.Meta{Key: key(kind, of), Summary: kind + " " + of}
}

func (y *toy) Begin(time.Time) { y.Known, y.ContinueAfter = true, y.every }

func (y *toy) Decide(t controller.Turn) (d controller.Decision) {
	if y.world != nil {
		y.world.turn()
	}
	if !y.Known {
		d.Effects = append(d.Effects, controller.Activity{Meta: meta("find", ""), Call: controller.Call{Func: "find"}})
		return d
	}
	var unfollowed []string
	for _, j := range y.Jobs {
		switch j.Stage {
		case wanted:
			d.Effects = append(d.Effects, controller.Activity{Meta: meta("make", j.Name), Call: controller.Call{Func: "make"}, Input: j.Name})
		case made:
			d.Effects = append(d.Effects, controller.Start{Meta: meta("start", j.Name), Type: "child", ID: "child/" + j.Name, Input: j.Name})
		case running:
			tell := controller.Signal{Meta: meta("tell", j.Name), To: "child/" + j.Name, Name: "tell", Payload: j.Name}
			tell.Repeat = 10 * time.Second
			d.Effects = append(d.Effects, tell)
		}
		if j.Stage == running || j.Stage == reported {
			if !t.Follows(j.Run) {
				unfollowed = append(unfollowed, j.Name)
			}
		}
	}
	if len(unfollowed) > 0 {
		d.Watches = append(d.Watches, controller.Watch{Key: key("ends", ""), Call: controller.Call{Func: "ends", Heartbeat: 10 * time.Second}, Input: unfollowed})
	}
	if y.Closed && !slices.ContainsFunc(y.Jobs, func(j job) bool { return j.Stage != over }) {
		d.End = &controller.End{}
	}
	return d
}

func (y *toy) Outcome(o controller.Outcome, now time.Time) {
	switch o.Key.Kind {
	case "find":
		if !o.Stale && o.Get(&y.Found) == nil {
			y.Known = true
			y.takeUp()
		}
	case "make":
		if o.Err == nil {
			y.advance(o.Key.Of, made)
		}
	case "start":
		switch {
		case o.What == controller.Ended:
			y.advance(o.Key.Of, over)
		case o.Err == nil:
			y.job(o.Key.Of).Run = o.Run
			y.advance(o.Key.Of, running)
		}
	case "ends":
		var ended []string
		if o.Get(&ended) == nil {
			for _, name := range ended {
				y.advance(name, over)
			}
		}
	}
}

// takeUp goes on with what there was.
func (y *toy) takeUp() {
	for _, f := range y.Found {
		if j := y.job(f.Name); j != nil && j.Stage < f.Stage {
			j.Stage, j.Run = f.Stage, f.Run
		}
	}
}

func (y *toy) Reset(time.Time) {
	y.Resets++
	y.Known = false
}

func (y *toy) Cancel(time.Time) {
	y.Cancels++
	y.Closed = true
}

func (y *toy) Page(time.Time) controller.Page {
	var d document.Document
	d.Line("%d jobs", len(y.Jobs))
	views.Troubles(&d, y.Troubles(), views.Brief())
	return controller.Page{Details: y.Details(d)}
}

type status struct{}

func (status) Answer(y *toy, _ time.Time) (any, error) { return y, nil }

// runToy is the workflow. It begins with every as the number of events after which it continues as new.
func runToy(every int, w *world) func(workflow.Context, converter.RawValue, []byte) (any, error) {
	return func(ctx workflow.Context, input converter.RawValue, packed []byte) (any, error) {
		y := &toy{every: every, world: w}
		err := controller.Run(ctx, y, controller.Program[*toy]{
			Type: "toy", Input: input,
			Messages: []controller.Message[*toy]{
				{Name: "add", Payload: add{}}, {Name: "close", Payload: closing{}}, {Name: "ack", Payload: ack{}, FromWorkflows: true},
			},
			Queries: []controller.Query[*toy]{{Name: "status", Doc: "its state", Question: status{}}},
		}, packed)
		return y, err
	}
}

// event happens in the world at a time.
type event struct {
	at time.Duration
	do func(env *testsuite.TestWorkflowEnvironment)
}

// world is what toys work on, in one run after the other.
type world struct {
	t rapid.TB
	// lock is for what mocks write too: those of activities and signals run in goroutines of their own.
	lock   sync.Mutex
	start  time.Time
	now    time.Time
	events []event
	// sent are the events that no run has taken.
	sent  []event
	every int
	// log has each effect, begins the time of each child's start.
	log    []string
	begins map[string]time.Time
	// states are what the runs have handed over.
	states [][]byte
	// turns counts the turns of all runs, env is the environment of the present one.
	turns int
	env   *testsuite.TestWorkflowEnvironment
	// disturbed is what happens at a turn.
	disturbed disturbance
	// reset: the next run goes on from a point before that what was done since.
	reset  bool
	result toy
}

const lifetime = 6 * time.Second

// wakes is a signal that begins a workflow task, and that the workflow does not know.
const wakes = "no-such-message"

// resetPlace is the length of the history at which a run notices that it came by reset.
const resetPlace = 50

// disturbance is something that happens once the turn of a number is over.
type disturbance struct {
	turn  int
	does  func(env *testsuite.TestWorkflowEnvironment)
	count func(y toy) int
}

// cancelAt cancels the workflow after a turn.
func (w *world) cancelAt(turn int) {
	w.disturbed = disturbance{turn, (*testsuite.TestWorkflowEnvironment).CancelWorkflow, func(y toy) int { return y.Cancels }}
}

// resetAt has the run find after a turn that it came by reset, with what is under way then.
func (w *world) resetAt(turn int) {
	w.disturbed = disturbance{turn, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { // a history has one length in a workflow task
			env.SetCurrentHistoryLength(resetPlace)
			env.SignalWorkflow(wakes, nil)
		}, 0)
	}, func(y toy) int { return y.Resets }}
}

// turn counts a turn.
func (w *world) turn() {
	if w.turns++; w.turns == w.disturbed.turn {
		w.disturbed.does(w.env)
	}
}

// repeat has the next run disturbed where the run before ended with the turn, without a look at it: a server has such a run look first.
func (w *world) repeat(packed []byte) {
	if w.disturbed.turn == 0 || w.turns < w.disturbed.turn {
		return
	}
	var state toy
	if err := api.Unpack(packed, &state); err != nil {
		w.t.Fatal(err)
	}
	if w.disturbed.count(state) == 0 {
		w.disturbed.turn = w.turns + 1
	}
}

func newWorld(t rapid.TB, every int) *world {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	return &world{t: t, start: now, now: now, every: every, begins: map[string]time.Time{}}
}

func (w *world) at(at time.Duration, do func(env *testsuite.TestWorkflowEnvironment)) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.events = append(w.events, event{at, do})
}

func (w *world) signal(at time.Duration, name string, payload any) {
	w.at(at, func(env *testsuite.TestWorkflowEnvironment) { env.SignalWorkflow(name, payload) })
}

func (w *world) add(at time.Duration, name string) {
	w.signal(at, "add", add{Message: api.Message{ID: "id-" + name, By: "ann"}, Job: name})
}

func (w *world) close(at time.Duration) { w.signal(at, "close", closing{}) }

// note notes what happens, and returns how long after the start.
func (w *world) note(what string, env *testsuite.TestWorkflowEnvironment) time.Duration {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.log = append(w.log, what)
	w.now = env.Now()
	return w.now.Sub(w.start)
}

// tick has happen what is due.
func (w *world) tick(env *testsuite.TestWorkflowEnvironment) {
	w.lock.Lock()
	w.now = env.Now()
	var due []event
	w.events = slices.DeleteFunc(w.events, func(e event) bool {
		is := !w.start.Add(e.at).After(w.now)
		if is {
			due = append(due, e)
		}
		return is
	})
	w.sent = append(w.sent, due...)
	w.lock.Unlock()
	for _, e := range due {
		e.do(env)
	}
}

// run runs the workflow until it ends, through all runs of its chain.
func (w *world) run() {
	w.t.Helper()
	var packed []byte
	for range 500 {
		err := w.once(packed)
		var next *workflow.ContinueAsNewError
		if !errors.As(err, &next) {
			if err != nil {
				w.t.Fatal(err)
			}
			return
		}
		packed = handedOver(w.t, next)
		w.states = append(w.states, packed)
		w.repeat(packed)
		// A server gives the next run the signals that came while the last one ended.
		w.lock.Lock()
		w.events, w.sent = append(w.sent, w.events...), nil
		w.lock.Unlock()
	}
	w.t.Fatal("it does not end")
}

// environment is one for a single run.
func (w *world) environment() *testsuite.TestWorkflowEnvironment {
	env := workflowtest.Environment(w.now)
	w.env = env
	env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}, &watched{world: w, env: env}, &controllertest.AsReset{}},
	})
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "toy", TaskQueue: api.DefaultTaskQueue})
	env.RegisterActivity(call.Executions)
	w.register(env)
	for i := range 160 {
		env.RegisterDelayedCallback(func() { w.tick(env) }, time.Duration(i+1)*500*time.Millisecond)
	}
	return env
}

// register registers an activity.
func register(env *testsuite.TestWorkflowEnvironment, name string, does any) {
	env.RegisterActivityWithOptions(does, activity.RegisterOptions{Name: name})
}

// once runs one run.
func (w *world) once(packed []byte) error {
	env := w.environment()
	if packed != nil {
		env.SetContinuedExecutionRunID("the run before")
	}
	if w.reset {
		env.SetCurrentHistoryLength(resetPlace)
	}
	env.ExecuteWorkflow("toy", struct{}{}, packed)
	w.lock.Lock()
	w.now = env.Now()
	w.lock.Unlock()
	if err := env.GetWorkflowError(); err != nil {
		return err
	}
	w.result = toy{}
	return env.GetWorkflowResult(&w.result)
}

// register registers the workflows and what they do to the world.
func (w *world) register(env *testsuite.TestWorkflowEnvironment) {
	env.RegisterWorkflowWithOptions(runToy(w.every, w), workflow.RegisterOptions{Name: "toy"})
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context, name string) error {
		w.note("start "+name, env)
		w.lock.Lock()
		w.begins[name] = env.Now()
		w.lock.Unlock()
		return workflow.Sleep(ctx, lifetime)
	}, workflow.RegisterOptions{Name: "child"})
	register(env, "make", func(_ context.Context, name string) error {
		w.note("make "+name, env)
		return nil
	})
	register(env, "find", func(context.Context) (found []job, err error) {
		w.note("find", env)
		w.lock.Lock()
		defer w.lock.Unlock()
		for _, entry := range w.log {
			var what, name string
			if n, _ := fmt.Sscan(entry, &what, &name); n == 2 && what == "make" {
				f := job{Name: name, Stage: made}
				if _, begun := w.begins[name]; begun {
					f.Stage, f.Run = running, "found"
				}
				found = append(found, f)
			}
		}
		return found, nil
	})
	register(env, "ends", func(_ context.Context, names []string) ([]string, error) { return names, nil })
	env.OnActivity(call.Executions.ThisRun, mock.Anything).Return("default-test-run-id", nil)
	env.OnGetVersion(mock.Anything, workflow.DefaultVersion, workflow.Version(1)).Return(func(id string, _, _ workflow.Version) workflow.Version {
		if id == fmt.Sprintf("reset-at-%d", resetPlace) {
			return 1
		}
		return workflow.DefaultVersion
	})
	env.OnActivity("ends", mock.Anything, mock.Anything).Return(func(_ context.Context, names []string) (ended []string, err error) {
		w.lock.Lock()
		defer w.lock.Unlock()
		for _, name := range names {
			if !w.begins[name].Add(lifetime).After(env.Now()) {
				ended = append(ended, name)
			}
		}
		return ended, nil
	}).AfterFn(func() time.Duration { return time.Second })
	env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_, id, _, _ string, arg any) error {
			name := id[len("child/"):]
			w.signal(w.note("tell "+name, env)+time.Second, "ack", ack{Job: name})
			return nil
		})
}

// watched notes which signals a run takes.
type watched struct {
	interceptor.WorkerInterceptorBase
	world *world
	env   *testsuite.TestWorkflowEnvironment
}

func (p *watched) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &watchedInbound{watched: p}
	i.Next = next
	return i
}

type watchedInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	*watched
}

// HandleSignal notes that a run has taken a signal. They arrive in the order in which they were sent.
func (i *watchedInbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	if in.SignalName != wakes && !i.env.IsWorkflowCompleted() {
		i.world.taken()
	}
	return i.Next.HandleSignal(ctx, in)
}

// taken notes that a run has taken the first event that none had.
func (w *world) taken() {
	w.lock.Lock()
	defer w.lock.Unlock()
	if len(w.sent) > 0 {
		w.sent = w.sent[1:]
	}
}

// count is how often something was done.
func (w *world) count(what string) (n int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, entry := range w.log {
		if entry == what {
			n++
		}
	}
	return n
}

// check compares what came of the jobs to what should.
func (w *world) check(jobs ...string) {
	w.t.Helper()
	var names []string
	for _, j := range w.result.Jobs {
		names = append(names, j.Name)
		if j.Stage != over {
			w.t.Errorf("job %s is at stage %d", j.Name, j.Stage)
		}
		for _, what := range []string{"make ", "start "} {
			if n := w.count(what + j.Name); n != 1 {
				w.t.Errorf("%s%s: %d times", what, j.Name, n)
			}
		}
	}
	if !slices.Equal(names, jobs) {
		w.t.Errorf("jobs %q, want %q", names, jobs)
	}
}

// handedOver is the state that a run gives to the next.
func handedOver(t rapid.TB, next *workflow.ContinueAsNewError) (packed []byte) {
	t.Helper()
	var input converter.RawValue
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &input, &packed); err != nil {
		t.Fatal(err)
	}
	return packed
}
