package scheduler

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/call"
)

// maxReasons bounds the signals under way that say why a request waits: they must leave room for grants.
const maxReasons = 50

// From batchLeast grants on, each activity sends batchSize of them. Fewer are signalled, which is sooner.
const (
	batchLeast = 20
	batchSize  = 100
)

// outbox signals workflows that ask and hold, and waits for no delivery. It signals workflows and not runs: a maintenance may have been
// reset or continued as new. Every signal names the request that it is about.
type outbox struct {
	*scheduler
	// reasons counts the signals under way that say why a request waits.
	reasons int
}

func (o *outbox) sendReason(p api.PendingRequest) {
	o.reasons++
	answer := api.SlotAnswer{RequestID: p.ID, Code: p.Code, Reason: p.Reason, OpensAt: p.OpensAt}
	o.signal(p.WorkflowID(o.cluster), api.SignalSlotPending, answer, command{
		then: func(workflow.Future) { o.reasons-- },
		keep: func() { o.reasons--; o.slots.sendAgain(p.ID) },
	})
}

// sendRefusal ends a request: its node does not exist, or its requestor has too many. Seen: the node did exist.
func (o *outbox) sendRefusal(p api.PendingRequest, seen bool) {
	answer := api.SlotAnswer{RequestID: p.ID, Code: p.Code, Reason: p.Reason, Seen: seen}
	o.signal(p.WorkflowID(o.cluster), api.SignalSlotRefused, answer, command{keep: func() { o.slots.requeue(p, seen) }})
}

func (o *outbox) sendGrant(h api.Holder) {
	o.signalHolder(h, "grant", api.SignalSlotGranted, api.SlotAnswer{RequestID: h.RequestID}, func() { o.keepUnsent(h) })
}

// sendGrants sends many grants, each activity some of them: a signal each would be two events in the scheduler's own history.
func (o *outbox) sendGrants(holders []api.Holder) {
	for some := range slices.Chunk(holders, batchSize) {
		in := execution.GrantInput{Cluster: o.cluster}
		for _, h := range some {
			in.Holders = append(in.Holders, execution.GrantedSlot{Node: h.Node, Requestor: h.Requestor, RequestID: h.RequestID})
		}
		o.commands.add(command{
			start: func() workflow.Future {
				return workflow.ExecuteActivity(call.Quick(o.ctx, "send grants to maintenances"), call.Executions.SendGrants, in)
			},
			then: func(future workflow.Future) {
				var gone []string
				if err := future.Get(o.ctx, &gone); err != nil {
					workflow.GetLogger(o.ctx).Warn("grants not sent", "error", err)
				}
				for _, h := range some {
					if slices.Contains(gone, h.RequestID) {
						o.reclaimUnreachable(h)
					}
				}
			},
			keep: func() {
				for _, h := range some {
					o.keepUnsent(h)
				}
			},
		})
	}
}

// sendHold sends a holder which freezes hold it. Of several notices that wait only the last is sent.
func (o *outbox) sendHold(h api.Holder, notice api.FreezeNotice) {
	notice.RequestID = h.RequestID
	o.signalHolder(h, "freeze", api.SignalHold, notice, func() { o.keepUnsent(h) })
}

// sendChange sends a holder what happened to its node. Where it is not sent, the next run's watch reports the change again.
func (o *outbox) sendChange(h api.Holder, change api.NodeChange) {
	o.signalHolder(h, asJSON(change), api.SignalNodeChanged, change, nil)
}

func (o *outbox) keepUnsent(h api.Holder) {
	if !slices.Contains(o.Unsent, h.RequestID) {
		o.Unsent = append(o.Unsent, h.RequestID)
	}
}

func (o *outbox) reclaimUnreachable(h api.Holder) {
	o.reclaimer.reclaim(h, "it had ended when a signal was sent to it")
	o.dirty = true
}

func (o *outbox) signalHolder(h api.Holder, about, signal string, arg any, keep func()) {
	o.signal(h.WorkflowID(o.cluster), signal, arg, command{
		key: about + " " + h.RequestID, keep: keep,
		then: func(future workflow.Future) {
			// Any other failure is no proof that it does not run, and a repeated request or the watch makes up for it.
			if call.IsNobody(future.Get(o.ctx, nil)) {
				o.reclaimUnreachable(h)
			}
		},
	})
}

// signal completes a command to one that signals a workflow.
func (o *outbox) signal(to, signal string, arg any, c command) {
	then := c.then
	c.start = func() workflow.Future { return workflow.SignalExternalWorkflow(o.ctx, to, "", signal, arg) }
	c.then = func(future workflow.Future) {
		if err := future.Get(o.ctx, nil); err != nil {
			workflow.GetLogger(o.ctx).Warn("workflow not signalled", "workflow", to, "signal", signal, "error", err)
		}
		if then != nil {
			then(future)
		}
	}
	o.commands.add(c)
}
