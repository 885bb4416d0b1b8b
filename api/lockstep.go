package api

import (
	"encoding/json"
	"time"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
)

// PlansRequestor is the requestor of the maintenances that all plans of strategy allAtOnce share: a node has one of them.
const PlansRequestor = spec.PlansRequestor

// Signals around the lockstep of plans. A plan sends the lockstep its intent, and gets its progress back. The lockstep sends each node's
// maintenance a target, up to which pods to drain, and gets that one's progress back.
const (
	SignalPlanIntent   = "plan-intent"
	SignalPlanProgress = "plan-progress"
	SignalTarget       = "target"
	SignalNodeProgress = "node-progress"
)

// PlanIntent is what a plan of strategy allAtOnce wants of its nodes from now on. It is repeated until it is answered.
type PlanIntent struct {
	Name string `json:"name"`
	// RunID is the first run of the plan's chain.
	RunID     string    `json:"runId"`
	CreatedAt time.Time `json:"createdAt"`
	// Revision counts the plan's intents: the latest counts.
	Revision int `json:"revision"`
	// Stage is Cordon, Drain or Complete; Idle is said by a plan that is asked, and holds nothing.
	Stage Stage `json:"stage"`
	// Tiers are its drain plan with the standard entries; they never change.
	Tiers []drainplan.Entry `json:"tiers,omitempty"`
	// Nodes are the names of its nodes, as many as a plan may have.
	Nodes []string `json:"nodes,omitempty"`
	// Maintenance is the input of its nodes' maintenances but node and requestor.
	Maintenance json.RawMessage `json:"maintenance,omitempty"`
}

// Stage is where a plan of strategy allAtOnce is (KEP-4212, NodeMaintenanceStage).
type Stage = plan.Stage

// The stages, in their order.
const (
	StageIdle     = plan.Idle
	StageCordon   = plan.Cordon
	StageDrain    = plan.Drain
	StageComplete = plan.Complete
)

// PlanProgress is how far a plan is: what changed since the progress before it, a part at a time.
type PlanProgress struct {
	RunID string `json:"runId"`
	// Revision is that of the intent that counts, or of the one that is Refused.
	Revision int `json:"revision"`
	// Refused says why the intent is not taken: its nodes are left as they were. A refused intent is forgotten: what could be
	// taken later has to be said again.
	Refused string `json:"refused,omitempty"`
	// Repeat asks the plan for its intent: the lockstep has begun anew, and decides nothing until it knows it. Nothing else is
	// said with it.
	Repeat bool `json:"repeat,omitempty"`
	// Tier is the one that the plan is at, len(Tiers) when all of its nodes are drained.
	Tier int `json:"tier,omitempty"`
	// Complete: none of its nodes is held on its behalf any more.
	Complete bool `json:"complete,omitempty"`
	// Forwarded says on which nodes older plans had gone further when this one began to drain them: the text of an event.
	Forwarded string `json:"forwarded,omitempty"`
	// WaitsFor is the message of the nodes whose Message is drainplan.Waiting: it names those that all of them wait for.
	WaitsFor string           `json:"waitsFor,omitempty"`
	Nodes    []SharedProgress `json:"nodes,omitempty"`
}

// SharedProgress is how a node of a plan stands (KEP-4212, NodeMaintenanceNodeStatus).
type SharedProgress struct {
	Node  string `json:"node"`
	RunID string `json:"runId,omitempty"`
	// Phase is that of the node's maintenance; empty before it has begun.
	Phase   Phase             `json:"phase,omitempty"`
	Targets []drainplan.Entry `json:"targets,omitempty"`
	Message string            `json:"message,omitempty"`
	// Pending counts the targeted pods whose evacuation has not begun, Evacuating those that are being evacuated.
	Pending    int  `json:"pending,omitempty"`
	Evacuating int  `json:"evacuating,omitempty"`
	Drained    bool `json:"drained,omitempty"`
	// Left: it is not held on this plan's behalf any more. If the plan has not completed, its maintenance has ended by
	// itself, Message says how, and Failed that it did not complete; it is begun anew for a plan that leaves it out of an intent
	// and names it in a later one.
	Left   bool `json:"left,omitempty"`
	Failed bool `json:"failed,omitempty"`
}

// NodeTarget is how far a shared maintenance goes.
type NodeTarget struct {
	// Run is the maintenance's first run; empty for whichever runs.
	Run string `json:"run,omitempty"`
	// Revision grows with every NodeTarget of a node's maintenance: the latest counts. One that only asks (Report, and nothing
	// else) has revision 0 and changes nothing.
	Revision int `json:"revision"`
	// Targets are the pods that are to leave by now; without any the node is cordoned and not drained.
	Targets []drainplan.Entry `json:"targets,omitempty"`
	// Waits says in words what comes next for a node that is drained to its targets.
	Waits string `json:"waits,omitempty"`
	// Last: nothing more is drained unless another plan comes; the requestor's time runs. Further: its plans drain it further
	// once other nodes are as far, so that until then it is Draining and not Ready. Of both, Last counts.
	Last    bool `json:"last,omitempty"`
	Further bool `json:"further,omitempty"`
	// Gang is the gang in which the node's slot is requested; nil requests it singly.
	Gang *schedule.Gang `json:"gang,omitempty"`
	// Plans are the names of those that hold the node.
	Plans []string `json:"plans,omitempty"`
	// Report asks for a NodeProgress whether or not something changed.
	Report bool `json:"report,omitempty"`
}

// NodeProgress is how far a shared maintenance is.
type NodeProgress struct {
	Node string `json:"node"`
	// RunID is the first run of the maintenance's chain.
	RunID string `json:"runId"`
	Phase Phase  `json:"phase"`
	// Revision is that of the latest target taken, and Targets, Gang and Plans are its: a lockstep that has begun anew knows
	// them from nobody else.
	Revision int               `json:"revision"`
	Targets  []drainplan.Entry `json:"targets,omitempty"`
	Gang     *schedule.Gang    `json:"gang,omitempty"`
	Plans    []string          `json:"plans,omitempty"`
	// Drained: none of the pods of Targets is left.
	Drained    bool `json:"drained,omitempty"`
	Pending    int  `json:"pending,omitempty"`
	Evacuating int  `json:"evacuating,omitempty"`
	// Waiting is what the maintenance says that it waits for.
	Waiting string `json:"waiting,omitempty"`
	// Ended: the node is released, or was never held; Failure says why it did not complete.
	Ended   bool   `json:"ended,omitempty"`
	Failure string `json:"failure,omitempty"`
}
