// Package notification is the workflow that sends events to one channel, in order, and outlives the maintenance. Anybody may send signals: they
// only say that there are events, which it reads from the maintenances themselves.
package notification

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/handover"
	"drydock.dev/drydock/workflows/inbox"
	"drydock.dev/drydock/workflows/meter"
)

type notification struct {
	api.NotificationInput
	ctx   workflow.Context
	state api.NotificationCarried
	inbox *inbox.Inbox
	// unknown is what a newer release handed over.
	unknown handover.Unknown
}

// Notification sends events to one channel, in order, each once. A failed delivery is tried again for the channel's retryFor, and those behind
// it wait. Its input is an api.NotificationInput.
func Notification(ctx workflow.Context, input converter.RawValue) (api.NotificationStatus, error) {
	n := &notification{ctx: ctx}
	if err := n.setUp(input); err != nil {
		return api.NotificationStatus{}, err
	}
	var err error
	if n.Collects {
		err = n.collect()
	} else {
		err = n.follow()
	}
	if err != nil {
		return n.status(), err
	}
	if n.state.GivenUp > 0 {
		return n.status(), temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("%s not delivered: %s", number.Form(n.state.GivenUp, "message to "+n.Channel+" was", "messages to "+n.Channel+" were"), n.state.LastError), api.ErrorNotDelivered, nil, n.status())
	}
	return n.status(), nil
}

// receive reads the input. A state of an earlier run is never refused: where it cannot be read, the workflow stands still.
func (n *notification) receive(input converter.RawValue) (err error) {
	if inbox.IsContinued(n.ctx) {
		n.unknown, err = handover.Read(input, &n.NotificationInput)
		handover.Must("the state of the run before", err)
	} else if err := spec.DecodeStrict(inbox.Payload(input), &n.NotificationInput); err != nil {
		return err
	}
	return n.check()
}

// setUp reads the input, and serves the query and the signals.
func (n *notification) setUp(input converter.RawValue) error {
	if err := n.receive(input); err != nil {
		return inbox.InvalidSpec(err)
	}
	if n.Carried != nil {
		n.state = *n.Carried
	}
	n.state.Channel = n.Channel
	if err := workflow.SetQueryHandler(n.ctx, api.QueryStatus, func() (api.NotificationStatus, error) { return n.status(), nil }); err != nil {
		return err
	}
	n.inbox = inbox.New(n.ctx, n)
	if n.Collects {
		inbox.Receive(n.inbox, api.SignalCollect, n.queue)
	} else {
		inbox.Receive(n.inbox, api.SignalEvent, n.noteNews)
	}
	n.inbox.Open()
	return nil
}

// check refuses an input that makes no sense, and a carried state that no earlier run handed over.
func (n *notification) check() error {
	switch {
	case n.Channel == "":
		return errors.New("channel: is missing: want the name of a channel of the worker's configuration")
	case n.Collects && n.Maintenance != nil:
		return errors.New("maintenance: has no meaning with collects")
	case !n.Collects && n.Maintenance == nil:
		return errors.New("maintenance: is missing: want {workflowId, runId} of the maintenance")
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

func (n *notification) Refused(name string, _ api.Message, _ api.Outcome, why error) {
	n.refused(name, why)
}

func (n *notification) refused(name string, why error) {
	n.state.Refused++
	n.state.LastRefused = bounds.Cut(name+": "+why.Error(), bounds.Text)
	n.count(meter.Refused)
	workflow.GetLogger(n.ctx).Warn("a signal was refused", "signal", name, "why", n.state.LastRefused)
}

// giveUp counts messages that are not tried any more.
func (n *notification) giveUp(messages int, what string, err error) {
	n.state.GivenUp += messages
	n.state.LastError = bounds.Cut(call.Cause(err), bounds.Text)
	for range messages {
		n.count(meter.GivenUp)
	}
	workflow.GetLogger(n.ctx).Error("messages were not delivered", "messages", messages, "channel", n.Channel, "event", what, "error", err)
}

// count adds one to a metric of the channel. It does so once Plan shows that the worker has the channel: anybody may start a workflow for a
// name.
func (n *notification) count(m meter.Metric) {
	if n.state.Plan != nil {
		m.Count(n.ctx, n.Channel)
	}
}

// shouldContinue reports whether the server suggests a new run, and no signal would be lost.
func (n *notification) shouldContinue() bool {
	return workflow.GetInfo(n.ctx).GetContinueAsNewSuggested() && !n.inbox.Unread()
}

func (n *notification) continueAsNew() error {
	n.Carried = &n.state
	next, err := contract.Write(n.NotificationInput, n.unknown)
	handover.Must("the state for the next run", err)
	return workflow.NewContinueAsNewError(n.ctx, api.NotificationType, next)
}

// settled waits until the signals that have arrived were read. The coroutine that reads them has to run once: a signal that it has received
// is not pending any more.
func (n *notification) settled() error {
	turns := 0
	return workflow.Await(n.ctx, func() bool { turns++; return turns > 1 && !n.inbox.Unread() })
}
