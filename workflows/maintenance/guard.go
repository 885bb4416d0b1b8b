package maintenance

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/node"
	"drydock/activities/nodeevent"
	"drydock/api"
	"drydock/rules/spec"
	"drydock/workflows/call"
)

// maxRecordons is how often a cordon that somebody lifts is set again, before the maintenance stops fighting.
const maxRecordons = 3

// guard reacts to what others do to the held node. The scheduler's watch tells, so that a held node costs no watch of
// its own.
func (m *maintenance) guard(ctx workflow.Context) {
	for {
		if err := workflow.Await(ctx, func() bool { return len(m.changes) > 0 }); err != nil {
			return
		}
		change := m.changes[0]
		m.changes = m.changes[1:]
		if !m.touched || change.RequestID != m.request || (change.Unmarked && m.uid == "") {
			continue // about a node that is not held any more, or not yet
		}
		m.guarding = true
		var reaction workflow.Context
		reaction, m.cancelGuard = workflow.WithCancel(ctx)
		if err := m.react(reaction, change); err != nil && reaction.Err() == nil {
			m.note("the node could not be held: " + err.Error())
		}
		m.cancelGuard()
		m.guarding = false
	}
}

// stopGuard ends a reaction under way: it could mark the node after the node was released.
func (m *maintenance) stopGuard() {
	if m.guarding {
		m.cancelGuard()
		m.await(func() bool { return !m.guarding })
	}
}

func (m *maintenance) react(ctx workflow.Context, change api.NodeChange) error {
	switch {
	case change.Uncordoned:
		return m.restoreCordon(ctx)
	case m.heldByRequestor() && m.spec.OnNodeReplaced == spec.AdoptReplacement:
		return m.adopt(ctx)
	case change.Missing:
		m.lost("the node was deleted")
		return nil
	default:
		// The mark is gone: by a replacement of the node, or by somebody's hand.
		_, err := m.holdNode(ctx, m.wantsCordon(), nodeevent.Event{Reason: "MarkRestored", Warning: true,
			Message: "somebody removed the mark of a maintenance; it is set again"})
		var cause *temporal.ApplicationError
		if errors.As(err, &cause) && (cause.Type() == api.ErrorNodeGone || cause.Type() == api.ErrorNodeReplaced) {
			m.lost(cause.Message())
			return nil
		}
		return err
	}
}

// restoreCordon sets a lifted cordon again, with a Warning event; after the third time it stops fighting and says so.
func (m *maintenance) restoreCordon(ctx workflow.Context) error {
	if m.contested || !m.spec.Cordon {
		return nil // the cordon was given up, or is another's
	}
	if m.recordoned < maxRecordons {
		held, err := m.holdNode(ctx, true, nodeevent.Event{})
		// One lift may be reported more than once: only those that were found count, and reports that came meanwhile
		// are about the same one.
		m.changes = slices.DeleteFunc(m.changes, func(c api.NodeChange) bool { return c.Uncordoned })
		if err != nil || !held.Again {
			return err
		}
		m.recordoned++
		m.note(fmt.Sprintf("somebody made the node schedulable; cordoned again (%d of %d)", m.recordoned, maxRecordons))
		return nil
	}
	held, err := m.holdNode(ctx, false, nodeevent.Event{Reason: "CordonContested", Warning: true, Message: fmt.Sprintf(
		"the cordon was lifted %d times during the maintenance by %s; it is not set again", m.recordoned+1, m.spec.Requestor)})
	if err != nil || held.Cordon {
		return err // a late report of a lift that was answered already
	}
	m.contested = true
	m.note("somebody keeps making the node schedulable: it is left schedulable, and new pods may come")
	return nil
}

// adopt waits for a node of the same name and holds it in the place of the one that was deleted: re-imaging a node
// deletes it and lets it register anew.
func (m *maintenance) adopt(ctx workflow.Context) error {
	m.note("the node was deleted or replaced; its replacement is adopted when it registers")
	ctx = call.Stoppable(ctx, "adopt the replacement of "+m.spec.Node)
	var held node.Held
	err := workflow.ExecuteActivity(ctx, call.Nodes.AdoptNode, node.HoldInput{
		Node: m.spec.Node, RunID: m.status.RunID, Requestor: m.spec.Requestor, Since: m.status.Since,
		Cordon: m.spec.Cordon, Phase: string(m.status.Phase),
		Event: nodeevent.Event{Reason: "ReplacementAdopted", Message: m.summary(), Key: fmt.Sprint(m.moment())},
	}).Get(ctx, &held)
	if err != nil {
		return err
	}
	m.uid, m.mark, m.heldUID = held.UID, held.Mark, held.UID
	m.note("a node of the same name registered and is held")
	return nil
}

// wantsCordon tells whether the node is to be unschedulable: as was asked, unless that was given up.
func (m *maintenance) wantsCordon() bool { return m.spec.Cordon && !m.contested }

func (m *maintenance) heldByRequestor() bool {
	return m.status.Phase == api.Ready || m.status.Phase == api.RequestorFailed || m.status.Phase == api.Validating
}

// lost ends the maintenance because its node is gone.
func (m *maintenance) lost(message string) {
	m.nodeGone = fmt.Sprintf("node %s: %s", m.spec.Node, message)
	m.cancel()
}
