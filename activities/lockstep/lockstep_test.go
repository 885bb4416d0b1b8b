package lockstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
)

// server is a Temporal server that knows some workflows.
type server struct {
	mocks.Client
	mu sync.Mutex
	// runs are the first runs of those that run, by workflow ID.
	runs    map[string]string
	answers map[string]any
	// ends are the results of those that have ended, by run.
	ends    map[string]error
	results map[string]api.Result
	begun   []string
	sent    []string
	// unlisted are not known to visibility yet.
	unlisted map[string]bool
	fails    error
}

func id(node string) string { return api.MaintenanceID("", node, api.PlansRequestor) }

func newServer() *server {
	s := &server{runs: map[string]string{}, answers: map[string]any{}, ends: map[string]error{}, results: map[string]api.Result{}, unlisted: map[string]bool{}}
	s.On("ExecuteWorkflow", mock.Anything, mock.Anything, api.NodeMaintenanceType, mock.Anything).Return(s.execute)
	s.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, "").Return(s.describe)
	s.On("QueryWorkflow", mock.Anything, mock.Anything, "", mock.Anything).Return(s.query)
	s.On("QueryWorkflow", mock.Anything, mock.Anything, "", mock.Anything, mock.Anything).Return(s.query)
	s.On("SignalWorkflow", mock.Anything, mock.Anything, "", mock.Anything, mock.Anything).Return(s.signal)
	s.On("GetWorkflow", mock.Anything, mock.Anything, mock.Anything).Return(s.get)
	s.On("ListWorkflow", mock.Anything, mock.Anything).Return(s.list)
	return s
}

func (s *server) execute(_ context.Context, options client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return nil, s.fails
	}
	if run := s.runs[options.ID]; run != "" {
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "", run)
	}
	input, _ := json.Marshal(args[0])
	s.begun = append(s.begun, options.ID+" on "+options.TaskQueue+" "+string(input))
	s.runs[options.ID] = "new " + options.ID
	run := &mocks.WorkflowRun{}
	run.On("GetRunID").Return(s.runs[options.ID])
	return run, nil
}

func (s *server) describe(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[id] == "" {
		return nil, serviceerror.NewNotFound("no " + id)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING, FirstRunId: s.runs[id], Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "present"},
	}}, nil
}

func (s *server) query(_ context.Context, id, _, query string, args ...any) (converter.EncodedValue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := id + " " + query
	if len(args) > 0 {
		key += fmt.Sprintf(" %+v", args[0])
	}
	value, ok := s.answers[key]
	if !ok {
		return nil, serviceerror.NewQueryFailed("nobody answers " + key)
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(value)
	return client.NewValue(payloads), err
}

func (s *server) signal(_ context.Context, id, _, name string, payload any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[id] == "" {
		return serviceerror.NewNotFound("no " + id)
	}
	text, _ := json.Marshal(payload)
	s.sent = append(s.sent, id+" "+name+" "+string(text))
	return nil
}

func (s *server) get(_ context.Context, _, run string) client.WorkflowRun {
	end := &mocks.WorkflowRun{}
	end.On("Get", mock.Anything, mock.Anything).Return(func(_ context.Context, into any) error {
		*into.(*api.Result) = s.results[run]
		return s.ends[run]
	})
	return end
}

func (s *server) list(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "node-maintenance/"
	if strings.Contains(r.Query, "'"+api.MaintenancePlanType+"'") {
		kind = "maintenance-plan/"
	}
	var all []*workflowpb.WorkflowExecutionInfo
	for id := range s.runs {
		if strings.HasPrefix(id, kind) && !s.unlisted[id] {
			all = append(all, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "present"}})
		}
	}
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: all}, nil
}

// shared is the status of a maintenance that plans share, or not.
func shared(lockstep bool) any {
	return map[string]any{"phase": "Draining", "spec": map[string]any{"lockstep": lockstep}}
}

func TestMaintenancesAreBegunOrAdopted(t *testing.T) {
	s := newServer()
	s.runs[id("n2")], s.answers[id("n2")+" status"] = "first", shared(true)
	s.runs[id("n3")], s.answers[id("n3")+" status"] = "other", shared(false)
	a := &Activities{Temporal: s}
	in := Batch{Requests: []Request{{Node: "n1"}, {Node: "n2"}, {Node: "n3"}}, Input: json.RawMessage(`{"reason":"x","lockstep":true}`)}
	begun, err := activitytest.Call(t, a.BeginShared, in)
	if err != nil || len(begun) != 3 {
		t.Fatal(begun, err)
	}
	if begun[0] != (Result{Node: "n1", RunID: "new " + id("n1")}) || begun[1] != (Result{Node: "n2", RunID: "first", Adopted: true}) {
		t.Errorf("begun %+v", begun)
	}
	if !strings.Contains(begun[2].Refused, "is not for plans to share: end it (drydock cancel n3 --requestor plans)") {
		t.Errorf("somebody else's: %+v", begun[2])
	}
	if want := []string{id("n1") + ` on default-test-taskqueue {"lockstep":true,"node":"n1","reason":"x"}`}; !slices.Equal(s.begun, want) {
		t.Errorf("begun %q", s.begun)
	}
	// Once more: all of them run.
	s.answers[id("n1")+" status"] = shared(true)
	if again, err := activitytest.Call(t, a.BeginShared, in); err != nil || !again[0].Adopted || len(s.begun) != 1 {
		t.Errorf("again %+v, %v", again, err)
	}
	s.answers[id("n2")+" status"] = map[string]any{"phase": "Releasing", "spec": map[string]any{"lockstep": true}}
	if _, err := activitytest.Call(t, a.BeginShared, in); err == nil || !strings.Contains(err.Error(), "the maintenance of n2: it is about to end") {
		t.Error(err)
	}
	delete(s.answers, id("n2")+" status")
	if _, err := activitytest.Call(t, a.BeginShared, in); err == nil || !strings.Contains(err.Error(), "asking the maintenance of n2 whether plans share it") {
		t.Error(err)
	}
	s.fails = errors.New("the server is away")
	if _, err := activitytest.Call(t, a.BeginShared, in); err == nil || !strings.Contains(err.Error(), "beginning the maintenance of n") {
		t.Error(err)
	}
}

func TestEndedPlansAndMaintenancesAreReported(t *testing.T) {
	s := newServer()
	s.runs[id("n1")] = "r1"
	s.results["r2"] = api.Result{Phase: api.Completed, Message: "all is well"}
	s.results["r3"], s.ends["r3"] = api.Result{}, serviceerror.NewNotFound("it is forgotten")
	a := &Activities{Temporal: s}
	target := &api.NodeTarget{Revision: 3, Targets: []drainplan.Entry{{PodType: drainplan.Default, PodPriority: 5}}}
	results, err := activitytest.Call(t, a.SteerShared, Batch{Requests: []Request{
		{Node: "n1", RunID: "r1", Target: target}, {Node: "n2", RunID: "r2", Target: target}, {Node: "n3", RunID: "r3", Target: target}, {Node: "n4", Target: target},
	}})
	want := []Result{
		{Node: "n1", RunID: "r1"}, {Node: "n2", RunID: "r2", Ended: true, Phase: api.Completed}, {Node: "n3", RunID: "r3", Ended: true}, {Node: "n4", Ended: true},
	}
	if err != nil || !slices.Equal(results, want) {
		t.Errorf("results %+v, %v", results, err)
	}
	if len(s.sent) != 1 || !strings.HasPrefix(s.sent[0], id("n1")+` target {"run":"r1","revision":3,"targets":[`) {
		t.Errorf("sent %q", s.sent)
	}
}

func TestAMaintenanceIsCancelledBeforeReadyAndDoneAfter(t *testing.T) {
	s := newServer()
	s.runs[id("n1")] = "r1"
	a := &Activities{Temporal: s}
	results, err := activitytest.Call(t, a.EndShared, Batch{Requests: []Request{{Node: "n1", RunID: "r1"}, {Node: "n2"}}})
	if want := []Result{{Node: "n1", RunID: "r1"}, {Node: "n2", Ended: true}}; err != nil || !slices.Equal(results, want) {
		t.Errorf("results %+v, %v", results, err)
	}
	if len(s.sent) != 2 || !strings.Contains(s.sent[0], `cancel {"by":"lockstep"`) || !strings.Contains(s.sent[0], `"beforeReady":true,"run":"r1"`) ||
		!strings.Contains(s.sent[1], `done {"by":"lockstep"`) || !strings.Contains(s.sent[1], `"run":"r1"`) {
		t.Errorf("sent %q", s.sent)
	}
}

func TestPlansAreLookedUp(t *testing.T) {
	s := newServer()
	s.runs[api.PlanID("", "a")], s.runs[api.PlanID("", "b")] = "a1", "b2"
	a := &Activities{Temporal: s}
	asked := []api.HeldPlan{{Name: "a", RunID: "a1"}, {Name: "b", RunID: "b1"}, {Name: "c", RunID: "c1"}}
	running, err := activitytest.Call(t, a.CheckPlans, CheckInput{Plans: asked})
	if err != nil || !slices.Equal(running, asked[:1]) {
		t.Errorf("running %+v, %v", running, err)
	}
}

func TestSharedMaintenancesAndPlansInLockstepAreFound(t *testing.T) {
	s := newServer()
	for _, other := range []string{id("n2"), id("n1"), api.MaintenanceID("", "n3", "ops"), api.MaintenanceID("prod", "n4", api.PlansRequestor)} {
		s.runs[other] = "r"
	}
	strategy := func(kind string) any {
		return api.PlanStatus{Plan: plan.Plan{Strategy: plan.Strategy{Type: kind}}}
	}
	s.runs[api.PlanID("", "a")], s.answers[api.PlanID("", "a")+" status"] = "a1", strategy("allAtOnce")
	s.runs[api.PlanID("", "b")], s.answers[api.PlanID("", "b")+" status"] = "b1", strategy("rolling")
	a := &Activities{Temporal: s}
	running, err := activitytest.Call(t, a.FindShared, QueueInput{TaskQueue: "drydock"})
	if err != nil || !slices.Equal(running.Nodes, []string{"n1", "n2"}) || !slices.Equal(running.Plans, []api.HeldPlan{{Name: "a", RunID: "a1"}}) {
		t.Errorf("running %+v, %v", running, err)
	}
	delete(s.answers, api.PlanID("", "b")+" status")
	if _, err := activitytest.Call(t, a.FindShared, QueueInput{TaskQueue: "drydock"}); err == nil || !strings.Contains(err.Error(), "asking plan b for its strategy") {
		t.Error(err)
	}
}

func TestTheWatchSeesWhatEndedWithoutAWord(t *testing.T) {
	s := newServer()
	caller := activitytest.WorkflowID + " " + api.QueryHeld
	s.answers[caller+" {Offset:0}"] = api.LockstepHeld{
		Nodes: []api.HeldNode{{Node: "n1", RunID: "r1"}, {Node: "n2", RunID: "r2"}}, NextOffset: 2,
		Plans: []api.HeldPlan{{Name: "a", RunID: "a1"}, {Name: "b", RunID: "b1"}},
	}
	s.answers[caller+" {Offset:2}"] = api.LockstepHeld{Nodes: []api.HeldNode{{Node: "n3", RunID: "r3"}, {Node: "n4"}}}
	s.runs[id("n1")], s.runs[id("n3")], s.runs[api.PlanID("", "a")] = "r1", "r3", "a1"
	s.unlisted[id("n3")] = true
	s.results["r2"] = api.Result{Phase: api.Cancelled, Message: "by hand"}
	a := &Activities{Temporal: s}
	seen, err := activitytest.Call(t, a.look, QueueInput{TaskQueue: "drydock"})
	want := []Result{{Node: "n2", RunID: "r2", Ended: true, Phase: api.Cancelled, Failure: "by hand"}, {Node: "n4", Ended: true}}
	if err != nil || !slices.Equal(seen.Maintenances, want) {
		t.Errorf("ended %+v, %v", seen.Maintenances, err)
	}
	if !slices.Equal(seen.Plans, []api.HeldPlan{{Name: "b", RunID: "b1"}}) {
		t.Errorf("plans %+v", seen.Plans)
	}
	if lookEvery < 10*time.Second {
		t.Error("it looks too often")
	}
	if firstLook(1) != lookEvery || firstLook(2) != 0 {
		t.Errorf("the first attempt looks after %s, one that follows a dead worker's after %s", firstLook(1), firstLook(2))
	}
}
