package delivery

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"

	"drydock.dev/drydock/activities/account"
	"drydock.dev/drydock/api"
)

const (
	// maxNames bounds the workflow IDs under which the workflow of a channel is looked for: its own may have been
	// taken.
	maxNames = 5
	// onItsWay is what is known of an event that has not had its turn.
	onItsWay = "not delivered yet"
)

// addOutcomes adds to every event for a channel what became of it by now. Where that cannot be found out, it
// stays at what the maintenance knows: that it was handed over.
func (n *Activities) addOutcomes(ctx context.Context, ref api.Reference, a *account.Account) {
	_, node, requestor, err := api.ParseMaintenanceID(ref.WorkflowID)
	if err != nil {
		return
	}
	for _, channel := range a.Status.Tells {
		id := api.NotificationID(a.Cluster, channel, node, requestor, ref.RunID)
		status, err := n.notificationOf(ctx, id, channel, ref)
		if err != nil {
			activity.GetLogger(ctx).Warn("what became of the messages to a channel is not known", "channel", channel, "error", err)
		}
		if status == nil {
			continue
		}
		outcomes := map[string]string{}
		for _, o := range status.Outcomes {
			outcomes[o.Event] = o.Outcome
		}
		for i, record := range a.Status.Channels {
			if record.Channel != channel || record.Outcome != api.HandedOver {
				continue
			}
			if outcome, known := outcomes[record.Event]; known {
				a.Status.Channels[i].Outcome = outcome
			} else {
				a.Status.Channels[i].Outcome = onItsWay
			}
		}
	}
}

// notificationOf is the status of the workflow that sends a channel the events of a maintenance, or has sent them; nil if there
// is none.
func (n *Activities) notificationOf(ctx context.Context, id, channel string, ref api.Reference) (*api.NotificationStatus, error) {
	for i := range maxNames {
		at := id
		if i > 0 {
			at = fmt.Sprintf("%s/%d", id, i+1)
		}
		described, err := n.Temporal.DescribeWorkflowExecution(ctx, at, "")
		if err != nil {
			return nil, err
		}
		does, err := Does(ctx, n.Temporal, activity.GetInfo(ctx).TaskQueue, SameInput{
			WorkflowID: at, WorkflowType: api.NotificationType, Maintenance: ref, Channel: channel,
		}, described.GetWorkflowExecutionInfo())
		if err != nil {
			return nil, err
		}
		if !does {
			continue
		}
		value, err := n.Temporal.QueryWorkflow(ctx, at, "", api.QueryStatus)
		if err != nil {
			return nil, err
		}
		var status api.NotificationStatus
		return &status, value.Get(&status)
	}
	return nil, nil
}
