package notification

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/workflows/call"
)

const (
	// readWithin bounds one attempt to read, for which a worker may have to replay many histories. readRetry bounds the pause between two
	// attempts: a maintenance that cannot answer does not recover within seconds.
	readWithin = 2 * time.Minute
	readRetry  = 5 * time.Minute
)

// reading is for activities that query maintenances.
func reading(ctx workflow.Context, summary string) workflow.Context {
	return call.Pausing(workflow.WithStartToCloseTimeout(call.Quick(ctx, summary), readWithin), readRetry)
}

// noteNews takes a signal that the maintenance has new events. However many signals come, the events are read once.
func (n *notification) noteNews(m api.Moment) {
	switch {
	case m.Sequence < 1:
		n.refused(api.SignalEvent, fmt.Errorf("sequence: %d: want 1 or more", m.Sequence))
	case m.At.IsZero():
		n.refused(api.SignalEvent, errors.New("at: is missing: want the time of the event"))
	case m.Compare(n.state.News) > 0:
		n.state.News = m
	}
}

func (n *notification) hasNews() bool {
	return !n.state.Closed && (n.state.More || n.state.News.Compare(n.state.Read) > 0)
}

// read reads the events after the latest known one.
func (n *notification) read() error {
	said := n.state.News
	n.state.News = api.Moment{}
	var read delivery.Read
	ctx := reading(n.ctx, "what is new for "+n.Channel)
	err := workflow.ExecuteActivity(ctx, call.Deliveries.ReadEvents, delivery.ReadInput{
		Channel: n.Channel, Maintenance: *n.Maintenance, After: n.state.Read,
	}).Get(ctx, &read)
	if err != nil {
		if n.state.Plan == nil || !temporal.IsApplicationError(err) {
			return err
		}
		// Temporal has it no more, or it does not name the channel: only the events that were read are sent.
		n.giveUp(1, "what was not read", err)
		n.state.Closed, n.state.More = true, false
		return nil
	}
	if n.state.Plan == nil {
		n.state.Plan = &read.Plan
	}
	n.state.Upcoming = append(n.state.Upcoming, read.Events...)
	if k := len(read.Events); k > 0 {
		n.state.Read = api.Moment{Sequence: read.Events[k-1].Sequence, At: read.Events[k-1].At}
	}
	n.state.More, n.state.Closed = read.More, read.Closed
	if read.Lost > 0 {
		n.giveUp(read.Lost, "what is not kept", fmt.Errorf("%s not kept by the maintenance any more", number.Are(read.Lost, "event")))
	}
	if read.Unanswered != "" {
		n.giveUp(1, "what cannot be read", errors.New(read.Unanswered))
	}
	if !read.More && said.Compare(n.state.Read) > 0 {
		n.refused(api.SignalEvent, fmt.Errorf("the maintenance has no event %d of %s", said.Sequence, said.At.UTC().Format(time.RFC3339)))
	}
	return nil
}

func (n *notification) await(limit time.Duration, condition func() bool) error {
	waiting, cancel := workflow.WithCancel(n.ctx)
	defer cancel() // a timer left behind would wake the workflow for nothing
	_, err := workflow.AwaitWithOptions(waiting, workflow.AwaitOptions{
		Timeout: limit, TimerOptions: workflow.TimerOptions{Summary: "wait for events"},
	}, condition)
	if err != nil {
		return err
	}
	return n.settled()
}
