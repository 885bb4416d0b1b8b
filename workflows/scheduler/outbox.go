package scheduler

import (
	"errors"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/execution"
	"drydock/api"
	"drydock/workflows/call"
)

// tellAtOnce bounds the signals under way that tell why a request waits: they must not be in the way of grants.
const tellAtOnce = 50

// Of togetherLeast grants or more each activity tells togetherMost. Fewer are signalled, which is sooner.
const (
	togetherLeast = 20
	togetherMost  = 100
)

// outbox signals those who ask and hold, and waits for no delivery. It signals workflows and not runs: a maintenance may have been
// reset or continued as new. Every signal names the request that it is about.
type outbox struct {
	*commands
	cluster   string
	ledger    *ledger
	reclaimer *reclaimer
	// telling counts the signals under way that tell why a request waits.
	telling int
	// untold are the holders that have still to be told of their grant and of freezes when the next run begins.
	untold api.List[string]
}

// message is one signal to a workflow.
type message struct {
	// about tells which earlier message that still waits a later one makes useless; empty is none.
	about, to string
	signal    string
	arg       any
	delivered func(error)
	unsaid    func()
}

// tell lets a pending maintenance know why it waits.
func (o *outbox) tell(p api.PendingRequest) {
	o.telling++
	o.post(message{
		to: p.WorkflowID(o.cluster), signal: api.SignalSlotPending,
		arg:       api.SlotAnswer{RequestID: p.ID, Code: p.Code, Reason: p.Reason, OpensAt: p.OpensAt},
		delivered: func(error) { o.telling-- }, unsaid: func() { o.telling--; o.ledger.tellOnceMore(p.ID) },
	})
}

// refuse ends a request: its node does not exist, or its requestor has too many. Seen tells that it did exist.
func (o *outbox) refuse(p api.PendingRequest, seen bool) {
	o.post(message{
		to: p.WorkflowID(o.cluster), signal: api.SignalSlotRefused,
		arg:    api.SlotAnswer{RequestID: p.ID, Code: p.Code, Reason: p.Reason, Seen: seen},
		unsaid: func() { o.ledger.askAgain(p, seen) },
	})
}

func (o *outbox) granted(h api.Holder) {
	o.toHolder(h, "grant", api.SignalSlotGranted, api.SlotAnswer{RequestID: h.RequestID}, func() { o.leaveUntold(h) })
}

// grantedTogether tells many holders of their slots: each activity some of them, where a signal would be two events in the
// scheduler's own history.
func (o *outbox) grantedTogether(holders []api.Holder) {
	for some := range slices.Chunk(holders, togetherMost) {
		in := execution.GrantInput{Cluster: o.cluster}
		for _, h := range some {
			in.Holders = append(in.Holders, execution.GrantedSlot{Node: h.Node, Requestor: h.Requestor, RequestID: h.RequestID})
		}
		o.give(command{
			back: func() {
				for _, h := range some {
					o.leaveUntold(h)
				}
			},
			start: func() workflow.Future {
				return workflow.ExecuteActivity(call.Quick(o.ctx, "tell maintenances of their slots"), call.Executions.TellGranted, in)
			},
			then: func(future workflow.Future) { o.told(some, future) },
		})
	}
}

func (o *outbox) told(holders []api.Holder, future workflow.Future) {
	var gone []string
	if err := future.Get(o.ctx, &gone); err != nil {
		workflow.GetLogger(o.ctx).Warn("maintenances not told of their slots", "error", err)
	}
	for _, h := range holders {
		if slices.Contains(gone, h.RequestID) {
			o.gone(h)
		}
	}
}

// gone has the slot taken back of a holder that does not run any more.
func (o *outbox) gone(h api.Holder) {
	o.reclaimer.reclaim(h, "it ended before it could be told")
	o.dirty = true
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
		about: about + " " + h.RequestID, to: h.WorkflowID(o.cluster), signal: signal, arg: arg, unsaid: unsaid,
		delivered: func(err error) {
			// Any other failure is no proof that it does not run, and a repeated request or the watch makes up for it.
			var nobody *temporal.UnknownExternalWorkflowExecutionError
			if errors.As(err, &nobody) {
				o.gone(h)
			}
		},
	})
}

// post signals a workflow once there is room for one more signal.
func (o *outbox) post(m message) {
	o.give(command{
		key: m.about, back: m.unsaid,
		start: func() workflow.Future {
			return workflow.SignalExternalWorkflow(o.ctx, m.to, "", m.signal, m.arg)
		},
		then: func(future workflow.Future) {
			err := future.Get(o.ctx, nil)
			if err != nil {
				workflow.GetLogger(o.ctx).Warn("workflow not signalled", "workflow", m.to, "signal", m.signal, "error", err)
			}
			if m.delivered != nil {
				m.delivered(err)
			}
		},
	})
}
