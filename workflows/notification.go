package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities"
	"drydock/notify"
	"drydock/workflows/notices"
)

// ErrorNotDelivered is the type of the error of a Notification that gave up on messages.
const ErrorNotDelivered = "NotDelivered"

// NotificationInput is what a channel is to be told: by a workflow for one maintenance, which ends with it, or by one
// that Collects the events of many, which ends when there is nothing left to tell.
type NotificationInput struct {
	Plan     notices.Plan `json:"plan"`
	Collects bool         `json:"collects,omitempty"`
	// Waiting are the events to begin with.
	Waiting []notices.Event `json:"waiting,omitempty"`
	// The rest is handed over from run to run.
	Carried NotificationCarried `json:"carried,omitzero"`
}

// NotificationCarried is what a Notification remembers.
type NotificationCarried struct {
	// Current is the state that the maintenance is in, and LastTold when the channel was told of it last.
	Current  *notices.Event `json:"current,omitempty"`
	LastTold time.Time      `json:"lastTold,omitzero"`
	// Times counts the messages about the current state.
	Times int `json:"times,omitempty"`
	// Seen are the IDs of the latest events, so that one which comes twice is told once.
	Seen []string `json:"seen,omitempty"`
	// Thread is what the next message answers to, since ThreadSince.
	Thread      string    `json:"thread,omitempty"`
	ThreadSince time.Time `json:"threadSince,omitzero"`
	NotificationStatus
}

// NotificationStatus is the answer to the status query of a Notification.
type NotificationStatus struct {
	Channel   string `json:"channel"`
	Delivered int    `json:"delivered"`
	// GivenUp counts the messages that could not be delivered, LastError says why the last of them could not.
	GivenUp   int    `json:"givenUp,omitempty"`
	LastError string `json:"lastError,omitempty"`
	// Sending is since when a message is under way, Waiting counts the events behind it.
	Sending *time.Time `json:"sending,omitempty"`
	Waiting int        `json:"waiting,omitempty"`
}

const (
	// maxSeen bounds the IDs that are remembered, digestAtOnce the events of one message.
	maxSeen      = 200
	digestAtOnce = 100
	// idleFor is how long a workflow that collects waits for more before it ends.
	idleFor = time.Minute
)

// notification is one run of Notification.
type notification struct {
	NotificationInput
	ctx   workflow.Context
	state NotificationCarried
	inbox workflow.ReceiveChannel
}

// Notification tells one channel what happens, in order, each event once; a failed delivery is tried again for as long as
// the channel says, and the ones behind it wait.
func Notification(ctx workflow.Context, in NotificationInput) (NotificationStatus, error) {
	n := &notification{NotificationInput: in, ctx: ctx, state: in.Carried, inbox: workflow.GetSignalChannel(ctx, SignalEvent)}
	n.state.Channel = in.Plan.Channel
	n.Waiting = nil
	for _, e := range in.Waiting {
		n.take(e)
	}
	if err := workflow.SetQueryHandler(ctx, QueryStatus, func() (NotificationStatus, error) { return n.status(), nil }); err != nil {
		return NotificationStatus{}, err
	}
	workflow.GoNamed(ctx, "events", func(ctx workflow.Context) {
		for {
			var e notices.Event
			n.inbox.Receive(ctx, &e)
			n.take(e)
		}
	})
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
			fmt.Sprintf("%d messages to %s were not delivered: %s", n.state.GivenUp, n.Plan.Channel, n.state.LastError), ErrorNotDelivered, nil, n.status())
	}
	return n.status(), nil
}

func (n *notification) status() NotificationStatus {
	s := n.state.NotificationStatus
	s.Waiting = len(n.Waiting)
	return s
}

// take queues an event that was not there yet.
func (n *notification) take(e notices.Event) {
	if slices.Contains(n.state.Seen, e.ID) {
		return
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
		if n.shouldContinue() {
			return n.continueAsNew()
		}
		now := workflow.Now(n.ctx)
		if c := n.state.Current; c != nil {
			at, ok := n.Plan.Next(*c, n.state.LastTold, time.Time{})
			if ok && len(n.Waiting) > 0 && notices.Lasts(n.Waiting[0].State) && at.After(n.Waiting[0].At) {
				ok = false // over before it was to be told
			}
			switch {
			case ok && !at.After(now):
				if err := n.tell([]notices.Event{*c}, fmt.Sprintf("%s/%d", c.ID, n.state.Times)); err != nil {
					return err
				}
				n.state.LastTold = workflow.Now(n.ctx)
				n.state.Times++
				continue
			case ok && len(n.Waiting) == 0:
				if err := n.awaitEvent(at.Sub(now)); err != nil {
					return err
				}
				continue
			case !ok && notices.Ends(c.State):
				return nil
			}
		}
		if err := n.awaitEvent(0); err != nil {
			return err
		}
		if err := n.next(); err != nil {
			return err
		}
	}
}

// next comes to the next event. A notice is told at once, and the state goes on.
func (n *notification) next() error {
	e := n.Waiting[0]
	n.Waiting = n.Waiting[1:]
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

// awaitEvent waits for an event; with a limit, at most for that long.
func (n *notification) awaitEvent(limit time.Duration) error {
	some := func() bool { return len(n.Waiting) > 0 }
	if limit <= 0 {
		return workflow.Await(n.ctx, some)
	}
	_, err := workflow.AwaitWithTimeout(n.ctx, limit, some)
	return err
}

// collect tells of many maintenances: what comes within the time of a digest goes into one message, and the messages of
// a period into one thread.
func (n *notification) collect() error {
	for {
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
	n.state.GivenUp++
	n.state.LastError = causeOf(err)
	workflow.GetMetricsHandler(n.ctx).WithTags(map[string]string{"channel": n.Plan.Channel}).Counter("drydock_deliveries_given_up").Inc(1)
	workflow.GetLogger(n.ctx).Error("a message was not delivered", "channel", n.Plan.Channel, "event", events[0].ID, "error", err)
	return nil
}

func (n *notification) deliver(events []notices.Event, key string) error {
	ctx := within(quick(n.ctx, fmt.Sprintf("%s to %s", events[0].State, n.Plan.Channel)), n.Plan.RetryFor.Std())
	if !n.Collects && n.Plan.Collects() {
		return n.forward(ctx, events[0])
	}
	var receipt notify.Receipt
	err := workflow.ExecuteActivity(ctx, notifier.Deliver, activities.DeliverInput{
		Channel: n.Plan.Channel, Events: events, Key: n.Plan.Channel + "/" + key, Thread: n.state.Thread,
	}).Get(ctx, &receipt)
	if err == nil && n.state.Thread == "" && n.Plan.Thread != notices.ThreadNone {
		n.state.Thread = receipt.Thread
	}
	return err
}

func (n *notification) forward(ctx workflow.Context, e notices.Event) error {
	start, err := json.Marshal(NotificationInput{Plan: n.Plan, Collects: true})
	if err != nil {
		return err
	}
	return workflow.ExecuteActivity(ctx, notifier.Collect, activities.CollectInput{
		WorkflowID:   CollectorID(ClusterOf(workflow.GetInfo(n.ctx).TaskQueueName), n.Plan.Channel),
		WorkflowType: NotificationType, Signal: SignalEvent, Event: e, Start: start,
	}).Get(ctx, nil)
}

// shouldContinue tells that the history is long enough; it never is while events wait that are not in the state.
func (n *notification) shouldContinue() bool {
	return workflow.GetInfo(n.ctx).GetContinueAsNewSuggested() && n.inbox.Len() == 0
}

func (n *notification) continueAsNew() error {
	return workflow.NewContinueAsNewError(n.ctx, NotificationType, NotificationInput{
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
