package api

import (
	"encoding/json"
	"time"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/schedule"
)

// PlanPhase is where a maintenance plan is.
type PlanPhase string

// The phases of a plan, and its ends.
const (
	PlanRunning PlanPhase = "Running"
	PlanPaused  PlanPhase = "Paused"

	PlanCompleted PlanPhase = "Completed"
	// PlanIncomplete: it has ended, and some nodes failed.
	PlanIncomplete PlanPhase = "Incomplete"
	PlanCancelled  PlanPhase = "Cancelled"
	// PlanAborted: a node was blocked, and its strategy says to end with that.
	PlanAborted PlanPhase = "Aborted"
	// PlanFailed is how lists and statuses have one that ended without a word of its own: refused, terminated, or failed.
	PlanFailed PlanPhase = "Failed"
)

// Ended reports whether the phase is an end.
func (p PlanPhase) Ended() bool {
	return p == PlanCompleted || p == PlanIncomplete || p == PlanCancelled || p == PlanAborted
}

// SetPace has a plan work on so many nodes at a time from now on, a number or a percentage of its nodes as in
// strategy.maxParallel. Nodes that are worked on stay so where they are more.
type SetPace struct {
	Message
	MaxParallel schedule.Amount `json:"maxParallel"`
	Run         string          `json:"run,omitempty"`
}

// SetStage has a plan go on to a stage.
type SetStage struct {
	Message
	Stage Stage  `json:"stage"`
	Run   string `json:"run,omitempty"`
}

// SetSelector has a plan choose its nodes otherwise from now on. Those that it holds stay until it is completed.
type SetSelector struct {
	Message
	plan.Selection
	Run string `json:"run,omitempty"`
}

// SignalNodeNews is the signal of a maintenance to the plan that began it: that it waits for somebody's decision, or no
// longer, or that its node is back.
const SignalNodeNews = "node-news"

// NodeNews is the news of one of a plan's nodes. Held: its maintenance waits for somebody's decision, and Why. Back: the
// node is validated and in service again, and the maintenance has only to end.
type NodeNews struct {
	Node  string `json:"node"`
	RunID string `json:"runId"`
	Held  bool   `json:"held,omitempty"`
	Why   string `json:"why,omitempty"`
	Back  bool   `json:"back,omitempty"`
}

// NodeOfPlan is the payload of skip, which leaves a node out, and of retry, which starts a failed node again.
type NodeOfPlan struct {
	Message
	Node string `json:"node"`
	Run  string `json:"run,omitempty"`
}

// PlanStatusRequest selects a page of a plan's nodes: those with something to say first, then the others in the order of
// the plan. The zero value is the first page.
type PlanStatusRequest struct {
	Offset int `json:"offset,omitempty"`
	// Limit is how many at most; 0 is 100, and no page has more than 1000.
	Limit int `json:"limit,omitempty"`
	// States are the only ones that are listed; empty is all.
	States []string `json:"states,omitempty"`
	// Cells asks for PlanStatus.Cells.
	Cells bool `json:"cells,omitempty"`
}

// PlanStatus is the answer to the status query of a plan.
type PlanStatus struct {
	Name       string `json:"name"`
	WorkflowID string `json:"workflowId"`
	// RunID is the first run of the plan's chain.
	RunID string `json:"runId"`
	// Plan is its input with all defaults, and with the pace and the selection that messages have set since. Where it names very many
	// nodes, it has the first of them, and MoreNames counts the rest. A maintenance, and a nodeSelector, that would not fit are left out.
	Plan      plan.Plan `json:"spec"`
	MoreNames int       `json:"moreNames,omitempty"`
	Phase     PlanPhase `json:"phase"`
	Since     time.Time `json:"since"`
	CreatedAt time.Time `json:"createdAt"`
	Starter   *Sender   `json:"starter,omitempty"`
	// WaitingFor says in words what keeps further nodes from being begun, and Until when that is over, where it is known.
	WaitingFor string     `json:"waitingFor,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
	// Failure says why it paused or ended.
	Failure string      `json:"failure,omitempty"`
	Counts  plan.Counts `json:"counts"`
	// Moves counts the pods that its maintenances had moved; absent of a plan of strategy allAtOnce. Those that it has adopted tell by the
	// beginning of their own plan which pods are younger.
	Moves    record.PodMoves `json:"moves,omitzero"`
	Warnings []string        `json:"warnings,omitempty"`
	// Troubles are what fails and is tried again.
	Troubles []Trouble `json:"troubles,omitempty"`
	// Nodes are a page of them; NextOffset is where the next one begins, 0 after the last.
	Nodes      []PlanNode `json:"nodes"`
	NextOffset int        `json:"nextOffset,omitempty"`
	// Cells are the states of all nodes in the order of the plan, a letter each: see CellOf.
	Cells string `json:"cells,omitempty"`
	// Events are those of which channels are notified, Messages the latest that arrived, with what became of each.
	Events   []PlanEvent `json:"events,omitempty"`
	Messages []Received  `json:"messages,omitempty"`
	// Stages is how far a plan of strategy allAtOnce is; absent of others.
	Stages *PlanStages `json:"stages,omitempty"`
}

// PlanStages is how far a plan of strategy allAtOnce is (KEP-4212, NodeMaintenanceStatus).
type PlanStages struct {
	Stage Stage `json:"stage"`
	// Begun are the stages that have begun, in their order.
	Begun []StageBegun `json:"begun,omitempty"`
	// Tiers are those of its drain plan, the standard ones included; Tier is the one that the plan is at, counted from 0, and
	// their number where all nodes are drained.
	Tiers []drainplan.Entry `json:"tiers"`
	Tier  int               `json:"tier"`
	// Drained: the plan is in stage Drain, and none of the pods that it drains is left on its nodes.
	Drained Drained `json:"drained"`
	// Nodes counts the nodes of the plan by how far their drain is.
	Nodes DrainCounts `json:"nodes"`
	// Revision counts what the plan has told the lockstep of all plans, Answered is the latest of it that was answered.
	Revision int `json:"revision,omitempty"`
	Answered int `json:"answered,omitempty"`
}

// StageBegun is a stage that has begun (KEP-4212, StageStatus). By and Comment are those of the request.
type StageBegun struct {
	Stage   Stage     `json:"stage"`
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"`
	Comment string    `json:"comment,omitempty"`
}

// Drained is KEP-4212's condition of that name.
type Drained struct {
	Status bool `json:"status"`
	// Since is when it last changed.
	Since time.Time `json:"since,omitzero"`
	// Message says in words how far it is.
	Message string `json:"message,omitempty"`
}

// DrainCounts counts nodes that a plan holds: Cordoned those that are out of service, Drained those of them on which none of
// the targeted pods is left. Pending and Evacuating count the targeted pods of all of them.
type DrainCounts struct {
	Held       int `json:"held"`
	Cordoned   int `json:"cordoned"`
	Drained    int `json:"drained"`
	Pending    int `json:"pending"`
	Evacuating int `json:"evacuating"`
}

// PlanNode is a node of a plan in its status.
type PlanNode struct {
	Node      string    `json:"node"`
	State     string    `json:"state"`
	Since     time.Time `json:"since,omitzero"`
	Zone      string    `json:"zone,omitempty"`
	Tries     int       `json:"tries,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	RunID     string    `json:"runId,omitempty"`
	Note      string    `json:"note,omitempty"`
	// Drain is how far a node of a plan of strategy allAtOnce is, once its maintenance has begun; its message is the Note.
	Drain *NodeDrain `json:"drain,omitempty"`
}

// NodeDrain is how far the drain of a node is (KEP-4212, NodeMaintenanceNodeStatus).
type NodeDrain struct {
	// Phase is that of the node's maintenance.
	Phase   Phase             `json:"phase,omitempty"`
	Targets []drainplan.Entry `json:"targets,omitempty"`
	// Pending counts the targeted pods whose evacuation has not begun, Evacuating those that are being evacuated.
	Pending    int `json:"pending,omitempty"`
	Evacuating int `json:"evacuating,omitempty"`
	// Drained: none of the targeted pods is left.
	Drained bool `json:"drained,omitempty"`
}

// CellOf is the letter of a state in PlanStatus.Cells.
func CellOf(s plan.State) byte {
	switch s {
	case plan.Running:
		return 'r'
	case plan.Held:
		return 'h'
	case plan.Done:
		return 'd'
	case plan.Failed:
		return 'f'
	case plan.Skipped:
		return 's'
	case plan.Gone:
		return 'g'
	default:
		return 'w'
	}
}

// PlanEvent is something that happened to a plan.
type PlanEvent struct {
	Sequence int           `json:"sequence"`
	State    notices.State `json:"state"`
	At       time.Time     `json:"at"`
	Message  string        `json:"message,omitempty"`
}

// PlanResult is what a plan returns when it ends.
type PlanResult struct {
	Name       string      `json:"name"`
	WorkflowID string      `json:"workflowId"`
	RunID      string      `json:"runId"`
	Phase      PlanPhase   `json:"phase"`
	Message    string      `json:"message,omitempty"`
	CreatedAt  time.Time   `json:"createdAt"`
	EndedAt    time.Time   `json:"endedAt"`
	Counts     plan.Counts `json:"counts"`
	// Moves is as in PlanStatus.
	Moves record.PodMoves `json:"moves,omitzero"`
	// Failures are the nodes that failed, the first of them; MoreFailures counts the rest.
	Failures     []PlanNode `json:"failures,omitempty"`
	MoreFailures int        `json:"moreFailures,omitempty"`
}

// PlanRunInput is the input of a run of a recurring plan: the plan's name, and the input of the plan.
type PlanRunInput struct {
	Name string          `json:"name"`
	Plan json.RawMessage `json:"plan"`
}

// PlanRunResult is what a run of a recurring plan returns when it ends, with its plan.
type PlanRunResult struct {
	Name string `json:"name"`
	// WorkflowID is the plan's, RunID its first run.
	WorkflowID string    `json:"workflowId"`
	RunID      string    `json:"runId,omitempty"`
	Phase      PlanPhase `json:"phase,omitempty"`
	Message    string    `json:"message,omitempty"`
	// Skipped: a plan of that name ran already, which no run of the schedule had begun.
	Skipped bool `json:"skipped,omitempty"`
}

// ErrorPlanIncomplete is the type of the error that a plan ends with where nodes failed or were blocked.
const ErrorPlanIncomplete = "PlanIncomplete"

// RecordOfPlan is the audit record of a plan as its status knows it.
func RecordOfPlan(s PlanStatus, cluster string) record.Record {
	r := record.Record{
		Schema: record.Schema, WorkflowID: s.WorkflowID, RunID: s.RunID, Cluster: cluster, Requestor: s.Plan.Requestor,
		Reason: s.Plan.Reason, Ticket: s.Plan.Ticket, Owner: s.Plan.Owner, Phase: string(s.Phase), Failure: s.Failure,
		CreatedAt: s.CreatedAt, Plan: &record.Plan{
			Name: s.Name, Total: s.Counts.Total, Done: s.Counts.Done, Failed: s.Counts.Failures(), Skipped: s.Counts.Skipped,
			Untouched: s.Counts.Waiting, Moves: s.Moves,
		},
	}
	if r.Requestor == "" {
		r.Requestor = plan.RequestorOf(s.Name)
	}
	if s.Phase.Ended() {
		r.EndedAt = s.Since
	}
	r.Messages, r.Starter = messagesOf(s.Messages), senderOf(s.Starter)
	for _, n := range s.Nodes {
		if n.State == plan.Done.Word() || n.State == plan.Waiting.Word() {
			continue
		}
		if len(r.Plan.Nodes) == record.MaxPlanNodes {
			r.Plan.MoreNodes++
			continue
		}
		r.Plan.Nodes = append(r.Plan.Nodes, record.PlanNode{Node: n.Node, State: n.State, At: n.Since, Tries: n.Tries, Note: n.Note})
	}
	for _, e := range s.Events {
		r.Phases = append(r.Phases, record.Phase{Phase: string(e.State), At: e.At, Message: e.Message})
	}
	r.Specification = shown(s.Plan)
	return r.Bounded()
}
