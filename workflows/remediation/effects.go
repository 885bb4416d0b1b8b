package remediation

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	activity "drydock.dev/drydock/activities/health"
	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

// The kinds of effects and watches. Acts change what remediates the node: one of them is under way at a time.
const (
	actFind     = "find"     // the maintenance that an earlier workflow has begun
	actLook     = "look"     // for the objects that an earlier workflow has made
	actMake     = "make"     // the object of a step
	actMaintain = "maintain" // the node, which is a step too
	actLease    = "lease"
	actMark     = "mark"
	actEnd      = "end" // a maintenance
	actRemove   = "remove"

	sendReport       = "report"
	watchObjects     = "objects"
	watchMaintenance = "maintenance"
)

const (
	// tidyWithin bounds an act that only has something stopped, or looks for what there is.
	tidyWithin = 5 * time.Minute
	// orderWithin is how long a remediation that follows an earlier workflow waits for an order. A check sends it at once.
	orderWithin = time.Minute
	// askAgain is the pause where something of somebody else's has to be over first.
	askAgain = 10 * time.Second
)

func (r *remediation) act(kind, of, summary string, c controller.Call, input any) controller.Effect {
	return controller.Activity{Meta: controller.Meta{Key: controller.Key{Kind: kind, Of: of}, Summary: summary}, Call: c, Input: input}
}

// next is what to do now, nil if there is nothing to do.
func (r *remediation) next(now time.Time) controller.Effect {
	if !r.ends() && !r.seeks() {
		r.markNothing(now)
	}
	m := r.Maintained
	switch {
	case r.Progress.Ended:
		return nil
	case r.seeks():
		return r.act(actFind, "", "find the maintenance of "+r.in.Node, controller.Call{Func: call.Health.FindRepair, Within: tidyWithin},
			activity.RepairInput{Check: r.in.Check, Node: r.in.Node})
	case r.ends() && r.Removing && len(r.left()) > 0:
		return nil // the watch reports when they are gone
	case r.ends() && m != nil:
		return r.endMaintenance(m)
	case r.ends():
		return r.remove()
	case r.followsUnknown(now):
		return r.look(now)
	case len(r.unmarked()) > 0: // a remediator has to stop before the next one begins
		return r.mark(now)
	case m != nil && r.step(m.Step) != nil && r.step(m.Step).TimedOut != nil && !m.Ending:
		return r.endMaintenance(m)
	case r.missing() >= 0:
		return r.begin(r.missing())
	case r.Order.Old && !r.Old:
		return r.mark(now)
	default:
		return nil
	}
}

// look looks for the objects that an earlier workflow has made, once there was time enough for an order.
func (r *remediation) look(now time.Time) controller.Effect {
	if now.Before(r.OrderBy) {
		return nil
	}
	return r.act(actLook, "", "find the remediation objects of "+r.in.Node, controller.Call{Func: call.Health.FindObjects, Within: tidyWithin},
		activity.FindInput{Check: r.in.Check, Node: r.in.Node, Templates: r.templates()})
}

// leaseWant is for how long the lease is wanted.
func (r *remediation) leaseWant() activity.LeaseWant {
	step := min(r.Order.Step, len(r.in.Steps)-1)
	want := activity.LeaseWant{For: r.in.Steps[step].Timeout.Std()}
	for _, before := range r.in.Steps[:step] {
		want.Before += before.Timeout.Std()
	}
	return want
}

// begin begins a step: by a remediation object, or by a maintenance. Without the slot of a control-plane node it waits for the scheduler.
func (r *remediation) begin(step int) controller.Effect {
	what, of := r.in.Steps[step], strconv.Itoa(step)
	switch {
	case r.lacksSlot():
		return nil
	case what.Maintenance == nil:
		return r.act(actMake, of, "remediate "+r.in.Node+" with a "+what.Template.Kind, controller.Call{Func: call.Health.EnsureObject}, activity.ObjectInput{
			Check: r.in.Check, Node: r.in.Node, UID: r.in.UID, ControlPlane: r.Progress.ControlPlane, Step: step, Begun: r.hasMade(), Template: *what.Template,
			RunID: r.Info.Run, Slot: r.slotID(), Lease: r.leaseWant(), Etcd: r.in.Etcd, Conditions: r.in.Conditions, Owner: r.in.Owner,
		})
	case r.Maintained != nil: // that of an earlier step
		return r.endMaintenance(r.Maintained)
	case !r.Leased:
		return r.act(actLease, "", "take the lease of "+r.in.Node, controller.Call{Func: call.Health.TakeLease},
			activity.LeaseInput{Check: r.in.Check, Node: r.in.Node, UID: r.in.UID, LeaseWant: r.leaseWant()})
	default:
		return r.act(actMaintain, of, "begin the maintenance of "+r.in.Node, controller.Call{Func: call.Health.BeginRepair}, activity.RepairInput{
			Check: r.in.Check, Node: r.in.Node, UID: r.in.UID, ControlPlane: r.Progress.ControlPlane, Step: step, Begun: r.hasMade(), Repair: *what.Maintenance,
			Why: r.in.Why, Conditions: r.in.Conditions, Etcd: r.in.Etcd, Slot: r.slotID(),
		})
	}
}

// markNothing records steps that have no object to mark as marked.
func (r *remediation) markNothing(now time.Time) {
	for _, i := range r.unmarked() {
		if s := r.step(i); s.Resource == nil {
			s.TimedOut = &now
		}
	}
	r.Old = r.Old || r.Order.Old && len(r.left()) == 0 && r.missing() < 0
}

// mark has objects marked: as timed out, or as old.
func (r *remediation) mark(now time.Time) controller.Effect {
	in, steps := activity.MarkInput{Check: r.in.Check, Old: true}, r.unmarked()
	if len(steps) > 0 {
		in.TimedOut, in.Old = &now, false
	}
	for _, s := range r.left() {
		if in.Old || slices.Contains(steps, s.Index) {
			in.Objects = append(in.Objects, *s.Resource)
		}
	}
	return r.act(actMark, "", "mark the remediation objects of "+r.in.Node, controller.Call{Func: call.Health.MarkObjects, Within: tidyWithin}, in)
}

// endMaintenance has a maintenance ended: one that is not Ready is cancelled. One on which somebody works is done where the node is healthy,
// and given back where it is not: its time is over.
func (r *remediation) endMaintenance(m *Maintained) controller.Effect {
	if m.Ending {
		return nil // the watch reports its end
	}
	in := activity.EndRepairInput{Check: r.in.Check, Node: r.in.Node, RunID: m.RunID, Healthy: r.Order.Healthy, Why: cmp.Or(r.Order.Why, r.Ending)}
	return r.act(actEnd, "", "end the maintenance of "+r.in.Node, controller.Call{Func: call.Health.EndRepair, Within: tidyWithin}, in)
}

// remove has the objects removed, the node's confirmation, and the lease.
func (r *remediation) remove() controller.Effect {
	unknown := r.in.Resume || r.WasReset // an object may have been made that was not reported
	in := activity.RemoveInput{
		Check: r.in.Check, Node: r.in.Node,
		// A remediation that began nothing leaves the confirmation: it was for another one.
		KeepConfirmation: !r.began() && !r.Order.Healthy,
		KeepLease:        len(r.Progress.Steps) == 0 && !r.Leased && !unknown,
	}
	for _, s := range r.left() {
		in.Objects = append(in.Objects, *s.Resource)
	}
	if unknown {
		in.Templates = r.templates()
	}
	return r.act(actRemove, "", "remove what remediates "+r.in.Node, controller.Call{Func: call.Health.RemoveObjects}, in)
}

// watches are the one of the objects, the lease and the node, and the one of the maintenance that runs.
func (r *remediation) watches(now time.Time) (all []controller.Watch) {
	if in := r.watched(now); len(in.Objects)+len(in.Conditions) > 0 || in.Lease != nil {
		want := in
		in.Known = r.Seen
		all = append(all, controller.Watch{
			Key: controller.Key{Kind: watchObjects}, Summary: "watch what remediates " + r.in.Node, Want: want, Input: in,
			Call: controller.Call{Func: call.Health.WatchRemediation, Heartbeat: activity.RemediationHeartbeatTimeout},
		})
	}
	if m := r.Maintained; m != nil {
		all = append(all, controller.Watch{
			Key: controller.Key{Kind: watchMaintenance, Of: m.RunID}, Summary: "wait for the end of the maintenance of " + r.in.Node,
			Call:  controller.Call{Func: call.Plans.AwaitEnds, Heartbeat: 10 * time.Second},
			Input: api.List[planactivity.Execution]{{WorkflowID: r.maintenanceID(), RunID: m.RunID}},
		})
	}
	return all
}

func (r *remediation) maintenanceID() string {
	return api.MaintenanceID(r.Info.Cluster, r.in.Node, api.RemediationRequestor(r.in.Check))
}

// watched is what is to be seen of the objects, the lease and the node.
func (r *remediation) watched(now time.Time) (in activity.RemediationWatch) {
	if r.Progress.Ended || r.seeks() || r.ends() && !r.Removing {
		return in
	}
	in.Check, in.Node, in.UID = r.in.Check, r.in.Node, r.in.UID
	for _, s := range r.left() {
		in.Objects = append(in.Objects, activity.WatchedObject{Index: s.Index, Resource: *s.Resource})
	}
	if r.Leased {
		want := r.leaseWant()
		in.Lease = &want
	}
	if r.alone(now) {
		in.Conditions = r.in.Conditions
	}
	return in
}

// fresh is what there is to see of an object that was made a moment ago: nothing but its lease. Nil is that this is not known.
func fresh(step int, made activity.EnsuredObject) *activity.RemediationSeen {
	if made.Found || step > 0 {
		return nil
	}
	return &activity.RemediationSeen{Objects: []activity.ObjectSeen{{Index: step}}, Lease: made.Lease}
}

// record has the audit record kept of a remediation that has begun something.
func (r *remediation) record() controller.Effect {
	begun := slices.ContainsFunc(r.Progress.Steps, func(s health.StepState) bool { return !s.StartedAt.IsZero() })
	if !r.in.Audited || !begun || r.Recorded {
		return nil
	}
	id := api.RemediationRecordID(r.Info.Cluster, r.in.Check, r.in.Node, r.Info.Run)
	return r.Record(r.Info, id, "the remediation of "+r.in.Node, r.attributed)
}
