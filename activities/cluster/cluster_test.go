package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/nodestate"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/schedule"
)

// ofNoName is the namespace of marks that name none.
var ofNoName = &Activities{Nodes: k8s.NewNodes(nil)}

var groups = []schedule.Group{
	{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: schedule.Count(1)},
	{Name: "zone", GroupBy: []string{"zone"}, MaxUnavailable: schedule.Count(1)},
}

func grouper(t *testing.T) schedule.Grouper {
	t.Helper()
	g, err := schedule.NewGrouper(groups)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCountCountsAllNodesAndThoseOfEachGroup(t *testing.T) {
	nodes := []*corev1.Node{
		activitytest.Node("n1", activitytest.Labelled("pool", "gpu"), activitytest.Labelled("zone", "a")), activitytest.Node("n2", activitytest.Labelled("pool", "gpu"), activitytest.Labelled("zone", "b"), activitytest.Cordoned),
		activitytest.Node("n3", activitytest.Labelled("zone", "a"), activitytest.NotReady), activitytest.Node("n4"),
	}
	got := count(nodes, grouper(t), nodestate.IsUnavailable)
	want := map[string]schedule.GroupCount{
		"": {Nodes: 4, Unavailable: 2}, "gpu": {Nodes: 2, Unavailable: 1}, "zone[zone=a]": {Nodes: 2, Unavailable: 1},
		"zone[zone=b]": {Nodes: 1, Unavailable: 1}, "zone[zone=<none>]": {Nodes: 1},
	}
	if !maps.Equal(got, want) {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestDigestChangesWithWhatOthersDoOnly(t *testing.T) {
	base := []*corev1.Node{activitytest.Node("n1", activitytest.Labelled("zone", "a")), activitytest.Node("n2", activitytest.Labelled("zone", "b")), activitytest.Node("n3", activitytest.Labelled("zone", "b"))}
	with := func(i int, options ...activitytest.NodeOption) []*corev1.Node {
		nodes := slices.Clone(base)
		nodes[i] = activitytest.Node(base[i].Name, append([]activitytest.NodeOption{activitytest.Labelled("zone", base[i].Labels["zone"])}, options...)...)
		return nodes
	}
	before := ofNoName.digest(base, grouper(t))
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		same  bool
	}{
		"the same":                        {base, true},
		"another order":                   {[]*corev1.Node{base[2], base[0], base[1]}, true},
		"cordoned by hand":                {with(0, activitytest.Cordoned), false},
		"not ready":                       {with(0, activitytest.NotReady), false},
		"cordoned by Drydock":             {with(0, activitytest.Cordoned, activitytest.Marked("w", "r")), true},
		"not ready in Drydock's hands":    {with(0, activitytest.NotReady, activitytest.Marked("w", "r")), true},
		"marked only":                     {with(0, activitytest.Marked("w", "r")), true},
		"a node less":                     {base[:2], false},
		"a node more":                     {append(slices.Clone(base), activitytest.Node("n4", activitytest.Labelled("zone", "a"))), false},
		"a node in another group":         {with(1, activitytest.Labelled("zone", "a")), false},
		"another label that no group has": {with(1, activitytest.Labelled("color", "red")), true},
	} {
		if got := ofNoName.digest(c.nodes, grouper(t)) == before; got != c.same {
			t.Errorf("%s: the digest is the same: %v", name, got)
		}
	}
	if ofNoName.digest(base, schedule.Grouper{}) == before {
		t.Error("the digest does not know the groups")
	}
}

func observe(t *testing.T, s *k8stest.Server, in ObserveInput) Observed {
	t.Helper()
	c := &Activities{Nodes: k8s.NewNodes(s.Client(t))}
	env := activitytest.Environment()
	env.RegisterActivity(c.ObserveNodes)
	value, err := env.ExecuteActivity(c.ObserveNodes, in)
	if err != nil {
		t.Fatal(err)
	}
	var observed Observed
	if err := value.Get(&observed); err != nil {
		t.Fatal(err)
	}
	return observed
}

// A profile may have a node in maintenance that nothing else shows to be out of service.
func TestANodeThatAProfileHasInMaintenanceIsUnavailable(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1", activitytest.Labelled(state.StateLabel, string(state.Maintenance))), activitytest.Node("n2", activitytest.Labelled(state.StateLabel, string(state.Required))))
	c := &Activities{Nodes: k8s.NewNodes(s.Client(t))}
	seen, err := activitytest.Call(t, c.ObserveNodes, ObserveInput{Names: api.List[string]{"n1", "n2"}})
	if err != nil {
		t.Fatal(err)
	}
	o := seen.Observation
	if o.Unavailable != 1 || !o.Facts["n1"].Unavailable || o.Facts["n2"].Unavailable || len(o.Others) != 1 || o.Others[0].Why != "in maintenance by a profile" {
		t.Errorf("%+v", o)
	}
}

func TestObserveNodesReturnsFactsOfSomeAndCountsAll(t *testing.T) {
	s := k8stest.New(
		activitytest.Node("worker-01", activitytest.Labelled("pool", "gpu")), activitytest.Node("worker-02", activitytest.Cordoned), activitytest.Node("worker-03", activitytest.NotReady),
		activitytest.Node("worker-04", activitytest.Cordoned, activitytest.Marked("w", "r")), activitytest.Node("worker-05", activitytest.Cordoned, activitytest.Marked("w", "r")), activitytest.Node("worker-06", activitytest.Cordoned),
	)
	got := observe(t, s, ObserveInput{
		Groups: groups, Revision: 7, Names: []string{"worker-01", "worker-02", "worker-04", "worker-05", "wroker-01"},
		Ours: []string{"worker-04", "worker-06"},
	}).Observation
	if got.Nodes != 6 || got.Unavailable != 4 || got.Revision != 7 || got.At.IsZero() {
		t.Errorf("observed %+v", got)
	}
	if diff := cmp.Diff([]schedule.UnavailableNode{
		{Node: "worker-02", Why: "cordoned"}, {Node: "worker-03", Why: "not Ready"}, {Node: "worker-05", Why: "cordoned"}, {Node: "worker-06", Why: "cordoned"},
	}, got.Others); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if _, all := got.Groups[""]; all || got.Groups["gpu"].Nodes != 1 {
		t.Errorf("groups %+v", got.Groups)
	}
	for name, unavailable := range map[string]bool{"worker-01": false, "worker-02": true, "worker-04": false, "worker-05": true} {
		if facts := got.Facts[name]; facts.Missing || facts.Unavailable != unavailable {
			t.Errorf("%s: %+v", name, facts)
		}
	}
	if facts := got.Facts["wroker-01"]; !facts.Missing || !strings.HasPrefix(facts.Suggestion, "worker-01") {
		t.Errorf("a node that does not exist: %+v", facts)
	}
	if len(got.Facts) != 5 || !slices.Equal(got.Facts["worker-01"].Groups, []string{"gpu", "zone[zone=<none>]"}) {
		t.Errorf("facts %+v", got.Facts)
	}
}

// awaited is a context of a test whose rounds are few.
func awaited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestHoldersThatDoNotRunHaveEnded(t *testing.T) {
	c := &Activities{Home: execution.Namespace{Retention: time.Hour}, Temporal: activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
		"w1/r": enums.WORKFLOW_EXECUTION_STATUS_RUNNING, "w2/r": enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
		"w4/r": enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, "w5/another": enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
	})}
	d := &holderPoll{activities: c, found: make(chan struct{}, 1)}
	for _, w := range []string{"w1", "w2", "w3", "w4", "w5"} {
		d.holders = append(d.holders, WatchedHolder{RequestID: w + "/1", WorkflowID: w, RunID: "r", Since: time.Now()})
	}
	if err := d.round(awaited(t)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range d.take() {
		got = append(got, e.WorkflowID+" "+e.Status)
	}
	slices.Sort(got)
	if want := []string{"w2 Terminated", "w4 Completed", "w5 followed by another"}; !slices.Equal(got, want) {
		t.Errorf("ended %v, want %v", got, want)
	}
}

func TestOneDeadHolderAmong400IsFoundAlthoughTheServerIsSlow(t *testing.T) {
	status := map[string]enums.WorkflowExecutionStatus{}
	in := WatchInput{}
	var nodes []k8stest.Object
	for i := range 400 {
		name := fmt.Sprintf("n%d", i)
		status[name+"/r"] = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
		in.Holders = append(in.Holders, WatchedHolder{RequestID: name + "/1", Node: name, WorkflowID: name, RunID: "r"})
		nodes = append(nodes, activitytest.Node(name, activitytest.Cordoned, activitytest.Marked(name, "r")))
	}
	status["n399/r"] = enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
	// The server says nothing before it has received a heartbeat: one that describes and does not heartbeat never ends.
	server := &slowServer{Client: activitytest.Statuses(status), received: make(chan struct{})}
	c := &Activities{Nodes: k8s.NewNodes(k8stest.New(nodes...).Client(t)), Temporal: server}
	env := activitytest.Environment()
	env.RegisterActivity(c.WatchCluster)
	// Where they are recorded: the SDK sends one in 30 s here.
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&beats{recorded: server.hear}}})
	value, err := env.ExecuteActivity(c.WatchCluster, in)
	var report WatchReport
	if err == nil {
		err = value.Get(&report)
	}
	if err != nil || len(report.Ended) != 1 || report.Ended[0].RequestID != "n399/1" {
		t.Fatalf("report %+v, %v", report.Ended, err)
	}
	if most := server.most.Load(); most < 2 {
		t.Errorf("%d holder was described at a time", most)
	}
}

// beats hears of each heartbeat that is recorded.
type beats struct {
	interceptor.WorkerInterceptorBase
	recorded func()
}

func (b *beats) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &beatsIn{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, recorded: b.recorded}
}

type beatsIn struct {
	interceptor.ActivityInboundInterceptorBase
	recorded func()
}

func (b *beatsIn) Init(outbound interceptor.ActivityOutboundInterceptor) error {
	return b.Next.Init(&beatsOut{ActivityOutboundInterceptorBase: interceptor.ActivityOutboundInterceptorBase{Next: outbound}, recorded: b.recorded})
}

type beatsOut struct {
	interceptor.ActivityOutboundInterceptorBase
	recorded func()
}

func (b *beatsOut) RecordHeartbeat(ctx context.Context, details ...any) {
	b.recorded()
	b.Next.RecordHeartbeat(ctx, details...)
}

// slowServer describes workflows once it has received a heartbeat after the first was asked for.
type slowServer struct {
	client.Client
	once     sync.Once
	received chan struct{}
	now, all atomic.Int32
	most     atomic.Int32
}

func (s *slowServer) hear() {
	if s.all.Load() > 0 {
		s.once.Do(func() { close(s.received) })
	}
}

func (s *slowServer) DescribeWorkflowExecution(ctx context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.all.Add(1)
	now := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	select {
	case <-s.received:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.Client.DescribeWorkflowExecution(ctx, id, run)
}

func TestStrayMarksAreClassified(t *testing.T) {
	const home, run, other = "5f3d1e0a-0000-4000-8000-000000000001", "0190b1c0-0000-7000-8000-000000000001", "0190b1c0-0000-7000-8000-000000000002"
	marked := func(name, run, namespace string) k8stest.Object {
		return activitytest.Node(name, activitytest.Cordoned, activitytest.MarkedBy(k8s.Holder{
			WorkflowID: api.MaintenanceID("", name, "ops"), RunID: run, Namespace: namespace,
		}))
	}
	odd := activitytest.Node("n6")
	odd.Annotations[api.HoldersAnnotation] = "{"
	s := k8stest.New(marked("n1", run, home), marked("n2", run, home), marked("n3", run, "elsewhere"), marked("n4", run, ""),
		marked("n5", "r", home), odd, marked("n7", run, home), marked("n8", run, home))
	c := &Activities{Nodes: k8s.NewNodes(s.Client(t)), Home: execution.Namespace{ID: home}}
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Minute)
	observed, err := activitytest.Call(t, c.ObserveNodes, ObserveInput{Ours: []string{"n1", "n3"}, Known: []KnownMark{
		{Node: "n1", RunID: run}, {Node: "n2", RunID: other}, {Node: "n7", RunID: run, Until: future}, {Node: "n8", RunID: run, Until: past},
		{Node: "n9", RunID: run, Stray: true}, {Node: "n1", RunID: run, Stray: true}, {Node: "n9", RunID: other},
	}})
	if err != nil {
		t.Fatal(err)
	}
	names := func(marks []api.StrayMark) (all []string) {
		for _, m := range marks {
			all = append(all, m.Node+" "+string(m.Kind))
		}
		return all
	}
	m := observed.Marks
	if want := []string{"n3 foreign", "n4 foreign", "n5 malformed", "n6 malformed"}; !slices.Equal(names(m.Foreign), want) || m.ForeignAll != 4 {
		t.Errorf("foreign %v", names(m.Foreign))
	}
	if want := []string{"n2 unknown", "n8 unknown"}; !slices.Equal(names(m.Unknown), want) {
		t.Errorf("unknown %v", names(m.Unknown))
	}
	if len(m.Vanished) != 1 || m.Vanished[0].Node != "n9" || !m.Vanished[0].Stray {
		t.Errorf("vanished %+v", m.Vanished)
	}
	// A mark of somebody else's explains nothing: n3 is unavailable although a slot is held for it.
	if observed.Observation.Unavailable != 6 {
		t.Errorf("%d nodes are unavailable", observed.Observation.Unavailable)
	}
}

func TestAWatchReportsAnUnknownMarkAtOnceOnlyIfItWasThereFromTheStart(t *testing.T) {
	now := time.Now()
	first, second := api.StrayMark{Node: "n1", RunID: "a"}, api.StrayMark{Node: "n2", RunID: "b"}
	u := unknownMarks{}
	if got := u.persistent([]api.StrayMark{first}, now); len(got) != 1 {
		t.Errorf("from the start: %v", got)
	}
	if got := u.persistent([]api.StrayMark{first, second}, now.Add(time.Second)); len(got) != 1 || got[0].Node != "n1" {
		t.Errorf("later: %v", got)
	}
	if got := u.persistent([]api.StrayMark{second}, now.Add(time.Second+unknownFor)); len(got) != 1 || got[0].Node != "n2" {
		t.Errorf("for long: %v", got)
	}
	u = unknownMarks{}
	if got := u.persistent(nil, now); len(got) != 0 {
		t.Error(got)
	}
	if got := u.persistent([]api.StrayMark{first}, now.Add(time.Second)); len(got) != 0 {
		t.Errorf("a grant while it runs: %v", got)
	}
}

// watchOnce runs WatchCluster, after an attempt with these heartbeat details.
func watchOnce(t *testing.T, s *k8stest.Server, in WatchInput, before any) (WatchReport, error) {
	t.Helper()
	c := &Activities{Nodes: k8s.NewNodes(s.Client(t)), Temporal: activitytest.Statuses(nil)}
	env := activitytest.Environment()
	env.RegisterActivity(c.WatchCluster)
	if before != nil {
		env.SetHeartbeatDetails(before)
	}
	value, err := env.ExecuteActivity(c.WatchCluster, in)
	var report WatchReport
	if err == nil {
		err = value.Get(&report)
	}
	return report, err
}

func TestWatchReturnsAtOnceWhatItFindsChanged(t *testing.T) {
	held := WatchedHolder{RequestID: "r/1", Node: "n1", WorkflowID: "w", RunID: "r"}
	seen := markedNodes{"r/1": true}
	calm := ofNoName.digest([]*corev1.Node{activitytest.Node("n1"), activitytest.Node("n2")}, schedule.Grouper{})
	for name, c := range map[string]struct {
		nodes  []k8stest.Object
		digest string
		want   WatchReport
	}{
		"stale":      {[]k8stest.Object{activitytest.Node("n1", activitytest.Cordoned, activitytest.Marked("w", "r")), activitytest.Node("n2", activitytest.NotReady)}, calm, WatchReport{Stale: true}},
		"uncordoned": {[]k8stest.Object{activitytest.Node("n1", activitytest.Marked("w", "r")), activitytest.Node("n2")}, calm, WatchReport{Changes: []api.NodeChange{{RequestID: "r/1", Uncordoned: true}}}},
		"unmarked":   {[]k8stest.Object{activitytest.Node("n1"), activitytest.Node("n2")}, calm, WatchReport{Changes: []api.NodeChange{{RequestID: "r/1", Unmarked: true}}}},
		"marked by another run": {[]k8stest.Object{activitytest.Node("n1", activitytest.Cordoned, activitytest.Marked("w", "other")), activitytest.Node("n2")}, calm,
			WatchReport{Changes: []api.NodeChange{{RequestID: "r/1", Unmarked: true}}}},
		"missing": {[]k8stest.Object{activitytest.Node("n2")}, "", WatchReport{Changes: []api.NodeChange{{RequestID: "r/1", Missing: true}}}},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := watchOnce(t, k8stest.New(c.nodes...), WatchInput{Digest: c.digest, Holders: []WatchedHolder{held}}, seen)
			if err != nil || report.Stale != c.want.Stale || !slices.Equal(report.Changes, c.want.Changes) || len(report.Ended) != 0 {
				t.Errorf("report %+v, %v; want %+v", report, err, c.want)
			}
		})
	}
}

func TestWatchReportsANodeThatWentBeforeItsMarkWasSeen(t *testing.T) {
	in := WatchInput{Holders: []WatchedHolder{{RequestID: "r/1", Node: "n1", WorkflowID: "w", RunID: "r"}}}
	report, err := watchOnce(t, k8stest.New(activitytest.Node("n2")), in, nil)
	if err != nil || !slices.Equal(report.Changes, []api.NodeChange{{RequestID: "r/1", Missing: true}}) || !slices.Equal(report.Missing, []string{"r/1"}) {
		t.Errorf("report %+v, %v", report, err)
	}
	in.Missing, in.Digest = report.Missing, "another"
	if report, err = watchOnce(t, k8stest.New(activitytest.Node("n2")), in, nil); err != nil || len(report.Changes) != 0 || !slices.Equal(report.Missing, in.Missing) {
		t.Errorf("reported again: %+v, %v", report, err)
	}
}

func TestWatchFollowsHoldersOnceTheirMarkIsThere(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"), activitytest.Node("n2"))
	in := WatchInput{Digest: ofNoName.digest([]*corev1.Node{activitytest.Node("n1"), activitytest.Node("n2")}, schedule.Grouper{}), Holders: []WatchedHolder{
		{RequestID: "r/1", Node: "n1", WorkflowID: "w", RunID: "r"},
	}}
	c := &Activities{Nodes: k8s.NewNodes(s.Client(t)), Temporal: activitytest.Statuses(nil)}
	view, err := c.Nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	known, lost := markedNodes{}, lostMarks{}
	present, overdue := true, false
	changes := func() []api.NodeChange {
		return known.changes(shown{view, c.Nodes}, in.Holders, lost, overdue, func(string) bool { return !present })
	}
	see := func(condition func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for !condition() {
			select {
			case <-view.Changed:
			case <-ctx.Done():
				t.Fatal("the condition never came true")
			}
		}
	}
	if changes := changes(); len(changes) != 0 {
		t.Errorf("a holder that has not marked its node yet: %+v", changes)
	}
	overdue = true
	in.Holders[0].Unmarked = true
	if changes := changes(); len(changes) != 0 {
		t.Errorf("a holder that marks no node: %+v", changes)
	}
	in.Holders[0].Unmarked = false
	if changes := changes(); len(changes) != 1 || !changes[0].Unmarked {
		t.Errorf("a holder that has not marked its node for long: %+v", changes)
	}
	overdue = false
	s.Set(activitytest.Node("n1", activitytest.Cordoned, activitytest.Marked("w", "r")))
	see(func() bool { return len(changes()) == 0 && known["r/1"] })
	s.Set(activitytest.Node("n1", activitytest.Cordoned)) // somebody takes the mark
	see(func() bool {
		n, ok := view.Get("n1")
		return ok && n.Annotations[api.HoldersAnnotation] == ""
	})
	if changes := changes(); len(changes) != 0 {
		t.Errorf("a mark that has just gone: %+v", changes)
	}
	lost["r/1"] = lost["r/1"].Add(-lostFor)
	if changes := changes(); len(changes) != 1 || !changes[0].Unmarked {
		t.Errorf("a mark that is gone for good: %+v", changes)
	}
	if changes := changes(); len(changes) != 0 {
		t.Errorf("a missing mark is reported again: %+v", changes)
	}
	s.Set(activitytest.Node("n1", activitytest.Cordoned, activitytest.Marked("w", "r")))
	see(func() bool { return len(changes()) == 0 && known["r/1"] })
	s.Delete(activitytest.Node("n1"))
	see(func() bool { _, there := view.Get("n1"); return !there })
	if changes := changes(); len(changes) != 0 {
		t.Errorf("a node that only this watch misses: %+v", changes)
	}
	present = false
	see(func() bool {
		changes := changes()
		return len(changes) == 1 && changes[0].Missing
	})
	if changes := changes(); len(changes) != 0 {
		t.Errorf("a missing node is reported again: %+v", changes)
	}
}

func TestWatchEndsWhereTheServerRefusesIt(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"))
	c := &Activities{Nodes: k8s.NewNodes(s.Client(t)), Temporal: activitytest.Statuses(nil)}
	view, err := c.Nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	s.Deny("*", "nodes")
	s.Disconnect()
	env := activitytest.Environment()
	env.RegisterActivity(c.WatchCluster)
	if _, err := env.ExecuteActivity(c.WatchCluster, WatchInput{}); err == nil || !strings.Contains(err.Error(), api.ErrorMissingPermission) {
		t.Errorf("error = %v", err)
	}
}
