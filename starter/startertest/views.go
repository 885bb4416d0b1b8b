// Package startertest has what several tests of the command line look at: views, reports and golden files.
package startertest

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
)

// Before is a moment that long before noon.
func Before(d time.Duration) time.Time { return Noon.Add(-d) }

// Ago is a moment that long before noon.
func Ago(d time.Duration) *time.Time {
	at := Before(d)
	return &at
}

// ClockAtNoon is a clock that stands still.
func ClockAtNoon() time.Time { return Noon }

// Noon is the time of all tests.
var Noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.FixedZone("CEST", 2*60*60))

// View is a running maintenance of worker-01 for ops in a phase for five minutes.
func View(phase api.Phase, change ...func(*api.Status)) client.View {
	s := &api.Status{
		WorkflowID: "node-maintenance/worker-01/ops", RunID: "run-1", Phase: phase, Since: Noon.Add(-5 * time.Minute), Attempt: 1,
		Spec:       spec.Maintenance{Node: "worker-01", Requestor: "ops", Type: spec.Planned, OnReadyTimeout: spec.FailOnTimeout, Drain: spec.Drain{Mode: spec.ModeEvict}},
		Requestors: []api.RequestorStatus{{Name: "ops"}},
	}
	for _, c := range change {
		c(s)
	}
	return client.View{Status: s, Maintenance: client.Maintenance{
		Node: "worker-01", Requestor: "ops", WorkflowID: s.WorkflowID, RunID: s.RunID, FirstRunID: s.RunID, Started: Noon.Add(-10 * time.Minute),
		Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}
}

// Ended is a maintenance that has ended.
func Ended(phase api.Phase, execution enumspb.WorkflowExecutionStatus, message string) client.View {
	v := View(phase)
	v.Status, v.Execution, v.Closed = nil, execution, Noon.Add(-time.Minute)
	v.Result = &api.Result{Phase: phase, Message: message}
	return v
}

// WaitingFor changes what a status says it waits for.
func WaitingFor(what string) func(*api.Status) {
	return func(s *api.Status) { s.WaitingFor = what }
}

// Draining is a maintenance that drains for the second time, and waits for a budget.
func Draining() client.View {
	return View(api.Draining, func(s *api.Status) {
		s.Spec.Reason, s.Spec.Ticket, s.Spec.Priority = "kernel 6.12", "OPS-7", 3
		s.Attempt = 2
		s.WaitingFor = "pod default/db-0: budget db allows 0 disruptions"
		s.Requestors = []api.RequestorStatus{{Name: "ops"}, {Name: "net", DoneAt: Ago(time.Minute)}}
		s.Slot = &api.SlotStatus{RequestID: "run-1/2", GrantedAt: Ago(6 * time.Minute)}
		s.CordonedAt, s.Spec.Drain.Escalation = Ago(5*time.Minute), []spec.Rung{{After: spec.Duration(time.Hour), Do: spec.GiveBack}}
		s.Drain = &api.DrainProgress{
			At: Before(2 * time.Second), Total: 8, Evicted: 3, Remaining: 5, Skipped: 2, MoreBlockers: 4,
			Blockers: []api.Blocker{{Pod: "default/db-0", Reason: "DisruptionBudget", Message: "budget db allows 0 disruptions", Since: Before(4 * time.Minute)}},
		}
		s.Transitions = []api.Transition{
			{Phase: api.Pending, At: Before(10 * time.Minute)},
			{Phase: api.Cordoning, At: Before(6 * time.Minute)},
			{Phase: api.Draining, At: Before(5 * time.Minute)},
			{Phase: api.Draining, At: Before(time.Minute), Message: "cordon restored"},
		}
		s.Messages = []api.Received{{At: Before(time.Minute), Name: "done", By: "net@host", Effect: "net is done", Comment: "NIC swapped"}}
	})
}
