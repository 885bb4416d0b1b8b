package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	corev1 "k8s.io/api/core/v1"

	"drydock/activities/activitytest"
	"drydock/api"
	"drydock/k8s"
	"drydock/k8s/k8stest"
	"drydock/rules/schedule"
)

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
	base := []*corev1.Node{activitytest.Node("n1", activitytest.Labelled("zone", "a")), activitytest.Node("n2", activitytest.Labelled("zone", "b")), activitytest.Node("n3", activitytest.Labelled("zone", "b"))}
	with := func(i int, options ...activitytest.NodeOption) []*corev1.Node {
		nodes := slices.Clone(base)
		nodes[i] = activitytest.Node(base[i].Name, append([]activitytest.NodeOption{activitytest.Labelled("zone", base[i].Labels["zone"])}, options...)...)
		return nodes
	}
	before := digest(base, grouper(t))
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

func TestObserveNodesTellsFactsOfSomeAndCountsAll(t *testing.T) {
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

func TestHoldersThatDoNotRunHaveEnded(t *testing.T) {
	c := &Activities{Temporal: activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
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
	calm := digest([]*corev1.Node{activitytest.Node("n1"), activitytest.Node("n2")}, schedule.Grouper{})
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

func TestWatchTellsOfANodeThatWentBeforeItsMarkWasSeen(t *testing.T) {
	in := WatchInput{Holders: []WatchedHolder{{RequestID: "r/1", Node: "n1", WorkflowID: "w", RunID: "r"}}}
	report, err := watchOnce(t, k8stest.New(activitytest.Node("n2")), in, nil)
	if err != nil || !slices.Equal(report.Changes, []api.NodeChange{{RequestID: "r/1", Missing: true}}) || !slices.Equal(report.Told, []string{"r/1"}) {
		t.Errorf("report %+v, %v", report, err)
	}
	in.Told, in.Digest = report.Told, "another"
	if report, err = watchOnce(t, k8stest.New(activitytest.Node("n2")), in, nil); err != nil || len(report.Changes) != 0 || !slices.Equal(report.Told, in.Told) {
		t.Errorf("told again: %+v, %v", report, err)
	}
}

func TestWatchFollowsHoldersOnceTheirMarkIsThere(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"), activitytest.Node("n2"))
	in := WatchInput{Digest: digest([]*corev1.Node{activitytest.Node("n1"), activitytest.Node("n2")}, schedule.Grouper{}), Holders: []WatchedHolder{
		{RequestID: "r/1", Node: "n1", WorkflowID: "w", RunID: "r"},
	}}
	c := &Activities{Nodes: k8s.NewNodes(s.Client(t)), Temporal: activitytest.Statuses(nil)}
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
	s.Set(activitytest.Node("n1", activitytest.Cordoned, activitytest.Marked("w", "r")))
	see(func() bool { return len(changes()) == 0 && known["r/1"] })
	s.Set(activitytest.Node("n1", activitytest.Cordoned)) // somebody takes the mark
	see(func() bool {
		changes := changes()
		return len(changes) == 1 && changes[0].Unmarked
	})
	if changes := changes(); len(changes) != 0 {
		t.Errorf("a mark that is missing is told again: %+v", changes)
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
		t.Errorf("a node that is missing is told again: %+v", changes)
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
	s.Refuse(403)
	s.Disconnect()
	env := activitytest.Environment()
	env.RegisterActivity(c.WatchCluster)
	if _, err := env.ExecuteActivity(c.WatchCluster, WatchInput{}); err == nil || !strings.Contains(err.Error(), api.ErrorMissingPermission) {
		t.Errorf("error = %v", err)
	}
}
