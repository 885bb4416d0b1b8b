package notification

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/rules/notices"
)

const (
	// digestAtOnce bounds the events of one message.
	digestAtOnce = 100
	// idleFor is how long a workflow that collects waits for more before it ends.
	idleFor = time.Minute
)

// collect tells of many maintenances: what comes within the time of a digest goes into one message, and the messages of
// a period into one thread.
func (n *notification) collect() error {
	for {
		n.read()
		if n.shouldContinue() {
			return n.continueAsNew()
		}
		if len(n.Waiting) == 0 {
			if err := n.awaitEvent(n.idle()); err != nil {
				return err
			}
			if len(n.Waiting) == 0 {
				return nil
			}
		}
		now := workflow.Now(n.ctx)
		if n.Channel.Thread == notices.ThreadPeriod && now.Sub(n.state.ThreadSince) >= n.Channel.ThreadPeriod.Std() {
			n.state.Thread, n.state.ThreadSince = "", now
		}
		if wait := n.Channel.Digest.Std(); wait > 0 {
			if err := workflow.Sleep(n.ctx, wait); err != nil {
				return err
			}
			n.read()
		}
		events := n.Waiting[:1]
		if n.Channel.Digest > 0 {
			events = n.Waiting[:min(digestAtOnce, len(n.Waiting))]
		}
		n.Waiting = n.Waiting[len(events):]
		if err := n.tell(slices.Clone(events), events[0].ID); err != nil {
			return err
		}
	}
}

// idle is how long a workflow that collects has to remember its thread, or waits for more.
func (n *notification) idle() time.Duration {
	if n.Channel.Thread == notices.ThreadPeriod {
		return max(n.state.ThreadSince.Add(n.Channel.ThreadPeriod.Std()).Sub(workflow.Now(n.ctx)), idleFor)
	}
	return idleFor
}
