package notification

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/rules/notices"
)

// askAfter is the time without a signal after which a maintenance is read: one that was terminated sends none at its end.
const askAfter = 24 * time.Hour

// follow sends the states of one maintenance until its end. Each is sent as often as the channel's schedule says, while the state lasts.
func (n *notification) follow() error {
	if n.state.Plan == nil {
		if err := n.read(); err != nil {
			return err
		}
	}
	for {
		if n.shouldContinue() {
			return n.continueAsNew()
		}
		if over, err := n.turn(); err != nil || over {
			return err
		}
	}
}

// turn does one step: it reads new events, sends the present state, waits until that is due, or goes on to the next event. Once the maintenance
// has closed it sends what is left, and waits only until its end is due.
func (n *notification) turn() (over bool, err error) {
	if len(n.state.Upcoming) == 0 && n.hasNews() {
		return false, n.read()
	}
	if c := n.state.Current; c != nil {
		at, ok := n.due(*c)
		now := workflow.Now(n.ctx)
		switch {
		case ok && (!at.After(now) || n.wasDue(at)):
			return n.sendCurrent(*c)
		case notices.Ends(c.State) && !ok:
			return true, nil
		case ok && len(n.state.Upcoming) == 0 && (notices.Ends(c.State) || !n.state.Closed):
			return false, n.await(at.Sub(now), n.hasNews)
		}
	}
	switch {
	case len(n.state.Upcoming) > 0:
		return false, n.next()
	case n.state.Closed:
		return true, nil
	}
	if err := n.await(askAfter, n.hasNews); err != nil || n.hasNews() {
		return false, err
	}
	return false, n.read()
}

// due returns when the present state is to be sent; ok is false if the state ends before that.
func (n *notification) due(e notices.Event) (at time.Time, ok bool) {
	at, ok = n.state.Plan.Next(e, n.state.LastSentAt, time.Time{})
	next := n.state.Upcoming
	overSooner := len(next) > 0 && notices.Lasts(next[0].State) && at.After(next[0].At)
	return at, ok && !overSooner
}

// wasDue reports whether a state was due before it ended, whatever the present time is.
func (n *notification) wasDue(at time.Time) bool {
	if len(n.state.Upcoming) == 0 {
		return false
	}
	next := n.state.Upcoming[0]
	return (notices.Lasts(next.State) || notices.Ends(next.State)) && !at.After(next.At)
}

// sendCurrent sends the present state. Before it repeats a state, it reads whether the state lasts: one that was due before it ended is sent
// late.
func (n *notification) sendCurrent(e notices.Event) (over bool, err error) {
	if n.state.Times > 0 && len(n.state.Upcoming) == 0 {
		if !n.state.Closed {
			if err := n.read(); err != nil {
				return false, err
			}
		}
		if n.state.Closed && len(n.state.Upcoming) == 0 {
			return true, nil
		}
		if _, lasted := n.due(e); !lasted {
			return false, nil
		}
	}
	at, _ := n.due(e)
	if err := n.send(message{events: []notices.Event{e}, key: fmt.Sprintf("%s/%d", e.ID, n.state.Times), due: at}); err != nil {
		return false, err
	}
	n.state.LastSentAt = workflow.Now(n.ctx)
	n.state.Times++
	return false, nil
}

// next goes on to the next event. A notice is sent at once, and the present state stays.
func (n *notification) next() error {
	e := n.state.Upcoming[0]
	n.state.Upcoming = n.state.Upcoming[1:]
	wanted := n.state.Plan.Filter.Wants(e)
	if !notices.Lasts(e.State) && !notices.Ends(e.State) {
		if !wanted {
			return nil
		}
		return n.send(message{events: []notices.Event{e}, key: e.ID, due: e.At})
	}
	n.state.Current, n.state.LastSentAt, n.state.Times = &e, time.Time{}, 0
	switch {
	case wanted:
	case notices.Ends(e.State):
		// It counts as sent, and nothing follows.
		n.state.LastSentAt = e.At
	default:
		n.state.Current = nil
	}
	return nil
}
