package notification

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/rules/notices"
)

const (
	// maxSeen bounds the IDs that are remembered, maxWaiting the events that wait.
	maxSeen    = 200
	maxWaiting = 1000
)

// read takes all events that have arrived. Nothing else receives them, so that none is on its way to nowhere when the
// workflow ends or continues as a new run.
func (n *notification) read() {
	var e notices.Event
	for n.inbox.ReceiveAsync(&e) {
		n.take(e)
		e = notices.Event{}
	}
}

// take queues an event that was not there yet. Of too many that wait behind a dead receiver the oldest are given up: they
// have to fit into what a run hands to the next.
func (n *notification) take(e notices.Event) {
	if slices.Contains(n.state.Seen, e.ID) {
		return
	}
	if len(n.Waiting) >= maxWaiting {
		n.giveUp(n.Waiting[0].ID, fmt.Errorf("more than %d events wait for %s", maxWaiting, n.Channel.Name))
		n.Waiting = n.Waiting[1:]
	}
	n.state.Seen = append(n.state.Seen, e.ID)
	if extra := len(n.state.Seen) - maxSeen; extra > 0 {
		n.state.Seen = n.state.Seen[extra:]
	}
	n.Waiting = append(n.Waiting, e)
}

// awaitEvent waits for an event, at most for a time.
func (n *notification) awaitEvent(limit time.Duration) error {
	waiting, cancel := workflow.WithCancel(n.ctx)
	defer cancel() // a timer left behind would wake the workflow for nothing
	_, err := workflow.AwaitWithOptions(waiting, workflow.AwaitOptions{
		Timeout: limit, TimerOptions: workflow.TimerOptions{Summary: "wait for events"},
	}, func() bool {
		n.read()
		return len(n.Waiting) > 0
	})
	n.read()
	return err
}

// takeWaiting are the events that the next run begins with; it has not seen them yet.
func (n *notification) takeWaiting() []notices.Event {
	for _, e := range n.Waiting {
		n.state.Seen = slices.DeleteFunc(n.state.Seen, func(id string) bool { return id == e.ID })
	}
	return n.Waiting
}
