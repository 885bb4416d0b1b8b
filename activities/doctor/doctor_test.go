package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/clusterapi"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/doctor"
)

const (
	home     = "namespace-of-ours"
	requests = "evictionrequests"
)

// runOf is the first run of the maintenance of a node by ops, in these tests.
func runOf(node string) string { return "run-" + node }

func idOf(node string) string { return api.MaintenanceID("", node, "ops") }

// slots is a scheduler's answer: what it has granted, and what waits.
type slots struct {
	Rebuilding bool   `json:"rebuilding"`
	Holders    []slot `json:"holders"`
	Pending    []slot `json:"pending"`
}

type slot struct {
	RequestID string `json:"requestId,omitempty"` // of a holder
	ID        string `json:"id,omitempty"`        // of a request
	Node      string `json:"node"`
	Requestor string `json:"requestor"`
	RunID     string `json:"runId"`
}

// own is what a maintenance answers of its slot, and status of itself.
type own struct {
	ID        string     `json:"id"`
	Node      string     `json:"node"`
	RunID     string     `json:"runId"`
	Wants     bool       `json:"wants"`
	GrantedAt *time.Time `json:"grantedAt"`
	Phase     string     `json:"-"`
}

// server is a Temporal with a scheduler that keeps slots by the signals that it gets, and with maintenances, by node: those that run, and
// those that have ended; of others it knows nothing.
type server struct {
	client.Client
	mu        sync.Mutex
	scheduler *slots
	running   map[string]own
	ended     []string
	deaf      []string // they run, and answer nothing
	failing   []string // deliveries that are tried again
	givenUp   []string // deliveries that are not
	away      error
	signals   []string
}

func (s *server) node(workflowID string) string {
	return nodeOf(api.MaintenanceIDPrefix(""), workflowID)
}

func (s *server) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return nil, s.away
	}
	is := func(run string, status enums.WorkflowExecutionStatus) *workflowservice.DescribeWorkflowExecutionResponse {
		return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Status: status, FirstRunId: run, Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
		}}
	}
	node := s.node(id)
	switch _, runs := s.running[node]; {
	case id == api.SchedulerID("") && s.scheduler != nil:
		return is("run-of-the-scheduler", enums.WORKFLOW_EXECUTION_STATUS_RUNNING), nil
	case slices.Contains(s.failing, id):
		found := is("run-of-the-delivery", enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
		found.PendingActivities = []*workflowpb.PendingActivityInfo{{Attempt: 7, LastFailure: &failurepb.Failure{Message: "the channel is away"}}}
		return found, nil
	case runs:
		return is(runOf(node), enums.WORKFLOW_EXECUTION_STATUS_RUNNING), nil
	case slices.Contains(s.ended, node):
		return is(runOf(node), enums.WORKFLOW_EXECUTION_STATUS_TERMINATED), nil
	}
	return nil, serviceerror.NewNotFound("no such workflow")
}

func (s *server) ListWorkflow(_ context.Context, in *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page := &workflowservice.ListWorkflowExecutionsResponse{}
	add := func(id, run string, status enums.WorkflowExecutionStatus) {
		page.Executions = append(page.Executions, &workflowpb.WorkflowExecutionInfo{
			Status: status, CloseTime: timestamppb.Now(), Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
		})
	}
	switch {
	case strings.Contains(in.Query, "'"+api.NodeMaintenanceType+"'"):
		for _, node := range slices.Sorted(maps.Keys(s.running)) {
			add(idOf(node), runOf(node), enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
		}
	case strings.Contains(in.Query, "'"+api.NotificationType+"'"):
		for _, id := range s.failing {
			add(id, "run-of-the-delivery", enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
		}
		for _, id := range s.givenUp {
			add(id, "run-of-the-delivery", enums.WORKFLOW_EXECUTION_STATUS_FAILED)
		}
	}
	return page, nil
}

func (s *server) QueryWorkflow(_ context.Context, id, _, query string, _ ...any) (converter.EncodedValue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answer any
	is, runs := s.running[s.node(id)]
	switch {
	case id == api.SchedulerID("") && s.scheduler != nil:
		answer = s.scheduler
	case slices.Contains(s.deaf, s.node(id)):
		return nil, serviceerror.NewQueryFailed("its workflow task fails")
	case runs && query == api.QuerySlot:
		answer = is
	case runs:
		answer = map[string]any{"phase": is.Phase, "since": time.Unix(1000, 0)}
	default:
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(answer)
	return client.NewValue(payloads), err
}

func (s *server) GetWorkflowHistory(context.Context, string, string, bool, enums.HistoryEventFilterType) client.HistoryEventIterator {
	return activitytest.Events(true, nil)
}

func (s *server) SignalWorkflow(_ context.Context, id, _, signal string, payload any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signals = append(s.signals, signal+" to "+id)
	text, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	var in struct{ RequestID, ID, Node, Requestor, RunID string }
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	switch signal {
	case api.SignalSlotRelease:
		gone := func(one slot) bool { return cmp.Or(one.RequestID, one.ID) == in.RequestID }
		s.scheduler.Holders, s.scheduler.Pending = slices.DeleteFunc(s.scheduler.Holders, gone), slices.DeleteFunc(s.scheduler.Pending, gone)
	case api.SignalSlotRequest:
		s.scheduler.Pending = append(s.scheduler.Pending, slot{ID: in.ID, Node: in.Node, Requestor: in.Requestor, RunID: in.RunID})
	}
	return nil
}

// claims is an option: the node shows conditions of a maintenance.
func claims(node string) activitytest.NodeOption {
	return func(n *corev1.Node) {
		text, err := json.Marshal([]k8s.Claim{{
			WorkflowID: idOf(node), RunID: runOf(node), Namespace: home, Since: time.Unix(1000, 0), Conditions: []k8s.Condition{{Type: k8s.MaintenancePlanned, True: true}},
		}})
		if err != nil {
			panic(err)
		}
		n.Annotations[api.ConditionsAnnotation] = string(text)
	}
}

func holderOf(node string) k8s.Holder {
	return k8s.Holder{WorkflowID: idOf(node), RunID: runOf(node), Run: runOf(node), Namespace: home, Since: time.Unix(1000, 0)}
}

func held(node string) *corev1.Node {
	return activitytest.Node(node, activitytest.Cordoned, activitytest.MarkedBy(holderOf(node)))
}

// filed is an EvictionRequest of the maintenance of a node.
func filed(node string) *lifecyclev1alpha1.EvictionRequest {
	return &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "drydock-" + node,
		Labels:      map[string]string{"drydock.dev/maintenance-run": runOf(node), "drydock.dev/node": node},
		Annotations: map[string]string{"drydock.dev/maintenance": idOf(node)},
	}}
}

// sick has one node for each thing that can be wrong, by its name.
func sick() (*k8stest.Server, *server) {
	granted := time.Unix(2000, 0)
	of := func(node string, granted *time.Time, phase string) own {
		return own{ID: "request-" + node, Node: node, RunID: runOf(node), Wants: true, GrantedAt: granted, Phase: phase}
	}
	holds := func(node string) slot {
		return slot{RequestID: "request-" + node, Node: node, Requestor: "ops", RunID: runOf(node)}
	}
	waits := func(node string) slot {
		return slot{ID: "request-" + node, Node: node, Requestor: "ops", RunID: runOf(node)}
	}
	stale := of("slot-stale", nil, "")
	stale.Wants = false
	young := holderOf("mark-unknown")
	young.Since = time.Now()
	cluster := k8stest.New(
		held("mark-dead"), held("well"), held("slot-dead"), activitytest.Node("mark-unknown", activitytest.Cordoned, activitytest.MarkedBy(young)),
		activitytest.Node("mark-foreign", activitytest.Cordoned, activitytest.MarkedBy(k8s.Holder{WorkflowID: idOf("x"), RunID: "run-x", Namespace: "another"})),
		activitytest.Node("label-left", activitytest.Labelled(api.PhaseLabel, "Ready")),
		activitytest.Node("cordon-unowned", activitytest.Cordoned, activitytest.Labelled(api.PhaseLabel, "Ready")),
		activitytest.Node("cordon-by-hand", activitytest.Cordoned),
		activitytest.Node("conditions-left", claims("conditions-left")),
		activitytest.Node("slot-unmarked"), activitytest.Node("slot-unknown"), activitytest.Node("slot-stale"),
		activitytest.Node("requests-left"), filed("requests-left"), activitytest.Node("pending-dead"), activitytest.Node("unanswered"),
	)
	return cluster, &server{
		ended: []string{"mark-dead", "slot-dead", "pending-dead", "conditions-left", "requests-left"},
		running: map[string]own{
			"well": of("well", &granted, "Ready"), "slot-unmarked": of("slot-unmarked", &granted, "Ready"),
			"slot-unknown": of("slot-unknown", nil, ""), "slot-stale": stale, "unanswered": {},
		},
		deaf:      []string{"unanswered"},
		failing:   []string{"notify/failing"},
		givenUp:   []string{"notify/given-up"},
		scheduler: &slots{Holders: []slot{holds("well"), holds("slot-unmarked"), holds("slot-stale"), holds("slot-dead")}, Pending: []slot{waits("pending-dead")}},
	}
}

func names() Names {
	return Names{
		Maintenances: api.MaintenanceIDPrefix(""), Transitions: api.ProfileTransitionIDPrefix(""), Scheduler: api.SchedulerID(""),
		Listed:     execution.InventoryInput{WorkflowType: api.NodeMaintenanceType, TaskQueue: "drydock"},
		QueryState: api.QueryState, QuerySlot: api.QuerySlot, QueryStatus: api.QueryStatus, Deliveries: []string{api.NotificationType},
	}
}

func doctorOf(t *testing.T, cluster *k8stest.Server, temporal *server) *Activities {
	t.Helper()
	kube := cluster.Client(t)
	return &Activities{
		Client: kube, Temporal: temporal, Namespace: "fleet", Home: execution.Namespace{ID: home, Retention: 24 * time.Hour},
		Events: nodeevent.Recorder{Client: kube, On: true},
	}
}

func look(t *testing.T, d *Activities, in EvaluateInput) doctor.Evaluation {
	t.Helper()
	found, err := activitytest.Call(t, d.Look, in)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// listed are findings as "Kind node", or of no node "Kind workflow", with the fix behind it.
func listed(findings []doctor.Finding) []string {
	var all []string
	for _, f := range findings {
		line := string(f.Kind) + " " + cmp.Or(f.Node, f.WorkflowID)
		if f.Fix != "" {
			line += ": " + string(f.Fix)
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return all
}

func mustList(t *testing.T, what string, got []doctor.Finding, want ...string) {
	t.Helper()
	if lines := listed(got); !slices.Equal(lines, want) {
		t.Errorf("%s: found\n  %s\nwant\n  %s", what, strings.Join(lines, "\n  "), strings.Join(want, "\n  "))
	}
}

// forPeople is what a look at sick finds that no fix heals.
var forPeople = []string{
	"CordonUnowned cordon-unowned", "DeliveryFailing notify/failing", "DeliveryGivenUp notify/given-up", "MaintenanceUnanswered unanswered",
	"MarkForeign mark-foreign", "MarkUnknown mark-unknown",
}

func TestWhatALookFindsIsHealed(t *testing.T) {
	cluster, temporal := sick()
	d := doctorOf(t, cluster, temporal)
	first := look(t, d, EvaluateInput{Names: names()})
	want := slices.Concat(forPeople, []string{
		"ConditionsLeft conditions-left: hide-conditions", "LabelLeft label-left: clean-node", "MarkDead mark-dead: release-mark",
		"MarkDead slot-dead: release-mark", "PendingDead pending-dead: release-slot", "RequestsLeft requests-left: withdraw-requests",
		"SlotDead slot-dead: release-slot", "SlotStale slot-stale: release-slot", "SlotUnmarked slot-unmarked: restore-mark",
		"SlotUnrequested slot-unknown: request-slot",
	})
	slices.Sort(want)
	mustList(t, "at first", first.Findings, want...)
	mustList(t, "notes", first.Notes, "CordonByHand cordon-by-hand")
	if first.Looked != (doctor.Looked{Nodes: 15, Marked: 5, Maintenances: 5, Holders: 4, Pending: 1}) {
		t.Errorf("looked at %+v", first.Looked)
	}
	for _, f := range first.Findings {
		if f.Fix == "" {
			continue
		}
		did, err := activitytest.Call(t, d.Heal, HealInput{Names: names(), Finding: f, By: "mia", Comment: "as agreed"})
		if err != nil || did == "" || did == errNoLonger.Error() {
			t.Errorf("%s of %s: %q, %v", f.Fix, f.Node, did, err)
		}
		if f.Fix == doctor.RestoreMark {
			cluster.Set(held(f.Node)) // as its maintenance does
		}
	}
	mustList(t, "then", look(t, d, EvaluateInput{Names: names()}).Findings, forPeople...)
	wantSignals := []string{
		"node-changed to " + idOf("slot-unmarked"), "slot-release to drydock-scheduler", "slot-release to drydock-scheduler", "slot-release to drydock-scheduler",
		"slot-request to drydock-scheduler",
	}
	if slices.Sort(temporal.signals); !slices.Equal(temporal.signals, wantSignals) {
		t.Errorf("signalled %q, want %q", temporal.signals, wantSignals)
	}
	for _, node := range []string{"mark-dead", "slot-dead"} {
		if n := cluster.Node(node); n.Annotations[api.HoldersAnnotation] != "" {
			t.Errorf("%s is still marked: %v", node, n.Annotations)
		}
	}
	for _, node := range []string{"well", "mark-foreign", "mark-unknown"} {
		if n := cluster.Node(node); n.Annotations[api.HoldersAnnotation] == "" || !n.Spec.Unschedulable {
			t.Errorf("%s is not held any more", node)
		}
	}
	if !cluster.Node("cordon-by-hand").Spec.Unschedulable || !cluster.Node("cordon-unowned").Spec.Unschedulable {
		t.Error("a cordon was taken off that is nobody's")
	}
	if events := cluster.Requests("POST /api/v1/namespaces/default/events"); len(events) < 8 {
		t.Errorf("%d events are recorded of what was done", len(events))
	}
}

// Whatever changed between a look and its healing is looked at again, and then nothing is done.
func TestNothingIsHealedThatIsNoLongerSo(t *testing.T) {
	for kind, change := range map[doctor.Kind]func(*k8stest.Server, *server){
		doctor.MarkDead:     func(_ *k8stest.Server, s *server) { s.running["mark-dead"] = own{} },
		doctor.SlotDead:     func(_ *k8stest.Server, s *server) { s.running["slot-dead"] = own{} },
		doctor.PendingDead:  func(_ *k8stest.Server, s *server) { s.running["pending-dead"] = own{} },
		doctor.RequestsLeft: func(_ *k8stest.Server, s *server) { s.running["requests-left"] = own{} },
		doctor.ConditionsLeft: func(_ *k8stest.Server, s *server) {
			s.running["conditions-left"] = own{}
		},
		doctor.LabelLeft: func(c *k8stest.Server, _ *server) { c.Set(held("label-left")) },
		doctor.SlotStale: func(_ *k8stest.Server, s *server) {
			s.running["slot-stale"] = own{RunID: runOf("slot-stale"), Wants: true}
		},
		doctor.SlotUnmarked: func(_ *k8stest.Server, s *server) {
			s.running["slot-unmarked"] = own{RunID: runOf("slot-unmarked"), ID: "another request"}
		},
		doctor.SlotUnrequested: func(_ *k8stest.Server, s *server) { delete(s.running, "slot-unknown") },
	} {
		t.Run(string(kind), func(t *testing.T) {
			cluster, temporal := sick()
			d := doctorOf(t, cluster, temporal)
			found := look(t, d, EvaluateInput{Names: names()}).Findings
			at := slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Kind == kind })
			if at < 0 {
				t.Fatalf("it is not found: %q", listed(found))
			}
			change(cluster, temporal)
			did, err := activitytest.Call(t, d.Heal, HealInput{Names: names(), Finding: found[at], By: "mia"})
			if err != nil || did != errNoLonger.Error() {
				t.Errorf("%q, %v", did, err)
			}
			if patched := cluster.Requests("PATCH "); len(patched) > 0 || len(temporal.signals) > 0 || len(cluster.Requests("DELETE ")) > 0 {
				t.Errorf("something was done: %q, %q", patched, temporal.signals)
			}
		})
	}
}

func TestALookIsRestrictedToNodesAndRuns(t *testing.T) {
	cluster, temporal := sick()
	d := doctorOf(t, cluster, temporal)
	found := look(t, d, EvaluateInput{Names: names(), Nodes: []string{"mark-dead", "mark-deda"}})
	mustList(t, "of one node", found.Findings, "DeliveryFailing notify/failing", "DeliveryGivenUp notify/given-up", "MarkDead mark-dead: release-mark")
	if len(found.Missing) != 1 || found.Missing[0].Node != "mark-deda" || !strings.Contains(found.Missing[0].Suggestion, "mark-dead") {
		t.Errorf("missing: %+v", found.Missing)
	}
	found = look(t, d, EvaluateInput{Names: names(), Runs: []string{runOf("slot-unmarked")}})
	if lines := listed(found.Findings); slices.Contains(lines, "MaintenanceUnanswered unanswered") || !slices.Contains(lines, "SlotUnmarked slot-unmarked: restore-mark") {
		t.Errorf("others were asked than those of the first look: %q", lines)
	}
}

func TestWhatCannotBeLookedAtIsSaid(t *testing.T) {
	cluster, temporal := sick()
	cluster.Deny("list", requests)
	cluster.Deny("list", "machines")
	d := doctorOf(t, cluster, temporal)
	d.ClusterAPI = true
	kinds := k8stest.NewKinds()
	kinds.Serve("cluster.x-k8s.io/v1beta2", "Machine", "machines", true)
	cluster.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/machines") {
			k8stest.Respond(w, k8stest.DeniedBody("list", "machines", ""))
			return true
		}
		return kinds.Handle(w, r)
	}
	found := look(t, d, EvaluateInput{Names: names()})
	if lines := listed(found.Findings); slices.Contains(lines, "RequestsLeft requests-left: withdraw-requests") {
		t.Errorf("found what may not be listed: %q", lines)
	}
	var unchecked []string
	for _, n := range found.Notes {
		if n.Kind == doctor.NotChecked {
			unchecked = append(unchecked, n.Text)
		}
	}
	if text := strings.Join(unchecked, "\n"); !strings.Contains(text, "may not list EvictionRequests") || !strings.Contains(text, "machines of Cluster API") {
		t.Errorf("not checked: %q", unchecked)
	}

	// What is not allowed of the nodes, or does not answer, is no look.
	cluster, temporal = sick()
	temporal.away = errors.New("away")
	if found, err := activitytest.Call(t, doctorOf(t, cluster, temporal).Look, EvaluateInput{Names: names()}); err == nil {
		t.Errorf("without Temporal: %+v", found)
	}
	cluster, temporal = sick()
	cluster.Deny("list", "nodes")
	if _, err := activitytest.Call(t, doctorOf(t, cluster, temporal).Look, EvaluateInput{Names: names()}); activitytest.ErrorType(err) == "" {
		t.Errorf("without permission to list nodes it is tried again: %v", err)
	}
}

func TestALostNamespaceIsGivenUp(t *testing.T) {
	cluster, temporal := sick()
	d := doctorOf(t, cluster, temporal)
	lost := names()
	lost.Lost = []string{home}
	const want = "MarkDead mark-unknown: release-mark"
	found := look(t, d, EvaluateInput{Names: lost}).Findings
	at := slices.Index(listed(found), want)
	if at < 0 {
		t.Fatalf("found %q, want %s", listed(found), want)
	}
	at = slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Node == "mark-unknown" })
	// Whoever heals has to say so too.
	if did, err := activitytest.Call(t, d.Heal, HealInput{Names: names(), Finding: found[at], By: "mia"}); err != nil || did != errNoLonger.Error() {
		t.Errorf("unless it is said: %q, %v", did, err)
	}
	if did, err := activitytest.Call(t, d.Heal, HealInput{Names: lost, Finding: found[at], By: "mia"}); err != nil || !strings.HasPrefix(did, "released the mark") {
		t.Errorf("%q, %v", did, err)
	}
	if n := cluster.Node("mark-unknown"); n.Annotations[api.HoldersAnnotation] != "" {
		t.Error("it is still marked")
	}
}

func TestTheSchedulerIsAwaited(t *testing.T) {
	cluster, temporal := sick()
	scheduler := temporal.scheduler
	temporal.scheduler = nil
	d := doctorOf(t, cluster, temporal)
	found := look(t, d, EvaluateInput{Names: names()}).Findings
	if lines := listed(found); !slices.Contains(lines, "SchedulerMissing drydock-scheduler: await-scheduler") || slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Slot") && !strings.HasPrefix(l, "SlotUnmarked") }) {
		t.Fatalf("found %q: without a scheduler no slots can be compared", lines)
	}
	starts := time.AfterFunc(1500*time.Millisecond, func() {
		temporal.mu.Lock()
		defer temporal.mu.Unlock()
		temporal.scheduler = scheduler
	})
	defer starts.Stop()
	did, err := activitytest.Call(t, d.Heal, HealInput{Names: names(), Finding: found[0], By: "mia"})
	if err != nil || did != "the scheduler runs again, and 4 hold a slot" {
		t.Errorf("%q, %v", did, err)
	}
}

func TestAMachineIsLeftToClusterAPIAgain(t *testing.T) {
	kinds := k8stest.NewKinds()
	kinds.Serve("cluster.x-k8s.io/v1beta2", "Machine", "machines", true)
	kinds.Set(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"namespace":"fleet","name":"m1","annotations":
		{"` + clusterapi.SkipAnnotation + `":"drydock/run-n1"}},"status":{"nodeRef":{"name":"n1"}}}`)
	cluster := k8stest.New(activitytest.Node("n1"))
	cluster.Handle = kinds.Handle
	d := doctorOf(t, cluster, &server{scheduler: &slots{}})
	d.ClusterAPI = true
	found := look(t, d, EvaluateInput{Names: names()}).Findings
	mustList(t, "of a machine", found, "MachineLeft n1: resume-machine")
	if len(found) != 1 {
		return
	}
	cluster.Set(held("n1"))
	if did, err := activitytest.Call(t, d.Heal, HealInput{Names: names(), Finding: found[0], By: "mia"}); err != nil || did != errNoLonger.Error() {
		t.Errorf("while it is held: %q, %v", did, err)
	}
	cluster.Set(activitytest.Node("n1"))
	if did, err := activitytest.Call(t, d.Heal, HealInput{Names: names(), Finding: found[0], By: "mia"}); err != nil || did != "took the annotation off machine fleet/m1" {
		t.Errorf("%q, %v", did, err)
	}
	if left := kinds.Find("cluster.x-k8s.io/machines/fleet/m1").GetAnnotations()[clusterapi.SkipAnnotation]; left != "" {
		t.Errorf("the machine has %q", left)
	}
}

// A finding is no more than what its sender says: signals go to the scheduler of the doctor's own cluster only.
func TestAFindingCannotNameAnotherClustersScheduler(t *testing.T) {
	cluster, temporal := sick()
	in := HealInput{Names: names(), By: "mia", Finding: doctor.Finding{
		Kind: doctor.SlotDead, Fix: doctor.ReleaseSlot, Node: "slot-dead", WorkflowID: idOf("slot-dead"), RunID: runOf("slot-dead"), RequestID: "request-slot-dead",
	}}
	in.Scheduler = api.SchedulerID("other")
	did, err := activitytest.Call(t, doctorOf(t, cluster, temporal).Heal, in)
	if err == nil || !strings.Contains(err.Error(), api.ErrorForeignCaller) || len(temporal.signals) > 0 {
		t.Errorf("%q, %v; signalled %q", did, err, temporal.signals)
	}
	in.Finding.Fix = "format-disk"
	if did, err := activitytest.Call(t, doctorOf(t, cluster, temporal).Heal, in); err == nil {
		t.Errorf("an unknown fix: %q", did)
	}
}
