package maintenance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
)

// changed takes a change of the node from the scheduler's watch: a held node needs no watch of its own. Anybody may send it.
func (h *hold) changed(c api.NodeChange) {
	if len(h.changes) < maxChanges {
		bounds.Fit(&c)
		h.changes = append(h.changes, c)
	}
}

// maxChanges bounds the pending changes: the reaction to the first finds all that is wrong with the node.
const maxChanges = 20

func (h *hold) idle() bool { return !h.guarding && len(h.changes) == 0 }

func (h *hold) guard(ctx workflow.Context) {
	for h.awaitChange(ctx) == nil {
		if len(h.changes) == 0 {
			continue
		}
		change := h.changes[0]
		h.changes = h.changes[1:]
		if !h.concerns(change) {
			continue
		}
		h.guarding = true
		var reaction workflow.Context
		reaction, h.cancelGuard = workflow.WithCancel(ctx)
		if err := h.react(reaction, change); err != nil && reaction.Err() == nil {
			h.couldNotHold(err)
			if call.IsError(err, api.ErrorSlotNotHeld) && changed(ctx, changeConfirm+"lost-slot") {
				// The node was marked again, and the slot may be another's by now.
				h.control.loseSlot()
			}
		}
		h.cancelGuard()
		h.guarding = false
	}
}

// couldNotHold notes why the node is not held again. That Temporal was restored is noted once.
func (h *hold) couldNotHold(err error) {
	if !call.IsError(err, api.ErrorRestored) || !h.saidRestored {
		h.journal.note("the node could not be held: " + call.Cause(err))
	}
	h.saidRestored = h.saidRestored || call.IsError(err, api.ErrorRestored)
}

// awaitChange waits for a change of the node. That a cordon is due counts as one, unless the node was given back meanwhile: then there is none.
func (h *hold) awaitChange(ctx workflow.Context) error {
	arrived := func() bool { return len(h.changes) > 0 }
	if h.CordonDue.IsZero() {
		return workflow.Await(ctx, arrived)
	}
	there, err := workflow.AwaitWithTimeout(ctx, max(h.CordonDue.Sub(workflow.Now(ctx)), time.Millisecond), arrived)
	if err != nil || there {
		return err
	}
	due := api.NodeChange{Uncordoned: true, RequestID: h.slot.Request}
	if !h.CordonDue.IsZero() && h.concerns(due) {
		h.changes = append(h.changes, due)
	} else {
		h.CordonDue = time.Time{} // the slot that it was for is given back
	}
	return nil
}

// concerns reports whether a change is one of the node as it is held now.
func (h *hold) concerns(change api.NodeChange) bool {
	slot := h.journal.status().Slot
	return h.Touched && !h.releasing && slot != nil && change.RequestID == slot.RequestID && (!change.Unmarked || h.UID != "")
}

// stopGuard cancels a running reaction, which could mark the node after its release, and drops a due cordon, for which guard would wake
// again and again.
func (h *hold) stopGuard() {
	h.changes, h.CordonDue = nil, time.Time{}
	if h.guarding {
		h.cancelGuard()
		h.control.awaitAlways(func() bool { return !h.guarding })
	}
}

func (h *hold) react(ctx workflow.Context, change api.NodeChange) error {
	switch {
	case change.Arrived != nil:
		return h.arrived(ctx, *change.Arrived)
	case change.Uncordoned:
		return h.restoreCordon(ctx)
	case change.Missing && changed(ctx, changeConfirm+"missing-node"):
		return h.confirmMissing(ctx)
	case h.adopts():
		return h.adopt(ctx)
	case change.Missing:
		h.control.loseNode("the node was deleted")
		return nil
	default:
		// The mark is gone: by a replacement of the node, or by somebody.
		_, err := h.holdNode(ctx, h.wantsCordon(), markRestored)
		if call.IsError(err, api.ErrorNodeGone, api.ErrorNodeReplaced) {
			h.control.loseNode(call.Cause(err))
			return nil
		}
		return err
	}
}

// adopts reports whether a new node of the same name is held in place of the old one.
func (h *hold) adopts() bool {
	return h.journal.heldByRequestor() && h.spec.OnNodeReplaced == spec.AdoptReplacement
}

// confirmMissing holds a node that is reported as deleted once more: the report may be forged.
func (h *hold) confirmMissing(ctx workflow.Context) error {
	_, err := h.holdNode(ctx, h.wantsCordon(), nodeevent.Event{})
	switch {
	case call.IsError(err, api.ErrorNodeGone, api.ErrorNodeReplaced) && h.adopts():
		return h.adopt(ctx)
	case call.IsError(err, api.ErrorNodeGone):
		h.control.loseNode("the node was deleted")
		return nil
	case call.IsError(err, api.ErrorNodeReplaced):
		h.control.loseNode(call.Cause(err))
		return nil
	case err == nil:
		h.journal.note("ignored a message that the node was deleted: it is there")
	}
	return err
}

// arrived warns of pods that came to a node after its drain: the work on the node will end them.
func (h *hold) arrived(ctx workflow.Context, arrived api.PodsArrived) error {
	status, drain := h.journal.status(), h.spec.Drain
	if h.spec.Lockstep && (status.Lockstep == nil || !status.Lockstep.Last) {
		return nil // its plans are not done with draining it
	}
	if !h.journal.heldByRequestor() || drain.Mode == spec.ModeNone || drain.PodSelector != "" || len(drain.PodEvictionFilters) > 0 {
		return nil
	}
	pods := slices.DeleteFunc(arrived.Pods, func(pod api.ArrivedPod) bool {
		namespace, _, _ := strings.Cut(pod.Pod, "/")
		return !drain.Namespaces.Has(namespace)
	})
	drained := *status.CordonedAt
	if status.Drain != nil && status.Drain.At.After(drained) {
		drained = status.Drain.At
	}
	var news []string
	h.journal.change(func(s *api.Status) {
		for _, pod := range pods {
			known := slices.ContainsFunc(s.Arrived, func(one api.ArrivedPod) bool { return one.Pod == pod.Pod })
			// A pod's own time is in whole seconds.
			if known || pod.At.Before(drained.Truncate(time.Second)) {
				continue
			}
			if news = append(news, pod.Pod); len(s.Arrived) < api.MaxArrived {
				s.Arrived = append(s.Arrived, pod)
			} else {
				s.MoreArrived++
			}
		}
		s.MoreArrived += arrived.More
	})
	if len(news) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s arrived after the drain, despite the cordon: the work on the node will end it", strings.Join(news, ", "))
	h.journal.note(text)
	return h.warn(ctx, api.EventPodArrived, text)
}

// restoreCordon sets a lifted cordon again, with a Warning event. After the third time a single maintenance leaves it lifted; one that
// plans share goes on.
func (h *hold) restoreCordon(ctx workflow.Context) error {
	if h.Contested || !h.spec.Cordon {
		return nil // the cordon was given up, or is another's
	}
	if h.CordonsRestored < maxCordonsRestored {
		return h.cordonAgain(ctx)
	}
	if h.spec.Lockstep {
		return h.reconcileCordon(ctx)
	}
	held, err := h.holdNode(ctx, false, nodeevent.Event{Reason: api.EventCordonContested, Warning: true, Message: fmt.Sprintf(
		"the cordon was lifted %d times during the maintenance by %s; it is not set again", h.CordonsRestored+1, h.spec.Requestor)})
	if err != nil || held.Cordon {
		return err // a late report of a lift that was answered already
	}
	h.Contested = true
	h.journal.note("somebody uncordoned the node once more; left schedulable, and new pods may come")
	return nil
}

// reconcileCordon sets the cordon of a maintenance that plans share again however often it is lifted, as KEP-4212 does, after
// growing pauses: a node that takes new pods would keep all nodes of its plans from their next tier.
func (h *hold) reconcileCordon(ctx workflow.Context) error {
	now := workflow.Now(ctx)
	if h.CordonDue.IsZero() {
		pause := period.Doubled(cordonPause, pauseMost, h.CordonsRestored-maxCordonsRestored)
		h.CordonDue = now.Add(pause)
		h.journal.note(fmt.Sprintf("somebody uncordoned the node once more; cordoned again in %s (%d times so far)", period.Text(pause), h.CordonsRestored))
		return nil
	}
	if now.Before(h.CordonDue) {
		return nil
	}
	h.CordonDue = time.Time{}
	return h.cordonAgain(ctx)
}

// cordonAgain sets the cordon again. One lift may be reported more than once: only those that are found count, and reports that came
// meanwhile are about the same one.
func (h *hold) cordonAgain(ctx workflow.Context) error {
	held, err := h.holdNode(ctx, true, nodeevent.Event{})
	h.changes = slices.DeleteFunc(h.changes, func(c api.NodeChange) bool { return c.Uncordoned })
	if err != nil || !held.Again {
		return err
	}
	if h.CordonsRestored++; h.CordonsRestored <= maxCordonsRestored {
		h.journal.note(fmt.Sprintf("somebody uncordoned the node; cordoned again (%d of %d)", h.CordonsRestored, maxCordonsRestored))
	} else {
		h.journal.note(fmt.Sprintf("cordoned again (%d times so far): somebody keeps lifting the cordon", h.CordonsRestored))
	}
	return nil
}

// adopt waits for a node of the same name and holds it in place of the deleted one: re-imaging deletes a node and registers a new one.
func (h *hold) adopt(ctx workflow.Context) error {
	h.journal.note("the node was deleted or replaced; its replacement is adopted when it registers")
	ctx = call.Stoppable(ctx, "adopt the replacement of "+h.spec.Node)
	event := nodeevent.Event{Reason: api.EventReplacementAdopted, Message: h.summary(), Key: fmt.Sprint(h.journal.moment())}
	held, err := run[node.Held](ctx, call.Nodes.AdoptNode, h.input("", h.spec.Cordon, event))
	if err != nil {
		return err
	}
	h.took(held)
	h.journal.note("a node of the same name registered and is held")
	return nil
}
