package notification

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/delivery"
	"drydock/api"
	"drydock/notify"
	"drydock/rules/notices"
	"drydock/workflows/call"
)

// tell delivers one message, or hands its events to the workflow that collects. A message that could not be delivered is
// counted, and the next one has its turn.
func (n *notification) tell(events []notices.Event, key string) error {
	now := workflow.Now(n.ctx)
	n.state.Sending = &now
	err := n.deliver(events, key)
	n.state.Sending = nil
	var cancelled *temporal.CanceledError
	switch {
	case err == nil:
		n.state.Delivered++
		return nil
	case errors.As(err, &cancelled):
		return err
	}
	n.giveUp(1, events[0].ID, err)
	return nil
}

func (n *notification) deliver(events []notices.Event, key string) error {
	ctx := call.Within(call.Quick(n.ctx, fmt.Sprintf("%s to %s", events[0].State, n.Channel)), n.state.Plan.RetryFor.Std())
	if !n.Collects && n.state.Plan.Collects() {
		return n.forward(ctx, events[0])
	}
	var receipt notify.Receipt
	err := workflow.ExecuteActivity(call.In(ctx, api.LaneMessages), call.Deliveries.Deliver, delivery.DeliverInput{
		Channel: n.Channel, Events: events, Key: n.Channel + "/" + key, Thread: n.state.Thread,
	}).Get(ctx, &receipt)
	if err == nil && n.state.Thread == "" && n.state.Plan.Thread != notices.ThreadNone {
		n.state.Thread = receipt.Thread
	}
	return err
}

// forward hands an event to the workflow that collects. What is told again is another event to that one.
func (n *notification) forward(ctx workflow.Context, e notices.Event) error {
	start, err := json.Marshal(api.NotificationInput{Channel: n.Channel, Collects: true})
	if err != nil {
		return err
	}
	return workflow.ExecuteActivity(ctx, call.Deliveries.Collect, delivery.CollectInput{
		WorkflowID:   api.CollectorID(api.ClusterOf(workflow.GetInfo(n.ctx).TaskQueueName), n.Channel),
		WorkflowType: api.NotificationType, Signal: api.SignalCollect, Start: start,
		Event: api.EventReference{Reference: *n.Maintenance, Moment: api.Moment{Sequence: e.Sequence, At: e.At}, Times: n.state.Times},
	}).Get(ctx, nil)
}
