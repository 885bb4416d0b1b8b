package maintenance

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/notices"
	"drydock/workflows/call"
)

// outbox gives the lifecycle events to the channels' workflows, which outlive the maintenance, so that a dead channel
// never delays a node.
type outbox struct {
	*identity
	journal  *journal
	clock    *clock
	channels []*channel
	// known are the channels' workflows that a run before this one started, by channel.
	known map[string]string
}

// channel is where a maintenance tells of itself.
type channel struct {
	notices.Channel
	id string
	// waiting are the events that its workflow was not given yet.
	waiting []notices.Event
	started bool
}

// open begins to tell the channels that want to hear of this maintenance at all.
func (o *outbox) open() {
	for _, known := range o.prepared.Channels {
		whom := known.Filter
		whom.Events = nil
		if !whom.Wants(o.journal.eventOf(api.LifecycleState{})) {
			continue
		}
		c := &channel{Channel: known, id: api.NotificationID(o.cluster, known.Name, o.spec.Node, o.spec.Requestor, o.runID)}
		if id := o.known[known.Name]; id != "" {
			c.id, c.started = id, true
		}
		o.channels = append(o.channels, c)
		workflow.GoNamed(o.clock.life, "channel "+known.Name, func(ctx workflow.Context) { o.feed(ctx, c) })
	}
}

// inform gives an event to every channel.
func (o *outbox) inform(e notices.Event) {
	for _, c := range o.channels {
		c.waiting = append(c.waiting, e)
	}
}

// feed passes a channel's events on in their order.
func (o *outbox) feed(ctx workflow.Context, c *channel) {
	for {
		if err := workflow.Await(ctx, func() bool { return len(c.waiting) > 0 }); err != nil {
			return
		}
		err := c.pass(ctx, c.waiting[0])
		if err != nil {
			workflow.GetLogger(ctx).Warn("a channel was not told", "channel", c.Name, "state", c.waiting[0].State, "error", err)
		}
		o.note(c, c.waiting[0], err)
		c.waiting = c.waiting[1:]
	}
}

// note keeps account of what a channel's workflow was given to tell; what becomes of it is that one's to know.
func (o *outbox) note(c *channel, e notices.Event, err error) {
	if !c.Filter.Wants(e) {
		return
	}
	told := api.ChannelTold{At: o.clock.now(), Channel: c.Name, Event: e.ID, State: e.State, Outcome: "handed over"}
	if err != nil {
		told.Outcome = "not handed over: " + call.Cause(err)
	}
	o.journal.change(func(s *api.Status) { s.Channels = bounded(s.Channels, told) })
}

// pass gives one event to the channel's workflow, which begins with the first one that the channel wants.
func (c *channel) pass(ctx workflow.Context, e notices.Event) error {
	if c.started {
		return workflow.SignalExternalWorkflow(ctx, c.id, "", api.SignalEvent, e).Get(ctx, nil)
	}
	if !c.Filter.Wants(e) {
		return nil
	}
	options := call.Child(c.id, fmt.Sprintf("tells %s of the maintenance of %s by %s", c.Name, e.Node, e.Requestor))
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, options), api.NotificationType,
		api.NotificationInput{Channel: c.Channel, Waiting: []notices.Event{e}})
	err := child.GetChildWorkflowExecution().Get(ctx, nil)
	c.started = err == nil
	return err
}

// started are the channels' workflows that were started, by channel.
func (o *outbox) started() map[string]string {
	all := map[string]string{}
	for _, c := range o.channels {
		if c.started {
			all[c.Name] = c.id
		}
	}
	return all
}

// idle tells that the channels' workflows have all that they are to tell.
func (o *outbox) idle() bool {
	return !slices.ContainsFunc(o.channels, func(c *channel) bool { return len(c.waiting) > 0 })
}

// flush waits until the channels' workflows have all that they are to tell.
func (o *outbox) flush() {
	o.clock.await(o.idle)
}
