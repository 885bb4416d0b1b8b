package lockstep

import (
	"cmp"
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
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/execution"
	activity "drydock.dev/drydock/activities/lockstep"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/workflows/controller/controllertest"
	"drydock.dev/drydock/workflows/inbox"
)

// latency is how long an activity takes: what comes back at once would hide a loop.
const latency = 20 * time.Millisecond

// site is the world around the lockstep: plans that say what they intend, maintenances that do what they are sent, and a
// clock that jumps. It goes on across continue-as-new.
type site struct {
	t             *testing.T
	env           *testsuite.TestWorkflowEnvironment
	start         time.Time
	packed        []byte
	continueAfter int
	runs          int
	// resets counts how often the run finds that it came by reset; length is that of the history, newest what it was at the latest reset.
	resets, length, newest int

	mu     sync.Mutex
	events events
	log    []string
	nodes  map[string]*shared
	// plans are the runs of those that run, by name; silent ones do not answer when they are asked.
	plans    map[string]string
	intents  map[string]api.PlanIntent
	silent   map[string]bool
	received map[string]*receipts
	// takes is how long a drain to some targets takes, by node; stubborn nodes are never drained.
	takes    map[string]time.Duration
	stubborn map[string]bool
	// foreign nodes have somebody else's maintenance, lost is when the watch sees what has ended without a word.
	foreign map[string]bool
	lost    []time.Duration
	// missed is how often a node's maintenance cannot be signalled.
	missed map[string]int
	// lostEnds are nodes whose maintenances lose, once, the message that ends them.
	lostEnds map[string]bool
	// unlisted are nodes whose maintenances the list of those that run does not have yet.
	unlisted map[string]bool
	ended    bool
	end      time.Duration
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

type event struct {
	at   time.Duration
	do   func()
	done bool
}

// shared is a node's maintenance.
type shared struct {
	run, node string
	input     map[string]any
	target    api.NodeTarget
	phase     api.Phase
	drained   bool
	over      bool
	// slotless: it waits for its slot.
	slotless bool
	history  [][]drainplan.Entry
	gangs    []string
}

// receipts is what a plan received.
type receipts struct {
	last     api.PlanProgress
	nodes    map[string]api.SharedProgress
	refused  []string
	complete bool
	// size is that of the longest signal in JSON, repeats how often it was asked for its intent.
	size    int
	repeats int
}

func newSite(t *testing.T) *site {
	return &site{
		t: t, start: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), nodes: map[string]*shared{}, plans: map[string]string{},
		intents: map[string]api.PlanIntent{}, silent: map[string]bool{}, received: map[string]*receipts{}, takes: map[string]time.Duration{},
		stubborn: map[string]bool{}, foreign: map[string]bool{}, newest: -1,
	}
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later(when, do)
}

func (s *site) later(when time.Duration, do func()) {
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
	// What it is signalled with starts it.
	began, next := s.start, s.end
	for _, e := range s.events.list() {
		if !e.done {
			next = min(next, e.at)
		}
	}
	if s.env != nil {
		began = s.env.Now()
	}
	if first := s.start.Add(next - time.Millisecond); len(s.packed) == 0 && first.After(began) {
		began = first
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s.env = suite.NewTestWorkflowEnvironment()
	s.env.SetTestTimeout(time.Minute)
	s.env.RegisterWorkflowWithOptions(s.workflow, workflow.RegisterOptions{Name: api.LockstepType})
	s.env.RegisterActivity(&activity.Activities{})
	s.env.RegisterActivity(&execution.Activities{})
	interceptors := []interceptor.WorkerInterceptor{&inbox.Interceptor{}}
	if s.resets > 0 {
		interceptors = append(interceptors, &controllertest.AsReset{})
		s.env.OnGetVersion(mock.Anything, workflow.DefaultVersion, workflow.Version(1)).Return(func(change string, _, _ workflow.Version) workflow.Version {
			if change == fmt.Sprintf("reset-at-%d", s.newest) {
				return 1
			}
			return workflow.DefaultVersion
		})
	}
	s.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute, Interceptors: interceptors})
	s.env.SetWorkflowRunTimeout(10 * 365 * 24 * time.Hour)
	s.env.SetStartTime(began)
	if len(s.packed) > 0 {
		s.env.SetContinuedExecutionRunID(runOf("before"))
	}
	s.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: api.LockstepID(""), TaskQueue: api.DefaultTaskQueue})
	s.env.OnActivity("CheckPlans", mock.Anything, mock.Anything).After(latency).Return(s.checkPlans)
	s.env.OnActivity("FindShared", mock.Anything, mock.Anything).After(latency).Return(s.findShared)
	s.env.OnActivity("BeginShared", mock.Anything, mock.Anything).After(latency).Return(s.beginShared)
	s.env.OnActivity("SteerShared", mock.Anything, mock.Anything).After(latency).Return(s.steerShared)
	s.env.OnActivity("EndShared", mock.Anything, mock.Anything).After(latency).Return(s.endShared)
	s.env.OnActivity("WatchShared", mock.Anything, mock.Anything).AfterFn(s.untilLost).Return(s.watchShared)
	s.env.OnActivity("ThisRun", mock.Anything).Return("this run", nil)
	s.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(s.receive)
}

// run lets the world go on until the time end, or the end of the lockstep.
func (s *site) run(end time.Duration) {
	s.t.Helper()
	s.end = end
	s.at(end, func() { s.env.CancelWorkflow() })
	for {
		s.begin()
		s.runs++
		for _, e := range s.events.list() {
			if !e.done {
				s.register(e)
			}
		}
		s.env.ExecuteWorkflow(api.LockstepType, s.packed)
		err := s.env.GetWorkflowError()
		var again *workflow.ContinueAsNewError
		if !errors.As(err, &again) {
			if err != nil && !temporal.IsCanceledError(err) {
				s.t.Fatalf("it ended by itself: %v", err)
			}
			if s.ended = err == nil; s.ended && s.pendingEvents() {
				s.packed = nil // a plan starts it anew by its next signal
				continue
			}
			return
		}
		s.packed = nil
		if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &s.packed); err != nil {
			s.t.Fatal(err)
		}
		if s.runs > 300 {
			s.t.Fatal("it continues as new without end")
		}
	}
}

// pendingEvents reports whether something goes on in the world before its end.
func (s *site) pendingEvents() bool {
	return slices.ContainsFunc(s.events.list(), func(e *event) bool { return !e.done && e.at < s.end })
}

func (s *site) workflow(ctx workflow.Context, packed []byte) error {
	l := &lockstep{}
	l.ContinueAfter = s.continueAfter
	return run(ctx, l, packed)
}

// reset has the run find that it came by reset.
func (s *site) reset(when time.Duration) {
	s.resets++
	s.at(when, func() {
		s.length++
		s.newest = s.length
		s.env.SetCurrentHistoryLength(s.length)
		s.note("reset")
	})
}

func (s *site) checkPlans(_ context.Context, in activity.CheckInput) ([]api.HeldPlan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := []api.HeldPlan{}
	for _, p := range in.Plans {
		if s.plans[p.Name] == p.RunID {
			running = append(running, p)
		}
	}
	return running, nil
}

func (s *site) findShared(context.Context, activity.QueueInput) (activity.Running, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var running activity.Running
	for _, name := range sortedKeys(s.nodes) {
		if !s.nodes[name].over && !s.unlisted[name] {
			running.Nodes = append(running.Nodes, name)
		}
	}
	for _, name := range sortedKeys(s.plans) {
		running.Plans = append(running.Plans, api.HeldPlan{Name: name, RunID: s.plans[name]})
	}
	s.note("find %d nodes, %d plans", len(running.Nodes), len(running.Plans))
	return running, nil
}

func (s *site) beginShared(_ context.Context, in activity.Batch) (begun []activity.Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range in.Requests {
		name := r.Node
		m := s.nodes[name]
		switch {
		case s.foreign[name]:
			begun = append(begun, activity.Result{Node: name, Refused: "it is somebody else's"})
		case m != nil && !m.over:
			begun = append(begun, activity.Result{Node: name, RunID: m.run, Adopted: true})
		default:
			m = &shared{node: name, run: runOf(fmt.Sprint(name, len(s.log))), phase: api.Pending}
			if err := json.Unmarshal(in.Input, &m.input); err != nil {
				s.t.Error(err)
			}
			s.nodes[name] = m
			s.note("begin %s", name)
			begun = append(begun, activity.Result{Node: name, RunID: m.run})
		}
	}
	return begun, nil
}

func (s *site) steerShared(_ context.Context, in activity.Batch) (results []activity.Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range in.Requests {
		result := activity.Result{Node: r.Node, RunID: r.RunID}
		switch m := s.nodes[r.Node]; {
		case s.missed[r.Node] > 0:
			s.missed[r.Node]--
			result.Failed = "it has too many signals"
		case m == nil || m.over:
			result.Ended, result.Phase, result.Failure = true, api.Failed, "it was terminated"
		default:
			s.steer(m, *r.Target)
		}
		results = append(results, result)
	}
	return results, nil
}

func (s *site) steer(m *shared, t api.NodeTarget) {
	if t.Report && t.Revision == 0 {
		s.later(s.now()+time.Second, func() { s.report(m) })
		return
	}
	if t.Revision <= m.target.Revision {
		s.t.Errorf("%s: revision %d follows %d", m.node, t.Revision, m.target.Revision)
	}
	if _, back := drainplan.Union(t.Targets, m.target.Targets); back {
		s.t.Errorf("%s: targets go back from %v to %v", m.node, m.target.Targets, t.Targets)
	}
	raised := !slices.Equal(t.Targets, m.target.Targets)
	if raised {
		m.drained = false
		m.history = append(m.history, t.Targets)
		s.note("%s up to %s", m.node, text(t.Targets))
	}
	if gang := gangOf(t); len(m.gangs) == 0 || m.gangs[len(m.gangs)-1] != gang {
		m.gangs = append(m.gangs, gang)
	}
	m.target = t
	if m.slotless || !s.act(m) {
		s.later(s.now()+time.Second+s.apart(), func() { s.report(m) }) // each word is answered
	}
}

// act does what a maintenance does that has its slot: it cordons, and drains. It reports whether it has something to say of that.
func (s *site) act(m *shared) bool {
	before := m.phase
	switch {
	case len(m.target.Targets) == 0:
		m.phase = api.Cordoning // what follows it has nothing of the lockstep's
	case m.drained:
		m.phase = api.Ready
	default:
		m.phase = api.Draining
		s.drainsLater(m)
	}
	if m.phase != before {
		s.later(s.now()+time.Second+s.apart(), func() { s.report(m) })
	}
	return m.phase != before
}

// apart keeps what hundreds of nodes say from coming in one instant, which the test environment does not stand.
func (s *site) apart() time.Duration {
	return time.Duration(len(s.events.list())%997) * time.Millisecond
}

func (s *site) drainsLater(m *shared) {
	if s.stubborn[m.node] {
		return
	}
	takes := s.takes[m.node]
	if takes == 0 {
		takes = 5 * time.Second
	}
	targets := m.target.Targets
	s.later(s.now()+takes+s.apart(), func() {
		s.mu.Lock()
		done := !m.over && slices.Equal(m.target.Targets, targets) && !s.stubborn[m.node]
		if done {
			m.drained, m.phase = true, api.Ready
			s.note("%s is drained", m.node)
		}
		s.mu.Unlock()
		if done {
			s.report(m)
		}
	})
}

func gangOf(t api.NodeTarget) string {
	if t.Gang == nil {
		return "-"
	}
	return fmt.Sprint(t.Gang.Size)
}

func text(targets []drainplan.Entry) string {
	var all []string
	for _, e := range targets {
		all = append(all, fmt.Sprintf("%s<=%d", e.PodType, e.PodPriority))
	}
	return strings.Join(all, " ")
}

// report has a maintenance say how far it is.
func (s *site) report(m *shared) {
	s.mu.Lock()
	said := api.NodeProgress{
		Node: m.node, RunID: m.run, Phase: m.phase, Revision: m.target.Revision, Targets: m.target.Targets, Drained: m.drained,
		Gang: m.target.Gang, Plans: m.target.Plans,
	}
	if m.over {
		said.Ended = true
	}
	s.mu.Unlock()
	s.signal(api.SignalNodeProgress, said)
}

func (s *site) endShared(_ context.Context, in activity.Batch) (results []activity.Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range in.Requests {
		m := s.nodes[r.Node]
		over := m == nil || m.over
		results = append(results, activity.Result{Node: r.Node, RunID: r.RunID, Ended: over})
		if over {
			continue
		}
		s.note("end %s", r.Node)
		if s.lostEnds[r.Node] {
			delete(s.lostEnds, r.Node)
			continue
		}
		s.later(s.now()+2*time.Second, func() { s.ends(r.Node, api.Completed) })
	}
	return results, nil
}

// ends is the end of a maintenance, which reports it.
func (s *site) ends(node string, phase api.Phase) {
	s.mu.Lock()
	m := s.nodes[node]
	m.over, m.phase = true, phase
	s.mu.Unlock()
	s.report(m)
}

// untilLost is when the watch sees something.
func (s *site) untilLost() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.lost {
		if at > s.now() {
			return at - s.now() + latency
		}
	}
	return 10000 * time.Hour
}

func (s *site) watchShared(context.Context, activity.QueueInput) (activity.Seen, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var seen activity.Seen
	for _, name := range sortedKeys(s.nodes) {
		if m := s.nodes[name]; m.over {
			seen.Maintenances = append(seen.Maintenances, activity.Result{
				Node: name, RunID: m.run, Ended: true, Phase: api.Failed, Failure: "its workflow was terminated",
			})
		}
	}
	for _, name := range sortedKeys(s.intents) {
		if in := s.intents[name]; s.plans[name] != in.RunID {
			seen.Plans = append(seen.Plans, api.HeldPlan{Name: name, RunID: in.RunID})
		}
	}
	return seen, nil
}

// receive is what a plan receives.
func (s *site) receive(_, id, _, name string, arg any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, plan, err := api.ParsePlanID(id)
	progress, ok := arg.(api.PlanProgress)
	if err != nil || !ok || name != api.SignalPlanProgress {
		s.t.Errorf("signal %s to %s", name, id)
	}
	if s.plans[plan] == "" {
		return &temporal.UnknownExternalWorkflowExecutionError{}
	}
	if s.plans[plan] != progress.RunID {
		return nil
	}
	h := s.receivedBy(plan)
	if progress.Repeat {
		if h.repeats++; !s.silent[plan] && s.intents[plan].Name != "" {
			s.later(s.now()+time.Second, func() {
				s.mu.Lock()
				in := s.intents[plan]
				s.mu.Unlock()
				s.signal(api.SignalPlanIntent, in)
			})
		}
		return nil
	}
	if progress.Refused != "" {
		h.refused = append(h.refused, progress.Refused)
		return nil
	}
	size, _ := json.Marshal(progress)
	h.last, h.size = progress, max(h.size, len(size))
	if len(progress.Nodes) > maxSent {
		s.t.Errorf("plan %s received %d nodes at once", plan, len(progress.Nodes))
	}
	for _, n := range progress.Nodes {
		h.nodes[n.Node] = n
	}
	for name, n := range h.nodes {
		if n.Message == drainplan.Waiting || strings.HasPrefix(n.Message, "Waiting for node") {
			n.Message = cmp.Or(progress.WaitsFor, drainplan.Waiting)
			h.nodes[name] = n
		}
	}
	if progress.Complete && !h.complete {
		h.complete = true
		s.note("plan %s is complete", plan)
	}
	return nil
}

func (s *site) receivedBy(plan string) *receipts {
	if s.received[plan] == nil {
		s.received[plan] = &receipts{nodes: map[string]api.SharedProgress{}}
	}
	return s.received[plan]
}

// tiersOf are tiers up to priorities.
func tiersOf(priorities ...int32) []drainplan.Entry {
	var tiers []drainplan.Entry
	for _, p := range priorities {
		tiers = append(tiers, drainplan.Entry{PodType: drainplan.Default, PodPriority: p})
	}
	return tiers
}

// plan has a plan begin: its intents differ in what change does to them.
func (s *site) plan(name string, created time.Duration, tiers []drainplan.Entry, nodes ...string) *planned {
	return &planned{site: s, in: api.PlanIntent{
		Name: name, RunID: runOf("plan " + name), CreatedAt: s.start.Add(created), Tiers: tiers, Nodes: nodes,
		Maintenance: json.RawMessage(`{"reason":"plan ` + name + `"}`),
	}}
}

// planned is a plan that says what it intends.
type planned struct {
	*site
	in api.PlanIntent
}

// says has it intend something from a time on.
func (p *planned) says(when time.Duration, stage api.Stage, change ...func(*api.PlanIntent)) *planned {
	p.in.Revision++
	p.in.Stage = stage
	p.in.Nodes = slices.Clone(p.in.Nodes)
	for _, do := range change {
		do(&p.in)
	}
	in := p.in
	p.at(when, func() {
		p.mu.Lock()
		if p.plans[in.Name] = in.RunID; p.intents[in.Name].RunID != in.RunID || p.intents[in.Name].Revision < in.Revision {
			p.intents[in.Name] = in
		}
		p.mu.Unlock()
		p.signal(api.SignalPlanIntent, in)
	})
	return p
}

// state is the state of the lockstep.
func (s *site) state(asked api.LockstepRequest) api.LockstepState {
	s.t.Helper()
	value, err := s.env.QueryWorkflow(api.QueryState, asked)
	if err != nil {
		s.t.Fatal(err)
	}
	var state api.LockstepState
	if err := value.Get(&state); err != nil {
		s.t.Fatal(err)
	}
	return state
}

// count returns how many entries of the log contain a text.
func (s *site) count(text string) int {
	n := 0
	for _, entry := range s.log {
		if strings.Contains(entry, text) {
			n++
		}
	}
	return n
}

func (s *site) dump() { s.t.Helper(); s.t.Log("\n" + strings.Join(s.log, "\n")) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
