package remediation

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	activity "drydock.dev/drydock/activities/health"
	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

func (r *remediation) Outcome(o controller.Outcome, now time.Time) {
	step, _ := strconv.Atoi(o.Key.Of)
	switch o.Key.Kind {
	case actFind:
		r.found(o)
	case actLook:
		r.looked(o)
	case actMake:
		r.made(o, step, now)
	case actMaintain:
		r.maintained(o, step, now)
	case actLease:
		r.leased(o, now)
	case actMark:
		r.marked(o)
	case actEnd:
		r.endBegan(o)
	case actRemove:
		r.removed(o, now)
	case sendReport:
		r.delivered(o, now)
	case sendRequest:
		r.asked(o, now)
	case sendRelease:
		r.gaveBack(o)
	case seeLeft:
		r.sawLeft(o, now)
	case controller.RecordKind:
		if r.TakeRecord(o) {
			r.Note(now, "the audit record was not begun as "+o.Key.Of, call.Cause(o.Err))
		}
	case watchObjects:
		r.saw(o, now)
	case watchMaintenance:
		r.ended(o)
	}
}

// take decodes the result of an act. Where it has failed, the frame shows that.
func (r *remediation) take(o controller.Outcome, result any) bool {
	r.wait("")
	return o.Get(result) == nil
}

// trouble says what fails and is tried again; empty is nothing. A report that is not delivered is none that the next has to tell of.
func (r *remediation) trouble() string {
	for _, retry := range r.Retries {
		if retry.Why != "" && retry.Key.Kind != sendReport {
			return retry.What + ": " + retry.Why
		}
	}
	return ""
}

func (r *remediation) wait(what string) { r.Progress.Waiting = bounds.Cut(what, bounds.Text) }

func (r *remediation) made(o controller.Outcome, step int, now time.Time) {
	var made activity.EnsuredObject
	if err := o.Get(&made); err != nil {
		made = activity.EnsuredObject{Failure: call.Cause(err)}
	}
	p := &r.Progress
	p.LeaseHeldBy, p.NotOwned, p.Indispensable = made.LeaseHeldBy, made.NotOwned, made.Indispensable
	r.Leased = r.Leased || made.Lease.Held
	switch {
	case made.Resource != nil:
		r.wait("")
		r.Leased = made.Lease.Held
		r.setStep(health.StepState{Index: step, Resource: made.Resource, StartedAt: made.StartedAt})
		p.Step = step
		r.Seen = fresh(step, made)
	case made.Waiting != "":
		r.wait(made.Waiting)
		r.Rest(o.Key, askAgain, now)
	case made.NeedsSlot:
		r.askForSlot(now)
	case made.NodeGone && made.NodeUID != "":
		r.replaced(o, step, now)
	case made.NodeGone:
		r.refused(o, step, "the node is gone", now)
	case made.LeaseHeldBy != "":
		r.refused(o, step, "the node's lease is held by "+made.LeaseHeldBy, now)
	case made.NotOwned != "":
		r.refused(o, step, made.NotOwned+" stands in the way, and is not this check's", now)
	case made.Indispensable != "":
		r.giveUp(made.Indispensable)
	case made.Unproven != "" && step+1 < len(r.in.Steps):
		r.passOver(step, made.Unproven, now)
	default:
		r.refused(o, step, cmp.Or(made.Skipped, made.Unproven, made.Failure), now)
	}
}

// passOver notes that a step has failed without an object, so that the check orders the next one.
func (r *remediation) passOver(step int, why string, now time.Time) {
	failed := false
	r.wait("")
	r.setStep(health.StepState{Index: step, StartedAt: now, Succeeded: &failed, Failure: why})
	r.Progress.Step, r.Seen = step, nil
}

// refused ends a remediation that cannot begin: its check decides again. A further step that cannot begin is tried again.
func (r *remediation) refused(o controller.Outcome, step int, why string, now time.Time) {
	why = bounds.Cut(why, bounds.Text)
	s := health.StepState{Index: step, Failure: why}
	if !r.began() {
		r.Progress.Failure, r.Ending = why, why
		r.setStep(s)
		return
	}
	if known := r.step(step); known != nil {
		s = *known
		s.Failure = why
	}
	r.setStep(s)
	r.wait("")
	if o.Err == nil {
		r.Fails(o.Key, "step "+strconv.Itoa(step+1)+" cannot begin", why, now)
	}
}

// replaced ends a remediation whose node is another one by now, before its next step: whether that one is ill the check decides.
func (r *remediation) replaced(o controller.Outcome, step int, now time.Time) {
	const why = "the node was replaced by another of its name"
	if !r.began() {
		r.refused(o, step, why, now)
		return
	}
	r.Ending = why
}

func (r *remediation) leased(o controller.Outcome, now time.Time) {
	var lease activity.LeaseState
	err := o.Get(&lease)
	r.Progress.LeaseHeldBy = lease.HeldBy
	switch {
	case err != nil:
		r.refused(o, r.Order.Step, "the node's lease could not be taken: "+call.Cause(err), now)
	case !lease.Held:
		r.refused(o, r.Order.Step, "the node's lease is held by "+lease.HeldBy, now)
	default:
		r.Leased, r.Seen = true, nil
	}
}

func (r *remediation) maintained(o controller.Outcome, step int, now time.Time) {
	var begun activity.BegunRepair
	err := o.Get(&begun)
	r.Progress.Indispensable = begun.Indispensable
	switch {
	case err != nil:
		r.refused(o, step, "the maintenance could not be begun: "+call.Cause(err), now)
	case begun.Replaced:
		r.replaced(o, step, now)
	case begun.NeedsSlot:
		r.askForSlot(now)
	case begun.Refused != "":
		r.refused(o, step, begun.Refused, now)
	case begun.Waiting != "":
		r.wait(begun.Waiting)
		r.Rest(o.Key, askAgain, now)
	case begun.Indispensable != "":
		r.giveUp(begun.Indispensable)
	default:
		r.wait("")
		r.takeUp(begun, step)
		r.Progress.Step, r.Seen = step, nil
	}
}

// takeUp goes on with a maintenance that runs.
func (r *remediation) takeUp(begun activity.BegunRepair, step int) {
	if s := r.step(step); s == nil || s.WorkflowID == "" || s.Gone {
		r.setStep(health.StepState{Index: step, WorkflowID: r.maintenanceID(), StartedAt: begun.StartedAt})
	}
	r.Maintained = &Maintained{Step: step, RunID: begun.RunID}
}

// found takes the maintenance that an earlier workflow of the remediation has begun, whether or not it has reported that. Those of which
// nothing runs any more are over, however they have ended.
func (r *remediation) found(o controller.Outcome) {
	var found activity.BegunRepair
	if !r.take(o, &found) || o.Stale {
		return
	}
	r.Sought = true
	step := -1
	for i := range r.Progress.Steps {
		s := &r.Progress.Steps[i]
		switch {
		case s.WorkflowID == "" || s.Gone:
		case found.RunID == "":
			s.Gone = true
		default:
			step = s.Index
		}
	}
	switch {
	case found.RunID == "":
		return
	case step < 0 && r.in.Steps[r.in.Step].Maintenance != nil:
		step = r.in.Step
	case step < 0:
		step = slices.IndexFunc(r.in.Steps, func(s health.Remediation) bool { return s.Maintenance != nil })
	}
	r.takeUp(found, step)
}

// looked takes over the objects that an earlier workflow has made and not reported. The last step that has one is at work.
func (r *remediation) looked(o controller.Outcome) {
	var found activity.FoundObjects
	if !r.take(o, &found) || o.Stale {
		return
	}
	r.Looked = true
	of := o.Begun.(controller.Activity).Input.(activity.FindInput).Templates
	for _, object := range found.Objects {
		step := slices.IndexFunc(r.in.Steps, func(s health.Remediation) bool {
			return s.Template != nil && object.Template < len(of) && *s.Template == of[object.Template]
		})
		if step < 0 || r.stepOf(object.Resource) != nil {
			continue
		}
		r.setStep(health.StepState{Index: step, Resource: &object.Resource, StartedAt: object.StartedAt})
		r.Order.Step = max(r.Order.Step, step)
		r.Progress.Step, r.Leased, r.Seen = r.Order.Step, true, nil
	}
}

// marked takes which of the objects that were marked are gone.
func (r *remediation) marked(o controller.Outcome) {
	var marked activity.MarkedObjects
	if !r.take(o, &marked) {
		return
	}
	in := o.Begun.(controller.Activity).Input.(activity.MarkInput)
	for i, object := range in.Objects {
		if s := r.stepOf(object); s != nil {
			s.Gone = s.Gone || i < len(marked.Gone) && marked.Gone[i]
			if s.TimedOut == nil {
				s.TimedOut = in.TimedOut
			}
		}
	}
	r.Old = r.Old || in.Old
	r.Seen = nil
}

func (r *remediation) endBegan(o controller.Outcome) {
	r.wait("")
	if o.Err != nil {
		return // the frame shows that
	}
	run := o.Begun.(controller.Activity).Input.(activity.EndRepairInput).RunID
	if m := r.Maintained; m != nil && m.RunID == run {
		m.Ending = true
	}
}

func (r *remediation) removed(o controller.Outcome, now time.Time) {
	var removed activity.Removed
	if !r.take(o, &removed) {
		return
	}
	for i, object := range o.Begun.(controller.Activity).Input.(activity.RemoveInput).Objects {
		if s := r.stepOf(object); s != nil && i < len(removed.Gone) && removed.Gone[i] {
			s.Gone = true
		}
	}
	if r.Removing = !removed.Done; r.Removing {
		r.Seen = nil
		r.wait("its remediation objects to be gone: finalizers keep them")
		if len(r.left()) == 0 { // nothing that is known is there to be watched
			r.Fails(o.Key, "the remediation objects cannot be removed", "finalizers keep them", now)
		}
		return
	}
	p := &r.Progress
	p.Ended, r.Leased = true, false
	p.Recovered = r.Order.Healthy || r.Recovered
	if p.Failure == "" && !p.Recovered {
		p.Failure = r.Ending
	}
}

func (r *remediation) saw(o controller.Outcome, now time.Time) {
	var seen activity.RemediationSeen
	if o.Get(&seen) != nil {
		return
	}
	r.Seen = &seen
	p := &r.Progress
	p.PermanentNodeDeletionExpected = false
	for _, object := range seen.Objects {
		if object.PermanentNodeDeletionExpected != nil && *object.PermanentNodeDeletionExpected && !object.Gone {
			p.PermanentNodeDeletionExpected = true
		}
		if s := r.step(object.Index); s != nil {
			sawObject(s, object, now)
		}
	}
	if r.Leased && !seen.Lease.Held {
		r.Leased = false // held for too long, or somebody else's: it goes on without
		if seen.Lease.HeldBy != "" {
			r.Note(now, "the node's lease is not held any more", "it is "+seen.Lease.HeldBy+"'s")
		}
	}
	if !r.alone(now) || r.ends() {
		return
	}
	watched := o.Begun.(controller.Watch).Input.(activity.RemediationWatch)
	switch {
	case seen.NodeGone && p.PermanentNodeDeletionExpected, len(watched.Conditions) == 0:
	case seen.NodeGone || seen.NodeReplaced:
		r.Ending, r.Recovered = "the node is gone, and so is the check", true
	case !seen.Ill:
		r.Ending, r.Recovered = "the node is healthy, and its check is gone", true
	}
}

func sawObject(s *health.StepState, o activity.ObjectSeen, now time.Time) {
	if s.Gone = s.Gone || o.Gone; !o.Gone {
		s.Succeeded = o.Succeeded
	}
	if s.Failure = ""; s.Succeeded != nil && !*s.Succeeded {
		s.Failure = bounds.Cut(o.Message, bounds.Text)
	}
	if o.TimedOut && s.TimedOut == nil {
		s.TimedOut = &now
	}
}

func (r *remediation) ended(o controller.Outcome) {
	var ended []planactivity.Ended
	m := r.Maintained
	if o.Get(&ended) != nil || len(ended) != 1 || m == nil || m.RunID != o.Key.Of {
		return
	}
	r.Maintained = nil
	s := r.step(m.Step)
	if s == nil {
		return
	}
	completed := ended[0].Phase == api.Completed
	switch {
	case completed:
		s.Succeeded = &completed
	case m.Ending: // that its end was requested says nothing of whether it healed the node
	default:
		s.Succeeded, s.Failure = &completed, bounds.Cut(ended[0].Message, bounds.Text)
	}
}
