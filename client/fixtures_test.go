package client

import (
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.Local)

// viewOf is a running maintenance of worker-01 for ops in a phase for five minutes.
func viewOf(phase api.Phase, change ...func(*api.Status)) View {
	s := &api.Status{
		WorkflowID: "node-maintenance/worker-01/ops", RunID: "run-1", Phase: phase, Since: noon.Add(-5 * time.Minute), Attempt: 1,
		Spec:       spec.Maintenance{Node: "worker-01", Requestor: "ops", Type: spec.Planned, OnReadyTimeout: spec.FailOnTimeout, Drain: spec.Drain{Mode: spec.ModeEvict}},
		Requestors: []api.RequestorStatus{{Name: "ops"}},
	}
	for _, c := range change {
		c(s)
	}
	return View{Status: s, Maintenance: Maintenance{
		Node: "worker-01", Requestor: "ops", WorkflowID: s.WorkflowID, RunID: s.RunID, FirstRunID: s.RunID, Started: noon.Add(-10 * time.Minute),
		Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}
}

func endedView(phase api.Phase, execution enumspb.WorkflowExecutionStatus, message string) View {
	v := viewOf(phase)
	v.Status, v.Execution, v.Closed = nil, execution, noon.Add(-time.Minute)
	v.Result = &api.Result{Phase: phase, Message: message}
	return v
}

func waitingFor(what string) func(*api.Status) {
	return func(s *api.Status) { s.WaitingFor = what }
}

func clockAtNoon() time.Time { return noon }

// ours is the ID of the message that a test sends.
const ours = "message-1"

func received(name, effect string) func(*api.Status) {
	outcome := api.Applied
	if strings.HasPrefix(effect, "ignored: ") {
		outcome = api.Ignored
	}
	return func(s *api.Status) {
		s.Messages = append(s.Messages, api.Received{ID: ours, At: noon, Name: name, By: "me", Outcome: outcome, Effect: effect})
	}
}

func before(d time.Duration) time.Time { return noon.Add(-d) }
