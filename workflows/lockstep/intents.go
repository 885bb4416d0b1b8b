package lockstep

import (
	"slices"
	"strings"
	"time"

	activity "drydock/activities/lockstep"
	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/rules/number"
	"drydock/workflows/call"
	"drydock/workflows/controller"
)

// The kinds of the effects that find out what runs.
const (
	findAll    = "find"
	checkPlans = "check"
)

// maxIntent bounds the signal of an intent, in bytes: 15,000 names of 63 characters are 1 MB.
const maxIntent = 3 << 19

// patience is how long those who run have, when the lockstep begins anew, to say what they know before others go on without.
const patience = 30 * time.Second

// find finds which maintenances and which plans run.
func (l *lockstep) find() controller.Effect {
	return controller.Activity{
		Meta: controller.Meta{Key: keyOf(findAll, ""), Summary: "find plans and shared maintenances"},
		Call: controller.Call{Func: call.Lockstep.TakeStock, Within: actWithin, Heartbeat: beat}, Input: activity.QueueInput{TaskQueue: l.Info.TaskQueue},
	}
}

// found takes what runs. Maintenances have to say how far they are, plans what they intend.
func (l *lockstep) found(o controller.Outcome, now time.Time) {
	var found activity.Running
	if o.Get(&found) != nil || o.Stale {
		return // it may be from before a reset
	}
	v := &l.Inventory
	l.Known, l.Until, v.changed = true, now.Add(patience), true
	for _, name := range found.Nodes {
		n := v.byName[name]
		if n == nil {
			n = v.add(name)
		}
		if n.Stand == wanted {
			n.Stand = asked
		}
	}
	if len(found.Nodes) > 0 {
		l.Note(now, "found maintenances that run", "they say how far they are before anything is decided for them")
	}
	for _, p := range found.Plans {
		if v.planOf(p.RunID) == nil {
			v.setSilent(p.Name, p.RunID)
		}
	}
}

// waitsFor says in words who has to speak before anything is decided; empty is nobody.
func (l *lockstep) waitsFor() string {
	if !l.Known {
		return "finding out which plans and maintenances run"
	}
	const shown = 3
	var names []string
	for _, name := range sortedKeys(l.Inventory.silent) {
		names = append(names, "plan "+name)
	}
	for _, n := range l.Inventory.nodes {
		if n.Stand == asked && len(names) <= shown {
			names = append(names, "the maintenance of "+n.name)
		}
	}
	if len(names) > shown {
		names = append(names[:shown], "others")
	}
	if len(names) == 0 {
		return ""
	}
	return "waiting for word of " + strings.Join(names, ", ")
}

// planIntent is what a plan intends.
type planIntent struct{ api.PlanIntent }

// Check implements controller.Payload.
func (m planIntent) Check(_ *lockstep, now time.Time) error {
	_, err := m.Validate(now)
	return err
}

// Apply implements controller.Payload. An intent counts once its plan was seen to run.
func (m planIntent) Apply(l *lockstep, now time.Time) string {
	in, v := m.PlanIntent, &l.Inventory
	in.Nodes = slices.Sorted(slices.Values(in.Nodes))
	if p := v.planOf(in.RunID); p != nil && in.Stage != api.StageIdle && p.Name == in.Name {
		l.settle(in, now)
		return ""
	}
	i := slices.IndexFunc(v.waiting, func(w api.PlanIntent) bool { return w.RunID == in.RunID && w.Name == in.Name })
	switch {
	case i >= 0 && in.Revision >= v.waiting[i].Revision:
		v.waiting[i] = in
	case i >= 0:
	case len(v.waiting) >= maxWaiting:
		l.Note(now, "left an intent of plan "+in.Name+" for later", "too many wait to be looked up: it is repeated")
	default:
		v.waiting = append(v.waiting, in)
	}
	return ""
}

// checks see whether plans run: those whose intents wait, and those that could not be signalled.
func (l *lockstep) checks() []controller.Effect {
	var in activity.CheckInput
	for _, w := range l.Inventory.waiting {
		in.Plans = append(in.Plans, api.HeldPlan{Name: w.Name, RunID: w.RunID})
	}
	for _, p := range l.Inventory.plans {
		if p.Missing {
			in.Plans = append(in.Plans, api.HeldPlan{Name: p.Name, RunID: p.RunID})
		}
	}
	if len(in.Plans) == 0 {
		return nil
	}
	return []controller.Effect{controller.Activity{
		Meta: controller.Meta{Key: keyOf(checkPlans, ""), Summary: "see whether " + number.Of(len(in.Plans), "plan") + " run"},
		Call: controller.Call{Func: call.Lockstep.CheckPlans, Within: actWithin}, Input: in,
	}}
}

// checked takes which of the plans run.
func (l *lockstep) checked(o controller.Outcome, now time.Time) {
	var running []api.HeldPlan
	if o.Get(&running) != nil || o.Stale {
		return // it may be from before a reset
	}
	asked := o.Begun.(controller.Activity).Input.(activity.CheckInput).Plans
	waiting := l.Inventory.waiting
	l.Inventory.waiting = nil
	for _, in := range waiting {
		switch one := (api.HeldPlan{Name: in.Name, RunID: in.RunID}); {
		case !slices.Contains(asked, one):
			l.Inventory.waiting = append(l.Inventory.waiting, in)
		case slices.Contains(running, one):
			l.settle(in, now)
		default:
			l.Note(now, "ignored an intent of plan "+in.Name, "no plan runs as run "+in.RunID)
		}
	}
	for _, one := range asked {
		if slices.Contains(running, one) {
			if p := l.Inventory.planOf(one.RunID); p != nil {
				p.Missing = false
			}
			continue
		}
		l.dropPlan(one, now)
	}
}

// dropPlan forgets a plan that does not run.
func (l *lockstep) dropPlan(p api.HeldPlan, now time.Time) {
	if l.Inventory.drop(p.RunID) {
		l.Note(now, "plan "+p.Name+" does not run any more", "its nodes are given back")
	}
}

// settle takes an intent of a plan that runs.
func (l *lockstep) settle(in api.PlanIntent, now time.Time) {
	v := &l.Inventory
	v.changed = true
	for _, name := range sortedKeys(v.silent) {
		if v.silent[name] == in.RunID {
			delete(v.silent, name)
		}
	}
	before := v.planOf(in.RunID)
	switch {
	case in.Stage == api.StageIdle:
		if before != nil { // it was reset, and does not know that it holds nodes
			v.restart(before)
		}
		return
	case v.isOutdated(in):
		return
	case before != nil && in.Revision == before.Revision:
		v.restart(before)
		return
	}
	v.regroup() // others may have come since the last decision
	tiers, err := drainplan.New(in.Tiers, nil)
	if err == nil {
		err = v.check(in, tiers)
	}
	if err != nil {
		l.Note(now, "refused an intent of plan "+in.Name, err.Error())
		l.refuse(in, err)
		return
	}
	v.accept(in, tiers)
}

func (v *inventory) setSilent(name, run string) {
	if v.silent == nil {
		v.silent = map[string]string{}
	}
	v.silent[name] = run
}
