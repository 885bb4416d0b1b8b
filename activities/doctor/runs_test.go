package doctor

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
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
