package api

import (
	"time"

	"drydock/rules/notices"
)

// NotificationInput is what a channel is to be told: by a workflow for one maintenance, which ends with it, or by one
// that Collects the events of many, which ends when there is nothing left to tell.
type NotificationInput struct {
	Channel  notices.Channel `json:"plan"`
	Collects bool            `json:"collects,omitempty"`
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
	// Latest is the event that came last.
	Latest *notices.Event `json:"latest,omitempty"`
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
