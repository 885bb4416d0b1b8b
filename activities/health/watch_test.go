package health

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.temporal.io/api/enums/v1"

	"drydock/activities/activitytest"
	"drydock/activities/execution"
	"drydock/api"
	"drydock/k8s"
	"drydock/k8s/k8stest"
	"drydock/k8s/objects"
	rules "drydock/rules/health"
)

// site is an API server with nodes and any kinds, and the activities that act upon it.
type site struct {
	*testing.T
	server *k8stest.Server
	kinds  *k8stest.Kinds
	acts   *Activities
}

func newSite(t *testing.T, nodes ...*corev1.Node) *site {
	t.Helper()
	s := &site{T: t, server: k8stest.New(), kinds: k8stest.NewKinds()}
	for _, n := range nodes {
		s.server.Set(n)
	}
	s.server.Handle = s.kinds.Handle
	client := s.server.Client(t)
	s.acts = &Activities{
		Nodes: k8s.NewNodes(client), Objects: objects.New(client), Home: execution.Namespace{ID: "home"},
		Temporal: activitytest.Grant(activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
			"health-check/workers/check-run":    enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
			"node-remediation/workers/n1/r-run": enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
			"health-check/ended/check-run":      enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
		})),
	}
	return s
}

// deny refuses a kind of request, as the API server does whose authorizer refuses it.
func (s *site) deny(verb, group, resource, namespace string) {
	s.server.Deny(verb, resource)
	s.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/"+resource) {
			return s.kinds.Handle(w, r)
		}
		k8stest.Respond(w, strings.Replace(k8stest.DeniedBody(verb, resource, namespace), `in API group \"\"`, `in API group \"`+group+`\"`, 1))
		return true
	}
}

var since = metav1.NewTime(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))

// worker is a node that checks of workers select.
func worker(name string, status corev1.ConditionStatus, options ...activitytest.NodeOption) *corev1.Node {
	return activitytest.Node(name, append([]activitytest.NodeOption{func(n *corev1.Node) {
		n.UID = "uid-1"
		n.Labels["role"] = "worker"
		n.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: status, LastTransitionTime: since, LastHeartbeatTime: metav1.Now(), Reason: "Posted",
		}}
	}}, options...)...)
}

func annotated(key, value string) activitytest.NodeOption {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

// check watches workers.
func check(name string) WatchedCheck {
	return WatchedCheck{Name: name, RunID: "check-run", Intent: rules.Intent{Selector: "role=worker", Conditions: []rules.UnhealthyCondition{
		{Type: "Ready", Status: "False"}, {Type: "Ready", Status: "Unknown"}, {Type: "Disk", Status: "True"},
	}}}
}

// see is one WatchHealth that has something to tell.
func (s *site) see(in WatchInput) WatchResult {
	s.Helper()
	seen, err := activitytest.Call(s.T, s.acts.WatchHealth, in)
	if err != nil {
		s.Fatal(err)
	}
	return seen
}

// know takes what was seen into the next watch's input.
func (in *WatchInput) know(seen WatchResult) {
	for _, one := range seen.Checks {
		for i := range in.Checks {
			if in.Checks[i].Name == one.Name {
				in.Checks[i].Known.Take(one)
			}
		}
	}
	if seen.Overlaps != nil {
		in.Overlaps = seen.Overlaps.Digest
	}
}

// quiet makes sure that a watch has nothing to tell, while something happens that is none of its business.
func (s *site) quiet(in WatchInput, happens func()) {
	s.Helper()
	told := make(chan WatchResult, 1)
	go func() {
		env := activitytest.Environment()
		env.RegisterActivity(s.acts.WatchHealth)
		if value, err := env.ExecuteActivity(s.acts.WatchHealth, in); err == nil {
			var seen WatchResult
			if value.Get(&seen) == nil {
				told <- seen
			}
		}
	}()
	happens()
	select {
	case seen := <-told:
		s.Errorf("it tells %+v", seen)
	case <-time.After(3 * settle):
	}
	s.acts.watches.mu.Lock()
	defer s.acts.watches.mu.Unlock()
	for _, running := range s.acts.watches.running {
		running.cancel(errSuperseded)
	}
}

func names(o rules.Observation) string {
	var all []string
	for _, n := range o.Nodes {
		text := n.Name
		for _, m := range n.Matches {
			text += fmt.Sprintf(":%d", m.Index)
		}
		switch {
		case n.Gone:
			text += ":gone"
		case n.Left:
			text += ":left"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestAWatchTellsWhatChanged(t *testing.T) {
	s := newSite(t, worker("n1", "True"), worker("n2", "Unknown"), worker("n3", "True"), activitytest.Node("other", activitytest.NotReady))
	in := WatchInput{Checks: []WatchedCheck{check("workers")}}
	first := s.see(in)
	if len(first.Checks) != 1 {
		t.Fatalf("%+v", first)
	}
	o := first.Checks[0].Observation
	if !o.Full || o.More || names(o) != "n2:1" || !slices.Equal(o.Groups, []rules.GroupCount{{Nodes: 3, Matching: 1}}) || !o.Nodes[0].Matches[0].Since.Equal(since.Time) {
		t.Errorf("first %+v", o)
	}
	in.know(first)
	s.quiet(in, func() {
		s.server.Set(worker("n2", "Unknown", func(n *corev1.Node) { n.Status.Conditions[0].Reason = "another" }))
		s.server.Set(worker("n1", "True"))
		s.server.Set(activitytest.Node("other"))
	})
	for _, step := range []struct {
		change func()
		want   string
		counts rules.GroupCount
	}{
		{func() { s.server.Set(worker("n1", "False")) }, "n1:0", rules.GroupCount{Nodes: 3, Matching: 2}},
		{func() { s.server.Set(worker("n2", "True")) }, "n2", rules.GroupCount{Nodes: 3, Matching: 1}},
		{func() { s.server.Set(worker("n1", "Unknown")) }, "n1:1", rules.GroupCount{Nodes: 3, Matching: 1}},
		{func() { s.server.Set(worker("n4", "True")) }, "", rules.GroupCount{Nodes: 4, Matching: 1}},
		{func() { s.server.Set(worker("n1", "Unknown", activitytest.Labelled("role", "none"))) }, "n1:1:left", rules.GroupCount{Nodes: 3}},
		{func() { s.server.Set(worker("n3", "False")) }, "n3:0", rules.GroupCount{Nodes: 3, Matching: 1}},
		{func() { s.server.Set(worker("n3", "False", annotated(k8s.ConfirmedAnnotation, ""))) }, "n3:0", rules.GroupCount{Nodes: 3, Matching: 1}},
		{func() { s.server.Delete(worker("n3", "False")) }, "n3:gone", rules.GroupCount{Nodes: 2}},
	} {
		step.change()
		seen := s.see(in)
		if len(seen.Checks) != 1 {
			t.Fatalf("%s: %+v", step.want, seen)
		}
		o := seen.Checks[0].Observation
		if o.Full || names(o) != step.want || !slices.Equal(o.Groups, []rules.GroupCount{step.counts}) {
			t.Errorf("%+v, want %s and %+v", o, step.want, step.counts)
		}
		in.know(seen)
	}
	if left := in.Checks[0].Known.Nodes; len(left) > 0 {
		t.Errorf("it remembers %v", slices.Collect(maps.Keys(left)))
	}
}

func TestNodesUnderRemediationAreToldOfWhateverTheyAre(t *testing.T) {
	s := newSite(t, worker("n1", "True"), worker("n2", "True"))
	in := WatchInput{Checks: []WatchedCheck{check("workers")}}
	in.know(s.see(in))
	in.Checks[0].Intent.Remediating = []string{"n1", "gone"}
	seen := s.see(in)
	if got := names(seen.Checks[0].Observation); got != "gone:gone n1" {
		t.Errorf("told of %q", got)
	}
	in.know(seen)
	s.server.Delete(worker("n1", "True"))
	if got := names(s.see(in).Checks[0].Observation); got != "n1:gone" {
		t.Errorf("told of %q", got)
	}
}

func TestFactsOfANode(t *testing.T) {
	s := newSite(t)
	c := check("workers")
	c.Intent.GroupBy = []string{"zone", "rack"}
	l, err := newLens(c)
	if err != nil {
		t.Fatal(err)
	}
	node := worker("n1", "False", activitytest.Labelled("zone", "a"), activitytest.Labelled(k8s.ExcludeLabel, ""), annotated(k8s.ConfirmedAnnotation, ""),
		annotated(k8s.CurrentConfigAnnotation, "one"), annotated(k8s.DesiredConfigAnnotation, "two"), activitytest.Labelled("node-role.kubernetes.io/master", ""),
		activitytest.MarkedBy(k8s.Holder{WorkflowID: "node-maintenance/n1/ops", RunID: "r"}), func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "Disk", Status: "True", LastTransitionTime: since})
		})
	f := lookout{s.acts}.facts(l, node, true)
	if f.Group != "a/(none)" || !f.Excluded || f.Exclude != "" || !f.Confirmed || !f.ControlPlane || f.UnderMaintenance != "node-maintenance/n1/ops" ||
		!strings.Contains(f.Upgrading, "two") || len(f.Matches) != 2 || f.Matches[1].Index != 2 {
		t.Errorf("%+v", f)
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: terminating, Status: "False"})
	if with, without := (lookout{s.acts}).facts(l, node, true), (lookout{s.acts}).facts(l, node, false); len(with.Matches) != 0 || len(without.Matches) != 2 {
		t.Errorf("terminating: %+v, %+v", with.Matches, without.Matches)
	}
	ours := `{"holders":[{"workflowId":"node-maintenance/n1/health-workers","runId":"r"}],"excluded":{}}`
	for text, excluded := range map[string]bool{ours: false, "": true, "{": true} {
		held := worker("n1", "False", activitytest.Labelled(k8s.ExcludeLabel, k8s.ExcludedValue), annotated(api.HoldersAnnotation, text))
		if f := (lookout{s.acts}).facts(l, held, true); f.Excluded != excluded {
			t.Errorf("excluded %v where the mark is %q", f.Excluded, text)
		}
	}
	for workflow, want := range map[string]string{
		"node-maintenance/n1/" + api.RemediationRequestor("workers"): "",
		"node-maintenance/n1/" + api.RemediationRequestor("others"):  "node-maintenance/n1/health-others",
	} {
		held := worker("n1", "False", activitytest.MarkedBy(k8s.Holder{WorkflowID: workflow, RunID: "r", Namespace: "home"}))
		if got := (lookout{s.acts}).maintenanceOf("workers", held); got != want {
			t.Errorf("held by %s: under %q, want %q", workflow, got, want)
		}
	}
}

func TestChecksThatSelectANodeTogether(t *testing.T) {
	s := newSite(t, worker("n1", "True"), worker("n2", "True"))
	all, one := check("all"), check("one")
	one.Intent.Selector = "kubernetes.io/hostname=n2"
	s.server.Set(worker("n2", "True", activitytest.Labelled("kubernetes.io/hostname", "n2")))
	in := WatchInput{Checks: []WatchedCheck{all, one}}
	seen := s.see(in)
	want := []rules.Membership{{Node: "n2", Checks: []string{"all", "one"}}}
	if seen.Overlaps == nil || fmt.Sprint(seen.Overlaps.Memberships) != fmt.Sprint(want) {
		t.Fatalf("%+v, want %v", seen.Overlaps, want)
	}
	in.know(seen)
	s.server.Set(worker("n2", "True"))
	if seen := s.see(in); seen.Overlaps == nil || seen.Overlaps.Digest != "" {
		t.Errorf("%+v after the overlap ended", seen.Overlaps)
	}
}

func TestManyNodesAreToldInParts(t *testing.T) {
	s := newSite(t)
	for i := range maxTold + 200 {
		s.server.Set(worker(fmt.Sprintf("n%04d", i), "Unknown"))
	}
	in := WatchInput{Checks: []WatchedCheck{check("workers")}}
	first := s.see(in)
	in.know(first)
	second := s.see(in)
	in.know(second)
	a, b := first.Checks[0].Observation, second.Checks[0].Observation
	if !first.More || !a.Full || !a.More || len(a.Nodes) != maxTold || second.More || b.Full || b.More || len(b.Nodes) != 200 || b.Groups[0].Matching != maxTold+200 {
		t.Errorf("%d, %v and %d, %v", len(a.Nodes), a.More, len(b.Nodes), b.More)
	}
	s.quiet(in, func() {})
}
