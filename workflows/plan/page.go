package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/views"
	"drydock.dev/drydock/workflows/controller"
)

// pageSize, maxPageSize and maxPageText bound a page of the status, in nodes and in bytes; maxNames bounds the names of
// the plan's input in it, and the others what all of an input, of the events and of the messages may take.
const (
	pageSize        = 100
	maxPageSize     = 1000
	maxPageText     = 64 << 10
	maxNames        = 100
	maxPlanText     = 48 << 10
	maxEventText    = 32 << 10
	maxMessageText  = 24 << 10
	maxSelectorText = 4 << 10
)

type status struct{ api.PlanStatusRequest }

func (q status) Answer(p *maintenancePlan, _ time.Time) (any, error) {
	return p.page(q.PlanStatusRequest)
}

func (p *maintenancePlan) page(asked api.PlanStatusRequest) (api.PlanStatus, error) {
	status := api.PlanStatus{
		Name: p.name, WorkflowID: p.Info.WorkflowID, RunID: p.Info.Run, Phase: p.Phase, Since: p.Since, CreatedAt: p.CreatedAt,
		WaitingFor: p.WaitingFor, Failure: p.Failure, Counts: plan.Count(p.Nodes), Moves: p.Moves, Warnings: p.Warnings, Troubles: p.Troubles(),
		Nodes: []api.PlanNode{}, Events: latest(p.Events, maxEventText), Messages: latest(p.Messages, maxMessageText),
	}
	if p.Prepared != nil {
		status.Starter = p.Prepared.Starter
	}
	shown := p.spec
	shown.Selection, shown.Strategy.MaxParallel = p.selection(), p.Progress.Pace(p.spec.Strategy)
	status.Plan, status.MoreNames = shortened(shown)
	if s := p.Staged; s != nil {
		status.Stages = &api.PlanStages{
			Stage: s.Stage, Begun: slices.Clone(s.Begun), Tiers: p.tiers.Entries(), Tier: s.Tier, Drained: s.Drained,
			Nodes: counted(p.Nodes), Revision: s.Revision, Answered: s.Answered,
		}
	}
	if until := p.Until; !until.IsZero() {
		status.Until = &until
	}
	for i := range asked.States {
		if !slices.Contains(states, asked.States[i]) {
			return api.PlanStatus{}, fmt.Errorf("states[%d]: %q is not one of %s", i, asked.States[i], strings.Join(states, ", "))
		}
	}
	order := slices.DeleteFunc(p.notable(), func(i int) bool {
		return len(asked.States) > 0 && !slices.Contains(asked.States, p.Nodes[i].State.Word())
	})
	limit, size := min(cmp.Or(max(asked.Limit, 0), pageSize), maxPageSize), 0
	for at := max(asked.Offset, 0); at < len(order); at++ {
		if len(status.Nodes) == limit || size > maxPageText {
			status.NextOffset = at
			break
		}
		one := p.nodeOf(&p.Nodes[order[at]])
		status.Nodes = append(status.Nodes, one)
		size += sizeIn(one)
	}
	if asked.Cells {
		cells := make([]byte, len(p.Nodes))
		for i := range p.Nodes {
			cells[i] = api.CellOf(p.Nodes[i].State)
		}
		status.Cells = string(cells)
	}
	return status, nil
}

// states are the words for the states of nodes.
var states = []string{
	plan.Waiting.Word(), plan.Running.Word(), plan.Held.Word(), plan.Done.Word(),
	plan.Failed.Word(), plan.Skipped.Word(), plan.Gone.Word(),
}

// ranks put the states with something to say first. Rank 3 has the nodes that are drained, and those that come back later.
var ranks = map[plan.State]int{plan.Held: 0, plan.Running: 1, plan.Failed: 2, plan.Skipped: 4, plan.Waiting: 5, plan.Done: 6, plan.Gone: 6}

// notable are the places of the nodes by their ranks.
func (p *maintenancePlan) notable() []int {
	var byRank [7][]int
	for i := range p.Nodes {
		n := &p.Nodes[i]
		rank, known := ranks[n.State]
		if !known {
			rank = 6
		}
		if n.State == plan.Running && n.Standing != nil && n.Standing.Drained || n.State == plan.Waiting && n.NotBefore > 0 {
			rank = 3
		}
		byRank[rank] = append(byRank[rank], i)
	}
	return slices.Concat(byRank[:]...)
}

func (p *maintenancePlan) nodeOf(n *plan.Node) api.PlanNode {
	node := api.PlanNode{Node: n.Name, State: n.State.Word(), Zone: n.Zone, Tries: n.Tries, RunID: n.RunID, Note: n.Note}
	if n.Since > 0 {
		node.Since = time.Unix(n.Since, 0).UTC()
	}
	if n.NotBefore > 0 {
		node.NotBefore = time.Unix(n.NotBefore, 0).UTC()
	}
	if st := n.Standing; st != nil && p.Staged != nil {
		node.Drain = &api.NodeDrain{
			Phase: api.Phase(st.Phase), Targets: p.Staged.targets(st.Targets), Pending: st.Pending, Evacuating: st.Evacuating, Drained: st.Drained,
		}
	}
	if p.Staged != nil && n.Note == drainplan.Waiting {
		node.Note = cmp.Or(p.Staged.WaitsFor, n.Note) // the same for all that wait
	}
	return node
}

// shortened is a plan as its status shows it: without most of very many names.
func shortened(p plan.Plan) (plan.Plan, int) {
	more := max(len(p.Nodes)-maxNames, 0) + max(len(p.Exclude)-maxNames, 0)
	p.Nodes = p.Nodes[:min(len(p.Nodes), maxNames)]
	p.Exclude = p.Exclude[:min(len(p.Exclude), maxNames)]
	p.Selector = bounds.Cut(p.Selector, maxSelectorText)
	p.Windows = p.Windows[:min(len(p.Windows), maxNames)]
	if p.Notify != nil {
		p.Notify = new((*p.Notify)[:min(len(*p.Notify), maxNames)])
	}
	// What is longest is the least that is needed to understand the rest.
	if sizeIn(p) > maxPlanText {
		p.Maintenance = json.RawMessage(`{"leftOut": "too long: see the input in the history"}`)
	}
	if sizeIn(p) > maxPlanText {
		p.NodeSelector = &corev1.NodeSelector{}
	}
	return p, more
}

func sizeIn(value any) int {
	text, _ := json.Marshal(value) // it was read from JSON, or is made of texts and numbers
	return len(text)
}

// latest are the last entries that fit into so many bytes.
func latest[T any](all []T, most int) []T {
	from := len(all)
	for size := 0; from > 0; from-- {
		if size += sizeIn(all[from-1]) + 1; size > most {
			break
		}
	}
	return all[from:]
}

func (p *maintenancePlan) summary() string {
	if p.Staged != nil {
		return p.stagedSummary()
	}
	counts := plan.Count(p.Nodes)
	text := fmt.Sprintf("%d of %d nodes are done", counts.Done, counts.Total)
	for _, part := range []struct {
		n    int
		what string
	}{{counts.Failures(), "failed"}, {counts.Running, "running"}, {counts.Waiting, "waiting"}, {counts.Skipped, "skipped"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return text + prefixed(": ", p.Failure)
}

// attributes are the search attributes of the plan, none where the namespace has none.
func (p *maintenancePlan) attributes() map[string]string {
	if p.Prepared == nil || !p.Prepared.SearchAttributes {
		return nil
	}
	attributes := map[string]string{
		api.AttributeRequestor.GetName(): p.spec.Requestor, api.AttributeCluster.GetName(): p.Info.Cluster,
		api.AttributePhase.GetName(): string(p.Phase),
	}
	if p.Prepared.Kinds {
		attributes[api.AttributeKind.GetName()] = api.KindPlan
	}
	return attributes
}

func (p *maintenancePlan) Page(time.Time) controller.Page {
	status, _ := p.page(api.PlanStatusRequest{}) // fails for states that there are not
	return controller.Page{
		Details: p.Details(views.Plan(api.PlanOf(status), views.Brief())), Attributes: p.attributes(), Object: p.spec.Object, Shows: p.shows(),
	}
}

// shows is what the object that asked for the plan shows of it, without texts.
func (p *maintenancePlan) shows() any {
	all := []any{p.Phase, plan.Count(p.Nodes), p.WaitingFor != "", p.Invalid != ""}
	if n := len(p.Events); n > 0 {
		all = append(all, p.Events[n-1].Sequence)
	}
	if s := p.Staged; s != nil {
		all = append(all, s.Stage, s.Tier, s.Drained.Status, s.Answered < s.Revision, counted(p.Nodes))
	}
	return all
}
