package client

import (
	"slices"

	"drydock.dev/drydock/api"
)

// Message is a message to a maintenance. Functions such as Done and Cancel make it.
type Message struct {
	// name is the signal's.
	name    string
	payload func(to addressee) any
	// check returns a non-empty already if the message has nothing left to do, and an error if the maintenance would
	// ignore it.
	check  func(s *api.Status) (already string, err error)
	effect func(before, now *api.Status) bool
	// slow: the effect comes some time after the message was read, as a running step has to end first.
	slow bool
	// unseen: it may be sent although no worker says what the phase is. Ending a maintenance must not wait for a worker.
	unseen bool
}

// addressee is what a payload may need to know.
type addressee struct {
	api.Message
	// run keeps a late message from reaching the next maintenance of the node.
	run string
	// status is what the check has seen; nil where nobody looked.
	status *api.Status
}

// Name is the message's name, as in package api.
func (m Message) Name() string { return m.name }

// Check returns, for a maintenance with this status, why the message has nothing left to do, empty where it has. An error says why the
// maintenance would ignore it: a NotNowError, or an UnknownPodError.
func (m Message) Check(s *api.Status) (already string, err error) { return m.check(s) }

// TookEffect reports, by the status before the message was sent and the one now, whether it has had its effect.
func (m Message) TookEffect(before, now *api.Status) bool { return m.effect(before, now) }

// Payload is what the signal carries for one run of a maintenance, whose status is nil where nobody has looked at it.
func (m Message) Payload(who api.Message, run string, status *api.Status) any {
	return m.payload(addressee{Message: who, run: run, status: status})
}

// simple is the payload of the messages that say nothing but their name.
func simple(to addressee) any { return api.Simple{Message: to.Message, Run: to.run} }

// notNow refuses a message in a phase in which it would be ignored.
func notNow(name string, s *api.Status, why string) error {
	return notNowBecause(name, s, s.Spec.Node+" is "+string(s.Phase)+": "+why)
}

func notNowBecause(name string, s *api.Status, reason string) error {
	return &NotNowError{Message: name, Status: s, Reason: reason}
}

// outcomeOf finds what became of a message.
func outcomeOf(now *api.Status, id string) (entry api.Received, found bool) {
	if now == nil {
		return entry, false
	}
	i := slices.IndexFunc(now.Messages, func(r api.Received) bool { return r.ID == id })
	if i < 0 {
		return entry, false
	}
	return now.Messages[i], true
}

const ignoredPrefix = "ignored: "

// ignored reports whether a message was received and came to nothing.
func ignored(r api.Received) bool { return r.Outcome == api.Ignored || r.Outcome == api.Refused }

// receivedBefore reports whether a message had been received by then.
func receivedBefore(before *api.Status, r api.Received) bool {
	return slices.ContainsFunc(before.Messages, func(old api.Received) bool {
		return old.At.Equal(r.At) && old.Name == r.Name && old.By == r.By
	})
}

// heeded reports whether a message of this name has been received since before, and was not ignored.
func heeded(before, now *api.Status, name string) bool {
	return slices.ContainsFunc(now.Messages, func(r api.Received) bool {
		return r.Name == name && !ignored(r) && !receivedBefore(before, r)
	})
}
