package lockstep

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/lockstep"
	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
)

// maxWaiting bounds the intents whose plans are being looked up; others are repeated by their plans.
const maxWaiting = 20

// maxIntent bounds the signal of an intent, in bytes: 15,000 names of 63 characters are 1 MB.
const maxIntent = 3 << 19

// office takes intents of plans. One counts once its plan was seen to run.
type office struct {
	*core
	waiting []api.PlanIntent
	// doubted are plans of which somebody has to see whether they still run.
	doubted  []api.HeldPlan
	checking bool
	// heard tells that a plan has said what it intends, refuse that it is not taken.
	heard  func(run string)
	refuse func(in api.PlanIntent, why error)
}

// listen takes every message from the first moment on.
func (l *lockstep) listen() error {
	if err := l.answer(); err != nil {
		return err
	}
	in := inbox.New(l.ctx, l)
	inbox.ReceiveUpTo(in, api.SignalPlanIntent, maxIntent, l.office.take)
	inbox.Receive(in, api.SignalNodeProgress, func(said api.NodeProgress) {
		err := said.Validate()
		switch {
		case err != nil:
		case l.stock.known && meet(l.book, said):
			l.note("found a maintenance that runs", "that of node "+said.Node+": it says how far it is before anything is decided for it")
		default:
			err = l.book.report(said)
		}
		if err != nil {
			l.note("ignored what a maintenance says", err.Error())
			return
		}
		l.changed = true
	})
	l.unread = in.Unread
	in.Open(nil)
	return nil
}

// take has an intent looked into.
func (o *office) take(in api.PlanIntent) {
	tiers, err := in.Validate(o.now())
	if err != nil {
		o.note("ignored an intent", err.Error())
		return
	}
	if p := o.book.planOf(in.RunID); p != nil && in.Stage != api.StageIdle && p.Name == in.Name {
		o.settle(in, tiers)
		return
	}
	i := slices.IndexFunc(o.waiting, func(w api.PlanIntent) bool { return w.RunID == in.RunID && w.Name == in.Name })
	switch {
	case i >= 0:
		if in.Revision >= o.waiting[i].Revision {
			o.waiting[i] = in
		}
	case len(o.waiting) >= maxWaiting:
		o.note("left an intent of plan "+in.Name+" for later", "too many wait to be looked up: it is repeated")
	default:
		o.waiting = append(o.waiting, in)
	}
}

// doubt has somebody see whether a plan still runs.
func (o *office) doubt(p *plan) {
	one := api.HeldPlan{Name: p.Name, RunID: p.RunID}
	if !slices.Contains(o.doubted, one) {
		o.doubted = append(o.doubted, one)
	}
}

func (o *office) isIdle() bool { return len(o.waiting) == 0 && len(o.doubted) == 0 && !o.checking }

// attend looks the plans up whose intents wait.
func (o *office) attend() {
	if o.checking || len(o.waiting)+len(o.doubted) == 0 {
		return
	}
	var plans []api.HeldPlan
	for _, in := range o.waiting {
		plans = append(plans, api.HeldPlan{Name: in.Name, RunID: in.RunID})
	}
	plans = append(plans, o.doubted...)
	o.checking, o.doubted = true, nil
	ctx := call.Quick(o.ctx, fmt.Sprintf("see whether %d plans run", len(plans)))
	o.does("plans", workflow.ExecuteActivity(ctx, call.Lockstep.CheckPlans, activity.CheckInput{Plans: plans}), func(f workflow.Future) {
		o.checking = false
		var running []api.HeldPlan
		if err := f.Get(o.ctx, &running); err != nil {
			o.note("plans could not be looked up", call.Cause(err))
			o.waiting = nil // they are repeated
			return
		}
		o.checked(plans, running)
	})
}

// checked takes which of the plans run.
func (o *office) checked(asked, running []api.HeldPlan) {
	looked := func(in api.PlanIntent) api.HeldPlan { return api.HeldPlan{Name: in.Name, RunID: in.RunID} }
	var rest []api.PlanIntent
	waiting := o.waiting
	o.waiting = nil
	for _, in := range waiting {
		switch {
		case !slices.Contains(asked, looked(in)):
			rest = append(rest, in)
		case !slices.Contains(running, looked(in)):
			o.note("ignored an intent of plan "+in.Name, "no plan runs as run "+in.RunID)
		default:
			tiers, err := in.Validate(o.now())
			if err == nil { // it was valid before
				o.settle(in, tiers)
			}
		}
	}
	o.waiting = rest
	for _, p := range asked {
		if !slices.Contains(running, p) && o.book.drop(p.RunID) {
			o.note("plan "+p.Name+" does not run any more", "its nodes are given back")
		}
	}
}

// settle takes an intent of a plan that runs.
func (o *office) settle(in api.PlanIntent, tiers drainplan.Plan) {
	o.changed = true
	o.heard(in.RunID)
	before := o.book.planOf(in.RunID)
	switch {
	case in.Stage == api.StageIdle:
		if before != nil { // it was reset, and does not know that it holds nodes
			before.tellAll()
		}
		return
	case o.book.isOutdated(in):
		return
	case before != nil && in.Revision == before.Revision:
		before.tellAll()
		return
	}
	if err := o.book.check(in, tiers); err != nil {
		o.note("refused an intent of plan "+in.Name, err.Error())
		o.refuse(in, err)
		return
	}
	o.book.accept(in, tiers)
}

// Arrived counts a signal.
func (l *lockstep) Arrived() { l.signals++; l.dirty = true }

// Refused records a signal that cannot be read.
func (l *lockstep) Refused(name string, _ api.Message, _ api.Outcome, why error) {
	l.note("ignored a signal "+name, why.Error())
}
