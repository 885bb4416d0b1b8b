package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/spec"
)

func TestRecordOfAnEndedMaintenance(t *testing.T) {
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	granted := noon.Add(-time.Hour)
	s := api.Status{
		WorkflowID: "blue/node-maintenance/worker-01/ops", RunID: "run-1", Phase: api.Failed, Since: noon, Attempt: 2,
		Spec:       spec.Maintenance{Node: "worker-01", Requestor: "ops", AdditionalRequestors: []string{"left"}, Reason: "kernel", Ticket: "OPS-7", Type: spec.Planned},
		Requestors: []api.RequestorStatus{{Name: "ops"}, {Name: "net"}},
		Slot:       &api.SlotStatus{RequestID: "run-1/2", GrantedAt: &granted},
		Drain: &api.DrainProgress{Total: 8, Evicted: 7, MoreBlockers: 3, Blockers: []api.Blocker{
			{Pod: "a/db-0", Owner: "StatefulSet db", Reason: "DisruptionBudget", Message: "budget db", Since: granted},
		}},
		Escalation:  []api.RungTaken{{At: noon, Do: spec.Fail, By: "jane@host", Why: "enough"}},
		SkippedPods: []string{"batch/crawler-0"},
		Failure:     "given up",
		Transitions: []api.Transition{{Phase: api.Pending, At: granted.Add(-time.Hour)}, {Phase: api.Draining, At: granted, Message: "x"}, {Phase: api.Failed, At: noon}},
		Messages:    []api.Received{{At: noon, Name: "escalate", By: "jane@host", Comment: "enough", Effect: "taken"}},

		TransitionsDropped: 4,
	}
	specification, err := json.Marshal(s.Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := record.Record{
		Schema: record.Schema, WorkflowID: s.WorkflowID, RunID: "run-1", Cluster: "blue", Node: "worker-01", Requestor: "ops",
		AdditionalRequestors: []string{"net"}, Reason: "kernel", Ticket: "OPS-7", Type: "planned", Phase: "Failed", Failure: "given up", Attempts: 2,
		CreatedAt: granted.Add(-time.Hour), EndedAt: noon, MorePhases: 4, MoreBlockers: 3,
		Slot:          &record.Slot{RequestID: "run-1/2", GrantedAt: granted},
		Phases:        []record.Phase{{Phase: "Pending", At: granted.Add(-time.Hour)}, {Phase: "Draining", At: granted, Message: "x"}, {Phase: "Failed", At: noon}},
		Drain:         &record.Drain{Evicted: 7, Total: 8, SkippedPods: []string{"batch/crawler-0"}},
		Blockers:      []record.Blocker{{Pod: "a/db-0", Owner: "StatefulSet db", Reason: "DisruptionBudget", Message: "budget db", Since: granted}},
		Escalations:   []record.Escalation{{At: noon, Do: "fail", By: "jane@host", Why: "enough"}},
		Messages:      []record.Message{{At: noon, Name: "escalate", By: "jane@host", Comment: "enough", Effect: "taken"}},
		Specification: specification,
	}
	got := api.RecordOf(s, "blue")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func TestRecordOfAMaintenanceWhoseInputWasRefused(t *testing.T) {
	began := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	got := api.RecordOf(api.Status{WorkflowID: "node-maintenance/worker-01/ops", RunID: "run-1", Phase: api.Pending, Since: began}, "")
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	if got.Node != "worker-01" || got.Requestor != "ops" || got.Ended() || got.Specification != nil || !got.CreatedAt.Equal(began) {
		t.Errorf("%+v", got)
	}
}
