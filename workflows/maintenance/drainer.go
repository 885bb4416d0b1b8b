package maintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/drain"
	"drydock/api"
	"drydock/rules/record"
	"drydock/rules/spec"
	"drydock/workflows/call"
	"drydock/workflows/maintenance/target"
)

// Why an attempt to empty the node was taken back before it ended, beside errHeld.
var (
	// errRetry: an operator changed what the drain is to do, or wants it to try at once.
	errRetry = errors.New("begun anew")
	// errRung: a rung of the escalation is to be taken.
	errRung = errors.New("the escalation's turn")
)

// heldNode is what a drain needs to know and do of the node that is held.
type heldNode interface {
	nodeUID() string
	markLost(err error) bool
	restoreMark() error
}

// allowances are what a drain may lose by now: of all pods, as the specification has it, and of single ones.
type allowances interface {
	consented() spec.Drain
	consents() []drain.Consent
}

// drainer empties the node: it waits for pods, drains, and climbs the escalation.
type drainer struct {
	core
	node       heldNode
	exceptions allowances
	target     *target.Target
	drainState
	// rises is how often the target had risen when the present attempt began, told that the lockstep knows of its end.
	rises int
	told  bool
	// retryNow: an operator wants a try at once.
	retryNow bool
}

// drainState is what the next run has to know. Drained: somebody else said that the node is empty. Stood is since when
// there is nothing to drain for the plans that share the maintenance, zero while there is.
type drainState struct {
	Ladder  ladder    `json:"ladder,omitzero"`
	Drained bool      `json:"drained,omitempty"`
	Stood   time.Time `json:"stood,omitzero"`
}

// errRaised: the plans that share the maintenance drain its node further.
var errRaised = errors.New("to be drained further")

// drain empties the node in the way the specification asks for, until it is Ready. The escalation's clock runs from
// the cordon; the time in which pods were to complete by themselves, which has a limit of its own, and the time in which
// a freeze held the maintenance are not counted.
func (d *drainer) drain() error {
	if d.journal.phase() != api.Draining { // otherwise a run before this one began
		d.beginOrGoOn()
		d.journal.enter(api.Draining, "")
		d.announcer.showDraining()
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
		if !d.Stood.IsZero() {
			if over, err := d.stand(); over || err != nil {
				return err
			}
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
			if !d.spec.Lockstep {
				return nil
			}
			if d.target.NoteEmptied(d.rises, d.told); !d.target.Behind() {
				d.Stood = d.clock.now()
			}
			if d.target.Stands() {
				d.journal.note("drained as far as its plans have come")
			}
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

// beginOrGoOn begins the drain of an attempt. One that plans have raised goes on: in between its clock stood still.
func (d *drainer) beginOrGoOn() {
	if !d.spec.Lockstep || d.Stood.IsZero() {
		d.begin()
		return
	}
	d.goOn(d.clock.now())
}

// goOn has the escalation's clock run again, which stood still.
func (s *drainState) goOn(now time.Time) {
	s.Ladder.shift(now.Sub(s.Stood))
	s.Stood = time.Time{}
}

// stand waits with a node that is drained as far as the plans that share it have come, as long as they will drain it
// further. Over tells that they do not.
func (d *drainer) stand() (over bool, err error) {
	if d.target.Stands() {
		d.journal.waiting(d.target.Waited())
	}
	if err := d.stop.await(func() bool { return !d.target.Stands() || d.Ladder.isAsked() || d.leave.due() }); err != nil {
		return false, err
	}
	switch {
	case d.Ladder.isAsked():
		d.goOn(d.clock.now())
		return false, d.escalate()
	case d.target.Stands():
		return false, errContinue
	case !d.target.Behind():
		return true, nil
	}
	d.goOn(d.clock.now())
	d.journal.waiting("")
	return false, nil
}

// begin starts the escalation's clock, and forgets what was so in an earlier attempt. Where plans share the maintenance it
// runs only while there is something to drain.
func (d *drainer) begin() {
	began := *d.journal.status().CordonedAt
	if d.spec.WaitForPodCompletion != nil || d.spec.Lockstep {
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
	d.Stood = time.Time{}
	d.target.Release()
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
	earlier.Total = earlier.Evicted + earlier.Deleted + s.Drain.Total
	earlier.Evicted += s.Drain.Evicted
	earlier.Deleted += s.Drain.Deleted
}

// empty runs one drain, or waits for somebody else's word that the node is empty, until that has ended or something
// else comes first.
func (d *drainer) empty() error {
	if d.spec.Drain.Mode == spec.ModeExternal {
		d.journal.waiting(`the signal "drained"`)
		return d.untilInterrupted(func() bool { return d.Drained })
	}
	d.rises = d.target.Rises
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
func (d *drainer) ended(future workflow.Future) error {
	var emptied drain.Drained
	err := future.Get(d.clock.life, &emptied)
	d.told = emptied.Told
	progress := emptied.DrainProgress
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
	if !p.Looked() {
		return // it was stopped before it had looked at the node
	}
	p.Bound()
	p = d.journal.status().Unsettled(p)
	d.journal.change(func(s *api.Status) { s.Drain = &p })
}

// drainEnds is how long a cancelled maintenance waits for its drain: longer than a lost worker's drain is believed in.
const drainEnds = 15 * time.Second

// awaitStopped waits until a drain that was told to stop has stopped, so that no eviction meets a node that is back
// already.
func (d *drainer) awaitStopped(future workflow.Future) error {
	stopped, err := d.clock.awaitUpTo(d.clock.life, drainEnds, "the drain stops", future.IsReady)
	if err != nil {
		return err
	}
	if stopped {
		if err := d.ended(future); err != nil && !temporal.IsCanceledError(err) {
			workflow.GetLogger(d.clock.life).Warn("the drain that was told to stop", "error", err)
		}
	}
	return d.stop.decided()
}

func (d *drainer) input() drain.Input {
	status := d.journal.status()
	in := drain.Input{
		Node: d.spec.Node, UID: d.node.nodeUID(), RunID: d.runID, Drain: d.exceptions.consented(), Consents: d.exceptions.consents(), Why: d.summary(),
		Began: d.Ladder.Began, Cordoned: *status.CordonedAt, Force: status.Force, KillAt: d.Ladder.killAt(), Skip: status.SkippedPods,
		BlockedSignal: api.SignalDrainBlocked,
	}
	in.Drain.Plan, in.TellCounts = d.plan(), d.spec.Lockstep
	if d.spec.Lockstep {
		in.Then = emptied(d.clock.life, d.target)
	}
	if before := status.Drain; before != nil {
		in.Before = &api.DrainProgress{
			At: before.At, Total: before.Total, Evicted: before.Evicted, Deleted: before.Deleted, Tier: before.Tier, Tiers: before.Tiers,
			Pods: before.Pods, MorePods: before.MorePods,
		}
		if d.spec.Lockstep {
			in.Before.Tier = 0 // of other tiers
		}
	}
	return in
}

// emptied is what the drain tells the lockstep once the node is empty.
func emptied(ctx workflow.Context, t *target.Target) *drain.Word {
	payload, err := json.Marshal(t.Emptied())
	if err != nil {
		workflow.GetLogger(ctx).Error("the lockstep is told later", "error", err)
		return nil
	}
	return &drain.Word{WorkflowID: t.Lockstep(), Signal: api.SignalNodeProgress, Payload: payload}
}

// plan are the tiers of the drain: its own, or those that the plans that share the maintenance have come to.
func (d *drainer) plan() *spec.Plan {
	if d.spec.Lockstep {
		return d.target.Plan()
	}
	return d.spec.Drain.Plan
}

// untilInterrupted waits until done, and tells what comes before that.
func (d *drainer) untilInterrupted(done func() bool) error {
	d.retryNow = false
	raised := func() bool { return d.target.Rises != d.rises }
	wake := func() bool { return done() || d.freeze.holds() || d.retryNow || raised() || d.Ladder.isAsked() }
	if err := d.awaitRung(wake); err != nil {
		return err
	}
	switch {
	case done():
		return nil
	case d.freeze.holds():
		return errHeld
	case d.retryNow, raised():
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
