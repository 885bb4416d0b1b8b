package maintenance

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/node"
	"drydock/activities/nodeevent"
	"drydock/api"
	"drydock/rules/notices"
	"drydock/rules/spec"
	"drydock/workflows/call"
)

// hold is the node in the maintenance's hands: marked, cordoned, and guarded against what others do to it.
type hold struct {
	core
	// touched: the node may carry the mark, and has to be released.
	touched bool
	// uid is that of the node that is held.
	uid string
	// bootID is the node's at the cordon.
	bootID string
	// marksRestored counts how often a lifted cordon or a mark that was taken off was set again.
	marksRestored int
	// contested: somebody keeps lifting the cordon, and it is not set again.
	contested bool
	changes   []api.NodeChange
	// guarding is set while guard reacts to a change of the node, which cancelGuard ends.
	guarding    bool
	cancelGuard workflow.CancelFunc
}

// maxMarksRestored is how often a cordon that somebody lifts is set again, before the maintenance stops fighting.
const maxMarksRestored = 3

// retryRelease bounds the pause between attempts to give something back.
const retryRelease = 30 * time.Second

// cordon marks the node as held, and makes it unschedulable unless the specification says otherwise.
func (h *hold) cordon() error {
	if err := h.freeze.proceed(); err != nil {
		return err
	}
	h.journal.enter(api.Cordoning, "")
	h.touched, h.contested = true, false
	held, err := h.holdNode(h.stop.steps, h.spec.Cordon, nodeevent.Event{Reason: "MaintenanceStarted", Message: h.summary()})
	if err != nil {
		return h.stop.stepFailed(err)
	}
	now := h.clock.now()
	h.bootID = held.BootID
	h.journal.change(func(s *api.Status) { s.CordonedAt = &now })
	h.journal.tell(notices.MaintenanceStarted, "")
	return nil
}

func (h *hold) holdNode(ctx workflow.Context, cordon bool, event nodeevent.Event) (node.Held, error) {
	event.Key = fmt.Sprintf("%d/%d", h.journal.status().Attempt, h.marksRestored)
	var held node.Held
	ctx = call.Quick(ctx, "mark and cordon "+h.spec.Node)
	err := workflow.ExecuteActivity(ctx, call.Nodes.HoldNode, h.input(h.uid, cordon, event)).Get(ctx, &held)
	if err == nil {
		h.took(held)
	}
	return held, err
}

func (h *hold) input(uid string, cordon bool, event nodeevent.Event) node.HoldInput {
	status := h.journal.status()
	return node.HoldInput{
		Node: h.spec.Node, UID: uid, RunID: h.runID, Requestor: h.spec.Requestor,
		Since: status.Since, Cordon: cordon, Phase: string(status.Phase), Event: event,
	}
}

func (h *hold) took(held node.Held) {
	h.uid, h.announcer.mark = held.UID, held.Mark
	h.journal.change(func(s *api.Status) { s.NodeUID = held.UID })
}

// nodeUID is that of the node that is held.
func (h *hold) nodeUID() string { return h.uid }

// markLost tells that somebody removed the mark from the node under a step, and that it is to be set again: a bounded
// number of times.
func (h *hold) markLost(err error) bool {
	var cause *temporal.ApplicationError
	return errors.As(err, &cause) && cause.Type() == api.ErrorNotHolder && h.marksRestored < maxMarksRestored && !h.stop.stopped()
}

func (h *hold) restoreMark() error {
	h.marksRestored++
	_, err := h.holdNode(h.stop.steps, h.wantsCordon(), markRestored)
	return err
}

var markRestored = nodeevent.Event{Reason: "MarkRestored", Warning: true,
	Message: "somebody removed the mark of a maintenance; it is set again"}

// wantsCordon tells whether the node is to be unschedulable: as was asked, unless that was given up.
func (h *hold) wantsCordon() bool { return h.spec.Cordon && !h.contested }

// release takes the mark off the node, which fences every eviction in flight, and with it what Drydock changed; the same
// activity then sends the signal that gives the slot back.
func (h *hold) release(event nodeevent.Event, then *node.Signal) (gone bool) {
	h.touched = false
	h.stopGuard()
	h.journal.waiting("the node and its slot to be released")
	event.Key = fmt.Sprint(h.journal.status().Attempt)
	for {
		ctx := call.Quick(h.clock.life, "release "+h.spec.Node)
		var released node.Released
		err := workflow.ExecuteActivity(ctx, call.Nodes.ReleaseNode, node.ReleaseInput{
			Node: h.spec.Node, WorkflowID: h.workflowID, RunID: h.runID, Event: event,
			HideConditions:   h.announcer.conditionsShown,
			WithdrawRequests: h.spec.Drain.Via == spec.ViaEvictionRequest,
			Then:             then,
		}).Get(ctx, &released)
		if err == nil {
			h.uid, h.announcer.conditionsShown = "", false
			if len(released.OtherHolders) > 0 {
				h.journal.note(fmt.Sprintf("the node stays out of service for %v", released.OtherHolders))
			}
			return released.Gone
		}
		h.journal.waiting(fmt.Sprintf("the node to be released: %v", err))
		h.clock.pause(retryRelease)
	}
}
