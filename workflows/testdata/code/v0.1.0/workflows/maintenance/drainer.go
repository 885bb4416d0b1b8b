package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/drain"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/record"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"errors"
	"fmt"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"time"
)

// errRetry: an operator changed what the drain is to do, or wants it to try at once.
var errRetry = errors.New("begun anew")

// errRung: a rung of the escalation is to be taken.
var errRung = errors.New("the escalation's turn")

// heldNode is what a drain needs to know and do of the node that is held.
type heldNode interface {
	nodeUID() string
	markLost(err error) bool
	restoreMark() error
}

// drainer empties the node: it waits for pods, drains, and climbs the escalation.
type drainer struct {
	core
	node heldNode
	drainState
	// retryNow: an operator wants a try at once.
	retryNow bool
}

// drainState is what the next run has to know. Drained: somebody else said that the node is empty.
type drainState struct {
	Ladder  ladder `json:"ladder,omitzero"`
	Drained bool   `json:"drained,omitempty"`
}

// drain empties the node in the way the specification asks for, until it is Ready. The escalation's clock runs from
// the cordon; the time in which pods were to complete by themselves, which has a limit of its own, and the time in which
// a freeze held the maintenance are not counted.
func (d *drainer) drain() error {
	if d.journal.phase() != api.Draining { // otherwise a run before this one began
		d.begin()
		d.journal.enter(api.Draining, "")
		d.announcer.showConditions()
	}
	if over := d.stop.decided(); over != nil {
		return over
	}
	if d.spec.Drain.Mode == spec.ModeNone {
		return nil
	}
	for {
		if d.leave.due() {
			return errContinue
		}
		stood := d.clock.now()
		if err := d.freeze.proceed(); err != nil {
			return err
		}
		d.Ladder.shift(d.clock.now().Sub(stood))
		d.Ladder.catchUp(d.clock.now())
		err := d.empty()
		d.journal.observeBlockers(nil)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errHeld), errors.Is(err, errRetry):
			continue
		case errors.Is(err, errRung):
			if err := d.escalate(); err != nil {
				return err
			}
		case d.node.markLost(err):
			if err := d.node.restoreMark(); err != nil {
				return d.stop.stepFailed(err)
			}
		default:
			return d.stop.stepFailed(err)
		}
	}
}

// begin starts the escalation's clock, and forgets what was so in an earlier attempt.
func (d *drainer) begin() {
	began := *d.journal.status().CordonedAt
	if d.spec.WaitForPodCompletion != nil {
		began = d.clock.now()
	}
	d.Ladder = ladder{Rungs: d.spec.Ladder(), Began: began}
	d.Drained = false
	d.journal.change(func(s *api.Status) {
		s.EarlierRungs = append(s.EarlierRungs, s.Escalation...)
		s.EarlierRungs = s.EarlierRungs[:min(len(s.EarlierRungs), maxRungs)]
		s.Drain, s.Escalation, s.Force = nil, nil, ""
		s.Arrived, s.MoreArrived = nil, 0
	})
}

// endAttempt remembers the pods of an attempt that is over, for the audit record.
func (d *drainer) endAttempt() {
	d.journal.change(func(s *api.Status) {
		s.Attempt++
		rememberPods(s)
		s.Drain, s.Slot = nil, nil
	})
}

// rememberPods adds what the drain of this attempt did to what those before it did.
func rememberPods(s *api.Status) {
	if s.Drain == nil {
		return
	}
	pods, earlier := append(s.EarlierPods, s.Drain.Pods...), &s.EarlierDrains
	s.EarlierPods = pods[:min(len(pods), record.MaxPods)]
	earlier.MorePods += s.Drain.MorePods + len(pods) - len(s.EarlierPods)
	earlier.Total = earlier.Evicted + s.Drain.Total
	earlier.Evicted += s.Drain.Evicted
}

// empty runs one drain, or waits for somebody else's word that the node is empty, until that has ended or something
// else comes first.
func (d *drainer) empty() error {
	if d.spec.Drain.Mode == spec.ModeExternal {
		d.journal.waiting(`the signal "drained"`)
		return d.untilInterrupted(func() bool { return d.Drained })
	}
	// What a drain did must be known, and no two drains may run, before the next one begins.
	ctx, cancel := workflow.WithCancel(call.In(call.Stoppable(d.stop.steps, "drain "+d.spec.Node), api.LaneDrains))
	defer cancel()
	future := workflow.ExecuteActivity(ctx, call.Drains.Drain, d.input())
	interruption := d.untilInterrupted(future.IsReady)
	cancel()
	if d.stop.stopped() || d.stop.await(future.IsReady) != nil {
		return d.awaitStopped(future)
	}
	err := d.ended(future)
	switch {
	case err == nil:
		return nil
	case temporal.IsCanceledError(err) && interruption == nil:
		return errRetry // by the activity's own account only: nobody asked it to stop
	case interruption != nil:
		// What is asked to stop is not retried any more, so that any passing trouble ends it; the next drain meets what lasts.
		return interruption
	default:
		return err
	}
}

// ended is how a drain ended. How far it came counts in any case, also where it was lost with its worker.
func (d *drainer) ended(drain workflow.Future) error {
	var progress api.DrainProgress
	err := drain.Get(d.clock.life, &progress)
	var cancelled *temporal.CanceledError
	var timeout *temporal.TimeoutError
	switch {
	case err == nil:
	case errors.As(err, &cancelled) && cancelled.HasDetails() && cancelled.Details(&progress) == nil:
	case errors.As(err, &timeout) && timeout.HasLastHeartbeatDetails() && timeout.LastHeartbeatDetails(&progress) == nil:
	default:
		return err
	}
	d.progressed(progress)
	return err
}

func (d *drainer) progressed(p api.DrainProgress) {
	p.Bound()
	d.journal.change(func(s *api.Status) { s.Drain = &p })
}

// drainEnds is how long a cancelled maintenance waits for its drain: longer than a lost worker's drain is believed in.
const drainEnds = 15 * time.Second

// awaitStopped waits until a drain that was told to stop has stopped, so that no eviction meets a node that is back
// already.
func (d *drainer) awaitStopped(drain workflow.Future) error {
	stopped, err := d.clock.awaitUpTo(d.clock.life, drainEnds, "the drain stops", drain.IsReady)
	if err != nil {
		return err
	}
	if stopped {
		if err := d.ended(drain); err != nil && !temporal.IsCanceledError(err) {
			workflow.GetLogger(d.clock.life).Warn("the drain that was told to stop", "error", err)
		}
	}
	return d.stop.decided()
}

func (d *drainer) input() drain.Input {
	status := d.journal.status()
	in := drain.Input{
		Node: d.spec.Node, UID: d.node.nodeUID(), RunID: d.runID, Drain: d.spec.Drain, Why: d.summary(),
		Began: d.Ladder.Began, Cordoned: *status.CordonedAt, Force: status.Force, KillAt: d.Ladder.killAt(), Skip: status.SkippedPods,
		BlockedSignal: api.SignalDrainBlocked,
	}
	if before := status.Drain; before != nil {
		in.Before = &api.DrainProgress{
			At: before.At, Total: before.Total, Evicted: before.Evicted, Tier: before.Tier, Tiers: before.Tiers,
			Pods: before.Pods, MorePods: before.MorePods,
		}
	}
	return in
}

// untilInterrupted waits until done, and tells what comes before that.
func (d *drainer) untilInterrupted(done func() bool) error {
	d.retryNow = false
	wake := func() bool { return done() || d.freeze.holds() || d.retryNow || d.Ladder.isAsked() }
	if err := d.awaitRung(wake); err != nil {
		return err
	}
	switch {
	case done():
		return nil
	case d.freeze.holds():
		return errHeld
	case d.retryNow:
		return errRetry
	default:
		return errRung
	}
}

// waitForPods lets chosen pods complete by themselves, for as long as the specification gives them.
func (d *drainer) waitForPods() error {
	wait := d.spec.WaitForPodCompletion
	if wait == nil {
		return nil
	}
	if d.journal.phase() == api.Draining {
		return nil // a run before this one waited
	}
	d.journal.enter(api.WaitingForPods, "")
	d.journal.waiting(fmt.Sprintf("pods %q to complete", wait.PodSelector))
	began := d.clock.now()
	for {
		if err := d.freeze.proceed(); err != nil {
			return err
		}
		ctx := call.In(call.Long(d.stop.steps, "wait for pods to complete"), api.LaneDrains)
		if limit := wait.Timeout.Std(); limit > 0 {
			left := limit - d.clock.now().Sub(began)
			if left <= 0 {
				return nil
			}
			ctx = call.Within(ctx, left)
		}
		err := d.freeze.unlessHeld(ctx, func(ctx workflow.Context) workflow.Future {
			return workflow.ExecuteActivity(ctx, call.Drains.WaitForPods, drain.WaitInput{
				Node: d.spec.Node, UID: d.node.nodeUID(), RunID: d.runID,
				PodSelector: wait.PodSelector, BlockedSignal: api.SignalDrainBlocked,
			})
		}, nil)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errHeld):
			continue
		case d.node.markLost(err):
			if err := d.node.restoreMark(); err != nil {
				return d.stop.stepFailed(err)
			}
		case call.IsOverdue(err):
			d.journal.note("gave up waiting for pods to complete after " + wait.Timeout.String())
			return nil
		default:
			return d.stop.stepFailed(err)
		}
	}
}
