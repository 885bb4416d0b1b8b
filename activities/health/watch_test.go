package health

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/k8s/objects"
	rules "drydock.dev/drydock/rules/health"
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
		Nodes: k8s.NewNodes(client), Objects: objects.New(client), Home: execution.Namespace{ID: "home"}, Temporal: activitytest.Grant(listing(nil)),
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
func check(name string) WatchInput {
	return WatchInput{Check: name, RunID: "check-run", CreatedAt: since.Time, Intent: rules.Intent{Selector: "role=worker", Conditions: []rules.UnhealthyCondition{
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

// quiet makes sure that a watch has nothing to tell, while something happens that is none of its business.
func (s *site) quiet(in WatchInput, happens func()) {
	s.Helper()
	reported := make(chan WatchResult, 1)
	go func() {
		env := activitytest.Environment()
		env.RegisterActivity(s.acts.WatchHealth)
		if value, err := env.ExecuteActivity(s.acts.WatchHealth, in); err == nil {
			var seen WatchResult
			if value.Get(&seen) == nil {
				reported <- seen
			}
		}
	}()
	happens()
	select {
	case seen := <-reported:
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

func TestAWatchReportsWhatChanged(t *testing.T) {
	s := newSite(t, worker("n1", "True"), worker("n2", "Unknown"), worker("n3", "True"), activitytest.Node("other", activitytest.NotReady))
	in := check("workers")
	first := s.see(in)
	o := first.Observation
	if !o.Full || o.More || names(*o) != "n2:1" || !slices.Equal(o.Groups, []rules.GroupCount{{Nodes: 3, Matching: 1}}) || !o.Nodes[0].Matches[0].Since.Equal(since.Time) {
		t.Errorf("first %+v", o)
	}
	in.Known.Take(first)
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
		if o := seen.Observation; o == nil || o.Full || names(*o) != step.want || !slices.Equal(o.Groups, []rules.GroupCount{step.counts}) {
			t.Fatalf("%+v, want %s and %+v", seen, step.want, step.counts)
		}
		in.Known.Take(seen)
	}
	if left := in.Known.Nodes; len(left) > 0 {
		t.Errorf("it remembers %v", slices.Collect(maps.Keys(left)))
	}
}

func TestNodesUnderRemediationAreReportedWhateverTheyAre(t *testing.T) {
	s := newSite(t, worker("n1", "True"), worker("n2", "True"))
	in := check("workers")
	in.Known.Take(s.see(in))
	in.Remediating = []string{"n1", "gone"}
	seen := s.see(in)
	if got := names(*seen.Observation); got != "gone:gone n1" {
		t.Errorf("it reports %q", got)
	}
	in.Known.Take(seen)
	in.Intent.Unseen = []string{"n1"} // the check has forgotten it
	if got := names(*s.see(in).Observation); got != "n1" {
		t.Errorf("of a node that the check has forgotten it reports %q", got)
	}
	in.Intent.Unseen = nil
	s.server.Delete(worker("n1", "True"))
	if got := names(*s.see(in).Observation); got != "n1:gone" {
		t.Errorf("it reports %q", got)
	}
}

func TestFactsOfANode(t *testing.T) {
	s := newSite(t)
	c := check("workers")
	c.Intent.GroupBy = []string{"zone", "rack"}
	l, err := newCriteria(c)
	if err != nil {
		t.Fatal(err)
	}
	node := worker("n1", "False", activitytest.Labelled("zone", "a"), activitytest.Labelled(k8s.ExcludeLabel, ""), annotated(k8s.ConfirmedAnnotation, ""),
		annotated(k8s.CurrentConfigAnnotation, "one"), annotated(k8s.DesiredConfigAnnotation, "two"), activitytest.Labelled("node-role.kubernetes.io/master", ""),
		activitytest.MarkedBy(k8s.Holder{WorkflowID: "node-maintenance/n1/ops", RunID: "r"}), func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "Disk", Status: "True", LastTransitionTime: since})
		})
	f := s.acts.facts(l, node, true)
	if f.Group != "a/(none)" || !f.Excluded || f.Exclude != "" || !f.Confirmed || !f.ControlPlane || f.UnderMaintenance != "node-maintenance/n1/ops" ||
		!strings.Contains(f.Upgrading, "two") || len(f.Matches) != 2 || f.Matches[1].Index != 2 {
		t.Errorf("%+v", f)
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: terminating, Status: "False"})
	if with, without := s.acts.facts(l, node, true), s.acts.facts(l, node, false); len(with.Matches) != 0 || len(without.Matches) != 2 {
		t.Errorf("terminating: %+v, %+v", with.Matches, without.Matches)
	}
	ours := `{"holders":[{"workflowId":"node-maintenance/n1/health-workers","runId":"r"}],"excluded":{}}`
	for text, excluded := range map[string]bool{ours: false, "": true, "{": true} {
		held := worker("n1", "False", activitytest.Labelled(k8s.ExcludeLabel, k8s.ExcludedValue), annotated(api.HoldersAnnotation, text))
		if f := s.acts.facts(l, held, true); f.Excluded != excluded {
			t.Errorf("excluded %v where the mark is %q", f.Excluded, text)
		}
	}
	for workflow, want := range map[string]string{
		"node-maintenance/n1/" + api.RemediationRequestor("workers"): "",
		"node-maintenance/n1/" + api.RemediationRequestor("others"):  "node-maintenance/n1/health-others",
	} {
		held := worker("n1", "False", activitytest.MarkedBy(k8s.Holder{WorkflowID: workflow, RunID: "r", Namespace: "home"}))
		if got := s.acts.maintenanceOf("workers", held); got != want {
			t.Errorf("held by %s: under %q, want %q", workflow, got, want)
		}
	}
}

func TestAnOlderCheckThatSelectsTheSameNodesIsNamed(t *testing.T) {
	peers := func(checks ...*workflowpb.WorkflowExecutionInfo) *mocks.Client {
		temporal := &mocks.Client{}
		temporal.On("ListWorkflow", mock.Anything, mock.Anything).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: checks}, nil)
		return temporal
	}
	of := func(id, selector string, age time.Duration) *workflowpb.WorkflowExecutionInfo {
		memo, err := converter.GetDefaultDataConverter().ToPayload(api.HealthCheckMemo{Selector: selector, CreatedAt: since.Add(-age)})
		if err != nil {
			t.Fatal(err)
		}
		return &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{api.MemoHealthCheck: memo}},
		}
	}
	unknown := of("health-check/unknown", "role=worker", time.Hour)
	unknown.Memo = nil
	self := of("health-check/workers", "role=worker", 0)
	for name, c := range map[string]struct {
		peers []*workflowpb.WorkflowExecutionInfo
		want  rules.Overlap
	}{
		"nobody":                         {[]*workflowpb.WorkflowExecutionInfo{self}, rules.Overlap{}},
		"an older one":                   {[]*workflowpb.WorkflowExecutionInfo{self, of("health-check/elder", "zone=b", time.Hour)}, rules.Overlap{Check: "elder", Node: "n2"}},
		"two older ones":                 {[]*workflowpb.WorkflowExecutionInfo{of("health-check/elder", "zone", time.Hour), of("health-check/eldest", "zone", 2*time.Hour)}, rules.Overlap{Check: "eldest", Node: "n2"}},
		"a younger one":                  {[]*workflowpb.WorkflowExecutionInfo{of("health-check/younger", "role=worker", -time.Hour)}, rules.Overlap{}},
		"one as old, and named after it": {[]*workflowpb.WorkflowExecutionInfo{of("health-check/zone", "role=worker", 0)}, rules.Overlap{}},
		"one with other nodes":           {[]*workflowpb.WorkflowExecutionInfo{of("health-check/elder", "zone=c", time.Hour)}, rules.Overlap{}},
		"one of another cluster":         {[]*workflowpb.WorkflowExecutionInfo{of("north/health-check/elder", "role=worker", time.Hour)}, rules.Overlap{}},
		"one that has not begun":         {[]*workflowpb.WorkflowExecutionInfo{unknown}, rules.Overlap{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, worker("n1", "True"), worker("n2", "True", activitytest.Labelled("zone", "b")), worker("n3", "True", activitytest.Labelled("zone", "b")))
			s.acts.Temporal = peers(c.peers...)
			in := check("workers")
			seen := s.see(in)
			if got := seen.Observation.Overlap; got != c.want {
				t.Fatalf("%+v, want %+v", got, c.want)
			}
			if c.want.Node == "" {
				return
			}
			in.Known.Take(seen)
			s.server.Set(worker("n2", "True"))
			s.server.Set(worker("n3", "True"))
			for seen.Observation.Overlap.Check != "" { // it may see one change before the other
				seen = s.see(in)
				in.Known.Take(seen)
			}
		})
	}
}

func TestManyNodesAreReportedInParts(t *testing.T) {
	s := newSite(t)
	for i := range maxReported + 200 {
		s.server.Set(worker(fmt.Sprintf("n%04d", i), "Unknown"))
	}
	in := check("workers")
	first := s.see(in)
	in.Known.Take(first)
	second := s.see(in)
	in.Known.Take(second)
	a, b := first.Observation, second.Observation
	if !a.Full || !a.More || len(a.Nodes) != maxReported || b.Full || b.More || len(b.Nodes) != 200 || b.Groups[0].Matching != maxReported+200 {
		t.Errorf("%d, %v and %d, %v", len(a.Nodes), a.More, len(b.Nodes), b.More)
	}
	s.quiet(in, func() {})
	text, err := json.Marshal(in)
	var read WatchInput
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil || len(read.Known.Nodes) != maxReported+200 || !maps.Equal(read.Known.Nodes, in.Known.Nodes) || len(text) > 64<<10 {
		t.Errorf("%d bytes, %d nodes: %v", len(text), len(read.Known.Nodes), err)
	}
}

// Fifty checks of a worker cost one list of the nodes, and one look at what is around these.
func TestTheChecksOfAWorkerShareWhatTheyLookAt(t *testing.T) {
	s := newSite(t, worker("n1", "True"))
	s.kinds.Serve("config.openshift.io/v1", "ClusterVersion", "clusterversions", false)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			env := activitytest.Environment()
			env.RegisterActivity(s.acts.WatchHealth)
			if _, err := env.ExecuteActivity(s.acts.WatchHealth, check(fmt.Sprint("check-", i))); err != nil && !strings.Contains(err.Error(), errSuperseded.Error()) {
				t.Error(err) // the environment's activities are of one workflow
			}
		})
	}
	all.Wait()
	lists, looks := s.server.Requests("GET /api/v1/nodes"), s.server.Requests("/clusterversions")
	if len(lists) == 0 || len(lists) > 2 || len(looks) == 0 || len(looks) > 2 { // a list and a watch, and with a slow machine another look
		t.Errorf("nodes were requested by %q, the cluster's version by %q", lists, looks)
	}
	if len(s.acts.watches.running) != 0 {
		t.Errorf("%d watches are remembered", len(s.acts.watches.running))
	}
}
