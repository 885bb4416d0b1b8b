package api

import (
	"slices"
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/record"
)

// PlanSummary is a plan as lists have it, as far as it is known. What a maintenance has too has the same name here.
type PlanSummary struct {
	Name string `json:"name"`
	// Phase is absent if no worker has said what it is.
	Phase PlanPhase `json:"phase,omitempty"`
	// Since is when it came into its phase.
	Since *time.Time `json:"since,omitempty"`
	// WaitingFor says in words what keeps further nodes from being begun, and Until when that is over, where it is known.
	WaitingFor string     `json:"waitingFor,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
	// Message is why it paused, or what its end has to say for itself.
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Ticket  string `json:"ticket,omitempty"`
	// Counts are the nodes by their states; absent if no worker has said so.
	Counts *plan.Counts `json:"counts,omitempty"`
	Execution
}

// Plans are several plans.
type Plans []PlanSummary

// Names are those of the plans, each once.
func (p Plans) Names() []string {
	return namesOf(p, func(one PlanSummary) string { return one.Name })
}

// Plan is all that is known of a plan.
type Plan struct {
	PlanSummary
	// Spec is the plan's input with all defaults, and with the pace and the selection that messages have set since; Events say what the
	// pace was before. MoreNames counts the names of nodes that it leaves out.
	Spec      *plan.Plan `json:"spec,omitempty"`
	MoreNames int        `json:"moreNames,omitempty"`
	// Starter is who started it, as far as it is known.
	Starter  *Sender  `json:"starter,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Nodes are those that were asked for: with something to say, of some states, or all. MoreNodes counts those of them
	// that are left out.
	Nodes     []PlanNode `json:"nodes"`
	MoreNodes int        `json:"moreNodes,omitempty"`
	// Slowest are the nodes that have been out of service for the longest, with the status of their maintenances.
	Slowest  []SlowNode  `json:"slowest,omitempty"`
	Messages []Received  `json:"messages,omitempty"`
	Events   []PlanEvent `json:"events,omitempty"`
	// Stages is how far a plan of strategy allAtOnce is; absent of others.
	Stages *PlanStages `json:"stages,omitempty"`
	// Moves is as in PlanStatus.
	Moves record.PodMoves `json:"moves,omitzero"`
	// Pace is how fast it goes; absent where it is not asked for, or not known.
	Pace *plan.Pace `json:"pace,omitempty"`
}

// SlowNode is a node of a plan that is not finished, and what is in its way.
type SlowNode struct {
	Node string `json:"node"`
	// Phase is that of its maintenance; absent if no worker has said what it is.
	Phase      Phase      `json:"phase,omitempty"`
	Since      *time.Time `json:"since,omitempty"`
	WaitingFor string     `json:"waitingFor,omitempty"`
	// Progress says in a line where its maintenance is.
	Progress string `json:"progress,omitempty"`
	// Blockers are the first pods that its drain waits for; MoreBlockers counts the rest.
	Blockers     []Blocker `json:"blockers,omitempty"`
	MoreBlockers int       `json:"moreBlockers,omitempty"`
}

// PlanOf is a plan that runs, as its own answer has it, with those of the answer's nodes that have something to say.
func PlanOf(s PlanStatus) Plan {
	p := Plan{
		PlanSummary: PlanSummary{
			Name: s.Name, Phase: s.Phase, Since: &s.Since, WaitingFor: s.WaitingFor, Until: s.Until, Message: s.Failure,
			Reason: s.Plan.Reason, Ticket: s.Plan.Ticket, Counts: &s.Counts,
			Execution: Execution{WorkflowID: s.WorkflowID, RunID: s.RunID, CreatedAt: s.CreatedAt},
		},
		Spec: &s.Plan, MoreNames: s.MoreNames, Starter: s.Starter, Warnings: slices.Clone(s.Warnings),
		Messages: s.Messages, Events: s.Events, Stages: s.Stages, Moves: s.Moves,
	}
	for _, t := range s.Troubles {
		p.Warnings = append(p.Warnings, t.String())
	}
	p.Nodes, p.MoreNodes = s.notable()
	return p
}

// notable leaves out nodes that are over, and those that only wait for their turn. More counts those that are not on the page, but for
// nodes that come back later: the counts do not tell them from others that wait.
func (s PlanStatus) notable() (nodes []PlanNode, more int) {
	nodes = []PlanNode{}
	back := 0
	for _, n := range s.Nodes {
		switch n.State {
		case plan.Done.Word(), plan.Gone.Word():
		case plan.Waiting.Word():
			if !n.NotBefore.IsZero() {
				nodes = append(nodes, n)
				back++
			}
		default:
			nodes = append(nodes, n)
		}
	}
	if s.NextOffset > 0 && len(nodes) == len(s.Nodes) {
		more = max(0, s.Counts.Running+s.Counts.Held+s.Counts.Failed+s.Counts.Skipped-(len(nodes)-back))
	}
	return nodes, more
}

// PlanPreview is what a plan would do if it was started now, and none of its nodes failed.
type PlanPreview struct {
	Name string `json:"name"`
	// Spec is the plan's input with all defaults.
	Spec plan.Plan `json:"spec"`
	// Total counts the nodes that match now.
	Total int `json:"total"`
	// Waves are the nodes that go together, in the order in which they go: the canary first.
	Waves []PlanWave `json:"waves"`
	// Preflights are the reports of the first nodes of the order; NotLookedAt counts the others.
	Preflights  []preflight.Report `json:"preflights"`
	NotLookedAt int                `json:"notLookedAt,omitempty"`
	Warnings    []string           `json:"warnings,omitempty"`
	// Estimate is about how long it takes; absent if that is unknown, as NoEstimate says.
	Estimate   *PlanEstimate `json:"estimate,omitempty"`
	NoEstimate string        `json:"noEstimate,omitempty"`
}

// PlanWave is a part of a plan's nodes.
type PlanWave struct {
	Nodes []string `json:"nodes"`
	// Shared are budgets for which its nodes would wait for one another, as far as they were looked at.
	Shared []preflight.Shared `json:"shared,omitempty"`
}

// PlanEstimate is about how long a plan takes, without time for approval and for windows that are closed.
type PlanEstimate struct {
	Duration period.Duration `json:"duration"`
	// Each is the median of maintenances that completed, from the slot to the end, and Of how many there were.
	Each period.Duration `json:"each"`
	Of   int             `json:"of"`
	// Among says which these are: of the plan's requestor, on its nodes, or on any nodes, where there are none of the former.
	Among string `json:"among"`
}

// PlanSchedule is the schedule of a recurring plan.
type PlanSchedule struct {
	Name string `json:"name"`
	// Recurrence says when it runs; it has no fields where somebody else made a schedule of another form.
	Recurrence plan.Recurrence `json:"recurrence"`
	Paused     bool            `json:"paused"`
	// Note says who paused or resumed it last, and why.
	Note string `json:"note,omitempty"`
	// Next are the next times, at most ten; none while it is paused.
	Next []time.Time `json:"next"`
	// Runs are the last ones, at most ten, the oldest first.
	Runs []PlanScheduleRun `json:"runs"`
	// Overlapped counts the times that were skipped because a run went on, Missed those at which Temporal was away.
	Overlapped int `json:"overlapped"`
	Missed     int `json:"missed"`
	// Plan is the input of each run's plan; absent if it cannot be read, as where a codec has hidden it.
	Plan       *plan.Plan `json:"plan,omitempty"`
	ScheduleID string     `json:"scheduleId"`
	CreatedAt  time.Time  `json:"createdAt"`
}

// PlanScheduleRun is one run of a recurring plan.
type PlanScheduleRun struct {
	DueAt      time.Time `json:"dueAt"`
	StartedAt  time.Time `json:"startedAt"`
	WorkflowID string    `json:"workflowId"`
	Running    bool      `json:"running"`
	// Phase is the end of its plan, Failed where that ended without a word of its own; absent while it runs, and of a run
	// that was skipped.
	Phase PlanPhase `json:"phase,omitempty"`
	// Skipped: a plan of that name ran already, which no run of the schedule had begun.
	Skipped bool   `json:"skipped,omitempty"`
	Message string `json:"message,omitempty"`
}

// PlanScheduleSummary is the schedule of a recurring plan in a list of them.
type PlanScheduleSummary struct {
	Name string `json:"name"`
	// Recurrence says when it runs; it has no fields where somebody else made a schedule of another form.
	Recurrence plan.Recurrence `json:"recurrence"`
	Paused     bool            `json:"paused"`
	// Note says who paused or resumed it last, and why.
	Note string `json:"note,omitempty"`
	// NextAt is when it runs next; absent while it is paused, and where it never does.
	NextAt *time.Time `json:"nextAt,omitempty"`
	// LastStartedAt is when a run was last begun; absent if none was.
	LastStartedAt *time.Time `json:"lastStartedAt,omitempty"`
	ScheduleID    string     `json:"scheduleId"`
}

// PlanSchedules are the schedules of recurring plans.
type PlanSchedules []PlanScheduleSummary

// Names are those of the plans.
func (s PlanSchedules) Names() []string {
	return namesOf(s, func(one PlanScheduleSummary) string { return one.Name })
}
