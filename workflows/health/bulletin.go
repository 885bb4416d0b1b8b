package health

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/delivery"
	"drydock/activities/node"
	"drydock/activities/nodeevent"
	"drydock/api"
	"drydock/notify"
	"drydock/rules/bounds"
	"drydock/rules/health"
	"drydock/rules/notices"
	"drydock/rules/number"
	"drydock/workflows/call"
	"drydock/workflows/meter"
)

const (
	// maxEvents bounds the events that are kept for people.
	maxEvents = 100
	// maxUntold bounds those that wait to be told, maxTold what is told at once.
	maxUntold = 1000
	maxTold   = 50
	// longestTell bounds how long a channel is tried to be told.
	longestTell = 15 * time.Minute
)

// bulletin tells people what happens: by Kubernetes Events, and by the channels.
type bulletin struct {
	*core
	// events wait to be recorded in Kubernetes, recording that some are.
	events    []node.EventOn
	recording bool
	channels  []*channel
	opened    bool
}

// channel is told one thing after the other.
type channel struct {
	notices.Channel
	untold []notices.Event
	busy   bool
}

// open finds the channels of the check.
func (b *bulletin) open() {
	if b.opened || b.state.Prepared == nil {
		return
	}
	b.opened = true
	for _, known := range b.state.Prepared.Channels {
		b.channels = append(b.channels, &channel{Channel: known})
	}
}

// reopen takes the channels of another configuration.
func (b *bulletin) reopen() { b.channels, b.opened = nil, false }

// tell has everybody told what happened.
func (b *bulletin) tell(events []health.Event) {
	b.open()
	for _, e := range events {
		e.Text = bounds.Cut(e.Text, bounds.Text)
		meter.HealthEvents.Count(b.Ctx, e.Reason)
		b.state.Sequence++
		kept := api.HealthEvent{At: b.Now(), Event: e}
		b.state.Events = append(b.state.Events, kept)
		if e.Node != "" {
			b.events = append(b.events, b.eventOf(e))
		}
		b.inform(kept)
	}
	b.state.Events = b.state.Events[max(len(b.state.Events)-maxEvents, 0):]
	if late := len(b.events) - maxUntold; late > 0 {
		b.events = slices.Delete(b.events, 0, late)
		b.note("left out Kubernetes Events", fmt.Sprintf("%d waited to be recorded already", maxUntold))
	}
	b.record()
}

// record has Kubernetes Events recorded. What cannot be in time is left out: an Event is for people who watch.
func (b *bulletin) record() {
	if b.recording || len(b.events) == 0 {
		return
	}
	batch := slices.Clone(b.events[:min(len(b.events), maxTold)])
	b.events = b.events[len(batch):]
	b.recording = true
	ctx := b.within(fmt.Sprintf("record %d Events", len(batch)))
	b.Does("events", workflow.ExecuteActivity(ctx, call.Nodes.RecordNodeEvents, node.EventsInput{Events: batch}), func(f workflow.Future) {
		b.recording = false
		if err := f.Get(b.Ctx, nil); err != nil {
			b.note("Kubernetes Events were not recorded", call.Cause(err))
		}
		b.record()
	})
}

// eventOf is the Kubernetes Event of an event of a node.
func (b *bulletin) eventOf(e health.Event) node.EventOn {
	on := node.EventOn{Node: e.Node, Event: nodeevent.Event{
		Reason: e.Reason, Message: "[remediation] " + b.name + ": " + e.Text, Warning: e.Warning, Key: strconv.Itoa(b.state.Sequence),
	}}
	if n, known := b.state.Health.Node(e.Node); known {
		on.UID = n.UID
	}
	return on
}

// states are what channels are told of, by the reason of an event.
var states = map[string]notices.State{
	health.EventDetectedUnhealthy:    notices.NodeUnhealthy,
	health.EventRemediationCreated:   notices.RemediationBegun,
	health.EventRemediationEscalated: notices.RemediationEscalated,
	health.EventRemediationRemoved:   notices.RemediationEnded,
	health.EventRemediationFailed:    notices.RemediationFailed,
	health.EventNoTemplateLeft:       notices.RemediationFailed,
	health.EventOldRemediation:       notices.RemediationFailed,
	health.EventConfirmationNeeded:   notices.RemediationWaits,
	health.EventDisabled:             notices.HealthCheckDisabled,
	health.EventEnabled:              notices.HealthCheckEnabled,
	health.EventStormStarted:         notices.HealthStorm,
	health.EventStormEnded:           notices.HealthStormEnded,
}

// inform has the channels told that want to hear of an event.
func (b *bulletin) inform(e api.HealthEvent) {
	state, told := states[e.Reason]
	if !told {
		return
	}
	notice := notices.Event{
		ID: api.EventID(b.workflowID, b.runID, api.Moment{Sequence: b.state.Sequence, At: e.At}), Sequence: b.state.Sequence,
		State: state, At: e.At, Node: e.Node, Requestor: api.RemediationRequestor(b.name), Cluster: b.cluster,
		HealthCheck: b.name, Message: e.Text, WorkflowID: b.workflowID, RunID: b.runID,
	}
	for _, c := range b.channels {
		if !c.Filter.Wants(notice) {
			continue
		}
		if c.untold = append(c.untold, notice); len(c.untold) > maxUntold {
			c.untold = slices.Delete(c.untold, 0, 1)
			b.note("channel "+c.Name+" is not told of everything", fmt.Sprintf("%d events waited for it already", maxUntold))
		}
		b.feed(c)
	}
}

// feed tells a channel what waits for it, one message after the other. Nothing waits for a dead channel.
func (b *bulletin) feed(c *channel) {
	if c.busy || len(c.untold) == 0 {
		return
	}
	batch := slices.Clone(c.untold[:min(len(c.untold), maxTold)])
	c.untold, c.busy = c.untold[len(batch):], true
	limit := min(c.RetryFor.Std(), longestTell)
	ctx := call.Within(call.Quick(b.Ctx, number.Of(len(batch), "event")+" to "+c.Name), limit)
	sent := workflow.ExecuteActivity(call.In(ctx, api.LaneMessages), call.Deliveries.Deliver, delivery.DeliverInput{
		Channel: c.Name, Events: batch, Key: c.Name + "/" + batch[0].ID, Until: b.Now().Add(limit),
	})
	workflow.GoNamed(b.Ctx, "channel "+c.Name, func(ctx workflow.Context) {
		var receipt notify.Receipt
		if err := sent.Get(ctx, &receipt); err != nil {
			b.note(fmt.Sprintf("channel %s was not told of %s", c.Name, number.Of(len(batch), "event")), call.Cause(err))
		}
		c.busy, b.Dirty = false, true
		b.feed(c)
	})
}

// telling tells that channels are being told of something.
func (b *bulletin) telling() bool {
	return slices.ContainsFunc(b.channels, func(c *channel) bool { return c.busy })
}
