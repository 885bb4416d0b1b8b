package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
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
			tell := controller.Signal{Meta: meta("tell", j.Name), To: controller.Execution{WorkflowID: "child/" + j.Name}, Name: "tell", Payload: j.Name}
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
		d.Watches = append(d.Watches, controller.Watch{Key: key("ends", ""), Call: controller.Call{Func: "ends"}, Input: unfollowed})
	}
	if y.Closed && !slices.ContainsFunc(y.Jobs, func(j job) bool { return j.Stage != over }) {
		d.End = &controller.End{Result: y}
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
	return controller.Page{Details: fmt.Sprint(len(y.Jobs), " jobs") + y.ShowTroubles() + y.ShowNotes()}
}

type status struct{}

func (status) Answer(y *toy, _ time.Time) (any, error) { return y, nil }

// runToy is the workflow. It begins with every as the number of events after which it continues as new.
func runToy(every int) func(workflow.Context, converter.RawValue, []byte) (any, error) {
	return func(ctx workflow.Context, input converter.RawValue, packed []byte) (any, error) {
		return controller.Run(ctx, &toy{every: every}, controller.Program[*toy]{
			Type: "toy", Input: input,
			Messages: []controller.Message[*toy]{
				{Name: "add", Payload: add{}}, {Name: "close", Payload: closing{}}, {Name: "ack", Payload: ack{}, From: controller.Workflows},
			},
			Queries: []controller.Query[*toy]{{Name: "status", Doc: "its state", Question: status{}}},
		}, packed)
	}
}

// event happens in the world at a time.
type event struct {
	at time.Duration
	do func(env *testsuite.TestWorkflowEnvironment)
}

// world is what toys work on, in one run after the other.
type world struct {
	t      *testing.T
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
	// reset: the next run came by reset.
	reset  bool
	result toy
}

const lifetime = 6 * time.Second

func newWorld(t *testing.T, every int) *world {
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

func (w *world) note(what string, env *testsuite.TestWorkflowEnvironment) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.log = append(w.log, what)
	w.now = env.Now()
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
		// A server gives the next run the signals that came while the last one ended.
		w.events, w.sent = append(w.sent, w.events...), nil
	}
	w.t.Fatal("it does not end")
}

// environment is one for a single run.
func (w *world) environment() *testsuite.TestWorkflowEnvironment {
	env := workflowtest.Environment(w.now)
	env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}, &pretended{world: w, env: env}},
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
	env.ExecuteWorkflow("toy", struct{}{}, packed)
	w.now = env.Now()
	if err := env.GetWorkflowError(); err != nil {
		return err
	}
	w.result = toy{}
	return env.GetWorkflowResult(&w.result)
}

// register registers the workflows and what they do to the world.
func (w *world) register(env *testsuite.TestWorkflowEnvironment) {
	env.RegisterWorkflowWithOptions(runToy(w.every), workflow.RegisterOptions{Name: "toy"})
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
	if w.reset {
		env.OnGetVersion(mock.Anything, workflow.DefaultVersion, workflow.Version(1)).Return(workflow.Version(1))
	}
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
			w.note("tell "+name, env)
			w.signal(w.now.Sub(w.start)+time.Second, "ack", ack{Job: name})
			return nil
		})
}

// pretended has a run look as if it came by reset.
type pretended struct {
	interceptor.WorkerInterceptorBase
	world *world
	env   *testsuite.TestWorkflowEnvironment
}

func (p *pretended) InterceptWorkflow(ctx workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &pretendedInbound{pretended: p}
	i.Next = next
	return i
}

type pretendedInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	*pretended
}

// HandleSignal notes that a run has taken a signal. They arrive in the order in which they were sent.
func (i *pretendedInbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	if !i.env.IsWorkflowCompleted() && len(i.world.sent) > 0 {
		i.world.sent = i.world.sent[1:]
	}
	return i.Next.HandleSignal(ctx, in)
}

func (i *pretendedInbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &pretendedOutbound{reset: i.world.reset}
	o.Next = next
	return i.Next.Init(o)
}

type pretendedOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	reset bool
}

func (o *pretendedOutbound) GetInfo(ctx workflow.Context) *workflow.Info {
	info := o.Next.GetInfo(ctx)
	if o.reset {
		info.OriginalRunID = "the run that was reset"
	}
	return info
}

// count is how often something was done.
func (w *world) count(what string) (n int) {
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
func handedOver(t *testing.T, next *workflow.ContinueAsNewError) (packed []byte) {
	t.Helper()
	var input converter.RawValue
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &input, &packed); err != nil {
		t.Fatal(err)
	}
	return packed
}
