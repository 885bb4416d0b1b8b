package lockstep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	activity "drydock.dev/drydock/activities/lockstep"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
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

func (l *lockstep) find() controller.Effect {
	return controller.Activity{
		Meta: controller.Meta{Key: keyOf(findAll, ""), Summary: "find plans and shared maintenances"},
		Call: controller.Call{Func: call.Lockstep.FindShared, Within: actWithin, Heartbeat: beat}, Input: activity.QueueInput{TaskQueue: l.Info.TaskQueue},
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
			v.setSilent(p)
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
	for _, p := range l.Inventory.silent {
		names = append(names, "plan "+p.Name)
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

type planIntent struct{ api.PlanIntent }

func (m planIntent) Check(_ *lockstep, now time.Time) error {
	_, err := m.Validate(now)
	return err
}

// Apply has an intent count once its plan was seen to run.
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
		if p := l.Inventory.planOf(one.RunID); !slices.Contains(running, one) {
			l.dropPlan(one, now)
		} else if p != nil {
			p.Missing = false
		}
	}
}

func (l *lockstep) dropPlan(p api.HeldPlan, now time.Time) {
	if known := l.Inventory.planOf(p.RunID); known != nil {
		l.Inventory.drop(known)
		l.Note(now, "plan "+p.Name+" does not run any more", "its nodes are given back")
	}
}

// settle takes an intent of a plan that runs.
func (l *lockstep) settle(in api.PlanIntent, now time.Time) {
	v := &l.Inventory
	v.changed = true
	v.silent = slices.DeleteFunc(v.silent, func(p api.HeldPlan) bool { return p.RunID == in.RunID })
	switch before := v.planOf(in.RunID); {
	case before != nil && (in.Stage == api.StageIdle || in.Revision == before.Revision): // in Idle it was reset, and does not know that it holds nodes
		v.restart(before)
		return
	case in.Stage == api.StageIdle, before != nil && in.Revision < before.Revision,
		slices.ContainsFunc(v.completed, func(c completed) bool { return c.RunID == in.RunID && in.Revision < c.Revision }):
		return // it holds nothing, or was said before one that counts, or did
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

// setSilent marks a plan as one whose intent is not known, so that it is requested.
func (v *inventory) setSilent(p api.HeldPlan) {
	v.silent = append(slices.DeleteFunc(v.silent, func(other api.HeldPlan) bool { return other.Name == p.Name }), p)
}

// check returns why an intent cannot be taken, beside the plans there are.
func (v *inventory) check(in api.PlanIntent, tiers drainplan.Plan) error {
	switch before := v.planOf(in.RunID); {
	case before != nil && slices.Index(plan.Stages, in.Stage) < slices.Index(plan.Stages, before.Stage):
		return fmt.Errorf("stage: the plan is at %s already, and does not go back to %s", before.Stage, in.Stage)
	case before != nil && !slices.Equal(tiers.Entries(), before.tiers.Entries()):
		return fmt.Errorf("tiers: the drain plan of a plan that has begun does not change")
	case in.Stage == api.StageComplete:
		return nil
	default:
		return cmp.Or(v.checkRoom(in, before), v.checkShared(in), v.checkTargets(in, tiers))
	}
}

// checkRoom keeps all plans together within what can be handed to the next run.
func (v *inventory) checkRoom(in api.PlanIntent, before *planEntry) error {
	inputs, nodes := len(in.Maintenance), len(v.byName)
	for _, p := range v.plans {
		if p != before {
			inputs += len(p.Maintenance)
		}
	}
	for _, name := range in.Nodes {
		if v.byName[name] == nil {
			nodes++
		}
	}
	switch {
	case before == nil && len(v.plans) >= maxPlans:
		return fmt.Errorf("%d plans are under way: complete one first", len(v.plans))
	case inputs > maxInputs:
		return fmt.Errorf("maintenance: those of all plans have %d bytes: at most %d are taken", inputs, maxInputs)
	case nodes > plan.MaxNodes:
		return fmt.Errorf("nodes: all plans have %d: at most %d are taken: complete a plan first", nodes, plan.MaxNodes)
	}
	return nil
}

// checkShared refuses a plan whose maintenances could not be those of another with which it shares a node.
func (v *inventory) checkShared(in api.PlanIntent) error {
	names := make(map[string]bool, len(in.Nodes))
	for _, name := range in.Nodes {
		names[name] = true
	}
	for _, p := range v.plans {
		if p.RunID == in.RunID || p.Name == in.Name || !p.isActive() {
			continue
		}
		i := slices.IndexFunc(p.Nodes, func(name string) bool { return names[name] && !p.hasLeft(name) })
		if i < 0 {
			continue
		}
		if why := plan.Unshareable(in.Name, in.Maintenance, p.Name, p.Maintenance); why != "" {
			return fmt.Errorf("node %s is shared with plan %s, and they differ in what is done to it: %s", p.Nodes[i], p.Name, why)
		}
	}
	return nil
}

// checkTargets keeps the targets that a node may come to within what its maintenance takes, and reports.
func (v *inventory) checkTargets(in api.PlanIntent, tiers drainplan.Plan) error {
	checked := map[alike]bool{}
	for _, name := range in.Nodes {
		n := v.byName[name]
		if n == nil || checked[n.alike()] {
			continue
		}
		checked[n.alike()] = true
		plans := []string{in.Name}
		all, _ := drainplan.Union(n.target.Targets, tiers.Targets(tiers.Len()-1))
		for _, p := range n.group.plans {
			if p.RunID != in.RunID {
				all, _ = drainplan.Union(all, p.tiers.Targets(p.tiers.Len()-1))
				plans = append(plans, p.Name)
			}
		}
		if text, _ := json.Marshal(all); len(all) > api.MaxTargets || len(text) > api.MaxTargetsText {
			return fmt.Errorf("tiers: node %s would come to %d drain targets (%d bytes) with plans %s: at most %d (%d bytes) are taken",
				name, len(all), len(text), bounds.Cut(strings.Join(plans, ", "), maxText), api.MaxTargets, api.MaxTargetsText)
		}
	}
	return nil
}

// accept has an intent count that was checked, in place of an earlier one of the plan, and of an earlier plan of its name.
func (v *inventory) accept(in api.PlanIntent, tiers drainplan.Plan) {
	v.plans = slices.DeleteFunc(v.plans, func(p *planEntry) bool { return p.Name == in.Name && p.RunID != in.RunID })
	p := v.planOf(in.RunID)
	if p == nil {
		p = &planEntry{planState: planState{Fresh: true}}
		v.plans = append(v.plans, p)
	}
	came := slices.ContainsFunc(in.Nodes, func(name string) bool { _, had := slices.BinarySearch(p.Nodes, name); return !had })
	if came && p.Tier > 0 && p.Tier >= tiers.Len() {
		p.Tier = tiers.Len() - 1 // there is something to drain again
	}
	if in.Stage == api.StageComplete && len(in.Nodes) == 0 {
		in.Nodes = p.Nodes
	} else {
		maps.DeleteFunc(p.Left, func(name string, _ departure) bool { _, has := slices.BinarySearch(in.Nodes, name); return !has })
	}
	p.PlanIntent, p.tiers, p.settings = in, tiers, plan.Settings(in.Maintenance)
	v.ungrouped = true
	v.restart(p)
	slices.SortStableFunc(v.plans, func(a, b *planEntry) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Name, b.Name))
	})
}

// drop forgets a plan on whose behalf nothing is held any more.
func (v *inventory) drop(p *planEntry) {
	v.plans = slices.DeleteFunc(v.plans, func(other *planEntry) bool { return other == p })
	v.completed = append(v.completed[max(len(v.completed)-maxCompleted+1, 0):], completed{RunID: p.RunID, Revision: p.Revision})
	v.changed, v.ungrouped = true, true
}
