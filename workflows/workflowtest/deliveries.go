package workflowtest

import (
	"slices"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/notices"
)

// accounts are the statuses of maintenances, for workflows that notify channels.
type accounts struct {
	// Account is the status of the maintenance of a Notification under test, and Ended that it has closed. Where it is
	// nil, the workflow under test is the maintenance.
	Account *api.Status
	Ended   bool
	// seen is what the maintenance under test said when it was asked last, and ended whether it had closed.
	seen  api.Status
	ended bool
	// Unknown are the events that there are not, by ID.
	Unknown map[string]bool
}

// serveDeliveries has every message delivered and every record kept at once. What happened is read from the maintenance
// under test, in the channels of Prepared.
func (s *Site) serveDeliveries() {
	Serve[delivery.DeliverInput](s, "Deliver", notify.Receipt{})
	Serve[delivery.SameInput](s, "Same", false)
	serveNothing[delivery.CollectInput](s, "Collect")
	serveNothing[api.Reference](s, "KeepRecord")
	serveFrom(s, "ReadEvents", s.readEvents)
	serveFrom(s, "Gather", s.gather)
}

// look asks the maintenance under test what happened.
func (s *Site) look() {
	status, ended := s.Account, s.Ended
	if status == nil {
		status, ended = new(s.Status()), s.Env.IsWorkflowCompleted()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.ended = *status, ended
}

// eventsAtOnce is how many events are read at once.
const eventsAtOnce = 20

func (s *Site) readEvents(in delivery.ReadInput) delivery.Read {
	s.mu.Lock()
	defer s.mu.Unlock()
	read := delivery.Read{Plan: s.planOf(in.Channel)}
	read.Events, read.Lost, read.More = api.EventsAfter(s.seen, "", in.After, eventsAtOnce)
	read.Closed = s.ended && !read.More
	return read
}

func (s *Site) planOf(channel string) notices.Channel {
	at := slices.IndexFunc(s.Prepared.Channels, func(c notices.Channel) bool { return c.Name == channel })
	if at < 0 {
		s.t.Errorf("no channel %q is prepared", channel)
		return notices.Channel{}
	}
	return s.Prepared.Channels[at]
}

// gather finds every event but those that are unknown.
func (s *Site) gather(in delivery.GatherInput) delivery.Gathered {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := delivery.Gathered{Plan: s.planOf(in.Channel)}
	for _, ref := range in.Events {
		if s.Unknown[ref.ID()] {
			found.Refused++
			found.Why = "there is no event " + ref.ID()
			continue
		}
		_, node, requestor, err := api.ParseMaintenanceID(ref.WorkflowID)
		if err != nil {
			s.t.Error(err)
		}
		found.Events = append(found.Events, notices.Event{
			ID: api.EventID(ref.WorkflowID, ref.RunID, ref.Moment), Sequence: ref.Sequence, State: notices.MaintenanceStarted, At: ref.At,
			Node: node, Requestor: requestor, WorkflowID: ref.WorkflowID, RunID: ref.RunID,
		})
	}
	return found
}
