// Package announce is the outbox of controllers for notification channels. The events that were not sent yet are part of the state, and go to
// the next run with it.
package announce

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

// Kind is that of the keys of deliveries.
const Kind = "channel"

const (
	// maxUnsent bounds the events that wait for a channel, maxSent those of one message.
	maxUnsent = 1000
	maxSent   = 50
	// sendWithin bounds how long a message is tried. A run that has it from the run before tries for sendAtLeast.
	sendWithin  = 15 * time.Minute
	sendAtLeast = time.Minute
)

// Outbox is embedded by a controller that announces events to channels. Each channel is sent one message after the other.
type Outbox struct {
	Unsent []queue `json:"unsent,omitempty"`
}

// queue has the events that were not sent to a channel.
type queue struct {
	Channel  string          `json:"channel"`
	RetryFor time.Duration   `json:"retryFor,omitempty"`
	Events   []notices.Event `json:"events"`
	// Sending is the number of events in the message that is being sent, 0 where none is, and Until when it is given up. Both stay until the
	// outcome is known: the next run must not send another message under the same key.
	Sending int       `json:"sending,omitempty"`
	Until   time.Time `json:"until,omitzero"`
}

// Announce adds an event to the queues of the channels whose filters it passes.
func (o *Outbox) Announce(b *controller.Base, channels []notices.Channel, e notices.Event, now time.Time) {
	for _, to := range channels {
		if !to.Filter.Wants(e) {
			continue
		}
		i := slices.IndexFunc(o.Unsent, func(q queue) bool { return q.Channel == to.Name })
		if i < 0 {
			i = len(o.Unsent)
			o.Unsent = append(o.Unsent, queue{Channel: to.Name})
		}
		q := &o.Unsent[i]
		q.RetryFor = to.RetryFor.Std()
		if q.Events = append(q.Events, e); len(q.Events) > maxUnsent {
			q.Events = slices.Delete(q.Events, q.Sending, q.Sending+1)
			b.Note(now, "channel "+q.Channel+" is not told of everything", fmt.Sprintf("%d events waited for it already", maxUnsent))
		}
	}
}

// Delivered reports whether all events were sent or given up.
func (o *Outbox) Delivered() bool { return len(o.Unsent) == 0 }

// Deliver returns the messages that should be under way. They are watches, because a run that continues as new does not wait for watches: the
// next run sends them again, under the same keys.
func (o *Outbox) Deliver(now time.Time) (all []controller.Watch) {
	for i := range o.Unsent {
		q := &o.Unsent[i]
		if q.Sending == 0 {
			q.Sending = min(len(q.Events), maxSent)
			q.Until = now.Add(min(q.RetryFor, sendWithin))
		}
		within := max(q.Until.Sub(now), sendAtLeast)
		key := q.Channel + "/" + q.Events[0].ID
		all = append(all, controller.Watch{
			Key: controller.Key{Kind: Kind, Of: key}, Summary: number.Of(q.Sending, "event") + " to " + q.Channel, Want: key,
			Call: controller.Call{Func: call.Deliveries.Deliver, Within: within, Lane: api.LaneMessages},
			Input: delivery.DeliverInput{
				Channel: q.Channel, Events: slices.Clone(q.Events[:q.Sending]), Key: key, Until: now.Add(within),
			},
		})
	}
	return all
}

// Delivery takes the outcome of a message. One that could not be sent in time is dropped: nothing waits for a channel that does not answer.
func (o *Outbox) Delivery(b *controller.Base, outcome controller.Outcome, now time.Time) {
	sent := outcome.Begun.(controller.Watch).Input.(delivery.DeliverInput)
	if outcome.Err != nil {
		b.ClearBackoff(outcome.Key)
		b.Note(now, fmt.Sprintf("channel %s was not told of %s", sent.Channel, number.Of(len(sent.Events), "event")), call.Cause(outcome.Err))
	}
	o.Unsent = slices.DeleteFunc(o.Unsent, func(q queue) bool { return q.Channel == sent.Channel && len(q.Events) == q.Sending })
	for i := range o.Unsent {
		if q := &o.Unsent[i]; q.Channel == sent.Channel {
			q.Events, q.Sending, q.Until = q.Events[q.Sending:], 0, time.Time{}
		}
	}
}
