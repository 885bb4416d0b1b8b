package startertest

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
)

// Plan is a plan of 500 nodes that runs, and waits for its canary to soak.
func Plan(change ...func(*api.PlanStatus)) client.PlanView {
	until := Noon.Add(40 * time.Minute)
	s := &api.PlanStatus{
		Name: "kernel-6.12", WorkflowID: "maintenance-plan/kernel-6.12", RunID: "run-1", Phase: api.PlanRunning,
		Since: Before(2 * time.Hour), CreatedAt: Before(3 * time.Hour), Starter: &api.Sender{Identity: "jane@laptop"},
		WaitingFor: "the canary's soak", Until: &until,
		Plan: plan.Plan{
			Selection: plan.Selection{Selector: "pool=gpu"}, Requestor: "plan-kernel-6.12", Reason: "kernel 6.12", Ticket: "OPS-7", Owner: "infra",
			Strategy: plan.Strategy{
				MaxParallel: schedule.Percent(5), MaxFailures: schedule.Count(2), Order: plan.ByZone, PauseBetween: spec.Duration(time.Minute),
				Canary:    &plan.Canary{Nodes: 3, Soak: spec.Duration(time.Hour), Approval: true},
				OnBlocked: plan.SkipBlocked, BlockedAfter: spec.Duration(30 * time.Minute), ComeBackAfter: spec.Duration(10 * time.Minute), Tries: 3,
			},
		},
		Counts:   plan.Counts{Total: 500, Waiting: 493, Running: 2, Held: 1, Done: 3, Failed: 1},
		Warnings: []string{"every control-plane node is among them (3)"},
		Nodes: []api.PlanNode{
			{Node: "worker-004", State: "held", Since: Before(9 * time.Minute), Zone: "eu-1a", Tries: 1, RunID: "r4", Note: "the disk\nis broken"},
			{Node: "worker-005", State: "running", Since: Before(50 * time.Minute), Zone: "eu-1a", Tries: 2, RunID: "r5"},
			{Node: "worker-006", State: "failed", Since: Before(time.Hour), Zone: "eu-1a", Tries: 3, Note: "it did not empty within 30m0s: pod default/db-0 is protected by a budget that allows no disruptions"},
			{Node: "worker-007", State: "waiting", NotBefore: Noon.Add(4 * time.Minute), Zone: "eu-1b", Tries: 1, Note: "blocked"},
			{Node: "worker-008", State: "waiting", Zone: "eu-1b"},
			{Node: "worker-001", State: "done", Since: Before(2 * time.Hour), Zone: "eu-1a", Tries: 1},
		},
		Messages: []api.Received{{At: Before(time.Minute), Name: "resume", By: "jane@laptop", Comment: "the disk, not the kernel", Effect: "the plan goes on"}},
		Events:   []api.PlanEvent{{Sequence: 1, State: notices.PlanBegun, At: Before(3 * time.Hour), Message: "kernel 6.12"}},
	}
	for _, c := range change {
		c(s)
	}
	return client.PlanView{Status: s, Run: client.Run{
		Name: s.Name, WorkflowID: s.WorkflowID, RunID: "run-2", Started: Before(time.Hour), Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}
}

// EndedPlan is that plan after two of its nodes failed.
func EndedPlan() client.PlanView {
	v := Plan(func(s *api.PlanStatus) {
		s.Phase, s.Since, s.WaitingFor, s.Until, s.Failure = api.PlanIncomplete, Before(time.Minute), "", nil, "2 of 500 nodes failed"
		s.Counts = plan.Counts{Total: 500, Held: 1, Done: 498, Failed: 1}
	})
	v.Execution, v.Run.Ended = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, Before(time.Minute)
	v.Failure = "498 of 500 nodes are done, 2 failed"
	v.Result = &api.PlanResult{Phase: api.PlanIncomplete, RunID: "run-1", CreatedAt: Before(3 * time.Hour), EndedAt: Before(time.Minute), Counts: v.Status.Counts}
	return v
}

// StagedPlan is the plan of KEP-4212's example that drains node five.
func StagedPlan() api.Plan {
	targets := []drainplan.Entry{
		{PodType: drainplan.Default, PodPriority: 1000}, {PodType: drainplan.Default, PodPriority: 2000, PodSelector: "app=postgres,zone in (a,b)"},
	}
	v := Plan(func(s *api.PlanStatus) {
		s.WaitingFor, s.Until = "tier 2 of 3 (Default pods up to priority 2000, app=postgres): 1 of 2 nodes are drained up to it", nil
		s.Plan.Strategy = plan.Strategy{Type: plan.AllAtOnce}
		s.Plan.Requestor, s.Plan.Exclude, s.Plan.Stage, s.Plan.DrainPlan = spec.PlansRequestor, []string{"six"}, plan.Idle, &spec.Plan{Static: spec.SkipStatic}
		s.Counts, s.Warnings = plan.Counts{Total: 3, Running: 2, Failed: 1}, nil
		s.Nodes = []api.PlanNode{
			{Node: "five", State: "running", Since: Before(9 * time.Minute), Note: "Evacuating", Drain: &api.NodeDrain{Phase: api.Draining, Targets: targets, Pending: 30, Evacuating: 7}},
			{Node: "four", State: "failed", Since: Before(2 * time.Minute), Note: "it did not empty"},
			{Node: "one", State: "running", Since: Before(9 * time.Minute), Note: "Waiting for node five.", Drain: &api.NodeDrain{Phase: api.Ready, Targets: targets, Drained: true}},
		}
		s.Stages = &api.PlanStages{
			Stage: plan.Drain, Tiers: append(targets, drainplan.Entry{PodType: drainplan.Static, PodPriority: 2147483647}), Tier: 1, Revision: 2, Answered: 2,
			Begun: []api.StageBegun{
				{Stage: plan.Idle, At: Before(3 * time.Hour)},
				{Stage: plan.Cordon, At: Before(2 * time.Hour), By: "jane@laptop"}, {Stage: plan.Drain, At: Before(2 * time.Hour), By: "jane@laptop"},
			},
			Drained: api.Drained{Since: Before(2 * time.Hour), Message: "1 of 2 nodes are drained"},
			Nodes:   api.DrainCounts{Held: 2, Cordoned: 2, Drained: 1, Pending: 30, Evacuating: 7},
		}
	})
	p := v.Known()
	p.MoreNodes = 4
	return p
}
