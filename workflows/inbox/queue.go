package inbox

import (
	"errors"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
)

// Queue holds the signals of one run that were not read yet, of all names, in the order of their arrival.
type Queue struct {
	ctx     workflow.Context
	arrived *arrivals
}

// NewQueue returns the queue of a run. It panics where the worker runs without the Interceptor.
func NewQueue(ctx workflow.Context) *Queue { return &Queue{ctx: ctx, arrived: arrivalsOf(ctx)} }

// Unread reports whether a signal waits.
func (q *Queue) Unread() bool { return len(q.arrived.names) > 0 }

// Next takes the signal that came first. There must be one.
func (q *Queue) Next() (name string, payload []byte, err error) {
	name = q.arrived.next()
	var raw converter.RawValue
	if !workflow.GetSignalChannel(q.ctx, name).ReceiveAsync(&raw) {
		return name, nil, errors.New("its payload cannot be read")
	}
	return name, Payload(raw), nil
}

// Rest lets the other coroutines run. The SDK takes a coroutine that runs for a second for one that hangs, and fails the workflow task.
// A workflow that is cancelled goes on.
func Rest(ctx workflow.Context) {
	rested := false
	_ = workflow.Await(ctx, func() bool {
		defer func() { rested = true }()
		return rested
	})
}
