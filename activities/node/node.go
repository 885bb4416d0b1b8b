// Package node holds, adopts and releases nodes, and shows on them what a maintenance does.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
)

// Activities mark, cordon and release nodes.
type Activities struct {
	Client   kube.Interface
	Temporal client.Client
	Events   nodeevent.Recorder
	// Home is the Temporal namespace, which marks name.
	Home execution.Namespace
	// Conditions: nodes show lifecycle conditions.
	Conditions bool
	// Policy is asked before a node is held; nil refuses nothing.
	Policy Policy
	// Marks are those of others that held nodes carry.
	Marks Marks
	// Jobs ends what maintenances leave running on their nodes; nil if the configuration has no Jobs.
	Jobs Jobs

	inquiries inquiries
}

// Policy judges a maintenance, given as the JSON of its specification. Its errors are those of HoldNode.
type Policy interface {
	Judge(ctx context.Context, maintenance json.RawMessage) error
}

// Jobs ends the Jobs of a maintenance that has ended without them.
type Jobs interface {
	// End returns once nothing of them runs any more.
	End(ctx context.Context, workflowID, runID string) error
}

// HoldInput asks for a node to be marked for a maintenance.
type HoldInput struct {
	Node string `json:"node"`
	// UID is the node held before; empty accepts whatever has the name.
	UID string `json:"uid,omitempty"`
	// RunID is the first run of the maintenance.
	RunID string `json:"runId"`
	// Slot is the request by which the maintenance holds its slot.
	Slot      Slot            `json:"slot,omitzero"`
	Requestor string          `json:"requestor"`
	Since     time.Time       `json:"since"`
	Cordon    bool            `json:"cordon"`
	Phase     string          `json:"phase"`
	Event     nodeevent.Event `json:"event"`
	// Maintenance is the specification, where the policy is to judge it before the node is held.
	Maintenance json.RawMessage `json:"maintenance,omitempty"`
	// Prior is what the maintenance remembers of the node that it holds; nil if it holds it for the first time.
	Prior *Prior `json:"prior,omitempty"`
	// TakesCordon: a cordon that is found is the maintenance's, which another system has set for what asked for it.
	TakesCordon bool `json:"takesCordon,omitempty"`
}

// About implements caller.Input.
func (in HoldInput) About() caller.Subject {
	return caller.Subject{
		Node: in.Node, Requestor: in.Requestor, RunID: in.RunID, Spec: in.Maintenance,
		Request: in.Slot.RequestID, Scheduler: in.Slot.Scheduler,
	}
}

// Prior is what a node was like before Drydock came.
type Prior = k8s.Prior

// Slot names a slot that a scheduler granted.
type Slot struct {
	// Scheduler is the workflow ID of the scheduler.
	Scheduler string `json:"scheduler"`
	RequestID string `json:"requestId"`
}

// About implements caller.Input.
func (s Slot) About() caller.Subject {
	return caller.Subject{Request: s.RequestID, Scheduler: s.Scheduler}
}

// Held is what HoldNode found and did.
type Held struct {
	UID string `json:"uid"`
	// Run is the run of the maintenance that held the node.
	Run string `json:"run"`
	// Mark is the mark's text, by which a later step can tell without a request that it is still the same.
	Mark string `json:"mark"`
	// Again: the mark was there, and somebody had lifted the cordon.
	Again            bool `json:"again,omitempty"`
	WasUnschedulable bool `json:"wasUnschedulable,omitempty"`
	// BootID is the node's at that moment.
	BootID string `json:"bootId,omitempty"`
	// Cordon: the mark wants the node unschedulable. It still does where a cordon that was to be given up is in place.
	Cordon bool `json:"cordon,omitempty"`
	// Prior is what the maintenance is to remember of the node.
	Prior *Prior `json:"prior,omitempty"`
}

// HoldNode marks a node, and cordons it in the same patch. The scheduler has the last word on the slot: anybody may say
// that it was granted, and a maintenance that was reset may have given it back. Errors: NodeGone, NodeReplaced,
// SlotNotHeld, PolicyRefused, Restored, MissingPermission.
func (n *Activities) HoldNode(ctx context.Context, in HoldInput) (Held, error) {
	if n.Policy != nil && len(in.Maintenance) > 0 {
		if err := n.Policy.Judge(ctx, in.Maintenance); err != nil {
			return Held{}, failure.Translate(ctx, n.Client, err)
		}
	}
	held, err := n.hold(ctx, in)
	return held, failure.Translate(ctx, n.Client, err)
}

// AdoptNode waits until a node of the name exists and holds it, whatever node it is. It follows the deletion of a
// node that is being re-created.
func (n *Activities) AdoptNode(ctx context.Context, in HoldInput) (Held, error) {
	heartbeats := heartbeat.Start(ctx)
	defer heartbeats.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in.UID = "" // what is remembered of the node before holds for that node only
	watch, err := k8s.WatchNode(ctx, n.Client, in.Node)
	if err != nil {
		return Held{}, failure.Translate(ctx, n.Client, err)
	}
	again := time.NewTicker(heartbeat.Every)
	defer again.Stop()
	for {
		if err := errors.Join(heartbeats.Alive(), watch.Err()); err != nil {
			return Held{}, failure.Translate(ctx, n.Client, err)
		}
		if _, ok := watch.Get(in.Node); ok {
			held, err := n.hold(ctx, in)
			if !errors.Is(err, k8s.ErrNodeGone) {
				return held, failure.Translate(ctx, n.Client, err)
			}
		}
		select {
		case <-watch.Changed:
		case <-again.C:
		case <-ctx.Done():
			return Held{}, ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return Held{}, failure.WorkerStopping()
		}
	}
}

func (n *Activities) hold(ctx context.Context, in HoldInput) (Held, error) {
	// The node is read while the scheduler answers: the next node waits for both.
	read := k8s.ReadAhead(ctx, n.Client, in.Node)
	if err := n.slotHeld(ctx, in.Slot); err != nil {
		return Held{}, err
	}
	caller := heldnode.CallerOf(ctx, in.RunID)
	wanted := k8s.HoldInput{
		Node: in.Node, UID: types.UID(in.UID), Phase: in.Phase, Prior: in.Prior, Read: read, Exclude: n.Marks.Medik8s, ChecksReleases: true, TakesCordon: in.TakesCordon,
		Holder: k8s.Holder{
			WorkflowID: caller.WorkflowID, RunID: caller.RunID, Run: caller.Run, Namespace: n.Home.ID,
			Requestor: in.Requestor, Since: in.Since, Cordon: in.Cordon,
		},
	}
	held, err := k8s.Hold(ctx, n.Client, wanted)
	var given *k8s.GivenBackError
	if errors.As(err, &given) {
		if err = checkReleases(ctx, n.Temporal, n.Home, n.Events, given); err == nil {
			wanted.ChecksReleases, wanted.Read = false, nil
			held, err = k8s.Hold(ctx, n.Client, wanted)
		}
	}
	if errors.Is(err, k8s.ErrOtherRun) {
		if err = n.acting().IsCurrent(ctx, caller); err == nil {
			wanted.TakeOver, wanted.Read = true, nil
			held, err = k8s.Hold(ctx, n.Client, wanted)
		}
	}
	if err != nil {
		return Held{}, err
	}
	// The scheduler may have taken the slot back between its answer and the mark, because it saw none.
	if err := n.slotHeld(ctx, in.Slot); err != nil {
		return Held{}, err
	}
	if held.Prior, err = n.confirm(ctx, in.Node, held); err != nil {
		return Held{}, err
	}
	n.skipMachine(ctx, in, held.Prior)
	event := in.Event
	if held.Again {
		event = nodeevent.Event{Reason: api.EventCordonRestored, Warning: true, Key: event.Key,
			Message: fmt.Sprintf("somebody made the node schedulable during the maintenance by %s; it is cordoned again", in.Requestor)}
	}
	if held.Cordon == in.Cordon {
		n.Events.Record(ctx, in.Node, held.UID, event)
	}
	return Held{
		UID: string(held.UID), Run: caller.Run, Mark: held.Mark, Again: held.Again, WasUnschedulable: held.WasUnschedulable, Cordon: held.Cordon,
		BootID: held.BootID, Prior: held.Prior,
	}, nil
}

// slotHeld refuses to touch a node whose slot the maintenance does not hold. Errors: SlotNotHeld.
func (n *Activities) slotHeld(ctx context.Context, slot Slot) error {
	switch answer, err := n.AskSlot(ctx, slot); {
	case err != nil:
		return err
	case answer.Rebuilding:
		return errors.New("the scheduler does not know yet who holds a slot")
	case !answer.Held:
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("the scheduler knows of no slot that request %s holds", slot.RequestID), api.ErrorSlotNotHeld, nil)
	}
	return nil
}

func (n *Activities) acting() heldnode.Acting {
	return heldnode.Acting{Client: n.Client, Temporal: n.Temporal}
}

// AnnounceInput is a change of phase to show on the node.
type AnnounceInput struct {
	Node string `json:"node"`
	// WorkflowID and RunID are the holder's; an empty WorkflowID is the calling workflow's.
	WorkflowID string `json:"workflowId,omitempty"`
	RunID      string `json:"runId"`
	// Mark is the mark's text as HoldNode returned it; it saves a request.
	Mark  string          `json:"mark,omitempty"`
	Phase string          `json:"phase"`
	Event nodeevent.Event `json:"event"`
}

// About implements caller.Input.
func (in AnnounceInput) About() caller.Subject {
	return caller.Subject{Node: in.Node, WorkflowID: in.WorkflowID, RunID: in.RunID}
}

// AnnouncePhase shows a maintenance's phase on its node: in the label, and as an Event. Errors: NodeGone, NotHolder,
// MissingPermission.
func (n *Activities) AnnouncePhase(ctx context.Context, in AnnounceInput) error {
	shown := k8s.PhaseInput{Caller: callerFor(ctx, in.WorkflowID, in.RunID), Node: in.Node, Phase: in.Phase, Mark: in.Mark}
	var uid types.UID
	err := n.acting().Do(ctx, in.Node, shown.Caller, func() (err error) {
		uid, err = k8s.SetPhase(ctx, n.Client, shown)
		return err
	})
	if err != nil {
		return failure.Translate(ctx, n.Client, err)
	}
	n.Events.Record(ctx, in.Node, uid, in.Event)
	return nil
}

// callerFor is the calling workflow, or the caller on behalf of another workflow that does not run any more.
func callerFor(ctx context.Context, workflowID, runID string) k8s.Caller {
	if workflowID == "" {
		return heldnode.CallerOf(ctx, runID)
	}
	return k8s.Caller{WorkflowID: workflowID, RunID: runID}
}

// UntaintInput asks for a held node's taint to be taken off.
type UntaintInput struct {
	Node  string `json:"node"`
	RunID string `json:"runId"`
}

// About implements caller.Input.
func (in UntaintInput) About() caller.Subject {
	return caller.Subject{Node: in.Node, RunID: in.RunID}
}

// Untaint lets pods come back before the node does. Errors: NodeGone, NotHolder, MissingPermission.
func (n *Activities) Untaint(ctx context.Context, in UntaintInput) error {
	caller := heldnode.CallerOf(ctx, in.RunID)
	return failure.Translate(ctx, n.Client, n.acting().Do(ctx, in.Node, caller, func() error {
		return k8s.Untaint(ctx, n.Client, in.Node, caller)
	}))
}
