package notification

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/workflows/call"
)

// message is what is sent to the channel in one piece. retryFor counts from the time it was due.
type message struct {
	events []notices.Event
	key    string
	due    time.Time
}

// send delivers one message, or hands its events to the workflow that collects. A message that could not be delivered is counted, and the next
// one follows.
func (n *notification) send(m message) error {
	n.state.Sending = new(workflow.Now(n.ctx))
	err := n.deliver(m)
	n.state.Sending = nil
	n.note(m, err)
	switch {
	case err == nil:
		n.state.Delivered++
		return nil
	case temporal.IsCanceledError(err):
		return err
	}
	n.giveUp(1, m.events[0].ID, err)
	return nil
}

const maxOutcomes = 100

// note keeps the outcome of each of a message's events; for an event that was sent several times, the last one.
func (n *notification) note(m message, err error) {
	outcome := "delivered"
	switch {
	case err != nil:
		outcome = bounds.Cut("not delivered: "+call.Cause(err), bounds.Text)
	case !n.Collects && n.state.Plan.Collects():
		outcome = "given to what collects for the channel"
	}
	for _, e := range m.events {
		n.state.Outcomes = slices.DeleteFunc(n.state.Outcomes, func(o api.DeliveryOutcome) bool { return o.Event == e.ID })
		n.state.Outcomes = append(n.state.Outcomes, api.DeliveryOutcome{Event: e.ID, At: workflow.Now(n.ctx), Outcome: outcome})
	}
	n.state.Outcomes = slices.Clone(n.state.Outcomes[max(len(n.state.Outcomes)-maxOutcomes, 0):])
}

// lateTries is how often a message is tried, within lateWithin, whose retryFor is over before it is sent first.
const (
	lateTries  = 3
	lateWithin = 5 * time.Minute
)

func (n *notification) deliver(m message) error {
	ctx := call.Quick(n.ctx, fmt.Sprintf("%s to %s", m.events[0].State, n.Channel))
	now, retryFor := workflow.Now(n.ctx), n.state.Plan.RetryFor.Std()
	until := m.due.Add(retryFor)
	if late := min(lateWithin, retryFor); until.Sub(now) < late/2 {
		// Messages behind a receiver that does not answer are each tried a few times.
		ctx, until = call.Times(ctx, lateTries), now.Add(late)
	}
	ctx = call.Within(ctx, until.Sub(now))
	if !n.Collects && n.state.Plan.Collects() {
		return n.forward(ctx, m.events[0])
	}
	var receipt notify.Receipt
	err := workflow.ExecuteActivity(call.In(ctx, api.LaneMessages), call.Deliveries.Deliver, delivery.DeliverInput{
		Channel: n.Channel, Events: m.events, Key: n.Channel + "/" + m.key, Thread: n.state.Thread, Until: until,
	}).Get(ctx, &receipt)
	// The receipt has another thread where the first message of the present one was deleted.
	if err == nil && receipt.Thread != "" && n.state.Plan.Thread != notices.ThreadNone {
		n.state.Thread = receipt.Thread
	}
	return err
}

// forward hands an event to the workflow that collects. There a repetition counts as another event.
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
