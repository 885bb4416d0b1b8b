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
	n.giveUp(events[0].ID, err)
	return nil
}

func (n *notification) giveUp(event string, err error) {
	n.state.GivenUp++
	n.state.LastError = call.Cause(err)
	workflow.GetMetricsHandler(n.ctx).WithTags(map[string]string{"channel": n.Channel.Name}).Counter("drydock_deliveries_given_up").Inc(1)
	workflow.GetLogger(n.ctx).Error("a message was not delivered", "channel", n.Channel.Name, "event", event, "error", err)
}

func (n *notification) deliver(events []notices.Event, key string) error {
	ctx := call.Within(call.Quick(n.ctx, fmt.Sprintf("%s to %s", events[0].State, n.Channel.Name)), n.Channel.RetryFor.Std())
	if !n.Collects && n.Channel.Collects() {
		e := events[0]
		if n.state.Times > 0 {
			// What is told again is another event to the workflow that collects.
			e.ID = fmt.Sprintf("%s/%d", e.ID, n.state.Times)
		}
		return n.forward(ctx, e)
	}
	var receipt notify.Receipt
	err := workflow.ExecuteActivity(ctx, call.Deliveries.Deliver, delivery.DeliverInput{
		Channel: n.Channel.Name, Events: events, Key: n.Channel.Name + "/" + key, Thread: n.state.Thread,
	}).Get(ctx, &receipt)
	if err == nil && n.state.Thread == "" && n.Channel.Thread != notices.ThreadNone {
		n.state.Thread = receipt.Thread
	}
	return err
}

func (n *notification) forward(ctx workflow.Context, e notices.Event) error {
	start, err := json.Marshal(api.NotificationInput{Channel: n.Channel, Collects: true})
	if err != nil {
		return err
	}
	return workflow.ExecuteActivity(ctx, call.Deliveries.Collect, delivery.CollectInput{
		WorkflowID:   api.CollectorID(api.ClusterOf(workflow.GetInfo(n.ctx).TaskQueueName), n.Channel.Name),
		WorkflowType: api.NotificationType, Signal: api.SignalEvent, Event: e, Start: start,
	}).Get(ctx, nil)
}
