// Package delivery sends events to channels, and keeps audit records.
package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/notices"
)

// Activities send events to channels, and keep audit records.
type Activities struct {
	Temporal client.Client
	Senders  *notify.Senders
	Sinks    *audit.Sinks
	Metrics  *Metrics

	self execution.Self
}

// DeliverInput is a message for one channel.
type DeliverInput struct {
	Channel string          `json:"channel"`
	Events  []notices.Event `json:"events"`
	// Key is the same whenever the message is sent again.
	Key string `json:"key"`
	// Thread is what an earlier message of the same thread returned.
	Thread string `json:"thread,omitempty"`
	// Until is when it is given up; zero is unknown.
	Until time.Time `json:"until,omitzero"`
}

// Deliver sends a message once. Errors: Undeliverable.
func (n *Activities) Deliver(ctx context.Context, in DeliverInput) (notify.Receipt, error) {
	receipt, err := n.Senders.Send(ctx, in.Channel, notify.Message{Events: in.Events, Key: in.Key, Thread: in.Thread})
	n.Metrics.delivered(in.Channel, err)
	switch {
	case err == nil:
		if len(receipt.Refused) > 0 {
			activity.GetLogger(ctx).Warn("some recipients were not told", "channel", in.Channel, "refused", receipt.Refused)
		}
		return receipt, nil
	case notify.Permanent(err):
		return receipt, temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorUndeliverable, nil)
	default:
		return receipt, temporal.NewApplicationErrorWithOptions(err.Error(), "NotDelivered",
			temporal.ApplicationErrorOptions{NextRetryDelay: in.pause(notify.RetryAfter(err), time.Now())})
	}
}

// lastTry is how long before its time is over a message is tried for the last time.
const lastTry = time.Minute

// pause returns for how long nothing is sent to the receiver, at its own request. Where that would end after the message's
// time, the message gets a last try before: Temporal would give it up at once.
func (in DeliverInput) pause(asked time.Duration, now time.Time) time.Duration {
	if in.Until.IsZero() || asked <= 0 {
		return asked
	}
	left := in.Until.Sub(now)
	return max(min(asked, left-min(lastTry, left/4)), 0)
}

// CollectInput is an event for a workflow that collects those of many maintenances. WorkflowType, Signal and Start are what workers of
// earlier versions need.
type CollectInput struct {
	WorkflowID   string             `json:"workflowId"`
	WorkflowType string             `json:"workflowType"`
	Signal       string             `json:"signal"`
	Event        api.EventReference `json:"event"`
	Start        json.RawMessage    `json:"start"`
}

// Collect gives an event to the workflow that collects, and starts it where it does not run. Errors: ForeignCaller.
func (n *Activities) Collect(ctx context.Context, in CollectInput) error {
	channel := strings.TrimPrefix(in.WorkflowID, api.CollectorID(api.ClusterOf(activity.GetInfo(ctx).TaskQueue), ""))
	start := api.NotificationInput{Channel: channel, Collects: true}
	if err := caller.SignalWithStart(ctx, n.Temporal, in.WorkflowID, api.SignalCollect, in.Event, start); err != nil {
		return fmt.Errorf("collecting for %s: %w", in.WorkflowID, err)
	}
	return nil
}
