package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/node"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/nodeevent"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"errors"
	"fmt"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"slices"
	"strings"
	"time"
)

// changed takes what the scheduler's watch saw, so that a held node costs no watch of its own.
func (h *hold) changed(c api.NodeChange) {
	if len(h.changes) < maxChanges {
		h.changes = append(h.changes, c)
	}
}

// maxChanges bounds the changes that wait: what is wrong with a node is found when the first of them is looked into.
const maxChanges = 20

// idle tells that no change of the node is looked into.
func (h *hold) idle() bool { return !h.guarding && len(h.changes) == 0 }

// guard reacts to what others do to the held node.
func (h *hold) guard(ctx workflow.Context) {
	for {
		if err := workflow.Await(ctx, func() bool { return len(h.changes) > 0 }); err != nil {
			return
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
			h.journal.note("the node could not be held: " + call.Cause(err))
		}
		h.cancelGuard()
		h.guarding = false
	}
}

// concerns tells a change of the node as it is held now from one of a node that is not held any more, or not yet.
func (h *hold) concerns(change api.NodeChange) bool {
	slot := h.journal.status().Slot
	return h.Touched && !h.releasing && slot != nil && change.RequestID == slot.RequestID && (!change.Unmarked || h.UID != "")
}

// stopGuard ends a reaction under way: it could mark the node after the node was released.
func (h *hold) stopGuard() {
	h.changes = nil
	if h.guarding {
		h.cancelGuard()
		h.clock.await(func() bool { return !h.guarding })
	}
}

func (h *hold) react(ctx workflow.Context, change api.NodeChange) error {
	switch {
	case change.Arrived != nil:
		return h.arrived(ctx, *change.Arrived)
	case change.Uncordoned:
		return h.restoreCordon(ctx)
	case h.journal.heldByRequestor() && h.spec.OnNodeReplaced == spec.AdoptReplacement:
		return h.adopt(ctx)
	case change.Missing:
		h.stop.lost("the node was deleted")
		return nil
	default:
		// The mark is gone: by a replacement of the node, or by somebody's hand.
		_, err := h.holdNode(ctx, h.wantsCordon(), markRestored)
		var cause *temporal.ApplicationError
		if errors.As(err, &cause) && (cause.Type() == api.ErrorNodeGone || cause.Type() == api.ErrorNodeReplaced) {
			h.stop.lost(cause.Message())
			return nil
		}
		return err
	}
}

// arrived warns of pods that came to a node which was drained of all that can be: they end with what is done to it.
func (h *hold) arrived(ctx workflow.Context, arrived api.PodsArrived) error {
	status, drain := h.journal.status(), h.spec.Drain
	if !h.journal.heldByRequestor() || drain.Mode == spec.ModeNone || drain.PodSelector != "" || len(drain.PodEvictionFilters) > 0 {
		return nil
	}
	drained := *status.CordonedAt
	if status.Drain != nil && status.Drain.At.After(drained) {
		drained = status.Drain.At
	}
	var news []string
	h.journal.change(func(s *api.Status) {
		for _, pod := range arrived.Pods {
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
	text := fmt.Sprintf("%s came to the node after it was drained, in spite of its cordon: what is done to the node ends it", strings.Join(news, ", "))
	h.journal.note(text)
	return h.announcer.warn(ctx, "PodArrived", text)
}

// restoreCordon sets a lifted cordon again, with a Warning event; after the third time it stops fighting and says so.
func (h *hold) restoreCordon(ctx workflow.Context) error {
	if h.Contested || !h.spec.Cordon {
		return nil // the cordon was given up, or is another's
	}
	if h.CordonsRestored < maxCordonsRestored {
		held, err := h.holdNode(ctx, true, nodeevent.Event{})
		// One lift may be reported more than once: only those that were found count, and reports that came meanwhile
		// are about the same one.
		h.changes = slices.DeleteFunc(h.changes, func(c api.NodeChange) bool { return c.Uncordoned })
		if err != nil || !held.Again {
			return err
		}
		h.CordonsRestored++
		h.journal.note(fmt.Sprintf("somebody made the node schedulable; cordoned again (%d of %d)", h.CordonsRestored, maxCordonsRestored))
		return nil
	}
	held, err := h.holdNode(ctx, false, nodeevent.Event{Reason: "CordonContested", Warning: true, Message: fmt.Sprintf(
		"the cordon was lifted %d times during the maintenance by %s; it is not set again", h.CordonsRestored+1, h.spec.Requestor)})
	if err != nil || held.Cordon {
		return err // a late report of a lift that was answered already
	}
	h.Contested = true
	h.journal.note("somebody keeps making the node schedulable: it is left schedulable, and new pods may come")
	return nil
}

// adopt waits for a node of the same name and holds it in the place of the one that was deleted: re-imaging a node
// deletes it and lets it register anew.
func (h *hold) adopt(ctx workflow.Context) error {
	h.journal.note("the node was deleted or replaced; its replacement is adopted when it registers")
	ctx = call.Stoppable(ctx, "adopt the replacement of "+h.spec.Node)
	var held node.Held
	event := nodeevent.Event{Reason: "ReplacementAdopted", Message: h.summary(), Key: fmt.Sprint(h.journal.moment())}
	if err := workflow.ExecuteActivity(ctx, call.Nodes.AdoptNode, h.input("", h.spec.Cordon, event)).Get(ctx, &held); err != nil {
		return err
	}
	h.took(held)
	h.journal.note("a node of the same name registered and is held")
	return nil
}
