package remediation

import (
	"time"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/health"
	"drydock/rules/bounds"
	"drydock/rules/health"
	"drydock/workflows/call"
	"drydock/workflows/loop"
)

// hand makes, marks and removes what remediates the node. It does one thing at a time.
type hand struct {
	*core
	busy bool
	// repairs are the node's maintenances.
	repairs *repairs
	// changed hears that the eye has something else to look at, and what was seen of that; nil is nothing.
	changed func(*activity.RemediationSeen)
	// failures count what failed in a row, next is when it is tried again.
	failures int
	next     time.Time
	// removing: objects were deleted, and have finalizers left.
	removing bool
}

// askAgain is the pause where something of somebody else's has to be over first.
const askAgain = 10 * time.Second

// rests tells that something failed a moment ago. An order that ends it all waits for nothing.
func (h *hand) rests() bool {
	if !h.Now().Before(h.next) {
		return false
	}
	h.WakeAt(h.next, "try again")
	return true
}

// retry has it tried again later, and says why.
func (h *hand) retry(waiting string) {
	h.state.Progress.Waiting = bounds.Cut(waiting, bounds.Text)
	h.next = h.Now().Add(loop.Backoff(h.failures))
	h.failures++
}

// works notes that something was done.
func (h *hand) works() { h.failures, h.next, h.state.Progress.Waiting = 0, time.Time{}, "" }

// does has an activity carried out.
func (h *hand) does(what string, future workflow.Future, then func(workflow.Future)) {
	h.busy = true
	h.Does(what, future, func(f workflow.Future) {
		h.busy = false
		then(f)
	})
}

// want is for how long the lease is wanted.
func (c *core) want() activity.LeaseWant {
	step := min(c.state.Order.Step, len(c.in.Steps)-1)
	want := activity.LeaseWant{For: c.in.Steps[step].Timeout.Std()}
	for _, before := range c.in.Steps[:step] {
		want.Before += before.Timeout.Std()
	}
	return want
}

// make begins a step: by a remediation object, or by a maintenance.
func (h *hand) make(step int) {
	what := h.in.Steps[step]
	if what.Maintenance != nil {
		h.maintain(step, *what.Maintenance)
		return
	}
	in := activity.ObjectInput{
		Check: h.check, Node: h.node, UID: h.in.UID, ControlPlane: h.in.ControlPlane, Step: step, Template: *what.Template,
		RunID: h.runID, Lease: h.want(), Etcd: h.in.Etcd, Conditions: h.in.Conditions, Owner: h.in.Owner,
	}
	// Once it was begun it goes on until it is known what came of it: a lost object would be nobody's.
	ctx := call.Quick(h.Ctx, "remediate "+h.node+" with a "+what.Template.Kind)
	h.does("make the object", workflow.ExecuteActivity(ctx, call.Health.EnsureObject, in), func(f workflow.Future) {
		var made activity.EnsuredObject
		if err := f.Get(h.Ctx, &made); err != nil {
			made = activity.EnsuredObject{Failure: call.Cause(err)}
		}
		h.made(step, made)
	})
}

// made takes what became of the object of a step.
func (h *hand) made(step int, made activity.EnsuredObject) {
	p := &h.state.Progress
	p.LeaseHeldBy, p.NotOwned = made.LeaseHeldBy, made.NotOwned
	h.state.Leased = h.state.Leased || made.Lease.Held
	switch {
	case made.Resource != nil:
		h.works()
		h.state.Leased = made.Lease.Held
		h.setStep(health.StepState{Index: step, Resource: made.Resource, StartedAt: made.StartedAt})
		p.Step = step
		h.changed(fresh(step, made))
	case made.Waiting != "":
		h.state.Progress.Waiting = bounds.Cut(made.Waiting, bounds.Text)
		h.next = h.Now().Add(askAgain)
	case made.NodeGone && made.NodeUID != "":
		h.replaced(step)
	case made.NodeGone:
		h.refused(step, "the node is gone")
	case made.LeaseHeldBy != "":
		h.refused(step, "the node's lease is held by "+made.LeaseHeldBy)
	case made.NotOwned != "":
		h.refused(step, made.NotOwned+" stands in the way, and is not this check's")
	case made.Skipped != "":
		h.refused(step, made.Skipped)
	case made.Unproven != "" && step+1 < len(h.in.Steps):
		h.passedOver(step, made.Unproven)
	case made.Unproven != "":
		h.refused(step, made.Unproven)
	default:
		h.refused(step, made.Failure)
	}
}

// fresh is what there is to see of an object that was made a moment ago: nothing but its lease. Nil is that this is not known.
func fresh(step int, made activity.EnsuredObject) *activity.RemediationSeen {
	if made.Found || step > 0 {
		return nil
	}
	return &activity.RemediationSeen{Objects: []activity.ObjectSeen{{Index: step}}, Lease: made.Lease}
}

// passedOver notes that a step has failed without an object, so that the check orders the next one.
func (h *hand) passedOver(step int, why string) {
	failed := false
	h.works()
	h.setStep(health.StepState{Index: step, StartedAt: h.Now(), Succeeded: &failed, Failure: why})
	h.state.Progress.Step = step
	h.changed(nil)
}

// refused ends a remediation that cannot begin: its check decides again. A further step that cannot begin is tried again.
func (h *hand) refused(step int, why string) {
	why = bounds.Cut(why, bounds.Text)
	if !h.began() {
		h.state.Progress.Failure = why
		h.state.Ending = why
		h.setStep(health.StepState{Index: step, Failure: why})
		return
	}
	s := health.StepState{Index: step, Failure: why}
	if known := h.stepState(step); known != nil {
		s = *known
		s.Failure = why
	}
	h.setStep(s)
	h.retry(why)
}

// replaced ends a remediation whose node is another one by now, before its next step: whether that one is ill the check decides.
func (h *hand) replaced(step int) {
	const why = "the node was replaced by another of its name"
	if !h.began() {
		h.refused(step, why)
		return
	}
	h.state.Ending = why
}

// mark has objects marked: as timed out, or as old.
func (h *hand) mark(steps []int) {
	now := h.Now()
	in := activity.MarkInput{Check: h.check, Old: h.state.Order.Old && !h.state.Old}
	if len(steps) > 0 {
		in.TimedOut, in.Old = &now, false
	}
	var marked []int
	for i := range h.state.Progress.Steps {
		s := h.state.Progress.Steps[i]
		if s.Resource == nil || s.Gone || len(steps) > 0 && !contains(steps, s.Index) {
			continue
		}
		in.Objects, marked = append(in.Objects, *s.Resource), append(marked, s.Index)
	}
	done := func() {
		h.works()
		for _, index := range steps {
			if s := h.stepState(index); s != nil && s.TimedOut == nil {
				s.TimedOut = &now
			}
		}
		h.state.Old = h.state.Old || in.Old
		h.repairs.giveUp(steps)
		h.changed(nil)
	}
	if len(in.Objects) == 0 {
		done()
		h.Dirty = true
		return
	}
	ctx := call.Within(call.Quick(h.Ctx, "mark the remediation objects of "+h.node), markWithin)
	h.does("mark", workflow.ExecuteActivity(ctx, call.Health.MarkObjects, in), func(f workflow.Future) {
		var told activity.MarkedObjects
		if err := f.Get(h.Ctx, &told); err != nil {
			h.retry("its remediation objects to be marked: " + call.Cause(err))
			return
		}
		h.gone(marked, told.Gone)
		done()
	})
}

// markWithin bounds what only tells a remediator to stop.
const markWithin = 5 * time.Minute

func contains(all []int, one int) bool {
	for _, i := range all {
		if i == one {
			return true
		}
	}
	return false
}

// gone notes which objects are gone.
func (h *hand) gone(steps []int, gone []bool) {
	for i, index := range steps {
		if s := h.stepState(index); s != nil && i < len(gone) && gone[i] {
			s.Gone = true
		}
	}
}

// clear removes everything: the maintenance, the objects, the node's confirmation and the lease.
func (h *hand) clear() {
	if !h.repairs.ended() {
		h.repairs.end()
		return
	}
	var in activity.RemoveInput
	var steps []int
	for _, s := range h.state.Progress.Steps {
		if s.Resource != nil && !s.Gone {
			in.Objects, steps = append(in.Objects, *s.Resource), append(steps, s.Index)
		}
	}
	// What has not begun leaves a confirmation that was not meant for it.
	in.Check, in.Node, in.KeepConfirmation = h.check, h.node, !h.began() && !h.state.Order.Healthy
	in.KeepLease = len(h.state.Progress.Steps) == 0 && !h.state.Leased && !h.in.Resume
	if h.in.Resume {
		in.Templates = h.templates() // an object may have been made of which nobody was told
	}
	ctx := call.Quick(h.Ctx, "remove what remediates "+h.node)
	h.does("remove", workflow.ExecuteActivity(ctx, call.Health.RemoveObjects, in), func(f workflow.Future) {
		var removed activity.Removed
		if err := f.Get(h.Ctx, &removed); err != nil {
			h.retry("its remediation objects to be removed: " + call.Cause(err))
			return
		}
		h.gone(steps, removed.Gone)
		if h.removing = !removed.Done; h.removing {
			h.state.Progress.Waiting = "its remediation objects to be gone: finalizers keep them"
			h.changed(nil)
			if !h.left() {
				h.retry(h.state.Progress.Waiting) // nothing that is known is there to be watched
			}
			return
		}
		h.works()
		h.removed()
	})
}

// templates are those of all steps.
func (h *hand) templates() (all []health.TemplateRef) {
	for _, step := range h.in.Steps {
		if step.Template != nil {
			all = append(all, *step.Template)
		}
	}
	return all
}

// removed notes that nothing is left.
func (h *hand) removed() {
	p := &h.state.Progress
	p.Ended, h.state.Leased = true, false
	p.Recovered = h.state.Order.Healthy || h.state.Recovered
	if p.Failure == "" && !p.Recovered {
		p.Failure = h.state.Ending
	}
}
