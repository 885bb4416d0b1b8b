package notification

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/execution"
	"drydock/rules/notices"
	"drydock/workflows/call"
)

// askAfter is how long a maintenance may say nothing before it is asked after: one that was terminated does not say that
// it has ended.
const askAfter = 24 * time.Hour

// follow tells of one maintenance until its end: each state as the channel's schedule has it, while it lasts.
func (n *notification) follow() error {
	for {
		n.read()
		if n.shouldContinue() {
			return n.continueAsNew()
		}
		if over, err := n.turn(); err != nil || over {
			return err
		}
	}
}

// turn does what is to be done next: it tells of the present state, waits for its time, or comes to the next event.
func (n *notification) turn() (over bool, err error) {
	if c := n.state.Current; c != nil {
		at, ok := n.due(*c)
		now := workflow.Now(n.ctx)
		switch {
		case ok && !at.After(now):
			return n.tellCurrent(*c)
		case ok && len(n.Waiting) == 0:
			return false, n.awaitEvent(at.Sub(now))
		case !ok && notices.Ends(c.State):
			return true, nil
		}
	}
	if over, err := n.awaitNext(); err != nil || over {
		return over, err
	}
	return false, n.next()
}

// due is when the present state is to be told; it is not where the state is over before that.
func (n *notification) due(e notices.Event) (at time.Time, ok bool) {
	at, ok = n.Channel.Next(e, n.state.LastTold, time.Time{})
	overSooner := len(n.Waiting) > 0 && notices.Lasts(n.Waiting[0].State) && at.After(n.Waiting[0].At)
	return at, ok && !overSooner
}

func (n *notification) tellCurrent(e notices.Event) (over bool, err error) {
	if runs, err := n.stillRuns(e); err != nil || !runs {
		return !runs, err
	}
	if err := n.tell([]notices.Event{e}, fmt.Sprintf("%s/%d", e.ID, n.state.Times)); err != nil {
		return false, err
	}
	n.state.LastTold = workflow.Now(n.ctx)
	n.state.Times++
	return false, nil
}

// awaitNext waits for an event; over tells that there will be none.
func (n *notification) awaitNext() (over bool, err error) {
	for {
		if err := n.awaitEvent(askAfter); err != nil || len(n.Waiting) > 0 {
			return false, err
		}
		if c := n.state.Latest; c != nil {
			if runs, err := n.runs(*c); err != nil || !runs {
				return true, err
			}
		}
	}
}

// stillRuns asks after the maintenance before a state is told again.
func (n *notification) stillRuns(e notices.Event) (bool, error) {
	if n.state.Times == 0 {
		return true, nil
	}
	return n.runs(e)
}

func (n *notification) runs(e notices.Event) (runs bool, err error) {
	ctx := call.Quick(n.ctx, "does the maintenance run?")
	err = workflow.ExecuteActivity(ctx, call.Deliveries.Runs, execution.Run{WorkflowID: e.WorkflowID, RunID: e.RunID}).Get(ctx, &runs)
	return runs, err
}

// next comes to the next event. A notice is told at once, and the state goes on.
func (n *notification) next() error {
	e := n.Waiting[0]
	n.Waiting = n.Waiting[1:]
	n.state.Latest = &e
	wanted := n.Channel.Filter.Wants(e)
	if !notices.Lasts(e.State) && !notices.Ends(e.State) {
		if !wanted {
			return nil
		}
		return n.tell([]notices.Event{e}, e.ID)
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
