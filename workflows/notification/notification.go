// Package notification is the workflow that tells one channel what happens, in order, and outlives the maintenance.
package notification

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/delivery"
	"drydock/activities/execution"
	"drydock/api"
	"drydock/notify"
	"drydock/rules/notices"
	"drydock/workflows/call"
)

const (
	// maxSeen bounds the IDs that are remembered, maxWaiting the events that wait, digestAtOnce those of one message.
	maxSeen      = 200
	maxWaiting   = 1000
	digestAtOnce = 100
	// askAfter is how long a maintenance may say nothing before it is asked after: one that was terminated does not say
	// that it has ended.
	askAfter = 24 * time.Hour
	// idleFor is how long a workflow that collects waits for more before it ends.
	idleFor = time.Minute
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
	n.state.Channel = in.Plan.Channel
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
			fmt.Sprintf("%d messages to %s were not delivered: %s", n.state.GivenUp, n.Plan.Channel, n.state.LastError), api.ErrorNotDelivered, nil, n.status())
	}
	return n.status(), nil
}

func (n *notification) status() api.NotificationStatus {
	s := n.state.NotificationStatus
	s.Waiting = len(n.Waiting)
	return s
}

// read takes all events that have arrived. Nothing else receives them, so that none is on its way to nowhere when the
// workflow ends or continues as a new run.
func (n *notification) read() {
	var e notices.Event
	for n.inbox.ReceiveAsync(&e) {
		n.take(e)
		e = notices.Event{}
	}
}

// take queues an event that was not there yet. Of too many that wait behind a dead receiver the oldest are given up: they
// have to fit into what a run hands to the next.
func (n *notification) take(e notices.Event) {
	if slices.Contains(n.state.Seen, e.ID) {
		return
	}
	if len(n.Waiting) >= maxWaiting {
		n.giveUp(n.Waiting[0].ID, fmt.Errorf("more than %d events wait for %s", maxWaiting, n.Plan.Channel))
		n.Waiting = n.Waiting[1:]
	}
	n.state.Seen = append(n.state.Seen, e.ID)
	if extra := len(n.state.Seen) - maxSeen; extra > 0 {
		n.state.Seen = n.state.Seen[extra:]
	}
	n.Waiting = append(n.Waiting, e)
}

// follow tells of one maintenance until its end: each state as the channel's schedule has it, while it lasts.
func (n *notification) follow() error {
	for {
		n.read()
		if n.shouldContinue() {
			return n.continueAsNew()
		}
		if over, err := n.turn(); err != nil || over {
			return err
		}
	}
}

// turn does what is to be done next: it tells of the present state, waits for its time, or comes to the next event.
func (n *notification) turn() (over bool, err error) {
	if c := n.state.Current; c != nil {
		at, ok := n.due(*c)
		now := workflow.Now(n.ctx)
		switch {
		case ok && !at.After(now):
			return n.tellCurrent(*c)
		case ok && len(n.Waiting) == 0:
			return false, n.awaitEvent(at.Sub(now))
		case !ok && notices.Ends(c.State):
			return true, nil
		}
	}
	if over, err := n.awaitNext(); err != nil || over {
		return over, err
	}
	return false, n.next()
}

// due is when the present state is to be told; it is not where the state is over before that.
func (n *notification) due(e notices.Event) (at time.Time, ok bool) {
	at, ok = n.Plan.Next(e, n.state.LastTold, time.Time{})
	overSooner := len(n.Waiting) > 0 && notices.Lasts(n.Waiting[0].State) && at.After(n.Waiting[0].At)
	return at, ok && !overSooner
}

func (n *notification) tellCurrent(e notices.Event) (over bool, err error) {
	if runs, err := n.stillRuns(e); err != nil || !runs {
		return !runs, err
	}
	if err := n.tell([]notices.Event{e}, fmt.Sprintf("%s/%d", e.ID, n.state.Times)); err != nil {
		return false, err
	}
	n.state.LastTold = workflow.Now(n.ctx)
	n.state.Times++
	return false, nil
}

// awaitNext waits for an event; over tells that there will be none.
func (n *notification) awaitNext() (over bool, err error) {
	for {
		if err := n.awaitEvent(askAfter); err != nil || len(n.Waiting) > 0 {
			return false, err
		}
		if c := n.state.Latest; c != nil {
			if runs, err := n.runs(*c); err != nil || !runs {
				return true, err
			}
		}
	}
}

// stillRuns asks after the maintenance before a state is told again.
func (n *notification) stillRuns(e notices.Event) (bool, error) {
	if n.state.Times == 0 {
		return true, nil
	}
	return n.runs(e)
}

func (n *notification) runs(e notices.Event) (runs bool, err error) {
	ctx := call.Quick(n.ctx, "does the maintenance run?")
	err = workflow.ExecuteActivity(ctx, call.Deliveries.Runs, execution.Run{WorkflowID: e.WorkflowID, RunID: e.RunID}).Get(ctx, &runs)
	return runs, err
}

// next comes to the next event. A notice is told at once, and the state goes on.
func (n *notification) next() error {
	e := n.Waiting[0]
	n.Waiting = n.Waiting[1:]
	n.state.Latest = &e
	wanted := n.Plan.Filter.Wants(e)
	if !notices.Lasts(e.State) && !notices.Ends(e.State) {
		if !wanted {
			return nil
		}
		return n.tell([]notices.Event{e}, e.ID)
	}
	n.state.Current, n.state.LastTold, n.state.Times = &e, time.Time{}, 0
	switch {
	case wanted:
	case notices.Ends(e.State):
		// Nothing is told of it, and nothing follows.
		n.state.LastTold = e.At
	default:
		n.state.Current = nil
	}
	return nil
}

// awaitEvent waits for an event, at most for a time.
func (n *notification) awaitEvent(limit time.Duration) error {
	waiting, cancel := workflow.WithCancel(n.ctx)
	defer cancel() // a timer left behind would wake the workflow for nothing
	_, err := workflow.AwaitWithOptions(waiting, workflow.AwaitOptions{
		Timeout: limit, TimerOptions: workflow.TimerOptions{Summary: "wait for events"},
	}, func() bool {
		n.read()
		return len(n.Waiting) > 0
	})
	n.read()
	return err
}

// collect tells of many maintenances: what comes within the time of a digest goes into one message, and the messages of
// a period into one thread.
func (n *notification) collect() error {
	for {
		n.read()
		if n.shouldContinue() {
			return n.continueAsNew()
		}
		if len(n.Waiting) == 0 {
			if err := n.awaitEvent(n.idle()); err != nil {
				return err
			}
			if len(n.Waiting) == 0 {
				return nil
			}
		}
		now := workflow.Now(n.ctx)
		if n.Plan.Thread == notices.ThreadPeriod && now.Sub(n.state.ThreadSince) >= n.Plan.ThreadPeriod.Std() {
			n.state.Thread, n.state.ThreadSince = "", now
		}
		if wait := n.Plan.Digest.Std(); wait > 0 {
			if err := workflow.Sleep(n.ctx, wait); err != nil {
				return err
			}
			n.read()
		}
		events := n.Waiting[:1]
		if n.Plan.Digest > 0 {
			events = n.Waiting[:min(digestAtOnce, len(n.Waiting))]
		}
		n.Waiting = n.Waiting[len(events):]
		if err := n.tell(slices.Clone(events), events[0].ID); err != nil {
			return err
		}
	}
}

// idle is how long a workflow that collects has to remember its thread, or waits for more.
func (n *notification) idle() time.Duration {
	if n.Plan.Thread == notices.ThreadPeriod {
		return max(n.state.ThreadSince.Add(n.Plan.ThreadPeriod.Std()).Sub(workflow.Now(n.ctx)), idleFor)
	}
	return idleFor
}

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
	workflow.GetMetricsHandler(n.ctx).WithTags(map[string]string{"channel": n.Plan.Channel}).Counter("drydock_deliveries_given_up").Inc(1)
	workflow.GetLogger(n.ctx).Error("a message was not delivered", "channel", n.Plan.Channel, "event", event, "error", err)
}

func (n *notification) deliver(events []notices.Event, key string) error {
	ctx := call.Within(call.Quick(n.ctx, fmt.Sprintf("%s to %s", events[0].State, n.Plan.Channel)), n.Plan.RetryFor.Std())
	if !n.Collects && n.Plan.Collects() {
		e := events[0]
		if n.state.Times > 0 {
			// What is told again is another event to the workflow that collects.
			e.ID = fmt.Sprintf("%s/%d", e.ID, n.state.Times)
		}
		return n.forward(ctx, e)
	}
	var receipt notify.Receipt
	err := workflow.ExecuteActivity(ctx, call.Deliveries.Deliver, delivery.DeliverInput{
		Channel: n.Plan.Channel, Events: events, Key: n.Plan.Channel + "/" + key, Thread: n.state.Thread,
	}).Get(ctx, &receipt)
	if err == nil && n.state.Thread == "" && n.Plan.Thread != notices.ThreadNone {
		n.state.Thread = receipt.Thread
	}
	return err
}

func (n *notification) forward(ctx workflow.Context, e notices.Event) error {
	start, err := json.Marshal(api.NotificationInput{Plan: n.Plan, Collects: true})
	if err != nil {
		return err
	}
	return workflow.ExecuteActivity(ctx, call.Deliveries.Collect, delivery.CollectInput{
		WorkflowID:   api.CollectorID(api.ClusterOf(workflow.GetInfo(n.ctx).TaskQueueName), n.Plan.Channel),
		WorkflowType: api.NotificationType, Signal: api.SignalEvent, Event: e, Start: start,
	}).Get(ctx, nil)
}

// shouldContinue tells that the history is long enough.
func (n *notification) shouldContinue() bool {
	return workflow.GetInfo(n.ctx).GetContinueAsNewSuggested()
}

func (n *notification) continueAsNew() error {
	return workflow.NewContinueAsNewError(n.ctx, api.NotificationType, api.NotificationInput{
		Plan: n.Plan, Collects: n.Collects, Carried: n.state, Waiting: n.takeWaiting(),
	})
}

// takeWaiting are the events that the next run begins with; it has not seen them yet.
func (n *notification) takeWaiting() []notices.Event {
	for _, e := range n.Waiting {
		n.state.Seen = slices.DeleteFunc(n.state.Seen, func(id string) bool { return id == e.ID })
	}
	return n.Waiting
}
