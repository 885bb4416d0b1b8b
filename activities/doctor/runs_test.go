package doctor

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
)

// wanting is a Temporal in which a maintenance asks for its slot with all that a request may have.
type wanting struct {
	*server
	slot api.SlotWanted
	sent []any
}

func (w *wanting) QueryWorkflow(ctx context.Context, id, run, query string, args ...any) (converter.EncodedValue, error) {
	if query != api.QuerySlot || id != w.slot.WorkflowID("") {
		return w.server.QueryWorkflow(ctx, id, run, query, args...)
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(w.slot)
	return client.NewValue(payloads), err
}

func (w *wanting) SignalWorkflow(ctx context.Context, id, run, signal string, payload any) error {
	w.sent = append(w.sent, payload)
	return w.server.SignalWorkflow(ctx, id, run, signal, payload)
}

// A request that a doctor makes in a maintenance's name is the maintenance's own, with its windows and its gang.
func TestASlotIsRequestedAsTheMaintenanceWantsIt(t *testing.T) {
	cluster, temporal := sick()
	is := temporal.running["slot-unknown"]
	w := &wanting{server: temporal, slot: api.SlotWanted{Wants: true, GrantedAt: is.GrantedAt, SlotRequest: api.SlotRequest{RunID: is.RunID, Request: schedule.Request{
		ID: is.ID, Node: "slot-unknown", Requestor: "ops", Priority: 3, Created: time.Unix(2000, 0).UTC(), Windows: []string{"nights"},
		ExpectedDuration: period.Duration(time.Hour), IgnoreWindows: "an emergency", Gang: &schedule.Gang{Name: "rack", Size: 2},
	}}}}
	d := doctorOf(t, cluster, temporal)
	d.Temporal = w
	found := look(t, d, EvaluateInput{Names: names()}).Findings
	at := slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Kind == doctor.SlotUnrequested })
	if at < 0 {
		t.Fatalf("it is not found: %q", listed(found))
	}
	if _, err := activitytest.Call(t, d.Heal, HealInput{Names: names(), Finding: found[at], By: "mia"}); err != nil {
		t.Fatal(err)
	}
	if len(w.sent) != 1 || !reflect.DeepEqual(w.sent[0], w.slot.SlotRequest) {
		t.Errorf("sent %+v, want %+v", w.sent, w.slot.SlotRequest)
	}
}

// full is a scheduler that holds more slots than a list has in plain JSON.
type full struct {
	*server
	state api.State
}

func (f full) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(f.state)
	return client.NewValue(payloads), err
}

func TestAllHoldersAreReadHoweverManyTheyAre(t *testing.T) {
	cluster, temporal := sick()
	var state api.State
	for i := range api.PackAbove + 1 {
		state.Holders = append(state.Holders, api.Holder{RunID: "run", Grant: schedule.Grant{RequestID: fmt.Sprintf("run/%d", i), Node: fmt.Sprintf("n%d", i), Requestor: "ops"}})
	}
	state.Pending = []api.PendingRequest{{SlotRequest: api.SlotRequest{RunID: "run", Request: schedule.Request{ID: "run/1", Node: "cp", Requestor: "hc", Kind: schedule.KindControlPlane}}}}
	d := doctorOf(t, cluster, temporal)
	d.Temporal = full{temporal, state}
	s, err := d.runs().scheduler(t.Context(), names())
	if err != nil || s.Unanswered != "" || len(s.Holders) != len(state.Holders) || s.Holders[7].WorkflowID != api.MaintenanceID("", "n7", "ops") {
		t.Fatalf("%d holders, %q, %v", len(s.Holders), s.Unanswered, err)
	}
	if got := s.Pending[0]; got.Kind != string(schedule.KindControlPlane) || got.WorkflowID != state.Pending[0].WorkflowID("") {
		t.Errorf("pending is %+v", got)
	}
}

// described is a Temporal whose scheduler has granted what full says, and that describes one workflow as it is given.
type described struct {
	full
	info *workflowpb.WorkflowExecutionInfo
}

func (d described) DescribeWorkflowExecution(ctx context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if id != d.info.GetExecution().GetWorkflowId() {
		return d.full.DescribeWorkflowExecution(ctx, id, run)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: d.info}, nil
}

// The slot of a profile's transition is held until every watch shows what that has made of its node: it is dead once the transition ended long
// ago. One that another follows had ended when that began.
func TestTheSlotOfATransitionThatHasJustEndedIsNotDead(t *testing.T) {
	const running, completed = enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	const just, long = 10 * time.Second, 10 * time.Minute
	holder := api.Holder{RunID: "first", Grant: schedule.Grant{
		RequestID: "first/1", Node: "n1", Requestor: api.ProfileRequestorPrefix + "patch", Kind: schedule.KindProfile,
	}}
	for name, c := range map[string]struct {
		run            string
		status         enums.WorkflowExecutionStatus
		started, ended time.Duration
		dead           bool
	}{
		"it has just ended":                  {"first", completed, long, just, false},
		"it ended long ago":                  {"first", completed, long, long, true},
		"another has just begun":             {"second", running, just, 0, false},
		"another began long ago":             {"second", running, long, 0, true},
		"another that began long ago, ended": {"second", completed, long, just, true},
	} {
		t.Run(name, func(t *testing.T) {
			info := &workflowpb.WorkflowExecutionInfo{
				Execution:  &commonpb.WorkflowExecution{WorkflowId: holder.WorkflowID(""), RunId: c.run},
				FirstRunId: c.run, Status: c.status, StartTime: timestamppb.New(time.Now().Add(-c.started)),
			}
			if c.ended > 0 {
				info.CloseTime = timestamppb.New(time.Now().Add(-c.ended))
			}
			temporal := &server{scheduler: &slots{}}
			d := doctorOf(t, k8stest.New(activitytest.Node("n1")), temporal)
			d.Temporal = described{full{temporal, api.State{Holders: []api.Holder{holder}}}, info}
			var want []string
			if c.dead {
				want = []string{"SlotDead n1: release-slot"}
			}
			mustList(t, name, look(t, d, EvaluateInput{Names: names()}).Findings, want...)
		})
	}
}
