package profiles

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/profile"
	"drydock/api"
	"drydock/workflows/call"
)

const (
	// maxSending bounds the notifications that are being sent, sendAtOnce those that one evaluation begins.
	maxSending = 500
	sendAtOnce = 100
	// sendWithin is how long a notification is tried.
	sendWithin = 24 * time.Hour
	// sendAtLeast is how long it is tried in a run that has it from the run before.
	sendAtLeast = time.Minute
	// sendPause is the longest pause between two tries.
	sendPause = 10 * time.Minute
	// leaveWithin bounds the word to a maintenance.
	leaveWithin = time.Minute
)

// post sends notifications, and tells maintenances that are not wanted any more.
type post struct {
	*core
	// stops end the sending of notifications, by node and instance, which the next run begins anew.
	stops map[[3]string]func()
}

func (p *post) room() int { return min(max(maxSending-len(p.state.Sending), 0), sendAtOnce) }

// send sends a notification, for as long as it takes.
func (p *post) send(n activity.Notice) {
	same := func(other activity.Notice) bool { return other.Key() == n.Key() }
	i := slices.IndexFunc(p.state.Sending, same)
	switch {
	case slices.ContainsFunc(p.state.Sending, func(other activity.Notice) bool { return same(other) && !other.At.Before(n.At) }):
	case i >= 0:
		// What is being sent goes on, and what has come since follows it.
		if last := slices.IndexFunc(p.state.Sending[i+1:], same); last >= 0 {
			p.state.Sending[i+1+last] = n
			return
		}
		p.state.Sending = append(p.state.Sending, n)
	case len(p.state.Sending) < maxSending:
		p.state.Sending = append(p.state.Sending, n)
		p.announce(n)
	}
}

// resume goes on with the notifications of the run before.
func (p *post) resume() {
	for _, n := range p.state.Sending {
		if p.stops[n.Key()] == nil {
			p.announce(n)
		}
	}
}

// rest ends the sending: the next run goes on with it.
func (p *post) rest() {
	for _, n := range p.state.Sending {
		if stop := p.stops[n.Key()]; stop != nil {
			stop()
		}
	}
	p.stops = nil
}

// announce has a notification sent.
func (p *post) announce(n activity.Notice) {
	if p.stops == nil {
		p.stops = map[[3]string]func(){}
	}
	p.stops[n.Key()] = p.Watches("send", func(ctx workflow.Context) workflow.Future {
		ctx = call.In(call.Pausing(call.Within(call.Quick(ctx, "send "+n.Instance+" about "+n.Node), max(n.At.Add(sendWithin).Sub(p.Now()), sendAtLeast)), sendPause), api.LaneMessages)
		return workflow.ExecuteActivity(ctx, call.Profiles.SendProfileNotice, n)
	}, func(f workflow.Future) {
		var sent activity.Sent
		switch err := f.Get(p.Ctx, &sent); {
		case err != nil:
			p.warn("notification "+n.Instance+" about "+n.Node+" was not sent", call.Cause(err))
		case sent.Failed != "":
			p.warn("notification "+n.Instance+" about "+n.Node+" was not sent", sent.Failed)
		}
		delete(p.stops, n.Key())
		p.state.Sending = slices.DeleteFunc(p.state.Sending, func(other activity.Notice) bool { return other.Key() == n.Key() && other.At.Equal(n.At) })
		p.resume() // with what has come since
		p.changed()
	})
}

// leave tells a maintenance to end whose profile has left its state.
func (p *post) leave(left activity.Left) {
	if slices.Contains(p.state.Leaving, left) {
		return
	}
	p.state.Leaving = append(p.state.Leaving, left)
	in := activity.EndMaintenanceInput{Left: left, Why: "the profile is not in the state any more for which this was begun"}
	ctx := call.Within(call.Quick(p.Ctx, "end the maintenance of "+left.Node), leaveWithin)
	p.Does("end a maintenance", workflow.ExecuteActivity(ctx, call.Profiles.EndProfileMaintenance, in), func(f workflow.Future) {
		if err := f.Get(p.Ctx, nil); err != nil {
			p.warn("the maintenance of "+left.Node+" could not be ended", call.Cause(err))
			p.gone([]activity.Left{left})
			p.changed()
		}
	})
}

// gone forgets maintenances that have ended.
func (p *post) gone(all []activity.Left) {
	p.state.Leaving = slices.DeleteFunc(p.state.Leaving, func(l activity.Left) bool { return slices.Contains(all, l) })
}
