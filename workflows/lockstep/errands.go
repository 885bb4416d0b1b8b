package lockstep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/lockstep"
	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/rules/number"
	"drydock/workflows/call"
)

const (
	// maxBatches bounds the activities under way of each kind, maxBatch the nodes and maxBatchText about the bytes of each.
	maxBatches   = 4
	maxBatch     = 100
	maxBatchText = 256 << 10
	// actWithin bounds an activity: none may keep the workflow from continuing as new.
	actWithin = 5 * time.Minute
)

// within is how an activity is called that is begun again where it does not succeed in time.
func (c *core) within(summary string) workflow.Context {
	return call.Within(call.Long(c.ctx, summary), actWithin)
}

// errands has activities begin maintenances, tell them how far to go, and end them.
type errands struct {
	*core
	beginning, steering, ending int
	// mayEnd tells whether a node that no plan wants may be given back.
	mayEnd func() bool
}

// aim decides what each maintenance is to be told.
func (e *errands) aim(s situation) {
	gangs, now := e.book.gangs(), e.now()
	var next time.Duration
	for i, n := range e.book.nodes {
		e.repeat(n)
		if !e.book.decides(n) || len(n.holders) == 0 || i >= len(s.nodes) || s.nodes[i].Name != n.name || !s.held[i] {
			continue // it came while others had their turn
		}
		t, changed := e.book.aim(i, s, gangs, now)
		if changed {
			n.sent, n.stale, n.unsent, n.wordsSince = t, false, true, time.Time{}
		}
		if !n.wordsSince.IsZero() {
			left := wordsAfter - now.Sub(n.wordsSince)
			next = min(cmp.Or(next, left), left)
		}
	}
	if next > 0 {
		e.wakeIn(next)
	}
}

// repeat has a maintenance told again that goes on as if it had not been told.
func (e *errands) repeat(n *node) {
	switch {
	case !n.deaf:
		n.again = 0
	case n.again == 0:
		wait := backoff(n.unheard)
		n.unheard++
		n.again = e.now().Add(wait).Unix()
		e.wakeIn(wait + time.Second)
	case e.now().Unix() >= n.again:
		n.deaf, n.again = false, 0
		if n.stand == held {
			n.stale = true
		} else {
			n.ended = false
		}
	}
}

// run has done what is due.
func (e *errands) run() {
	for e.beginning < maxBatches && e.begin() {
	}
	for e.steering < maxBatches && e.steer() {
	}
	for e.ending < maxBatches && e.end() {
	}
}

// begin has the maintenances begun of some nodes that want the same of it, and tells whether there were any.
func (e *errands) begin() bool {
	var batch []*node
	var input json.RawMessage
	for _, n := range e.book.nodes {
		if n.stand != wanted || len(n.holders) == 0 || !e.isDue(n) {
			continue
		}
		if len(batch) > 0 && n.holders[0] != batch[0].holders[0] {
			continue
		}
		if batch = append(batch, n); len(batch) == maxBatch {
			break
		}
	}
	if len(batch) == 0 {
		return false
	}
	input = batch[0].input()
	in := activity.BeginInput{Input: input}
	for _, n := range batch {
		in.Nodes = append(in.Nodes, n.name)
		n.busy, n.stand = true, beginning
	}
	e.beginning++
	ctx := e.within("begin the maintenances of " + number.Of(len(batch), "node"))
	e.does("begin", workflow.ExecuteActivity(ctx, call.Lockstep.BeginShared, in), func(f workflow.Future) {
		e.beginning--
		e.book.ripe = true // they have no target yet
		var begun []activity.Begun
		err := f.Get(e.ctx, &begun)
		if err != nil {
			e.note("maintenances could not be begun", call.Cause(err))
		}
		for _, n := range batch {
			if n.busy = false; n.stand != beginning {
				continue // it was found to run, when everything was found out anew
			}
			i := slices.IndexFunc(begun, func(one activity.Begun) bool { return one.Node == n.name })
			if i >= 0 && begun[i].Missed != "" {
				e.note("the maintenance of "+n.name+" could not be begun", begun[i].Missed)
				i = -1
			}
			if i < 0 {
				n.stand = wanted
				e.postpone(n)
				continue
			}
			e.begun(n, begun[i])
		}
	})
	return true
}

// begun takes what became of the beginning of a maintenance.
func (e *errands) begun(n *node, how activity.Begun) {
	n.run, n.tries, n.notBefore = how.RunID, 0, 0
	switch {
	case how.Refused != "":
		e.note("node "+n.name+" cannot be held", how.Refused)
		e.book.end(n, api.Failed, how.Refused)
	case how.Adopted:
		n.stand, n.made, n.of = asked, "", nil
	default:
		n.stand = held
	}
}

// steer tells some maintenances how far to go, or asks how far they are, and tells whether there were any.
func (e *errands) steer() bool {
	var batch []*node
	var in activity.SteerInput
	for size := 0; len(batch) < maxBatch && size < maxBatchText; {
		i := slices.IndexFunc(e.book.nodes, func(n *node) bool {
			return e.isDue(n) && (n.stand == held && n.unsent || n.stand == asked)
		})
		if i < 0 {
			break
		}
		n := e.book.nodes[i]
		t := n.sent
		if n.stand == asked {
			t = api.NodeTarget{Run: n.run, Tell: true}
			e.postpone(n) // it is asked again where it does not answer
		}
		n.busy = true
		batch, in.Targets = append(batch, n), append(in.Targets, activity.Addressed{Node: n.name, Target: t})
		size += sizeOf(t.Targets)
	}
	if len(batch) == 0 {
		return false
	}
	e.steering++
	ctx := e.within(fmt.Sprintf("tell %s how far to go", number.Of(len(batch), "maintenance")))
	e.does("steer", workflow.ExecuteActivity(ctx, call.Lockstep.SteerShared, in), func(f workflow.Future) {
		e.steering--
		var told activity.Told
		err := f.Get(e.ctx, &told)
		if err != nil {
			e.note("maintenances could not be told how far to go", call.Cause(err))
		}
		for i, n := range batch {
			if n.busy = false; err != nil || e.missed(n, told) {
				e.postpone(n)
			} else if n.stand == held && n.sent.Revision == in.Targets[i].Target.Revision {
				n.unsent, n.tries = false, 0
			}
		}
		e.gone(told.Gone)
	})
	return true
}

// missed notes that a maintenance could not be told something.
func (e *errands) missed(n *node, told activity.Told) bool {
	i := slices.IndexFunc(told.Missed, func(m activity.Missed) bool { return m.Node == n.name })
	if i >= 0 {
		e.note("the maintenance of "+n.name+" could not be told", told.Missed[i].Why)
	}
	return i >= 0
}

// sizeOf is about how long targets are in JSON.
func sizeOf(targets []drainplan.Entry) int {
	const fixed = 70
	size := fixed
	for _, e := range targets {
		size += fixed + len(e.PodSelector)
	}
	return size
}

// isUseless tells that no plan wants the node any more, or not with the settings of its maintenance.
func (n *node) isUseless() bool {
	unwanted := (n.stand == held || n.stand == asked && n.tries > 0) && len(n.holders) == 0
	return unwanted || n.stand == held && n.differs()
}

// end gives back some nodes that no plan wants any more, or not with the settings of their maintenances, and tells whether there were any.
func (e *errands) end() bool {
	if !e.mayEnd() {
		return false
	}
	var batch []*node
	var in activity.EndInput
	for _, n := range e.book.nodes {
		if n.busy || !n.isUseless() && (n.stand != ending || n.ended) || !e.isDue(n) && n.stand != asked {
			continue
		}
		batch, in.Nodes = append(batch, n), append(in.Nodes, api.HeldNode{Node: n.name, RunID: n.run})
		if len(batch) == maxBatch {
			break
		}
	}
	if len(batch) == 0 {
		return false
	}
	for _, n := range batch {
		n.busy, n.stand, n.unsent, n.tries, n.notBefore = true, ending, false, 0, 0
	}
	e.ending++
	ctx := e.within("end " + number.Of(len(batch), "maintenance"))
	e.does("end", workflow.ExecuteActivity(ctx, call.Lockstep.EndShared, in), func(f workflow.Future) {
		e.ending--
		var told activity.Told
		err := f.Get(e.ctx, &told)
		if err != nil {
			e.note("maintenances could not be ended", call.Cause(err))
		}
		for _, n := range batch {
			if n.busy, n.ended = false, err == nil && !e.missed(n, told); !n.ended {
				e.postpone(n)
			}
		}
		e.gone(told.Gone)
	})
	return true
}

// gone takes which maintenances have ended.
func (c *core) gone(all []activity.Gone) {
	for _, one := range all {
		n := c.book.byName[one.Node]
		if n == nil || !n.runs() || n.run != "" && one.RunID != "" && n.run != one.RunID {
			continue
		}
		c.book.end(n, one.Phase, one.Failure)
		c.changed = true
	}
}
