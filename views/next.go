package views

import (
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
)

// Next are the commands by which a person has a maintenance go on, each of them enough by itself; none where it waits for nobody. What
// only that person can say is in capitals. If requestor is not empty the commands name it, which a node with several maintenances needs.
func Next(m api.Maintenance, now time.Time, requestor string) []string {
	maintenance := m.Node
	if requestor != "" {
		maintenance += " --requestor " + requestor
	}
	on := func(command string) string { return "drydock " + strings.Replace(command, "NODE", maintenance, 1) }
	switch {
	case m.EndedAt != nil:
		return nil
	case strings.HasPrefix(m.WaitingFor, api.WaitsForThaw):
		return []string{thaw}
	}
	switch m.Phase {
	case api.AwaitingApproval:
		return []string{on("approve NODE"), on("deny NODE")}
	case api.RequestorFailed:
		return nextOfFailed(maintenance)
	case api.Validating:
		if v := m.Validation; v != nil && v.State == validation.Failed {
			return []string{on("retry NODE"), on("validation pass NODE --comment WHY"), on("cancel NODE --release")}
		}
		if wanted := m.Spec.Validation; wanted != nil && wanted.Signal {
			return []string{on("validation pass NODE"), on("validation fail NODE --comment WHY")}
		}
	case api.Pending:
		return nextOfPending(m)
	case api.Draining:
		return nextOfDrain(m, now, on)
	case api.Ready:
		if m.Spec.Work != "" || m.Lockstep != nil || begun(m.Requestor) {
			return nil
		}
		if name, ofPlan := plan.OfRequestor(m.Requestor); ofPlan { // it is done once somebody has worked on it, and not for being asked about
			return []string{"drydock plan attach " + name + " -- COMMAND", "drydock done " + m.Node + " --requestor " + m.Requestor}
		}
		return []string{on("done NODE")}
	}
	return nil
}

// nextOfPending show why a maintenance has no slot.
func nextOfPending(m api.Maintenance) []string {
	refused, _ := strings.CutPrefix(m.WaitingFor, api.WaitsForSlot)
	holder, isBusy := schedule.HolderIn(refused)
	switch {
	case schedule.IsFrozen(refused):
		return []string{thaw}
	case isBusy:
		return []string{"drydock status " + m.Node + " --requestor " + holder}
	case m.Slot != nil && m.Slot.GrantedAt == nil:
		return []string{"drydock limits"}
	}
	return nil
}

// thaw takes a freeze back. What waits for that says whose freezes there are.
const thaw = "drydock thaw --by NAME"

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

// nextOfHeld are the commands that decide on the first of the nodes of a plan that are held, or show those nodes where none is on the page.
func nextOfHeld(p api.Plan) []string {
	if p.EndedAt != nil || p.Counts == nil || p.Counts.Held == 0 {
		return nil
	}
	i := slices.IndexFunc(p.Nodes, func(n api.PlanNode) bool { return n.State == plan.Held.Word() })
	if i < 0 || p.Spec == nil {
		return []string{"drydock plan status " + p.Name + " --state " + plan.Held.Word()}
	}
	return nextOfFailed(p.Nodes[i].Node + " --requestor " + p.Spec.Requestor) // the node may have maintenances of others
}

// nextOfFailed decide on a maintenance whose work has failed, by its node, with its requestor where that has to be said.
func nextOfFailed(maintenance string) []string {
	return []string{"drydock retry " + maintenance, "drydock done " + maintenance, "drydock cancel " + maintenance + " --release"}
}

// begun reports whether a profile or plans that share nodes have begun a maintenance: they end it themselves.
func begun(requestor string) bool {
	return requestor == api.PlansRequestor || strings.HasPrefix(requestor, api.ProfileRequestorPrefix)
}

// stuckAfter is how long a pod blocks a drain before it waits for a person: budgets of pods that start elsewhere refuse for a while.
const stuckAfter = 2 * time.Minute

// responderTime is how long the responder of an EvictionRequest may take that does not say when it expects to end. It is the time after which
// Kubernetes passes the request of a silent responder on to the next one, and in the end evicts the pod itself.
const responderTime = 20 * time.Minute

// nextOfDrain is what a person can do where the drain goes on only by a person's word, or has not gone on for long.
func nextOfDrain(m api.Maintenance, now time.Time, on func(string) string) []string {
	if m.WaitingFor == `the signal "drained"` {
		return []string{on("drain done NODE")}
	}
	if m.Drain == nil {
		return nil
	}
	i := slices.IndexFunc(m.Drain.Blockers, func(b api.Blocker) bool { return isStuck(b, now) })
	if i < 0 {
		return nil
	}
	b := m.Drain.Blockers[i]
	skip := on("drain skip NODE " + b.Pod)
	switch b.Reason {
	case api.ReasonNoController, api.ReasonOrphaned:
		return []string{on("consent NODE --force --comment WHY --pod " + b.Pod), skip}
	case api.ReasonLocalStorage:
		return []string{on("consent NODE --delete-emptydir-data --comment WHY --pod " + b.Pod), skip}
	}
	var next []string
	if b.Reason != api.ReasonVolumeAttached { // else it is no pod
		next = append(next, skip)
	}
	if byBudget := b.Reason == api.ReasonDisruptionBudget || b.Reason == api.ReasonSeveralBudgets; byBudget && m.Force == "" {
		// The rung that helps, by its name: the plan's next one may give the node back, or only notify.
		next = append(next, on("escalate NODE --do "+spec.BypassBudget+" --comment WHY"))
	}
	if m.Lockstep == nil && !begun(m.Requestor) { // else whoever has begun it would begin the next
		next = append(next, on("cancel NODE"))
	}
	return next
}

// isStuck reports whether a pod leaves only by a person's word, or has not left for long. One that is left alone until a time goes then.
func isStuck(b api.Blocker, now time.Time) bool {
	switch b.Reason {
	case api.ReasonNoController, api.ReasonOrphaned, api.ReasonLocalStorage:
		return true
	case api.ReasonDoNotDisrupt:
		return false
	case api.ReasonEvictionRequested:
		return isResponderLate(b, now)
	}
	never := slices.ContainsFunc(b.Budgets, func(budget api.BudgetState) bool { return budget.Impossible })
	return never || !b.Since.IsZero() && now.Sub(b.Since) >= stuckAfter
}

// isResponderLate reports whether the responder of an EvictionRequest has not ended when it expected to, or has taken long without saying.
func isResponderLate(b api.Blocker, now time.Time) bool {
	if !b.ExpectedBy.IsZero() {
		return now.Sub(b.ExpectedBy) >= stuckAfter
	}
	return !b.Since.IsZero() && now.Sub(b.Since) >= responderTime
}
