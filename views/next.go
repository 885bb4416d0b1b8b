package views

import (
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/validation"
)

// Next are the commands by which a person has a maintenance go on, each of them enough by itself; none where it waits for nobody.
func Next(m api.Maintenance, now time.Time) []string {
	on := func(command string) string { return "drydock " + strings.Replace(command, "NODE", m.Node, 1) }
	switch {
	case m.EndedAt != nil:
		return nil
	case strings.HasPrefix(m.WaitingFor, api.WaitsForThaw):
		return []string{"drydock thaw"}
	}
	switch m.Phase {
	case api.AwaitingApproval:
		return []string{on("approve NODE"), on("deny NODE")}
	case api.RequestorFailed:
		return nextOfFailed(m.Node)
	case api.Validating:
		if v := m.Validation; v != nil && v.State == validation.Failed {
			return []string{on("retry NODE"), on("validation pass NODE --comment WHY"), on("cancel NODE --release")}
		}
	case api.Pending:
		if refused, waits := strings.CutPrefix(m.WaitingFor, api.WaitsForSlot); waits && schedule.IsFrozen(refused) {
			return []string{"drydock thaw"}
		}
		if m.Slot != nil && m.Slot.GrantedAt == nil {
			return []string{"drydock limits"}
		}
	case api.Draining:
		return nextOfDrain(m, now, on)
	case api.Ready:
		if m.Spec.Work == "" && m.Lockstep == nil && !begun(m.Requestor) {
			return []string{on("done NODE")}
		}
	}
	return nil
}

// NextOfPlan are the commands of which a plan waits for one.
func NextOfPlan(p api.PlanSummary) []string {
	stages, awaitsStage := strings.CutPrefix(p.WaitingFor, plan.AwaitsStage)
	switch {
	case p.Phase == api.PlanPaused:
		return []string{"drydock plan resume " + p.Name}
	case p.WaitingFor == plan.AwaitsApproval:
		return []string{"drydock plan approve " + p.Name, "drydock plan deny " + p.Name}
	case awaitsStage:
		var next []string
		for _, stage := range []api.Stage{api.StageCordon, api.StageDrain, api.StageComplete} {
			if strings.Contains(stages, string(stage)) {
				next = append(next, "drydock plan set-stage "+p.Name+" "+string(stage))
			}
		}
		return next
	default:
		return nil
	}
}

// nextOfHeld are the commands that decide on the first of the nodes of a plan that are held.
func nextOfHeld(p api.Plan) []string {
	i := slices.IndexFunc(p.Nodes, func(n api.PlanNode) bool { return n.State == plan.Held.Word() })
	if i < 0 || p.EndedAt != nil {
		return nil
	}
	return nextOfFailed(p.Nodes[i].Node)
}

// nextOfFailed decide on a node whose work has failed.
func nextOfFailed(node string) []string {
	return []string{"drydock retry " + node, "drydock done " + node, "drydock cancel " + node + " --release"}
}

// begun reports whether a profile or plans that share nodes have begun a maintenance: they end it themselves.
func begun(requestor string) bool {
	return requestor == api.PlansRequestor || strings.HasPrefix(requestor, api.ProfileRequestorPrefix)
}

// stuckAfter is how long a pod blocks a drain before it waits for a person: budgets of pods that start elsewhere refuse for a while.
const stuckAfter = 2 * time.Minute

// nextOfDrain is what a person can do where the drain goes on only by a person's word, or has not gone on for long.
func nextOfDrain(m api.Maintenance, now time.Time, on func(string) string) []string {
	if m.WaitingFor == `the signal "drained"` {
		return []string{on("drain done NODE")}
	}
	if m.Drain == nil || len(m.Drain.Blockers) == 0 {
		return nil
	}
	skip := func(pod string) string { return on("drain skip NODE " + pod) }
	switch first := m.Drain.Blockers[0]; first.Reason {
	case api.ReasonNoController, api.ReasonOrphaned:
		return []string{on("consent NODE --force --comment WHY --pod " + first.Pod), skip(first.Pod)}
	case api.ReasonLocalStorage:
		return []string{on("consent NODE --delete-emptydir-data --comment WHY --pod " + first.Pod), skip(first.Pod)}
	}
	i := slices.IndexFunc(m.Drain.Blockers, func(b api.Blocker) bool { return isStuck(b, now) })
	if i < 0 {
		return nil
	}
	next := []string{on("escalate NODE --comment WHY"), skip(m.Drain.Blockers[i].Pod)}
	if m.Lockstep == nil && !begun(m.Requestor) { // else whoever has begun it would begin the next
		next = append(next, on("cancel NODE"))
	}
	return next
}

// isStuck reports whether a pod does not go by itself, or has not for long.
func isStuck(b api.Blocker, now time.Time) bool {
	never := slices.ContainsFunc(b.Budgets, func(budget api.BudgetState) bool { return budget.Impossible })
	return never || !b.Since.IsZero() && now.Sub(b.Since) >= stuckAfter
}
