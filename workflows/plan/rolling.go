package plan

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/notices"
	"drydock/rules/rollout"
	"drydock/workflows/call"
)

// rolling is the course of a plan whose nodes go one after the other, each in a maintenance of its own.
type rolling struct {
	*core
	flights *flights
	roster  *roster
	news    *bulletin
}

func newRolling(c *core, list *roster, news *bulletin) *rolling {
	r := &rolling{core: c, roster: list, news: news, flights: &flights{core: c, ours: map[string]bool{}}}
	list.match = func(nodes []rollout.Node, matching []rollout.Facts) ([]rollout.Node, int, int) {
		return rollout.Match(c.spec.Strategy.Order, nodes, matching, c.now())
	}
	list.forget = func(node string) { delete(r.flights.ours, node) }
	c.crowded = func() bool { return len(r.flights.ours) >= maxChildren }
	return r
}

func (r *rolling) attend() { r.flights.attend() }

func (r *rolling) settled() bool { return r.flights.settled() }

func (r *rolling) stop(phase api.PlanPhase, why string) { r.flights.stop(phase, why) }

func (r *rolling) stopping() string {
	return "nothing more is begun; nodes that are not Ready are given back, those that are Ready are finished"
}

// wake is the time that the last decision named.
func (r *rolling) wake() (time.Time, string) {
	if r.state.Stop != "" {
		return time.Time{}, ""
	}
	return r.state.Until, r.state.WaitingFor
}

// step does what is to be done now, and tells whether the plan is over.
func (r *rolling) step() (over bool) {
	if r.state.Stop != "" {
		r.state.WaitingFor, r.state.Until = fmt.Sprintf("its last nodes: it ends %s then", r.state.Stop), time.Time{}
		return r.flights.none()
	}
	if r.doubts > 0 || !r.roster.known() {
		return false
	}
	d := rollout.Decide(r.spec.Strategy, r.state.Nodes, r.state.Progress, r.now())
	if d.CanaryPassed {
		r.state.Progress.CanaryPassed = true
		r.news.note("the canary has passed")
	}
	r.waitsFor(d)
	switch {
	case d.Pause != "":
		r.pause(d.Pause)
		return false
	case len(d.Start) == 0 && !d.End:
		return false
	case r.roster.stale():
		r.roster.look()
		return false
	case d.End:
		return r.flights.none()
	}
	for _, i := range d.Start[:min(len(d.Start), r.flights.room())] {
		r.flights.begin(i)
	}
	return false
}

// waitsFor keeps what a decision waits for, and tells of it where somebody has to act.
func (r *rolling) waitsFor(d rollout.Decision) {
	r.state.WaitingFor, r.state.Until = d.Waits, d.Until
	if d.WaitsForApproval && !r.state.AskedApproval {
		r.state.AskedApproval = true
		r.news.tell(notices.PlanCanaryWaits, "the canary is done: approve, or cancel")
	}
}

// pause begins nothing more until somebody resumes the plan.
func (r *rolling) pause(why string) {
	r.state.Progress.Paused = true
	r.enter(api.PlanPaused, why)
	r.news.tell(notices.PlanPaused, why)
}

func (r *rolling) end() (api.PlanPhase, string) {
	counts := rollout.Count(r.state.Nodes)
	switch {
	case r.state.Stop != "":
		return r.state.Stop, r.state.StoppedWhy
	case counts.Total == 0 && len(r.spec.Nodes) > 0:
		return api.PlanIncomplete, "none of its nodes exists"
	case counts.Total == 0:
		return api.PlanCompleted, "no node matches it"
	case counts.Failures() > 0:
		return api.PlanIncomplete, fmt.Sprintf("%d of %d nodes failed", counts.Failures(), counts.Total)
	default:
		return api.PlanCompleted, ""
	}
}

// copied finds out which maintenances an earlier run had begun: none of its nodes is begun twice.
func (r *rolling) copied(ctx workflow.Context) error {
	var begun api.List[string]
	err := workflow.ExecuteActivity(call.Quick(ctx, "find the maintenances that were begun"), call.Plans.FindBegun, r.state.CreatedAt).Get(ctx, &begun)
	if err != nil {
		return err
	}
	r.roster.begun = map[string]bool{}
	for _, id := range begun {
		if _, node, _, err := api.ParseMaintenanceID(id); err == nil && id == r.flights.maintenanceID(node) {
			r.roster.begun[node] = true
		}
	}
	r.roster.takeUpBegun()
	return nil
}
