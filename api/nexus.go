package api

import (
	"encoding/json"
	"errors"
	"fmt"

	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
)

// NexusService is the Nexus service by which workflows of other namespaces ask for maintenances. Each operation ends with the workflow that
// it starts, and its cancellation cancels that.
const NexusService = "drydock"

// The operations of NexusService, each with a NexusRequest.
const (
	// NexusMaintainNode takes a node out of service and brings it back. Its result is that of the maintenance (Result).
	NexusMaintainNode = "maintain-node"
	// NexusRunPlan runs a plan. Its result is the plan's (PlanResult).
	NexusRunPlan = "run-plan"
	// NexusCheckNode reports what would stop a drain of the node, and changes nothing. Its result is a preflight.Report.
	NexusCheckNode = "check-node"
)

// NexusRequest is the input of the operations.
type NexusRequest struct {
	// Maintenance is the input of a maintenance, for maintain-node and check-node. Without a requestor it has one that is made of the
	// caller's namespace and workflow ID.
	Maintenance map[string]any `json:"maintenance,omitempty"`
	// Plan is the input of a plan, for run-plan, and Name its name. Without one it is made of the caller's namespace and workflow ID.
	Plan map[string]any `json:"plan,omitempty"`
	Name string         `json:"name,omitempty"`
	// Work is what is done to each node while it is held. If it is absent, the maintenance waits until somebody sends done.
	Work *NexusWork `json:"work,omitempty"`
	// AwaitDecision has the operation wait where the work has failed, until somebody decides about the node.
	AwaitDecision bool `json:"awaitDecision,omitempty"`
	// GiveBackOnCancel gives back a node whose work was cancelled with the operation. Otherwise it stays out of service until somebody decides.
	GiveBackOnCancel bool `json:"giveBackOnCancel,omitempty"`
}

// NexusWork is an operation of the caller's own, which is called with a NexusHeld and has as long as it takes.
type NexusWork struct {
	Endpoint  string `json:"endpoint"`
	Service   string `json:"service"`
	Operation string `json:"operation"`
	// Input is handed to the operation as it is.
	Input json.RawMessage `json:"input,omitempty"`
}

// NexusHeld is the input of the operation that works on a node. Its cancellation says that the node is held no longer.
type NexusHeld struct {
	Node      string `json:"node"`
	Requestor string `json:"requestor"`
	// WorkflowID and RunID are the maintenance's.
	WorkflowID string          `json:"workflowId"`
	RunID      string          `json:"runId"`
	Input      json.RawMessage `json:"input,omitempty"`
}

// NexusResult is the result of an operation with work that has succeeded on every node.
type NexusResult struct {
	Node      string `json:"node,omitempty"`
	Requestor string `json:"requestor,omitempty"`
	Name      string `json:"name,omitempty"`
	Phase     Phase  `json:"phase"`
}

// longestName bounds the names of what Nexus calls, and largestInput what it is handed, both in bytes: the history has it once for each node.
const (
	longestName  = 200
	largestInput = 16 << 10
)

// Check says what is wrong with a request, which names its node and requestor, or its plan. It does not read what a maintenance or a plan
// checks itself.
func (r NexusRequest) Check() error {
	if (r.Maintenance == nil) == (r.Plan == nil) {
		return errors.New("maintenance, plan: one of them is needed")
	}
	if r.Work == nil && (r.AwaitDecision || r.GiveBackOnCancel) {
		return errors.New("awaitDecision, giveBackOnCancel: are of work, which is missing")
	}
	if w := r.Work; w != nil {
		if len(w.Input) > largestInput {
			return fmt.Errorf("work.input: has %d bytes: at most %d are taken", len(w.Input), largestInput)
		}
		for _, part := range []struct{ field, name string }{{"endpoint", w.Endpoint}, {"service", w.Service}, {"operation", w.Operation}} {
			if part.name == "" || len(part.name) > longestName {
				return fmt.Errorf("work.%s: want a name of at most %d bytes", part.field, longestName)
			}
		}
	}
	if r.Plan != nil {
		return field("name", plan.CheckName(r.Name))
	}
	return errors.Join(field("maintenance.node", spec.NodeName(r.Text("node"))), field("maintenance.requestor", spec.RequestorName(r.Text("requestor"))))
}

// Text is a field of the maintenance that is a text; empty if it is none.
func (r NexusRequest) Text(field string) string {
	text, _ := r.Maintenance[field].(string)
	return text
}
