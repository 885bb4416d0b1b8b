package maintenance

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
)

var (
	// errAgain: a freeze, an operator or a further target has interrupted what is to begin again once no freeze holds.
	errAgain = errors.New("begun anew")
	// errRung: a rung of the escalation is to be taken.
	errRung = errors.New("the escalation's turn")
	// errRaised: the plans that share the maintenance drain its node further.
	errRaised = errors.New("to be drained further")
)

// drainer empties the node: it waits for pods, drains, takes the rungs of the escalation, and leaves the pods that operators skip
// (exceptions.go).
type drainer struct {
	*core
	plans *plans
	*drainState
	// rises is how often the target had risen when the present drain began. reported is set where the drain reported its end to the lockstep.
	rises    int
	reported bool
	// retryNow is set by an operator who wants a try at once.
	retryNow bool
}

type drainState struct {
	Ladder ladder `json:"ladder,omitzero"`
	// Drained is set by the message "drained" of an external drain.
	Drained bool `json:"drained,omitempty"`
	// Stood is since when there is nothing to drain for the plans that share the maintenance, zero while there is.
	Stood time.Time `json:"stood,omitzero"`
}

// drain empties the node as the specification says. The escalation's clock starts at the cordon, and stands still in a freeze and while pods
// complete by themselves, which has a limit of its own.
func (d *drainer) drain() error {
	if d.journal.phase() != api.Draining { // otherwise a run before this one began
		if d.Stood.IsZero() {
			d.begin()
		} else { // plans have raised the target
			d.goOn()
		}
		d.journal.enter(api.Draining, "")
		d.hold.showDraining()
	}
	if over := d.control.decided(); over != nil {
		return over
	}
	if d.spec.Drain.Mode == spec.ModeNone {
		return nil
	}
	for {
		if d.control.shouldContinue() {
			return errContinue
		}
		if !d.Stood.IsZero() {
			if over, err := d.stand(); over || err != nil {
				return err
			}
		}
		stood := d.control.now()
		if err := d.control.proceed(); err != nil {
			return err
		}
		d.Ladder.shift(d.control.now().Sub(stood))
		d.Ladder.catchUp(d.control.now())
		err := d.empty()
		d.journal.observeBlockers(nil)
		switch {
		case err == nil:
			if !d.spec.Lockstep {
				return nil
			}
			if d.plans.noteEmptied(d.rises, d.reported); !d.plans.behind() {
				d.Stood = d.control.now()
			}
			if d.plans.stands() {
				d.journal.note("drained as far as its plans have come")
			}
		case errors.Is(err, errAgain):
			continue
		case errors.Is(err, errRung):
			if err := d.escalate(); err != nil {
				return err
			}
		default:
			if err := d.hold.retry(err); err != nil {
				return err
			}
		}
	}
}

// goOn restarts the escalation's clock, which stood still.
func (d *drainer) goOn() {
	d.Ladder.shift(d.control.now().Sub(d.Stood))
	d.Stood = time.Time{}
}

// stand waits while the node is drained to its targets and its plans will drain it further. Over reports that they do not.
func (d *drainer) stand() (over bool, err error) {
	if d.plans.stands() {
		d.journal.waiting(d.plans.waited())
	}
	if err := d.control.awaitOrContinue(func() bool { return !d.plans.stands() || d.Ladder.isAsked() }); err != nil {
		return false, err
	}
	switch {
	case d.Ladder.isAsked():
		d.goOn()
		return false, d.escalate()
	case !d.plans.behind():
		return true, nil
	}
	d.goOn()
	d.journal.waiting("")
	return false, nil
}

// begin starts the escalation's clock, and drops the state of an earlier attempt. Where plans share the maintenance the clock
// runs only while there is something to drain.
func (d *drainer) begin() {
	began := *d.journal.status().CordonedAt
	if d.spec.WaitForPodCompletion != nil || d.spec.Lockstep {
		began = d.control.now()
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

// endAttempt counts the attempt, and keeps its pods for the audit record.
func (d *drainer) endAttempt() {
	d.Stood = time.Time{}
	d.plans.Drained, d.plans.Given = 0, false
	d.journal.change(func(s *api.Status) {
		s.Attempt++
		rememberPods(s)
		s.Drain, s.Slot = nil, nil
	})
}

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
	earlier.Moves = earlier.Moves.Plus(s.Drain.Moves)
}

// empty runs one drain, or waits for the message "drained", unless something interrupts that.
func (d *drainer) empty() error {
	if d.spec.Drain.Mode == spec.ModeExternal {
		d.journal.waiting(`the signal "drained"`)
		return d.untilInterrupted(func() bool { return d.Drained })
	}
	d.rises = d.plans.Rises
	// A drain must have ended before the next one begins: two must not run at once.
	ctx, cancel := workflow.WithCancel(call.In(call.Stoppable(d.control.steps, "drain "+d.spec.Node), api.LaneDrains))
	defer cancel()
	future := workflow.ExecuteActivity(ctx, call.Drains.Drain, d.input())
	interruption := d.untilInterrupted(future.IsReady)
	cancel()
	if d.control.stopped() || d.control.await(future.IsReady) != nil {
		return d.awaitStopped(future)
	}
	switch err := d.ended(future); {
	case err != nil && interruption != nil:
		// A cancelled activity is not retried, so that any error ends it; the next drain meets an error that lasts.
		return interruption
	case temporal.IsCanceledError(err):
		return errAgain // the activity stopped by itself
	default:
		return err
	}
}

// ended returns how a drain ended. Its progress counts also where it was lost with its worker.
func (d *drainer) ended(future workflow.Future) error {
	var emptied drain.Drained
	err := future.Get(d.control.life, &emptied)
	d.reported = emptied.Reported
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
		return // it was stopped before it read the node's pods
	}
	p.Bound()
	d.journal.change(func(s *api.Status) { s.Drain = new(s.Unsettled(p)) })
}

// drainEnds is how long a cancelled maintenance waits for its drain: longer than the heartbeat timeout of a lost worker's drain.
const drainEnds = 15 * time.Second

// awaitStopped waits until a cancelled drain has stopped, so that no eviction meets a node that is back already.
func (d *drainer) awaitStopped(future workflow.Future) error {
	if d.control.awaitAlwaysUpTo(d.control.life, drainEnds, "the drain stops", future.IsReady) {
		if err := d.ended(future); err != nil && !temporal.IsCanceledError(err) {
			workflow.GetLogger(d.control.life).Warn("the cancelled drain", "error", err)
		}
	}
	return d.control.decided()
}

func (d *drainer) input() drain.Input {
	status := d.journal.status()
	in := drain.Input{
		Node: d.spec.Node, UID: d.hold.UID, RunID: d.runID, Drain: d.consented(), Consents: d.consents(), Why: d.summary(),
		Began: d.Ladder.Began, Cordoned: *status.CordonedAt, Force: status.Force, KillAt: d.Ladder.killAt(), Skip: status.SkippedPods,
		BlockedSignal: api.SignalDrainBlocked, PlanBegan: d.planBegan,
	}
	in.Drain.Plan, in.ReportCounts = d.plan(), d.spec.Lockstep
	if d.spec.Lockstep {
		in.Then = &drain.Report{WorkflowID: d.plans.lockstepID(), Signal: api.SignalNodeProgress, Payload: encode(d.plans.emptiedProgress())}
	}
	if before := status.Drain; before != nil {
		in.Before = &api.DrainProgress{
			At: before.At, Total: before.Total, Evicted: before.Evicted, Deleted: before.Deleted, Tier: before.Tier, Tiers: before.Tiers,
			Moves: before.Moves, Pods: before.Pods, MorePods: before.MorePods,
		}
		if d.spec.Lockstep {
			in.Before.Tier = 0 // of other tiers
		}
	}
	return in
}

// plan has the tiers of the drain: its own, or the targets of the plans that share the maintenance.
func (d *drainer) plan() *spec.Plan {
	if d.spec.Lockstep {
		return &spec.Plan{Tiers: d.plans.Targets, Include: []drainplan.PodType{}, Static: spec.SkipStatic}
	}
	return d.spec.Drain.Plan
}

// untilInterrupted waits until done, or returns what interrupts that.
func (d *drainer) untilInterrupted(done func() bool) error {
	d.retryNow = false
	raised := func() bool { return d.plans.Rises != d.rises }
	wake := func() bool { return done() || d.control.isFrozen() || d.retryNow || raised() || d.Ladder.isAsked() }
	if err := d.awaitRung(wake); err != nil {
		return err
	}
	switch {
	case done():
		return nil
	case d.control.isFrozen(), d.retryNow, raised():
		return errAgain
	default:
		return errRung
	}
}

// waitForPods lets chosen pods complete by themselves, for as long as the specification says.
func (d *drainer) waitForPods() error {
	wait := d.spec.WaitForPodCompletion
	if wait == nil || d.journal.phase() == api.Draining { // Draining: a run before this one waited
		return nil
	}
	d.journal.enter(api.WaitingForPods, "")
	d.journal.waiting(fmt.Sprintf("pods %q to complete", wait.PodSelector))
	began := d.control.now()
	for {
		if err := d.control.proceed(); err != nil {
			return err
		}
		ctx := call.In(call.Long(d.control.steps, "wait for pods to complete"), api.LaneDrains)
		if limit := wait.Timeout.Std(); limit > 0 {
			left := limit - d.control.now().Sub(began)
			if left <= 0 {
				return nil
			}
			ctx = call.Within(ctx, left)
		}
		err := d.control.unlessHeld(ctx, call.Drains.WaitForPods, drain.WaitInput{
			Node: d.spec.Node, UID: d.hold.UID, RunID: d.runID, PodSelector: wait.PodSelector, BlockedSignal: api.SignalDrainBlocked,
		})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errAgain):
			continue
		case call.IsOverdue(err):
			d.journal.note("gave up waiting for pods to complete after " + wait.Timeout.String())
			return nil
		default:
			if err := d.hold.retry(err); err != nil {
				return err
			}
		}
	}
}
