// Package maintain takes nodes out of service for a step of your own Temporal workflow, and brings them back after it. It is workflow code,
// and needs nothing of your worker but the namespace that Drydock's worker is in.
//
//	err := maintain.Node(ctx, maintain.Input{Node: "worker-01", Reason: "BIOS 2.4"}, func(ctx workflow.Context, m *maintain.Held) error {
//		return workflow.ExecuteActivity(ctx, FlashBIOS, m.Node).Get(ctx, nil)
//	})
//
// The maintenance is an abandoned child: it outlives your workflow, which adopts it when it calls again, as after a termination.
package maintain

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/reset"
)

// Input says which node is taken out of service, and how.
type Input struct {
	// Node is its name.
	Node string
	// Reason is why, shown everywhere.
	Reason string
	// Fields are further fields of the maintenance's input, by their names in the reference, such as
	// {"drain": {"force": true}, "readyTimeout": "4h"}. What is in neither has the worker's default.
	Fields map[string]any
	// Requestor is who asks; node and requestor are the identity of a maintenance. If empty, it is made of the workflow's ID, so that the
	// workflow adopts its maintenance when it begins again; one that was said to be done it lets end, and has the node maintained again. Two
	// workflows that name the same requestor take a node one after the other.
	Requestor string
	// AwaitDecision has Node wait where the work has failed, until somebody decides about the node: after "retry" the work is done again,
	// after "done" Node returns nil. Otherwise Node returns the work's error at once. A node that waits for a decision when Node is called, or
	// that was not worked on within its ready timeout, is waited for in either case.
	AwaitDecision bool
	// GiveBackOnCancel gives back a node whose work was cancelled with the workflow. Otherwise it stays out of service until somebody
	// decides: it may be half done. A node whose work cannot have begun is given back in either case.
	GiveBackOnCancel bool
	// Cluster is the cluster of the node; its zero value is right where the namespace has one cluster, with the default task queue.
	Cluster Cluster
}

// Cluster says which worker of Drydock's maintains the node.
type Cluster struct {
	// Name is the name in front of the cluster's IDs; empty if the namespace has one cluster.
	Name string
	// TaskQueue is the worker's, without that name; if empty, it is "drydock".
	TaskQueue string
}

func (c Cluster) queue() string { return api.TaskQueue(c.Name, cmp.Or(c.TaskQueue, "drydock")) }

// Held is a node that is out of service, and is the caller's to work on.
type Held struct {
	Node, Requestor string
	// WorkflowID and RunID are the maintenance's.
	WorkflowID, RunID string
}

// Work is what is done to a node while it is out of service. Its context is cancelled when the node is not the caller's any more: it was
// given back, or its slot was lost. It then has to stop, and begins again if the node is held again.
type Work func(ctx workflow.Context, m *Held) error

// EndedError says that a maintenance ended otherwise than with its node back in service after the work.
type EndedError struct {
	Node string
	// Phase is its end; empty if it ended without a report, as one that was terminated does.
	Phase api.Phase
	// Message says why.
	Message string
}

func (e *EndedError) Error() string {
	text := fmt.Sprintf("the maintenance of %s ended %s", e.Node, cmp.Or(string(e.Phase), "without a report"))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Node takes a node out of service, does the work, has the node validated, and returns when it is back in service. Where the work fails it
// says so to the maintenance, so that the node stays out of service until somebody decides, and returns the work's error. It extends the
// hold while the work is done, however long that takes.
//
// Cancelled, it cancels the work, waits for it, gives the node back or leaves it to a decision (Input.GiveBackOnCancel), and returns the
// context's error.
//
// In a workflow that was reset the work is begun again, once the maintenance has said that the node is still held. If the maintenance has
// ended since, nothing more is done to the node: Node returns nil if an earlier run of the workflow had said that the work is done, and an
// EndedError if not. It knows that by signals: where a reset leaves them out, a call of Node that comes after the point of the reset has its
// node maintained again.
func Node(ctx workflow.Context, in Input, work Work) error {
	info := workflow.GetInfo(ctx)
	in.Requestor = cmp.Or(in.Requestor, RequestorOf(info.WorkflowExecution.ID))
	h := &holding{in: in, work: work, link: newLink(ctx, api.MaintenanceID(in.Cluster.Name, in.Node, in.Requestor))}
	var err error
	if h.input, err = in.input(h.link); err != nil {
		return err
	}
	call := fmt.Sprintf("/%s/%s/%d", in.Node, in.Requestor, info.GetCurrentHistoryLength()) // where in the workflow Node was called
	return reset.RunNamed(ctx, call, h.wasReset, func(root workflow.Context) error {
		ctx, cancel := workflow.NewDisconnectedContext(root)
		defer cancel()
		if h.reset && h.doneBefore(ctx) {
			return nil
		}
		if err := h.start(ctx, root, h, in.Cluster.queue(), h.input); err != nil {
			return err
		}
		return h.hold(ctx, root)
	})
}

// RequestorOf is the requestor of the maintenances that a workflow asks for without naming one.
func RequestorOf(workflowID string) string {
	sum := sha256.Sum256([]byte(workflowID))
	readable := strings.Trim(unfit.ReplaceAllString(workflowID, "-"), "-._")
	readable = cmp.Or(strings.TrimRight(readable[:min(len(readable), 40)], "-._"), "workflow")
	return readable + "-" + hex.EncodeToString(sum[:])[:12]
}

// unfit are what a requestor's name cannot have (spec.RequestorName).
var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// input is the maintenance's.
func (in Input) input(l link) (map[string]any, error) {
	if err := spec.NodeName(in.Node); err != nil {
		return nil, invalid("Input.Node", err)
	}
	return inputOf("Input", in.Requestor, in.Reason, in.Fields, l, "node", in.Node)
}

// inputOf is that of a maintenance or a plan, with the texts that are set besides. A reason among the fields counts.
func inputOf(of, requestor, reason string, fields map[string]any, l link, sets ...string) (map[string]any, error) {
	if err := spec.RequestorName(requestor); err != nil {
		return nil, invalid(of+".Requestor", err)
	}
	input := map[string]any{}
	if reason != "" {
		input["reason"] = reason
	}
	maps.Copy(input, fields)
	set := map[string]any{"requestor": requestor, "reportTo": spec.ReportTo{Workflow: l.caller, Signal: l.signal}}
	for pair := range slices.Chunk(sets, 2) {
		set[pair[0]] = pair[1]
	}
	for _, field := range sortedKeys(set) {
		if _, twice := fields[field]; twice {
			return nil, invalid(of+".Fields", fmt.Errorf("%s: is set by package maintain: leave it out", field))
		}
	}
	maps.Copy(input, set)
	return input, nil
}

func sortedKeys[T any](of map[string]T) []string { return slices.Sorted(maps.Keys(of)) }

func invalid(field string, err error) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("maintain.%s: %v", field, err), api.ErrorInvalidSpec, err)
}
