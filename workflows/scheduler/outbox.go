package scheduler

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
)

// tellAtOnce bounds the signals under way that tell why a request waits; the rest follow as those are delivered. A
// server refuses 2,000.
const tellAtOnce = 50

// outbox signals maintenances, and waits for no delivery.
type outbox struct {
	*loop
	cluster string
	// telling counts the signals under way that tell why a request waits.
	telling int

	// gone hears of holders that do not run any more.
	gone func(api.Holder)
}

// tell lets a pending maintenance know why it waits.
func (o *outbox) tell(p api.PendingRequest) {
	o.telling++
	o.signal(p.SlotRequest, api.SignalSlotPending,
		api.SlotAnswer{RequestID: p.ID, Code: p.Code, Reason: p.Reason}, func(error) { o.telling-- })
}

// refuse ends a request: its node does not exist, or its requestor has too many. Seen tells that it did exist.
func (o *outbox) refuse(p api.PendingRequest, seen bool) {
	answer := api.SlotAnswer{RequestID: p.ID, Code: p.Code, Reason: p.Reason, Seen: seen}
	o.signal(p.SlotRequest, api.SignalSlotRefused, answer, func(error) {})
}

func (o *outbox) granted(h api.Holder) {
	o.toHolder(h, api.SignalSlotGranted, api.SlotAnswer{RequestID: h.RequestID})
}

// toHolder signals a holder; one that does not run any more has no slot.
func (o *outbox) toHolder(h api.Holder, signal string, arg any) {
	request := api.SlotRequest{RunID: h.RunID}
	request.Node, request.Requestor = h.Node, h.Requestor
	o.signal(request, signal, arg, func(err error) {
		// Any other failure is no proof that it does not run, and a repeated request or the watch makes up for it.
		var nobody *temporal.UnknownExternalWorkflowExecutionError
		if errors.As(err, &nobody) {
			o.gone(h)
			o.dirty = true
		}
	})
}

// signal signals one run of a maintenance.
func (o *outbox) signal(to api.SlotRequest, signal string, arg any, delivered func(error)) {
	id := api.MaintenanceID(o.cluster, to.Node, to.Requestor)
	future := workflow.SignalExternalWorkflow(o.ctx, id, to.RunID, signal, arg)
	o.whenDelivered(future, func() {
		err := future.Get(o.ctx, nil)
		if err != nil {
			workflow.GetLogger(o.ctx).Warn("maintenance not signalled", "node", to.Node, "requestor", to.Requestor, "signal", signal, "error", err)
		}
		delivered(err)
	})
}
