package starter

import (
	"context"
	"fmt"
	"slices"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

// earlier is what the plan that a rollout goes on with has left behind.
type earlier struct {
	done map[string]bool
	// busy are the nodes whose maintenances go on, as where one waits for somebody's decision: they are left out.
	busy []api.NodeOutcome
}

func (e earlier) leavesOut(node string) bool {
	return e.done[node] || slices.ContainsFunc(e.busy, func(b api.NodeOutcome) bool { return b.Node == node })
}

// resumed is what the plan to go on with has left behind, and the nodes: where none are named all others of its.
func (o *rolloutOptions) resumed(ctx context.Context, c *invocation.Connection, names []string) (before earlier, left []string, err error) {
	if o.resume == "" {
		return before, names, nil
	}
	status, err := client.PlanOf(c.Client, o.resume).AllNodes(ctx)
	if err != nil {
		return before, nil, exit.Hint(c.Explain(err), "Nothing was started.")
	}
	if !status.Phase.Ended() {
		return before, nil, exit.Hint(fmt.Errorf("plan %s has not ended: it is %s", o.resume, status.Phase),
			"Go on with it by \"%s plan attach %s -- COMMAND\", or cancel it.", o.app.Name, o.resume)
	}
	before.done = map[string]bool{}
	for _, n := range status.Nodes {
		switch plan.State(n.State) {
		case plan.Done:
			before.done[n.Node] = true
		case plan.Gone:
		case plan.Held, plan.Running:
			m, found, err := c.Latest(ctx, n.Node, status.Plan.Requestor)
			if err != nil {
				return before, nil, c.Explain(err)
			}
			if found && m.Running() {
				before.busy = append(before.busy, api.NodeOutcome{Node: n.Node, Result: api.OutcomeSkipped, Note: fmt.Sprintf(
					"its maintenance goes on: \"%s status %s\"; resume again once it has ended", o.app.Name, n.Node)})
				continue
			}
			left = append(left, n.Node)
		default:
			left = append(left, n.Node)
		}
	}
	fmt.Fprintf(o.app.Stderr, "Plan %s has done %s; left out here.\n", o.resume, number.Of(len(before.done), "node"))
	if len(names) > 0 || o.selector != "" || o.all {
		left = names
	}
	return before, left, nil
}
