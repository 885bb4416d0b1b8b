// Package healthwatch is the workflow that watches a cluster's nodes for all of its health checks: it has one activity look, tells
// each check what concerns it, refuses checks that select the same nodes, and lets one control-plane node be remediated at a time.
package healthwatch

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
	"drydock/workflows/loop"
	"drydock/workflows/reset"
)

// healthwatch is one run of HealthWatch. It is made of parts, which share the core.
type healthwatch struct {
	*core
	office  *office
	lookout *lookout
	post    *post
}

// core is what all parts share.
type core struct {
	*loop.Loop
	cluster string
	state   state
	// changed has the nodes be looked at anew, gone takes that a check does not run.
	changed func()
	gone    func(name string)
}

// HealthWatch watches the nodes of a cluster for its health checks. There is one per cluster, under api.HealthWatchID, which a
// check starts with the signal of its intent; it ends when no check is left. Packed is what a run hands to the next.
func HealthWatch(ctx workflow.Context, packed []byte) error {
	cluster, err := inbox.Only(ctx, "the health watch", api.HealthWatchID)
	if err != nil {
		return err
	}
	c := &core{Loop: &loop.Loop{Ctx: ctx, Dirty: true}, cluster: cluster}
	w := assemble(c)
	if err := inbox.Carried(ctx, packed, func(data []byte) error { return api.Unpack(data, &c.state) }, c.note); err != nil {
		return err
	}
	c.ContinueAfter = c.state.ContinueAfter
	if err := w.listen(); err != nil {
		return err
	}
	return reset.Run(ctx, w.wasReset, func(ctx workflow.Context) error {
		c.Ctx = ctx
		return w.run()
	})
}

// assemble puts the parts together.
func assemble(c *core) *healthwatch {
	w := &healthwatch{core: c, office: &office{core: c}, lookout: &lookout{core: c}, post: &post{core: c}}
	c.changed, c.gone = w.lookout.anew, w.office.lost
	return w
}

// run decides whenever something happened, until no check is left.
func (w *healthwatch) run() error {
	for {
		w.Dirty = false
		switch {
		case w.Leaving():
			w.lookout.rest()
			if w.IsIdle() {
				return w.continueAsNew()
			}
		case w.step():
			w.describe()
			return nil
		}
		w.describe()
		if err := w.Await(); err != nil {
			return err
		}
	}
}

// step does what is to be done now, and tells whether it is all over.
func (w *healthwatch) step() (over bool) {
	w.office.attend()
	w.office.know()
	w.refuse()
	w.permit()
	w.lookout.keep()
	w.post.send()
	return w.state.Known && len(w.state.Checks) == 0 && w.office.isIdle() && w.IsIdle()
}

func (w *healthwatch) continueAsNew() error {
	packed, err := api.Pack(w.carried())
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(w.Ctx, api.HealthWatchType, packed)
}

// wasReset has every check say anew what it wants: what was said since is not in the history of this run.
func (w *healthwatch) wasReset(ctx workflow.Context) (runID string, err error) {
	w.note("asking all checks anew what they want", "this run was reset: what was said since is not in its history")
	w.office.doubt()
	w.post.nameless = true
	err = workflow.ExecuteActivity(call.Quick(ctx, "see which run this is"), call.Executions.ThisRun).Get(ctx, &runID)
	if err == nil {
		w.state.Run = runID
	}
	w.post.nameless, w.Dirty = false, true
	return runID, err
}

// fails keeps for people that an activity fails, which is tried again.
func (c *core) fails(what string, err error, next time.Time) {
	c.Fails(&c.state.Carried, what, call.Cause(err), next)
}

func (c *core) note(what, why string) { c.Note(&c.state.Carried, what, why) }
