package notification

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/bounds"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/inbox"
	"errors"
	"fmt"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// notification is one run of Notification.
type notification struct {
	api.NotificationInput
	ctx   workflow.Context
	state api.NotificationCarried
	inbox *inbox.Inbox
}

// Notification tells one channel what happens, in order, each event once; a failed delivery is tried again for as long as
// the channel says, and the ones behind it wait. Its input is an api.NotificationInput.
func Notification(ctx workflow.Context, input converter.RawValue) (api.NotificationStatus, error) {
	n := &notification{ctx: ctx}
	if err := n.setUp(inbox.Payload(input)); err != nil {
		return api.NotificationStatus{}, err
	}
	var err error
	if n.Collects {
		err = collector{n}.collect()
	} else {
		err = n.follow()
	}
	if err != nil {
		return n.status(), err
	}
	if n.state.GivenUp > 0 {
		return n.status(), temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("%d messages to %s were not delivered: %s", n.state.GivenUp, n.Channel, n.state.LastError), api.ErrorNotDelivered, nil, n.status())
	}
	return n.status(), nil
}

// setUp reads the input, and begins to listen.
func (n *notification) setUp(input []byte) error {
	err := spec.DecodeStrict(input, &n.NotificationInput)
	if err == nil {
		err = n.check()
	}
	if err != nil {
		return inbox.InvalidSpec(err)
	}
	if n.Carried != nil {
		n.state = *n.Carried
	}
	n.state.Channel = n.Channel
	if err := workflow.SetQueryHandler(n.ctx, api.QueryStatus, func() (api.NotificationStatus, error) { return n.status(), nil }); err != nil {
		return err
	}
	n.inbox = inbox.New(n.ctx, inbox.Ears{Refused: func(name string, _ api.Message, _ api.Outcome, why error) { n.refused(name, why) }})
	if n.Collects {
		inbox.Receive(n.inbox, api.SignalCollect, collector{n}.queue)
	} else {
		inbox.Receive(n.inbox, api.SignalEvent, n.hear)
	}
	n.inbox.Open(nil)
	return nil
}

// check refuses an input that makes no sense, and what only a run before this one can know.
func (n *notification) check() error {
	switch {
	case n.Channel == "":
		return errors.New("channel: is missing: want the name of a channel of the worker's configuration")
	case n.Collects && n.Maintenance != nil:
		return errors.New("maintenance: has no meaning with collects")
	case !n.Collects && n.Maintenance == nil:
		return errors.New("maintenance: is missing: want {workflowId, runId} of what is to be told of")
	case n.Carried != nil && !inbox.IsContinued(n.ctx):
		return errors.New("carried: is taken from an earlier run of the same workflow only")
	}
	return nil
}

func (n *notification) status() api.NotificationStatus {
	s := n.state.NotificationStatus
	s.Waiting = len(n.state.Upcoming) + len(n.state.Queue)
	return s
}

// refused counts a signal that says nothing true. It changes nothing.
func (n *notification) refused(name string, why error) {
	n.state.Refused++
	n.state.LastRefused = bounds.Cut(name+": "+why.Error(), bounds.Text)
	n.count("drydock_event_signals_refused")
	workflow.GetLogger(n.ctx).Warn("a signal was refused", "signal", name, "why", n.state.LastRefused)
}

// giveUp counts messages that are not delivered.
func (n *notification) giveUp(messages int, what string, err error) {
	n.state.GivenUp += messages
	n.state.LastError = bounds.Cut(call.Cause(err), bounds.Text)
	for range messages {
		n.count("drydock_deliveries_given_up")
	}
	workflow.GetLogger(n.ctx).Error("messages were not delivered", "messages", messages, "channel", n.Channel, "event", what, "error", err)
}

// count counts by channel. Only the worker's channels have a counter: a name that somebody has made up has none.
func (n *notification) count(counter string) {
	if n.state.Plan != nil {
		workflow.GetMetricsHandler(n.ctx).WithTags(map[string]string{"channel": n.Channel}).Counter(counter).Inc(1)
	}
}

// shouldContinue tells that the history is long enough, and no signal is on its way to nowhere.
func (n *notification) shouldContinue() bool {
	return workflow.GetInfo(n.ctx).GetContinueAsNewSuggested() && !n.inbox.Unread()
}

func (n *notification) continueAsNew() error {
	return workflow.NewContinueAsNewError(n.ctx, api.NotificationType, api.NotificationInput{
		Channel: n.Channel, Maintenance: n.Maintenance, Collects: n.Collects, Carried: &n.state,
	})
}

// settled lets the signals that have arrived be taken. One that was handed to the reader is not pending any more: the
// reader has its turn first.
func (n *notification) settled() error {
	turns := 0
	return workflow.Await(n.ctx, func() bool { turns++; return turns > 1 && !n.inbox.Unread() })
}
