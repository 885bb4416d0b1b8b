// Package lockstep is the workflow that decides for all plans of strategy allAtOnce in a cluster how far each node is
// drained: a node that several plans hold has one maintenance, and none of them goes on alone (KEP-4212).
package lockstep

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/controller"
)

// pace is the shortest time between two decisions: what happens meanwhile is decided about together. One that nodes wait for is not put off.
const pace = time.Second

type lockstep struct {
	controller.Base
	controller.Plain
	Inventory inventory `json:"inventory"`
	// Refusals are intents that are not taken. They are sent to their plans.
	Refusals []refusal `json:"refusals,omitempty"`
	// Known: it is known which maintenances and plans run. Until is how long others wait for those who have not spoken then.
	Known bool      `json:"known,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Decided is when it was last decided how far nodes go.
	Decided time.Time `json:"decided,omitzero"`
}

var messages = []controller.Message[*lockstep]{
	{Name: api.SignalPlanIntent, Payload: planIntent{}, FromWorkflows: true, Max: maxIntent},
	{Name: api.SignalNodeProgress, Payload: nodeProgress{}, FromWorkflows: true},
}

// Lockstep decides for all plans of strategy allAtOnce how far each node is drained. There is one per cluster, under
// api.LockstepID, which a plan starts with the signal of its intent; it ends when no plan is left. Packed is what a run hands
// to the next, and nothing that anybody else gives.
func Lockstep(ctx workflow.Context, packed []byte) error {
	if err := controller.Identify(ctx).Only("the lockstep", api.LockstepID); err != nil {
		return err
	}
	return run(ctx, &lockstep{}, packed)
}

func run(ctx workflow.Context, l *lockstep, packed []byte) error {
	return controller.Run(ctx, l, controller.Program[*lockstep]{Type: api.LockstepType, Messages: messages, Queries: queries}, packed)
}

// Decide decides how far nodes go in one turn, and what of that to send to plans in the next: with thousands of nodes each takes its time.
func (l *lockstep) Decide(t controller.Turn) (d controller.Decision) {
	v := &l.Inventory
	if l.CancelRequested { // the maintenances go on, and another that is started finds them
		d.End = &controller.End{Err: temporal.NewCanceledError()}
		return d
	}
	v.free(t)
	due := v.ready || !t.Now.Before(l.Decided.Add(pace))
	if due || t.Room() == 0 {
		v.regroup() // a run that gives way hands over which plans want which nodes
	}
	checks := l.checks()
	d.Effects = append(l.refusals(), checks...)
	if !l.Known {
		d.Effects = append(d.Effects, l.find())
		return d
	}
	v.wake(&d, t.Now)
	switch waits := l.waitsFor(); {
	case !v.changed:
		d.More = v.compare(t)
	case !due:
		d.WakeAt(l.Decided.Add(pace), "decide how far nodes go")
	case waits != "" && t.Now.Before(l.Until):
		d.WakeAt(l.Until, "wait no longer for who does not answer")
	default:
		v.resolve(t.Now)
		l.Decided, d.More = t.Now, true
	}
	d.Effects = append(d.Effects, l.asks()...)
	if !v.ungrouped {
		d.Effects = append(d.Effects, v.acts(t, beginNodes)...)
		if len(v.silent)+len(checks) == 0 { // nobody else may want what no plan wants
			d.Effects = append(d.Effects, v.acts(t, endNodes)...)
		}
		d.Effects = append(d.Effects, v.acts(t, steerNodes)...)
	}
	l.reports(t, &d)
	d.Watches = l.watch()
	if len(v.plans)+len(v.nodes)+len(v.silent)+len(v.waiting)+len(l.Refusals) == 0 {
		d.End = &controller.End{}
	}
	return d
}

// wake sees to what has become due for nodes, and has the next turn be when something else does.
func (v *inventory) wake(d *controller.Decision, now time.Time) {
	for _, n := range v.nodes {
		if isOver(n.ResendAt, now) {
			n.ResendAt, v.changed = 0, true
			n.Stale, n.Unsent = n.Stale || n.Stand == held, n.Unsent || n.Stand == ending
		}
		v.changed = v.changed || isOver(n.WordsAt, now)
		for _, at := range [...]int64{n.ResendAt, n.WordsAt, n.RetryAt} {
			if at > now.Unix() {
				d.WakeAt(time.Unix(at, 0), "send a maintenance a target")
			}
		}
		if by := n.readyBy(); by.After(now) && n.isToEnd() {
			d.WakeAt(by, "cancel a maintenance that is not ready")
		}
	}
}

func (l *lockstep) Outcome(o controller.Outcome, now time.Time) {
	switch o.Key.Kind {
	case findAll:
		l.found(o, now)
	case checkPlans:
		l.checked(o, now)
	case beginNodes, steerNodes, endNodes:
		l.acted(o, now)
	case sendProgress:
		l.reported(o, now)
	case sendRefusal:
		l.refused(o)
	case watchEnds:
		l.seen(o, now)
	}
}

func (l *lockstep) Reset(time.Time) {
	l.Known, l.Inventory.changed = false, true
	for _, p := range l.Inventory.plans {
		l.Inventory.setSilent(api.HeldPlan{Name: p.Name, RunID: p.RunID})
	}
	for _, n := range l.Inventory.nodes {
		if n.Stand == held || n.Stand == ending {
			n.Stand, n.Unsent, n.Tries, n.RetryAt = asked, false, 0, 0
		}
	}
}
