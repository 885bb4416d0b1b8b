package maintenance

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/notices"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
)

// channel is where a maintenance tells of itself: through a workflow of its own that outlives the maintenance, so that
// a dead channel never delays a node.
type channel struct {
	plan notices.Plan
	id   string
	// outbox are the events that its workflow was not given yet.
	outbox  []notices.Event
	started bool
}

// openChannels begins to tell the channels that want to hear of this maintenance at all.
func (m *maintenance) openChannels(plans []notices.Plan) {
	for _, plan := range plans {
		whom := plan.Filter
		whom.Events = nil
		if !whom.Wants(m.eventOf(api.LifecycleState{})) {
			continue
		}
		c := &channel{plan: plan, id: api.NotificationID(m.cluster, plan.Channel, m.spec.Node, m.spec.Requestor, m.status.RunID)}
		m.channels = append(m.channels, c)
		workflow.GoNamed(m.life, "channel "+plan.Channel, func(ctx workflow.Context) { m.feed(ctx, c) })
	}
}

// inform gives an event to every channel.
func (m *maintenance) inform(e notices.Event) {
	for _, c := range m.channels {
		c.outbox = append(c.outbox, e)
	}
}

// feed passes a channel's events on in their order.
func (m *maintenance) feed(ctx workflow.Context, c *channel) {
	for {
		if err := workflow.Await(ctx, func() bool { return len(c.outbox) > 0 }); err != nil {
			return
		}
		err := c.pass(ctx, c.outbox[0])
		if err != nil {
			workflow.GetLogger(ctx).Warn("a channel was not told", "channel", c.plan.Channel, "state", c.outbox[0].State, "error", err)
		}
		m.noteTold(c, c.outbox[0], err)
		c.outbox = c.outbox[1:]
	}
}

// noteTold keeps account of what a channel's workflow was given to tell; what becomes of it is that one's to know.
func (m *maintenance) noteTold(c *channel, e notices.Event, err error) {
	if !c.plan.Filter.Wants(e) {
		return
	}
	told := api.ChannelTold{At: workflow.Now(m.life), Channel: c.plan.Channel, Event: e.ID, State: e.State, Outcome: "handed over"}
	if err != nil {
		told.Outcome = "not handed over: " + inbox.CauseOf(err)
	}
	m.status.Channels = bounded(m.status.Channels, told)
}

// pass gives one event to the channel's workflow, which begins with the first one that the channel wants.
func (c *channel) pass(ctx workflow.Context, e notices.Event) error {
	if c.started {
		return workflow.SignalExternalWorkflow(ctx, c.id, "", api.SignalEvent, e).Get(ctx, nil)
	}
	if !c.plan.Filter.Wants(e) {
		return nil
	}
	options := call.Child(c.id, fmt.Sprintf("tells %s of the maintenance of %s by %s", c.plan.Channel, e.Node, e.Requestor))
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, options), api.NotificationType,
		api.NotificationInput{Plan: c.plan, Waiting: []notices.Event{e}})
	err := child.GetChildWorkflowExecution().Get(ctx, nil)
	c.started = err == nil
	return err
}

// awaitChannels waits until the channels' workflows have all that they are to tell.
func (m *maintenance) awaitChannels() {
	m.await(func() bool {
		for _, c := range m.channels {
			if len(c.outbox) > 0 {
				return false
			}
		}
		return true
	})
}
