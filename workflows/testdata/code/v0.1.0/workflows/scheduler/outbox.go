package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"errors"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"slices"
)

// tellAtOnce bounds the signals under way that tell why a request waits: they must not be in the way of grants.
const tellAtOnce = 50

// outbox signals maintenances, and waits for no delivery. It signals workflows and not runs: a maintenance may have been
// reset or continued as new. Every signal names the request that it is about.
type outbox struct {
	*commands
	cluster string
	// telling counts the signals under way that tell why a request waits.
	telling int
	// untold are the holders that have still to be told of their grant and of freezes when the next run begins.
	untold api.List[string]

	// gone hears of holders that do not run any more.
	gone func(api.Holder)
	// askAgain and tellAgain take back a request whose answer, or whose reason to wait, was not said.
	askAgain  func(p api.PendingRequest, seen bool)
	tellAgain func(requestID string)
}

// message is one signal to a maintenance.
type message struct {
	// about tells which earlier message that still waits a later one makes useless; empty is none.
	about           string
	node, requestor string
	signal          string
	arg             any
	delivered       func(error)
	unsaid          func()
}

// tell lets a pending maintenance know why it waits.
func (o *outbox) tell(p api.PendingRequest) {
	o.telling++
	o.post(message{
		node: p.Node, requestor: p.Requestor, signal: api.SignalSlotPending,
		arg:       api.SlotAnswer{RequestID: p.ID, Code: p.Code, Reason: p.Reason},
		delivered: func(error) { o.telling-- }, unsaid: func() { o.telling--; o.tellAgain(p.ID) },
	})
}

// refuse ends a request: its node does not exist, or its requestor has too many. Seen tells that it did exist.
func (o *outbox) refuse(p api.PendingRequest, seen bool) {
	o.post(message{
		node: p.Node, requestor: p.Requestor, signal: api.SignalSlotRefused,
		arg:    api.SlotAnswer{RequestID: p.ID, Code: p.Code, Reason: p.Reason, Seen: seen},
		unsaid: func() { o.askAgain(p, seen) },
	})
}

func (o *outbox) granted(h api.Holder) {
	o.toHolder(h, "grant", api.SignalSlotGranted, api.SlotAnswer{RequestID: h.RequestID}, func() { o.leaveUntold(h) })
}

// hold tells a holder which freezes hold it; of several that wait to be said only the last counts.
func (o *outbox) hold(h api.Holder, notice api.FreezeNotice) {
	notice.RequestID = h.RequestID
	o.toHolder(h, "freeze", api.SignalHold, notice, func() { o.leaveUntold(h) })
}

// changed tells a holder what happened to its node. One that is not told hears of it from the next run's watch.
func (o *outbox) changed(h api.Holder, change api.NodeChange) {
	o.toHolder(h, asJSON(change), api.SignalNodeChanged, change, nil)
}

func (o *outbox) leaveUntold(h api.Holder) {
	if !slices.Contains(o.untold, h.RequestID) {
		o.untold = append(o.untold, h.RequestID)
	}
}

// toHolder signals a holder; one that does not run any more has no slot.
func (o *outbox) toHolder(h api.Holder, about, signal string, arg any, unsaid func()) {
	o.post(message{
		about: about + " " + h.RequestID, node: h.Node, requestor: h.Requestor, signal: signal, arg: arg, unsaid: unsaid,
		delivered: func(err error) {
			// Any other failure is no proof that it does not run, and a repeated request or the watch makes up for it.
			var nobody *temporal.UnknownExternalWorkflowExecutionError
			if errors.As(err, &nobody) {
				o.gone(h)
				o.dirty = true
			}
		},
	})
}

// post signals a maintenance once there is room for one more signal.
func (o *outbox) post(m message) {
	o.give(command{
		key: m.about, back: m.unsaid,
		start: func() workflow.Future {
			return workflow.SignalExternalWorkflow(o.ctx, api.MaintenanceID(o.cluster, m.node, m.requestor), "", m.signal, m.arg)
		},
		then: func(future workflow.Future) {
			err := future.Get(o.ctx, nil)
			if err != nil {
				workflow.GetLogger(o.ctx).Warn("maintenance not signalled", "node", m.node, "requestor", m.requestor, "signal", m.signal, "error", err)
			}
			if m.delivered != nil {
				m.delivered(err)
			}
		},
	})
}
