package activities

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock/api"
	"drydock/k8s"
	"drydock/k8s/k8stest"
	"drydock/rules/schedule"
)

type nodeOption func(*corev1.Node)

func node(name string, options ...nodeOption) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", Labels: map[string]string{}, Annotations: map[string]string{}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, option := range options {
		option(n)
	}
	return n
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }

func label(key, value string) nodeOption {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

// marked is held by a workflow that wants the cordon.
func marked(workflow, run string) nodeOption {
	return func(n *corev1.Node) {
		n.Annotations[api.HoldersAnnotation] = `{"holders":[{"workflowId":"` + workflow + `","runId":"` + run + `","requestor":"ops","cordon":true}],"cordoned":true}`
	}
}

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
		node("n1", label("pool", "gpu"), label("zone", "a")), node("n2", label("pool", "gpu"), label("zone", "b"), cordoned),
		node("n3", label("zone", "a"), notReady), node("n4"),
	}
	got := count(nodes, grouper(t), k8s.IsUnavailable)
	want := map[string]schedule.GroupCount{
		"": {Nodes: 4, Unavailable: 2}, "gpu": {Nodes: 2, Unavailable: 1}, "zone[zone=a]": {Nodes: 2, Unavailable: 1},
		"zone[zone=b]": {Nodes: 1, Unavailable: 1}, "zone[zone=<none>]": {Nodes: 1},
	}
	if !maps.Equal(got, want) {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestDigestChangesWithWhatOthersDoOnly(t *testing.T) {
	base := []*corev1.Node{node("n1", label("zone", "a")), node("n2", label("zone", "b")), node("n3", label("zone", "b"))}
	with := func(i int, options ...nodeOption) []*corev1.Node {
		nodes := slices.Clone(base)
		nodes[i] = node(base[i].Name, append([]nodeOption{label("zone", base[i].Labels["zone"])}, options...)...)
		return nodes
	}
	before := digest(base, grouper(t))
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		same  bool
	}{
		"the same":                        {base, true},
		"another order":                   {[]*corev1.Node{base[2], base[0], base[1]}, true},
		"cordoned by hand":                {with(0, cordoned), false},
		"not ready":                       {with(0, notReady), false},
		"cordoned by Drydock":             {with(0, cordoned, marked("w", "r")), true},
		"not ready in Drydock's hands":    {with(0, notReady, marked("w", "r")), true},
		"marked only":                     {with(0, marked("w", "r")), true},
		"a node less":                     {base[:2], false},
		"a node more":                     {append(slices.Clone(base), node("n4", label("zone", "a"))), false},
		"a node in another group":         {with(1, label("zone", "a")), false},
		"another label that no group has": {with(1, label("color", "red")), true},
	} {
		if got := digest(c.nodes, grouper(t)) == before; got != c.same {
			t.Errorf("%s: the digest is the same: %v", name, got)
		}
	}
	if digest(base, schedule.Grouper{}) == before {
		t.Error("the digest does not know the groups")
	}
}

func observe(t *testing.T, s *k8stest.Server, in ObserveInput) Observed {
	t.Helper()
	c := &Cluster{Nodes: k8s.NewNodes(s.Client(t))}
	env := activityEnvironment()
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

func TestObserveNodesTellsFactsOfSomeAndCountsAll(t *testing.T) {
	s := k8stest.New(
		node("worker-01", label("pool", "gpu")), node("worker-02", cordoned), node("worker-03", notReady),
		node("worker-04", cordoned, marked("w", "r")), node("worker-05", cordoned, marked("w", "r")), node("worker-06", cordoned),
	)
	got := observe(t, s, ObserveInput{
		Groups: groups, Revision: 7, Names: []string{"worker-01", "worker-02", "worker-04", "worker-05", "wroker-01"},
		Ours: []string{"worker-04", "worker-06"},
	}).Observation
	if got.Nodes != 6 || got.Unavailable != 4 || got.Revision != 7 || got.At.IsZero() {
		t.Errorf("observed %+v", got)
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

// statuses is a Temporal server in which workflows have a status; others do not exist.
func statuses(status map[string]enums.WorkflowExecutionStatus) *mocks.Client {
	temporal := &mocks.Client{}
	temporal.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, mock.Anything).Return(
		func(_ context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
			s, ok := status[id+"/"+run]
			if !ok {
				return nil, serviceerror.NewNotFound("no such workflow")
			}
			return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: s}}, nil
		})
	return temporal
}

func TestHoldersThatDoNotRunHaveEnded(t *testing.T) {
	c := &Cluster{Temporal: statuses(map[string]enums.WorkflowExecutionStatus{
		"w1/r": enums.WORKFLOW_EXECUTION_STATUS_RUNNING, "w2/r": enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
		"w4/r": enums.WORKFLOW_EXECUTION_STATUS_COMPLETED,
	})}
	var holders []WatchedHolder
	for _, w := range []string{"w1", "w2", "w3", "w4"} {
		holders = append(holders, WatchedHolder{RequestID: w + "/1", WorkflowID: w, RunID: "r"})
	}
	ended, err := c.ended(t.Context(), holders)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range ended {
		got = append(got, e.WorkflowID+" "+e.Status)
	}
	if want := []string{"w2 Terminated", "w3 Unspecified", "w4 Completed"}; !slices.Equal(got, want) {
		t.Errorf("ended %v, want %v", got, want)
	}
}

// watchOnce runs WatchCluster, after an attempt with these heartbeat details.
func watchOnce(t *testing.T, s *k8stest.Server, in WatchInput, before any) (WatchReport, error) {
	t.Helper()
	c := &Cluster{Nodes: k8s.NewNodes(s.Client(t)), Temporal: statuses(nil)}
	env := activityEnvironment()
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
	calm := digest([]*corev1.Node{node("n1"), node("n2")}, schedule.Grouper{})
	for name, c := range map[string]struct {
		nodes  []k8stest.Object
		digest string
		want   WatchReport
	}{
		"stale":      {[]k8stest.Object{node("n1", cordoned, marked("w", "r")), node("n2", notReady)}, calm, WatchReport{Stale: true}},
		"uncordoned": {[]k8stest.Object{node("n1", marked("w", "r")), node("n2")}, calm, WatchReport{Changes: []api.NodeChange{{RequestID: "r/1", Uncordoned: true}}}},
		"unmarked":   {[]k8stest.Object{node("n1"), node("n2")}, calm, WatchReport{Changes: []api.NodeChange{{RequestID: "r/1", Unmarked: true}}}},
		"marked by another run": {[]k8stest.Object{node("n1", cordoned, marked("w", "other")), node("n2")}, calm,
			WatchReport{Changes: []api.NodeChange{{RequestID: "r/1", Unmarked: true}}}},
		"missing": {[]k8stest.Object{node("n2")}, "", WatchReport{Changes: []api.NodeChange{{RequestID: "r/1", Missing: true}}}},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := watchOnce(t, k8stest.New(c.nodes...), WatchInput{Digest: c.digest, Holders: []WatchedHolder{held}}, seen)
			if err != nil || report.Stale != c.want.Stale || !slices.Equal(report.Changes, c.want.Changes) || len(report.Ended) != 0 {
				t.Errorf("report %+v, %v; want %+v", report, err, c.want)
			}
		})
	}
}

func TestWatchTellsOfANodeThatWentBeforeItsMarkWasSeen(t *testing.T) {
	in := WatchInput{Holders: []WatchedHolder{{RequestID: "r/1", Node: "n1", WorkflowID: "w", RunID: "r"}}}
	report, err := watchOnce(t, k8stest.New(node("n2")), in, nil)
	if err != nil || !slices.Equal(report.Changes, []api.NodeChange{{RequestID: "r/1", Missing: true}}) || !slices.Equal(report.Told, []string{"r/1"}) {
		t.Errorf("report %+v, %v", report, err)
	}
	in.Told, in.Digest = report.Told, "another"
	if report, err = watchOnce(t, k8stest.New(node("n2")), in, nil); err != nil || len(report.Changes) != 0 || !slices.Equal(report.Told, in.Told) {
		t.Errorf("told again: %+v, %v", report, err)
	}
}

func TestWatchFollowsHoldersOnceTheirMarkIsThere(t *testing.T) {
	s := k8stest.New(node("n1"), node("n2"))
	in := WatchInput{Digest: digest([]*corev1.Node{node("n1"), node("n2")}, schedule.Grouper{}), Holders: []WatchedHolder{
		{RequestID: "r/1", Node: "n1", WorkflowID: "w", RunID: "r"},
	}}
	c := &Cluster{Nodes: k8s.NewNodes(s.Client(t)), Temporal: statuses(nil)}
	view, err := c.Nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	known := markedNodes{}
	present, overdue := true, false
	changes := func() []api.NodeChange {
		return known.changes(view, in.Holders, overdue, func(string) bool { return !present })
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
	if changes := changes(); len(changes) != 1 || !changes[0].Unmarked {
		t.Errorf("a holder that has not marked its node for long: %+v", changes)
	}
	overdue = false
	s.Set(node("n1", cordoned, marked("w", "r")))
	see(func() bool { return len(changes()) == 0 && known["r/1"] })
	s.Set(node("n1", cordoned)) // somebody takes the mark
	see(func() bool {
		changes := changes()
		return len(changes) == 1 && changes[0].Unmarked
	})
	if changes := changes(); len(changes) != 0 {
		t.Errorf("a mark that is missing is told again: %+v", changes)
	}
	s.Set(node("n1", cordoned, marked("w", "r")))
	see(func() bool { return len(changes()) == 0 && known["r/1"] })
	s.Delete(node("n1"))
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
		t.Errorf("a node that is missing is told again: %+v", changes)
	}
}

func TestWatchEndsWhereTheServerRefusesIt(t *testing.T) {
	s := k8stest.New(node("n1"))
	c := &Cluster{Nodes: k8s.NewNodes(s.Client(t)), Temporal: statuses(nil)}
	view, err := c.Nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	s.Refuse(403)
	s.Disconnect()
	env := activityEnvironment()
	env.RegisterActivity(c.WatchCluster)
	if _, err := env.ExecuteActivity(c.WatchCluster, WatchInput{}); err == nil || !contains(err.Error(), api.ErrorMissingPermission) {
		t.Errorf("error = %v", err)
	}
}
