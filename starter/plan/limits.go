package plan

import (
	"context"
	"slices"
	"time"

	"drydock/api"
	"drydock/client"
	"drydock/rules/plan"
	"drydock/rules/schedule"
	"drydock/starter/terminal"
)

// limitsWithin bounds the question for the limits in force.
const limitsWithin = 5 * time.Second

// limitsAhead are the limits in force, for nodes with these labels, which are nil where they are not known.
func limitsAhead(ctx context.Context, scheduler *client.Scheduler, labels map[string]map[string]string) (schedule.Ahead, error) {
	asking, cancel := context.WithTimeout(ctx, limitsWithin)
	defer cancel()
	state, err := scheduler.State(asking, 1)
	if err != nil {
		return schedule.Ahead{}, err
	}
	nodes := state.Nodes
	if labels != nil {
		nodes = len(labels)
	}
	return schedule.LookAhead(state.Limits.Limits, nodes, labels)
}

// short says which limits let fewer of a plan's nodes go at once than it wants.
func short(p plan.Plan, ahead schedule.Ahead, waves [][]string) []string {
	begins := "goes slower than it may"
	if p.Together() {
		begins = "does not begin"
	}
	var texts []string
	for _, s := range ahead.Short(p.Requestor, waves) {
		texts = append(texts, "the plan "+begins+": "+s.String())
	}
	return texts
}

// allowed are the waves as the limits let them go. It is false where a limit lets no node of one go.
func allowed(p plan.Plan, ahead schedule.Ahead, waves [][]string) ([][]string, bool) {
	if p.Together() {
		return waves, len(ahead.Short(p.Requestor, waves)) == 0
	}
	var all [][]string
	for _, wave := range waves {
		rounds := ahead.Rounds(p.Requestor, wave)
		if rounds == 0 {
			return nil, false
		}
		all = slices.AppendSeq(all, slices.Chunk(wave, (len(wave)+rounds-1)/rounds))
	}
	return all, true
}

// aheadOf says of a plan which limits it is larger than, as far as that is known.
func aheadOf(ctx context.Context, scheduler *client.Scheduler, p plan.Plan, chosen choice, now time.Time) []string {
	ahead, err := limitsAhead(ctx, scheduler, chosen.labels)
	if err != nil {
		return []string{"the limits in force are not known: " + terminal.OneLine(err.Error())}
	}
	return short(p, ahead, waves(p, chosen, now))
}

// aheadOfStatus says of a plan that runs which limits of the cluster it is larger than, as far as that is known.
func aheadOfStatus(ctx context.Context, scheduler *client.Scheduler, status *api.PlanStatus) []string {
	if status == nil || status.Phase.Ended() {
		return nil
	}
	left := status.Counts.Waiting + status.Counts.Running + status.Counts.Held
	if !status.Plan.Together() {
		left = min(left, status.Plan.Strategy.MaxParallel.Of(status.Counts.Total))
	}
	ahead, err := limitsAhead(ctx, scheduler, nil)
	if err != nil {
		return nil // the plan's own word is what was asked for
	}
	return short(status.Plan, ahead, [][]string{make([]string, left)})
}
