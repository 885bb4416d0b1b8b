package api

import (
	"time"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/notices"
)

// NotificationInput says which channel is notified: of one maintenance, by a workflow that ends with it, or, where it
// Collects, of events of many, by one that ends when nothing is left to send. Channel is a name of the worker's
// configuration, and all content is read from the maintenances themselves.
type NotificationInput struct {
	Channel string `json:"channel"`
	// Maintenance is absent if it Collects.
	Maintenance *Reference `json:"maintenance,omitempty"`
	Collects    bool       `json:"collects,omitempty"`
	// Carried is handed over from run to run. It is refused of anybody else.
	Carried *NotificationCarried `json:"carried,omitempty"`
}

// NotificationCarried is what a Notification remembers.
type NotificationCarried struct {
	NotificationStatus
	// Plan is the channel's, as the first worker that was asked has it.
	Plan *notices.Channel `json:"plan,omitempty"`
	// Read is the latest event that was read, and News the latest that is said to be there; More: there certainly is one.
	Read Moment `json:"read,omitzero"`
	News Moment `json:"news,omitzero"`
	More bool   `json:"more,omitempty"`
	// Upcoming are events that were read and have not had their turn.
	Upcoming []notices.Event `json:"upcoming,omitempty"`
	// Closed: the maintenance has closed, and all of its events were read.
	Closed bool `json:"closed,omitempty"`
	// Current is the state that the maintenance is in, and LastSentAt when it was last sent to the channel.
	Current    *notices.Event `json:"current,omitempty"`
	LastSentAt time.Time      `json:"lastTold,omitzero"`
	// Times counts the messages about the current state.
	Times int `json:"times,omitempty"`
	// Queue are the events of many maintenances that wait to be collected.
	Queue []QueuedEvent `json:"queue,omitempty"`
	// Seen are the IDs of the latest events that were queued, so that one which comes twice is sent once.
	Seen []string `json:"seen,omitempty"`
	// Thread is what the next message answers to, since ThreadSince.
	Thread      string    `json:"thread,omitempty"`
	ThreadSince time.Time `json:"threadSince,omitzero"`
}

// NotificationStatus is the answer to the status query of a Notification.
type NotificationStatus struct {
	Channel   string `json:"channel"`
	Delivered int    `json:"delivered"`
	// GivenUp counts the messages that could not be delivered, LastError says why the last of them could not.
	GivenUp   int    `json:"givenUp,omitempty"`
	LastError string `json:"lastError,omitempty"`
	// Refused counts the signals that say nothing true, LastRefused says what was wrong with the last of them.
	Refused     int    `json:"refused,omitempty"`
	LastRefused string `json:"lastRefused,omitempty"`
	// Sending is since when a message is under way, Waiting counts the events behind it.
	Sending *time.Time `json:"sending,omitempty"`
	Waiting int        `json:"waiting,omitempty"`
	// Outcomes say what became of the latest events that had their turn.
	Outcomes []DeliveryOutcome `json:"outcomes,omitempty"`
}

// DeliveryOutcome is what became of an event, by its ID.
type DeliveryOutcome struct {
	Event   string    `json:"event"`
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
}

// EventOf is a state of a maintenance as channels receive it, with short texts.
func EventOf(s Status, cluster string, state LifecycleState) notices.Event {
	e := notices.Event{
		ID: state.ID, Sequence: state.Sequence, State: state.State, At: state.At, Message: state.Message,
		Node: s.Spec.Node, Requestor: s.Spec.Requestor, Cluster: cluster,
		Owner: s.Spec.Owner, Reason: s.Spec.Reason, Ticket: s.Spec.Ticket, Type: s.Spec.Type,
		Phase: string(state.Phase), WorkflowID: s.WorkflowID, RunID: s.RunID, MoreBlockers: state.MoreBlockers,
	}
	for _, text := range []*string{&e.Message, &e.Owner, &e.Reason, &e.Ticket} {
		*text = bounds.Cut(*text, bounds.Text)
	}
	for _, blocker := range state.Blockers[:min(len(state.Blockers), eventBlockers)] {
		e.Blockers = append(e.Blockers, bounds.Cut(blocker, eventText))
	}
	for _, group := range s.Groups[:min(len(s.Groups), eventGroups)] {
		e.Groups = append(e.Groups, bounds.Cut(group, eventText))
	}
	return e
}

// How much of the lists of an event is sent.
const (
	eventBlockers = 5
	eventGroups   = 50
	eventText     = 512
)

// EventsAfter are the events of a maintenance behind a moment, the oldest first and so many at most, and how many are not
// kept any more: a status has the first and the latest.
func EventsAfter(s Status, cluster string, after Moment, most int) (events []notices.Event, lost int, more bool) {
	last := after.Sequence
	for _, state := range s.States {
		if state.Moment().Compare(after) <= 0 {
			continue
		}
		if len(events) == most {
			return events, lost, true
		}
		// After a reset the numbers go back, and nothing is lost.
		lost += max(0, state.Sequence-last-1)
		last = state.Sequence
		events = append(events, EventOf(s, cluster, state))
	}
	return events, lost, false
}

// QueuedEvent is an event that waits to be collected, since QueuedAt.
type QueuedEvent struct {
	EventReference
	QueuedAt time.Time `json:"queuedAt,omitzero"`
}
