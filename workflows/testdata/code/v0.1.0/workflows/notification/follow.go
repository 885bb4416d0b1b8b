package notification

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"fmt"
	"go.temporal.io/sdk/workflow"
	"time"
)

// askAfter is how long a maintenance may say nothing before it is asked after: one that was terminated does not say that
// it has ended.
const askAfter = 24 * time.Hour

// follow tells of one maintenance until its end: each state as the channel's schedule has it, while it lasts.
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

// turn does what is to be done next: it reads what is new, tells of the present state, waits for its time, or comes to
// the next event. Of a maintenance that has closed what is untold is told, and nothing is waited for but the time of its
// end.
func (n *notification) turn() (over bool, err error) {
	if len(n.state.Upcoming) == 0 && n.hasNews() {
		return false, n.read()
	}
	if c := n.state.Current; c != nil {
		at, ok := n.due(*c)
		now := workflow.Now(n.ctx)
		switch {
		case ok && (!at.After(now) || n.wasDue(at)):
			return n.tellCurrent(*c)
		case notices.Ends(c.State) && !ok:
			return true, nil
		case ok && len(n.state.Upcoming) == 0 && (notices.Ends(c.State) || !n.state.Closed):
			return false, n.awaitNews(at.Sub(now))
		}
	}
	switch {
	case len(n.state.Upcoming) > 0:
		return false, n.next()
	case n.state.Closed:
		return true, nil
	}
	if err := n.awaitNews(askAfter); err != nil || n.hasNews() {
		return false, err
	}
	return false, n.read()
}

// due is when the present state is to be told; it is not where the state is over before that.
func (n *notification) due(e notices.Event) (at time.Time, ok bool) {
	at, ok = n.state.Plan.Next(e, n.state.LastTold, time.Time{})
	next := n.state.Upcoming
	overSooner := len(next) > 0 && notices.Lasts(next[0].State) && at.After(next[0].At)
	return at, ok && !overSooner
}

// wasDue tells that a state was to be told before it was over, whatever the clock of the server says by which it was.
func (n *notification) wasDue(at time.Time) bool {
	if len(n.state.Upcoming) == 0 {
		return false
	}
	next := n.state.Upcoming[0]
	return (notices.Lasts(next.State) || notices.Ends(next.State)) && !at.After(next.At)
}

// tellCurrent tells of the present state. Before it does so again, the maintenance is asked whether it lasts: what was due
// before it was over is told late.
func (n *notification) tellCurrent(e notices.Event) (over bool, err error) {
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
	if err := n.tell(message{events: []notices.Event{e}, key: fmt.Sprintf("%s/%d", e.ID, n.state.Times), due: at}); err != nil {
		return false, err
	}
	n.state.LastTold = workflow.Now(n.ctx)
	n.state.Times++
	return false, nil
}

// next comes to the next event. A notice is told at once, and the state goes on.
func (n *notification) next() error {
	e := n.state.Upcoming[0]
	n.state.Upcoming = n.state.Upcoming[1:]
	wanted := n.state.Plan.Filter.Wants(e)
	if !notices.Lasts(e.State) && !notices.Ends(e.State) {
		if !wanted {
			return nil
		}
		return n.tell(message{events: []notices.Event{e}, key: e.ID, due: e.At})
	}
	n.state.Current, n.state.LastTold, n.state.Times = &e, time.Time{}, 0
	switch {
	case wanted:
	case notices.Ends(e.State):
		// Nothing is told of it, and nothing follows.
		n.state.LastTold = e.At
	default:
		n.state.Current = nil
	}
	return nil
}
