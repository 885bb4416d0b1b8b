package lockstep

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/markdown"
	"drydock/rules/number"
	"drydock/workflows/details"
	"drydock/workflows/inbox"
)

// pageSize, maxPageSize and maxPageText bound a page of the state, in nodes and about in bytes; heldPage one of what is held.
const (
	pageSize    = 100
	maxPageSize = 1000
	maxPageText = 512 << 10
	heldPage    = 5000
	// shownPlans is how many the details show.
	shownPlans = 20
)

// answer takes queries.
func (l *lockstep) answer() error {
	state := func(raw converter.RawValue) (api.LockstepState, error) {
		asked, err := inbox.Decode[api.LockstepRequest](inbox.Payload(raw))
		if err != nil {
			return api.LockstepState{}, err
		}
		return l.page(asked)
	}
	held := func(raw converter.RawValue) (api.LockstepHeld, error) {
		asked, err := inbox.Decode[api.HeldRequest](inbox.Payload(raw))
		if err != nil {
			return api.LockstepHeld{}, err
		}
		return l.heldPage(asked), nil
	}
	return errors.Join(
		workflow.SetQueryHandlerWithOptions(l.ctx, api.QueryState, state,
			workflow.QueryHandlerOptions{Description: "the plans, and a page of the nodes with how far each is drained"}),
		workflow.SetQueryHandlerWithOptions(l.ctx, api.QueryHeld, held,
			workflow.QueryHandlerOptions{Description: "a page of the maintenances and plans that are counted on"}),
	)
}

func (l *lockstep) page(asked api.LockstepRequest) (api.LockstepState, error) {
	state := api.LockstepState{
		Rebuilding: l.stock.pending(), Plans: []api.LockstepPlan{}, NodesAll: len(l.book.nodes), Nodes: []api.LockstepNode{}, Notes: l.notes,
	}
	found := asked.Plan == ""
	for _, p := range l.book.plans {
		found = found || p.Name == asked.Plan
		state.Plans = append(state.Plans, api.LockstepPlan{
			Name: p.Name, RunID: p.RunID, CreatedAt: p.CreatedAt, Revision: p.Revision, Stage: p.Stage, Tier: p.tier, Tiers: p.tiers.Len(),
			Nodes: len(p.Nodes), Left: len(p.left), Forwarded: p.forwarded,
		})
	}
	if !found {
		return state, fmt.Errorf("plan: there is no plan %.60q in lockstep", asked.Plan)
	}
	if asked.Limit <= 0 {
		asked.Limit = pageSize
	}
	limit, at, size := min(asked.Limit, maxPageSize), 0, 0
	for _, n := range l.book.nodes {
		if len(n.holders) == 0 && n.stand != ending {
			state.Unwanted++
		}
		if asked.Plan != "" && !names(n, asked.Plan) {
			continue
		}
		if at++; at <= asked.Offset || state.NextOffset > 0 {
			continue
		}
		if len(state.Nodes) == limit || size > maxPageText {
			state.NextOffset = at - 1
			continue
		}
		one := stateOf(n)
		state.Nodes = append(state.Nodes, one)
		size += sizeOf(one.Targets) + len(one.Message) + len(one.Plans)*len(one.Node)
	}
	return state, nil
}

func names(n *node, plan string) bool {
	for _, p := range n.holders {
		if p.Name == plan {
			return true
		}
	}
	return false
}

func stateOf(n *node) api.LockstepNode {
	one := api.LockstepNode{
		Node: n.name, RunID: n.run, State: n.stand.String(), Phase: n.said.Phase, Revision: n.sent.Revision, Targets: n.sent.Targets,
		Drained: n.drained, Gang: n.gang, Message: n.sent.Waits,
	}
	if n.said.Waiting != "" {
		one.Message = n.said.Waiting
	}
	for _, p := range n.holders {
		one.Plans = append(one.Plans, p.Name)
	}
	return one
}

// heldPage tells what is counted on, for whoever looks whether it runs.
func (l *lockstep) heldPage(asked api.HeldRequest) api.LockstepHeld {
	held := api.LockstepHeld{Nodes: []api.HeldNode{}}
	if asked.Offset == 0 {
		for _, p := range l.book.plans {
			held.Plans = append(held.Plans, api.HeldPlan{Name: p.Name, RunID: p.RunID})
		}
		for _, name := range sortedKeys(l.book.silent) {
			held.Plans = append(held.Plans, api.HeldPlan{Name: name, RunID: l.book.silent[name]})
		}
	}
	at := 0
	for _, n := range l.book.nodes {
		if !n.runs() {
			continue
		}
		if at++; at <= asked.Offset {
			continue
		}
		if len(held.Nodes) == heldPage {
			held.NextOffset = at - 1
			break
		}
		held.Nodes = append(held.Nodes, api.HeldNode{Node: n.name, RunID: n.run})
	}
	return held
}

// describe shows the lockstep in the Temporal UI.
func (l *lockstep) describe() {
	var text strings.Builder
	text.WriteString(markdown.Text(l.summary()))
	if waits := l.stock.pending(); waits != "" {
		fmt.Fprintf(&text, "\n\n%s", markdown.Text(waits))
	}
	if len(l.book.plans) > 0 {
		text.WriteString("\n")
	}
	for _, p := range l.book.plans[:min(len(l.book.plans), shownPlans)] {
		fmt.Fprintf(&text, "\n- plan %s: %s", markdown.Text(p.Name), p.Stage)
		if p.Stage == api.StageDrain {
			fmt.Fprintf(&text, ", tier %d of %d", min(p.tier+1, p.tiers.Len()), p.tiers.Len())
		}
		fmt.Fprintf(&text, ", %s", number.Of(len(p.Nodes), "node"))
		if len(p.left) > 0 {
			fmt.Fprintf(&text, ", %d left", len(p.left))
		}
	}
	if more := len(l.book.plans) - shownPlans; more > 0 {
		fmt.Fprintf(&text, "\n- and %d more", more)
	}
	text.WriteString(details.Notes(l.notes))
	workflow.SetCurrentDetails(l.ctx, text.String())
}
