// Package notification is the workflow that tells one channel what happens, in order, and outlives the maintenance.
package notification

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
)

// notification is one run of Notification.
type notification struct {
	api.NotificationInput
	ctx   workflow.Context
	state api.NotificationCarried
	inbox workflow.ReceiveChannel
}

// Notification tells one channel what happens, in order, each event once; a failed delivery is tried again for as long as
// the channel says, and the ones behind it wait.
func Notification(ctx workflow.Context, in api.NotificationInput) (api.NotificationStatus, error) {
	n := &notification{NotificationInput: in, ctx: ctx, state: in.Carried, inbox: workflow.GetSignalChannel(ctx, api.SignalEvent)}
	n.state.Channel = in.Channel.Name
	n.Waiting = nil
	for _, e := range in.Waiting {
		n.take(e)
	}
	if err := workflow.SetQueryHandler(ctx, api.QueryStatus, func() (api.NotificationStatus, error) { return n.status(), nil }); err != nil {
		return api.NotificationStatus{}, err
	}
	var err error
	if in.Collects {
		err = n.collect()
	} else {
		err = n.follow()
	}
	if err != nil {
		return n.status(), err
	}
	if n.state.GivenUp > 0 {
		return n.status(), temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("%d messages to %s were not delivered: %s", n.state.GivenUp, n.Channel.Name, n.state.LastError), api.ErrorNotDelivered, nil, n.status())
	}
	return n.status(), nil
}

func (n *notification) status() api.NotificationStatus {
	s := n.state.NotificationStatus
	s.Waiting = len(n.Waiting)
	return s
}

// shouldContinue tells that the history is long enough.
func (n *notification) shouldContinue() bool {
	return workflow.GetInfo(n.ctx).GetContinueAsNewSuggested()
}

func (n *notification) continueAsNew() error {
	return workflow.NewContinueAsNewError(n.ctx, api.NotificationType, api.NotificationInput{
		Channel: n.Channel, Collects: n.Collects, Carried: n.state, Waiting: n.takeWaiting(),
	})
}
