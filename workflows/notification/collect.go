package notification

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/workflows/call"
)

const (
	// digestAtOnce bounds the events of one message.
	digestAtOnce = 100
	// idleFor is how long a workflow that collects waits for another event before it ends.
	idleFor = time.Minute
	// maxSeen bounds the IDs that are kept, maxQueue the events that wait.
	maxSeen  = 200
	maxQueue = 1000
)

// collect sends the events of many maintenances: those that come within the time of a digest in one message, and the messages of a period in
// one thread.
func (n *notification) collect() error {
	if n.state.Plan == nil {
		if _, err := n.gather(nil); err != nil {
			return err
		}
	}
	for {
		if n.shouldContinue() {
			return n.continueAsNew()
		}
		if len(n.state.Queue) == 0 {
			if err := n.await(n.idle(), func() bool { return len(n.state.Queue) > 0 }); err != nil {
				return err
			}
			if len(n.state.Queue) == 0 {
				return nil
			}
		}
		if err := n.sendQueued(); err != nil {
			return err
		}
	}
}

// sendQueued sends the first events that wait, once the time of a digest is over.
func (n *notification) sendQueued() error {
	plan, now := n.state.Plan, workflow.Now(n.ctx)
	if plan.Thread == notices.ThreadPeriod && now.Sub(n.state.ThreadSince) >= plan.ThreadPeriod.Std() {
		n.state.Thread, n.state.ThreadSince = "", now
	}
	most := 1
	if wait := plan.Digest.Std(); wait > 0 {
		most = digestAtOnce
		if err := workflow.Sleep(n.ctx, wait); err != nil {
			return err
		}
		if err := n.settled(); err != nil {
			return err
		}
	}
	queued := n.state.Queue[:min(most, len(n.state.Queue))]
	n.state.Queue = n.state.Queue[len(queued):]
	chosen := make([]api.EventReference, len(queued))
	for i, e := range queued {
		chosen[i] = e.EventReference
	}
	due := cmp.Or(queued[0].QueuedAt, now).Add(plan.Digest.Std())
	found, err := n.gather(chosen)
	if err != nil {
		if !temporal.IsApplicationError(err) {
			return err
		}
		n.giveUp(len(chosen), chosen[0].ID(), err)
		return nil
	}
	if found.Refused > 0 {
		n.state.Refused += found.Refused - 1
		n.refused(api.SignalCollect, errors.New(found.Why))
	}
	if len(found.Events) == 0 {
		return nil
	}
	return n.send(message{events: found.Events, key: chosen[0].ID(), due: due})
}

func (n *notification) gather(events []api.EventReference) (found delivery.Gathered, err error) {
	ctx := reading(n.ctx, number.Of(len(events), "event")+" for "+n.Channel)
	err = workflow.ExecuteActivity(ctx, call.Deliveries.Gather, delivery.GatherInput{Channel: n.Channel, Events: events}).Get(ctx, &found)
	if err == nil && n.state.Plan == nil {
		n.state.Plan = &found.Plan
	}
	return found, err
}

// queue adds an event that is new. Where too many wait behind a receiver that does not answer, the oldest are given up: the queue has to fit
// into the state that a run hands to the next.
func (n *notification) queue(e api.EventReference) {
	cluster, err := e.Check()
	if own := api.ClusterOf(workflow.GetInfo(n.ctx).TaskQueueName); err == nil && cluster != own {
		err = fmt.Errorf("workflowId: it is of cluster %q, and this is cluster %q", cluster, own)
	}
	if err != nil {
		n.refused(api.SignalCollect, err)
		return
	}
	id := e.ID()
	if slices.Contains(n.state.Seen, id) {
		return
	}
	if len(n.state.Queue) >= maxQueue {
		n.giveUp(1, n.state.Queue[0].ID(), fmt.Errorf("more than %d events wait for %s", maxQueue, n.Channel))
		n.state.Queue = n.state.Queue[1:]
	}
	n.state.Seen = append(n.state.Seen, id)
	n.state.Seen = slices.Clone(n.state.Seen[max(len(n.state.Seen)-maxSeen, 0):])
	n.state.Queue = append(n.state.Queue, api.QueuedEvent{EventReference: e, QueuedAt: workflow.Now(n.ctx)})
}

// idle returns how long a workflow that collects waits for another event: as long as its thread lasts, and idleFor at least.
func (n *notification) idle() time.Duration {
	if n.state.Plan.Thread == notices.ThreadPeriod {
		return max(n.state.ThreadSince.Add(n.state.Plan.ThreadPeriod.Std()).Sub(workflow.Now(n.ctx)), idleFor)
	}
	return idleFor
}
