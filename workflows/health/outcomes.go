package health

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	activity "drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/workflows/announce"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

func (c *check) Outcome(o controller.Outcome, now time.Time) {
	switch o.Key.Kind {
	case judgeSpec:
		c.judged(o, now)
	case findRemediations:
		c.found(o, now)
	case recount:
		c.recounted(o, now)
	case beginRemediation:
		if o.What == controller.Done {
			c.begun(o, now)
		} else {
			c.ended(o, now)
		}
	case sendOrder:
		c.ordered(o, now)
	case recordEvents:
		c.recorded(o, now)
	case watchNodes:
		c.saw(o, now)
	case announce.Kind:
		c.Delivery(&c.Base, o, now)
	}
}

// found takes which remediations run. One that does not say how far it is counts as one that runs.
func (c *check) found(o controller.Outcome, now time.Time) {
	var found activity.FoundRemediations
	if o.Stale || o.Get(&found) != nil {
		return
	}
	c.Known, c.Patience, c.Silent = true, now.Add(patience), nil
	for _, one := range found.Remediations {
		c.runs(one, now)
		c.Silent = append(c.Silent, one.Node)
	}
	for _, n := range c.Health.Nodes {
		if n.Remediation != nil && !slices.Contains(c.Silent, n.Name) && !c.isQueued(n.Name) {
			c.lost(n.Name, now)
		}
	}
	if len(found.Remediations) > 0 {
		c.Note(now, "found remediations that run", "they say how far they are before anything is decided")
	}
}

// runs takes that a remediation was seen to run, and has it asked how far it is.
func (c *check) runs(one activity.RunningRemediation, now time.Time) {
	c.Health.Runs(one.Node, one.RunID, now)
	c.Queue = slices.DeleteFunc(c.Queue, func(b health.Begin) bool { return b.Node == one.Node })
	c.setChild(one.Node, child{Run: one.RunID})
	c.ask(one.Node, now)
}

// recounted takes up remediations that were seen to run, where another is believed to, or none.
func (c *check) recounted(o controller.Outcome, now time.Time) {
	var found activity.FoundRemediations
	if o.Stale || o.Get(&found) != nil {
		return
	}
	c.Suspected = false
	for _, one := range found.Remediations {
		n, _ := c.Health.Node(one.Node)
		switch {
		case n.Remediation == nil && n.Past != nil && n.Past.EndedAt.After(c.RecountAt): // it has ended since
		case n.Remediation != nil && c.presentRun(one.Node) == one.RunID:
		default:
			c.runs(one, now)
			c.Note(now, "took up the remediation of "+one.Node, "it was believed to be over, or to be another: run "+one.RunID+" runs")
		}
	}
}

func (c *check) isQueued(node string) bool {
	return slices.ContainsFunc(c.Queue, func(b health.Begin) bool { return b.Node == node })
}

// begun takes whether a remediation was started. One that runs already says what it is at.
func (c *check) begun(o controller.Outcome, now time.Time) {
	in := o.Begun.(controller.Start).Input.(api.RemediationInput)
	runsAlready := temporal.IsWorkflowExecutionAlreadyStartedError(o.Err)
	if o.Err != nil && !runsAlready {
		c.Note(now, "the remediation of "+in.Node+" could not be begun", call.Cause(o.Err))
		return
	}
	c.Queue = slices.DeleteFunc(c.Queue, func(b health.Begin) bool { return b.Node == in.Node })
	r := c.remediation(in.Node)
	if r == nil {
		return
	}
	if runsAlready {
		c.setChild(in.Node, child{})
		c.ask(in.Node, now)
		return
	}
	// One that takes up what another has left does nothing before its check has spoken.
	c.setChild(in.Node, child{Run: o.Run, BegunAt: now, Revision: in.Revision, Ask: in.Resume})
	c.ClearBackoff(orderOf(in.Node))
	if r.Progress != nil {
		c.Health.Runs(in.Node, o.Run, now)
	}
	if in.Resume { // if it ends without a report too, the next one waits, for longer each time
		c.Fails(o.Key, "the remediation of "+in.Node, "", now)
	}
}

// ended takes the end of a remediation's run, which reports that itself before: one that has not may be lost, or was reset.
func (c *check) ended(o controller.Outcome, now time.Time) {
	if r := c.remediation(o.Key.Of); r != nil && (r.Progress == nil || r.Progress.RunID == o.Run) {
		c.ask(o.Key.Of, now)
	}
}

// ask has a remediation asked now whether it runs, and how far it is.
func (c *check) ask(node string, now time.Time) {
	if r := c.remediation(node); r != nil && !isOver(r) {
		one := c.Children[node]
		one.Ask = true
		c.setChild(node, one)
		c.ClearBackoff(orderOf(node))
	}
}

func (c *check) ordered(o controller.Outcome, now time.Time) {
	switch {
	case call.IsNobody(o.Err):
		c.lost(o.Key.Of, now)
	case o.Err != nil:
		c.Note(now, "the remediation of "+o.Key.Of+" did not receive its order", call.Cause(o.Err))
	}
}

// lost has a remediation started again that has ended without a report.
func (c *check) lost(node string, now time.Time) {
	r := c.remediation(node)
	if r == nil || isOver(r) || c.isQueued(node) || c.Children[node].Lost {
		return
	}
	if r.Unconfirmed && r.Progress != nil && len(r.Progress.Steps) == 0 {
		over := *r.Progress
		over.Ended, over.Failure = true, "its workflow does not run"
		c.Health.Report(over)
		delete(c.Children, node)
		c.Note(now, "there is no remediation of "+node, "somebody has spoken in its name")
		return
	}
	c.setChild(node, child{Lost: true})
	c.Note(now, "the remediation of "+node+" has ended without a report", "another takes up what it has left")
}

// saw takes what the watch of the nodes reports. One of an earlier view says nothing.
func (c *check) saw(o controller.Outcome, now time.Time) {
	var seen activity.WatchResult
	if o.Key != c.nodesKey() || o.Get(&seen) != nil {
		return
	}
	c.Reported.Take(seen)
	if seen.Denied != nil {
		c.DeniedAt = now
	}
	if seen.Observation != nil {
		c.Health.Observe(*seen.Observation)
	}
	for _, node := range seen.Ended {
		c.ask(node, now)
	}
}

// recorded takes that Kubernetes Events were recorded. What cannot be in time is left out: an Event is for people who watch.
func (c *check) recorded(o controller.Outcome, now time.Time) {
	if o.Err != nil {
		c.ClearBackoff(o.Key)
		c.Note(now, "Kubernetes Events were not recorded", call.Cause(o.Err))
	}
	batch := o.Begun.(controller.Activity).Input.(node.EventsInput).Events
	c.Unrecorded = slices.DeleteFunc(c.Unrecorded, func(e node.EventOn) bool {
		return slices.ContainsFunc(batch, func(done node.EventOn) bool { return done.Event.Key == e.Event.Key })
	})
}
