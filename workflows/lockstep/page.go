package lockstep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/views"
	"drydock.dev/drydock/workflows/controller"
)

// pageSize, maxPageSize and maxPageText bound a page of the state, in nodes and about in bytes; heldPage one of what is held.
const (
	pageSize    = 100
	maxPageSize = 1000
	maxPageText = 512 << 10
	heldPage    = 5000
)

var queries = []controller.Query[*lockstep]{
	{Name: api.QueryState, Doc: "the plans, and a page of the nodes with how far each is drained", Question: stateQuestion{}},
	{Name: api.QueryHeld, Doc: "a page of the maintenances and plans that are counted on", Question: heldQuestion{}},
}

type stateQuestion struct{ api.LockstepRequest }

func (q stateQuestion) Answer(l *lockstep, now time.Time) (any, error) {
	return l.page(q.LockstepRequest, now)
}

type heldQuestion struct{ api.HeldRequest }

func (q heldQuestion) Answer(l *lockstep, _ time.Time) (any, error) {
	return l.Inventory.heldPage(q.HeldRequest), nil
}

func (l *lockstep) page(asked api.LockstepRequest, now time.Time) (api.LockstepState, error) {
	v := &l.Inventory
	state := api.LockstepState{
		Plans: []api.LockstepPlan{}, NodesAll: len(v.nodes), Nodes: []api.LockstepNode{}, Troubles: l.Troubles(), Notes: l.Notes,
	}
	if !l.Known || now.Before(l.Until) {
		state.Rebuilding = l.waitsFor()
	}
	found := asked.Plan == ""
	for _, p := range v.plans {
		found = found || p.Name == asked.Plan
		state.Plans = append(state.Plans, api.LockstepPlan{
			Name: p.Name, RunID: p.RunID, CreatedAt: p.CreatedAt, Revision: p.Revision, Stage: p.Stage, Tier: p.Tier, Tiers: p.tiers.Len(),
			Nodes: len(p.Nodes), Left: len(p.Left), Forwarded: p.Forwarded,
		})
	}
	if !found {
		return state, fmt.Errorf("plan: there is no plan %.60q in lockstep", asked.Plan)
	}
	limit, at, size := min(cmp.Or(max(asked.Limit, 0), pageSize), maxPageSize), 0, 0
	for _, n := range v.nodes {
		if !n.isWanted() && n.Stand != ending {
			state.Unwanted++
		}
		if asked.Plan != "" && !slices.Contains(n.group.names, asked.Plan) {
			continue
		}
		if at++; at <= asked.Offset || state.NextOffset > 0 {
			continue
		}
		if len(state.Nodes) == limit || size > maxPageText {
			state.NextOffset = at - 1
			continue
		}
		one := api.LockstepNode{
			Node: n.name, RunID: n.Run, State: n.state(), Phase: n.progress.Phase, Revision: n.target.Revision, Targets: n.target.Targets,
			Drained: n.Drained, Gang: n.gang, Plans: n.group.names, Message: cmp.Or(n.progress.Waiting, n.target.Waits),
		}
		state.Nodes = append(state.Nodes, one)
		size += nodeBytes + drainplan.Size(one.Targets) + len(one.Message) + len(one.Plans)*len(one.Node)
	}
	return state, nil
}

// heldPage is a page of the nodes and plans that the workflow counts on, for the watch that checks whether they run.
func (v *inventory) heldPage(asked api.HeldRequest) api.LockstepHeld {
	held := api.LockstepHeld{Nodes: []api.HeldNode{}}
	if asked.Offset == 0 {
		for _, p := range v.plans {
			held.Plans = append(held.Plans, api.HeldPlan{Name: p.Name, RunID: p.RunID})
		}
		held.Plans = append(held.Plans, v.silent...)
	}
	running := slices.DeleteFunc(slices.Clone(v.nodes), func(n *node) bool { return !n.runs() })
	running = running[min(max(asked.Offset, 0), len(running)):]
	if len(running) > heldPage {
		running, held.NextOffset = running[:heldPage], max(asked.Offset, 0)+heldPage
	}
	for _, n := range running {
		held.Nodes = append(held.Nodes, api.HeldNode{Node: n.name, RunID: n.Run})
	}
	return held
}

func (l *lockstep) Page(now time.Time) controller.Page {
	state, _ := l.page(api.LockstepRequest{Limit: 1}, now) // fails for a plan that there is not
	return controller.Page{Details: l.Details(views.Lockstep(state, l.Inventory.summary(), views.Brief()))}
}

func (v *inventory) summary() string {
	counts, order := map[string]int{}, []string{"to be begun", "being begun", "asked how far it is", "held", "being given back"}
	for _, n := range v.nodes {
		counts[n.state()]++
	}
	var parts []string
	for _, state := range order {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	text := number.Of(len(v.plans), "plan") + ", " + number.Of(len(v.nodes), "node")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}
