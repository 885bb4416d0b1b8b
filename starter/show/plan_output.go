package show

import (
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/views"
)

// PlanSummary is a plan for programs, as far as it is known. What a maintenance has too has the same name here.
type PlanSummary struct {
	Name string `json:"name"`
	// Phase is absent where no worker has said what it is.
	Phase api.PlanPhase `json:"phase,omitempty"`
	// Since is when it came into its phase.
	Since *time.Time `json:"since,omitempty"`
	// WaitingFor says in words what keeps further nodes from being begun, and Until when that is over, where it is known.
	WaitingFor string     `json:"waitingFor,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
	// Message is why it paused, or what its end has to say for itself.
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Ticket  string `json:"ticket,omitempty"`
	// Counts are the nodes by their states; absent where no worker has said so.
	Counts     *plan.Counts `json:"counts,omitempty"`
	WorkflowID string       `json:"workflowId"`
	// RunID is the first run of its chain, where a worker has said so, and else the present one.
	RunID     string     `json:"runId"`
	CreatedAt time.Time  `json:"createdAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	// Unanswered is the error that kept the phase from being read.
	Unanswered string `json:"unanswered,omitempty"`
}

// PlanSummaryOf is a plan for programs.
func PlanSummaryOf(v client.PlanView, workflowID string) PlanSummary {
	s := PlanSummary{Name: v.Name, Phase: v.Phase(), Message: v.Message(), WorkflowID: workflowID, RunID: v.RunID, CreatedAt: v.Started}
	if v.Unanswered != nil && v.Running() {
		s.Unanswered = v.Unanswered.Error()
	}
	if r := v.Result; r != nil {
		s.Counts, s.CreatedAt, s.RunID = &r.Counts, r.CreatedAt, r.RunID
	}
	if p := v.Status; p != nil {
		s.Since, s.WaitingFor, s.Until, s.Counts = &p.Since, p.WaitingFor, p.Until, &p.Counts
		s.Reason, s.Ticket, s.RunID, s.CreatedAt = p.Plan.Reason, p.Plan.Ticket, p.RunID, p.CreatedAt
	}
	if !v.Running() {
		ended := v.Ended
		if v.Result != nil && !v.Result.EndedAt.IsZero() {
			ended = v.Result.EndedAt
		}
		s.Since, s.EndedAt, s.WaitingFor, s.Until = &ended, &ended, "", nil
	}
	return s
}

// Plans are several for programs.
type Plans []PlanSummary

// Names are those of the plans, each once.
func (p Plans) Names() []string {
	var names []string
	known := map[string]bool{}
	for _, one := range p {
		if !known[one.Name] {
			known[one.Name] = true
			names = append(names, one.Name)
		}
	}
	return names
}

// Plan is all that is known of a plan, for programs.
type Plan struct {
	PlanSummary
	// Spec is the plan's input with all defaults; MoreNames counts the names of nodes that it leaves out.
	Spec      *plan.Plan `json:"spec,omitempty"`
	MoreNames int        `json:"moreNames,omitempty"`
	// Starter is who started it, as far as it is known.
	Starter  *api.Sender `json:"starter,omitempty"`
	Warnings []string    `json:"warnings,omitempty"`
	// Nodes are those that were asked for: with something to say, of some states, or all. MoreNodes counts those of them
	// that are left out.
	Nodes     []api.PlanNode `json:"nodes"`
	MoreNodes int            `json:"moreNodes,omitempty"`
	// Slowest are the nodes that have been out of service for the longest, with the status of their maintenances.
	Slowest  []SlowNode      `json:"slowest,omitempty"`
	Messages []api.Received  `json:"messages,omitempty"`
	Events   []api.PlanEvent `json:"events,omitempty"`
	// Stages is how far a plan of strategy allAtOnce is; absent of others.
	Stages *api.PlanStages `json:"stages,omitempty"`
}

// SlowNode is a node of a plan that is not finished, and what is in its way.
type SlowNode struct {
	Node string `json:"node"`
	// Phase is that of its maintenance; absent where no worker has said what it is.
	Phase      api.Phase  `json:"phase,omitempty"`
	Since      *time.Time `json:"since,omitempty"`
	WaitingFor string     `json:"waitingFor,omitempty"`
	// Blockers are the first pods that its drain waits for; MoreBlockers counts the rest.
	Blockers     []api.Blocker `json:"blockers,omitempty"`
	MoreBlockers int           `json:"moreBlockers,omitempty"`
	// progress says in a line where it is.
	progress string
}

// SlowNodeOf is what the maintenance of a node says of itself.
func SlowNodeOf(v client.View) SlowNode {
	s := SlowNode{Node: v.Node, Phase: v.Phase(), progress: views.Progress(v.Known())}
	if v.Status == nil {
		return s
	}
	s.Since, s.WaitingFor = &v.Status.Since, v.Status.WaitingFor
	if d := v.Status.Drain; d != nil {
		s.Blockers, s.MoreBlockers = d.Blockers, d.MoreBlockers
	}
	return s
}

// PlanOf is a plan with the nodes to be shown and what the slowest of them say.
func PlanOf(v client.PlanView, workflowID string, nodes []api.PlanNode, more int, slowest []SlowNode) Plan {
	p := Plan{PlanSummary: PlanSummaryOf(v, workflowID), Nodes: nodes, MoreNodes: more, Slowest: slowest}
	if s := v.Status; s != nil {
		p.Spec, p.MoreNames, p.Starter = &s.Plan, s.MoreNames, s.Starter
		p.Warnings, p.Messages, p.Events, p.Stages = s.Warnings, s.Messages, s.Events, s.Stages
		for _, t := range s.Troubles {
			p.Warnings = append(p.Warnings, t.String())
		}
	}
	return p
}
