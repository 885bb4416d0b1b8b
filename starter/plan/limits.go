package plan

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// limitsWithin bounds the question for the limits in force.
const limitsWithin = 5 * time.Second

// limitsAhead are the limits in force, for nodes with these labels, which are nil if they are not known.
func limitsAhead(ctx context.Context, scheduler *client.Scheduler, labels map[string]map[string]string) (schedule.Ahead, error) {
	state, err := limitsInForce(ctx, scheduler)
	if err != nil {
		return schedule.Ahead{}, err
	}
	return lookAhead(state, labels)
}

func limitsInForce(ctx context.Context, scheduler *client.Scheduler) (api.State, error) {
	asking, cancel := context.WithTimeout(ctx, limitsWithin)
	defer cancel()
	return scheduler.State(asking, 1)
}

func lookAhead(state api.State, labels map[string]map[string]string) (schedule.Ahead, error) {
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

// allowed are the waves as the limits let them go. It is false if a limit lets no node of one go.
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

// aheadOfStatus says of a plan that runs which limits of the cluster it is larger than, as far as that is known. What cannot be found out
// is left out: the plan's own status is what was asked for.
func aheadOfStatus(ctx context.Context, a *invocation.App, c *invocation.Connection, p *client.Plan, status *api.PlanStatus) []string {
	if status == nil || status.Phase.Ended() {
		return nil
	}
	state, err := limitsInForce(ctx, c.Scheduler())
	if err != nil {
		return nil
	}
	left, together := status.Counts.Waiting+status.Counts.Running+status.Counts.Held, status.Counts.Total
	if !status.Plan.Together() {
		together = status.Plan.Strategy.MaxParallel.Of(status.Counts.Total)
	}
	groups, labels := [][]string{make([]string, min(left, together))}, map[string]map[string]string(nil)
	if len(state.Limits.Groups) > 0 && together > 0 {
		if nodes, of, err := stillToGo(ctx, a, p, status.Plan.Strategy.Order); err == nil {
			groups, labels = slices.Collect(slices.Chunk(nodes, together)), of
		}
	}
	ahead, err := lookAhead(state, labels)
	if err != nil {
		return nil
	}
	return short(status.Plan, ahead, groups)
}

// labelsWithin bounds the questions for the nodes of a plan that are left, and for the labels of nodes, by which groups choose them.
const labelsWithin = 3 * time.Second

var errOtherCluster = errors.New("none of the plan's nodes is in the Kubernetes cluster that was asked")

// stillToGo are the nodes of a plan that are not over, in their order, and the labels of all nodes of the cluster.
func stillToGo(ctx context.Context, a *invocation.App, p *client.Plan, order string) (left []string, labels map[string]map[string]string, err error) {
	k, err := a.Nodes(labelsWithin)
	if err != nil {
		return nil, nil, err
	}
	asking, cancel := context.WithTimeout(ctx, labelsWithin)
	defer cancel()
	all, err := k.List(asking, "")
	if err != nil {
		return nil, nil, err
	}
	labels = make(map[string]map[string]string, len(all))
	for _, n := range all {
		labels[n.Name] = n.Labels
	}
	listed, err := p.AllNodesIn(asking, []string{plan.Waiting.Word(), plan.Running.Word(), plan.Held.Word()})
	if err != nil {
		return nil, nil, err
	}
	nodes := make([]plan.Node, len(listed.Nodes))
	for i, n := range listed.Nodes {
		nodes[i].Facts = plan.Facts{Name: n.Node, Zone: labels[n.Node][corev1.LabelTopologyZone]}
	}
	plan.Sort(order, nodes)
	known := false
	for _, n := range nodes {
		_, there := labels[n.Name]
		known = known || there
		left = append(left, n.Name)
	}
	if !known {
		return nil, nil, errOtherCluster
	}
	return left, labels, nil
}
