package plan

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/heartbeat"
	planactivity "drydock/activities/plan"
	"drydock/api"
	"drydock/rules/number"
	"drydock/rules/rollout"
	"drydock/workflows/call"
)

// freshFor is how long a list of the matching nodes counts: nodes are begun only on one that is younger. While nothing can
// be begun, nobody looks.
const freshFor = 15 * time.Second

// matchAgain stands for the digest of a list that was not taken for a node which waits again: whether that still matches
// was of no interest while it did not.
const matchAgain = "match again"

// roster keeps the list of the plan's nodes up to date.
type roster struct {
	*core
	news *bulletin
	// stop ends the plan.
	stop func(phase api.PlanPhase, why string)
	// forget has the end of a node's maintenance be waited for, whoever began it.
	forget func(node string)
	// begun are the nodes whose maintenances an earlier run began that this one is a copy of, until they are in the list.
	begun map[string]bool
	// match brings nodes up to date with those that match now, and changed hears of it; nil does not.
	match   func(nodes []rollout.Node, matching []rollout.Facts) (matched []rollout.Node, came, went int)
	changed func()
	// seen is when the list was last looked at by this run, looking that it is being looked at now.
	seen    time.Time
	looking bool
	// unwatch ends the activity that looks again and again, nil while there is none.
	unwatch workflow.CancelFunc
}

// known tells that there is a list, and begins to look where there is none.
func (r *roster) known() bool {
	if r.state.Digest != "" {
		return true
	}
	r.look()
	return false
}

// stale tells that the list is too old to begin a node on.
func (r *roster) stale() bool { return r.now().Sub(r.seen) > freshFor }

// look lists the matching nodes anew.
func (r *roster) look() {
	if r.looking {
		return
	}
	r.looking = true
	future := workflow.ExecuteActivity(call.Quick(r.ctx, "list the nodes of plan "+r.name), call.Plans.ListPlanNodes, r.wanted())
	workflow.GoNamed(r.ctx, "nodes", func(ctx workflow.Context) {
		var listed planactivity.Listed
		err := future.Get(ctx, &listed)
		if r.denied(ctx, err) {
			r.looking, r.dirty = false, true
			return
		}
		r.looking, r.dirty = false, true
		r.heard(listed, err)
	})
}

// wanted are the nodes that the plan chooses.
func (r *roster) wanted() planactivity.ListInput {
	return planactivity.ListInput{
		NodeSelector: r.spec.NodeSelector, Selector: r.spec.Selector, Names: r.spec.Nodes, Exclude: r.spec.Exclude,
		CountPods: r.spec.Strategy.Order == rollout.FewestPods, Digest: r.state.Digest,
	}
}

const (
	// lists is what fails where the nodes cannot be listed, and askAgain when that is tried again.
	lists    = "the nodes of the plan cannot be listed"
	askAgain = time.Minute
)

// denied tells that the worker lacks a permission, shows it, and lets some time pass: the plan goes on once it is granted.
func (r *roster) denied(ctx workflow.Context, err error) bool {
	if !call.IsError(err, api.ErrorMissingPermission) {
		r.troubles = nil
		return false
	}
	since := r.now()
	if len(r.troubles) > 0 {
		since = r.troubles[0].Since
	}
	r.troubles = []api.Trouble{{What: lists, Why: call.Cause(err), Since: since, NextTry: r.now().Add(askAgain)}}
	r.dirty = true
	_ = workflow.Sleep(ctx, askAgain) // where it is cancelled nobody waits for it any more
	return true
}

// heard takes what an activity has found.
func (r *roster) heard(listed planactivity.Listed, err error) {
	if err != nil {
		// It is repeated until it succeeds; what ends here is a plan that can never be listed.
		r.stop(api.PlanAborted, "its nodes cannot be listed: "+call.Cause(err))
		return
	}
	r.seen = r.now()
	r.take(listed)
}

// watch has an activity look again and again, until other nodes match.
func (r *roster) watch() {
	if r.unwatch != nil || r.looking {
		return
	}
	ctx, cancel := workflow.WithCancel(r.ctx)
	r.unwatch = cancel
	future := workflow.ExecuteActivity(call.Beating(ctx, "wait for other nodes to match plan "+r.name, heartbeat.WatchTimeout),
		call.Plans.AwaitPlanNodes, r.wanted())
	workflow.GoNamed(r.ctx, "other nodes", func(gctx workflow.Context) {
		var listed planactivity.Listed
		err := future.Get(gctx, &listed)
		denied := ctx.Err() == nil && r.denied(ctx, err)
		if ctx.Err() != nil {
			return // nobody waits for it any more
		}
		if denied {
			r.unwatch, r.dirty = nil, true
			return
		}
		r.unwatch, r.dirty = nil, true
		r.heard(listed, err)
	})
}

// rest ends the watch.
func (r *roster) rest() {
	if r.unwatch != nil {
		r.unwatch()
		r.unwatch = nil
	}
}

// take brings the nodes up to date.
func (r *roster) take(listed planactivity.Listed) {
	first := r.state.Digest == ""
	r.state.Digest = listed.Digest
	if listed.Unchanged {
		return
	}
	nodes, came, went := r.match(r.state.Nodes, listed.Nodes)
	nodes = rollout.Forget(nodes, rollout.MaxNodes)
	if len(nodes) > rollout.MaxNodes {
		r.stop(api.PlanAborted, fmt.Sprintf("%d nodes came and went: a plan takes %d at most", len(nodes), rollout.MaxNodes))
		return
	}
	r.state.Nodes, r.places = nodes, nil
	r.state.Warnings = warnings(listed)
	r.takeUpBegun()
	if !first && came+went > 0 {
		r.news.note(number.Of(came, "node") + " came to match, " + number.Form(went, "does", "do") + " not match any more")
	}
	if r.changed != nil && came+went > 0 {
		r.changed()
	}
}

// takeUpBegun has the ends of the maintenances be waited for that an earlier run began. Without a run it is the latest that
// counts, and whether the plan began it.
func (r *roster) takeUpBegun() {
	for i := range r.state.Nodes {
		n := &r.state.Nodes[i]
		if !r.begun[n.Name] {
			continue
		}
		delete(r.begun, n.Name)
		if n.State == rollout.Waiting || n.State == rollout.Running {
			n.State, n.RunID, n.Since, n.Tries = rollout.Running, "", r.now().Unix(), max(n.Tries, 1)
			r.forget(n.Name)
		}
	}
}

// warnings say what somebody may not have meant.
func warnings(l planactivity.Listed) []string {
	return rollout.Reach{
		All: l.All, Matching: len(l.Nodes), ControlPlanes: l.ControlPlanes.All, MatchingControlPlane: l.ControlPlanes.Matching,
		Missing: l.Missing, MoreMissing: l.MoreMissing,
	}.Warnings()
}
