package lockstep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	activity "drydock.dev/drydock/activities/lockstep"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
)

// maxLeap is how far a revision that a maintenance reports may be ahead of the one it was sent. The maintenance still takes the next one,
// so that a forged report does not shut out what is sent later.
const maxLeap = 1<<42 - 1

type nodeProgress struct{ api.NodeProgress }

func (m nodeProgress) Check(l *lockstep, _ time.Time) error {
	if err := m.Validate(); err != nil || l.isUnknown(m.NodeProgress) {
		return err
	}
	n := l.Inventory.byName[m.Node]
	switch {
	case n == nil || n.Stand == wanted:
		return fmt.Errorf("node %s has no maintenance of the lockstep's", m.Node)
	case n.Run != "" && n.Run != m.RunID:
		return fmt.Errorf("node %s: it is of run %s, and the maintenance is run %s", m.Node, m.RunID, n.Run)
	case m.Revision-n.target.Revision > maxLeap:
		return fmt.Errorf("node %s: revision %d is too far ahead of %d", m.Node, m.Revision, n.target.Revision)
	}
	return nil
}

// Apply takes the progress of a maintenance. One that is not known was begun before a reset, or a termination, and visibility lags: it has to
// report how far it is, as one that was found. One that somebody made up is found not to run.
func (m nodeProgress) Apply(l *lockstep, now time.Time) string {
	if l.isUnknown(m.NodeProgress) {
		l.Inventory.add(m.Node).Stand = asked
		l.Note(now, "found a maintenance that runs", "that of node "+m.Node+": it says how far it is before anything is decided for it")
		return ""
	}
	l.Inventory.report(m.NodeProgress, now)
	return ""
}

func (l *lockstep) isUnknown(said api.NodeProgress) bool {
	v := &l.Inventory
	return l.Known && v.byName[said.Node] == nil && !said.Ended && len(v.nodes) < plan.MaxNodes
}

func (v *inventory) report(said api.NodeProgress, now time.Time) {
	n := v.byName[said.Node]
	v.changed = true
	n.Run = said.RunID
	before := n.Drained
	said.Waiting, said.Failure = bounds.Words(said.Waiting, maxText), bounds.Words(said.Failure, maxText)
	if said.Ended {
		v.end(n, said.Phase, said.Failure)
		return
	}
	n.compareRevision(said, now)
	switch {
	case n.Stand == asked:
		n.takeOver(said)
	case said.Revision > n.target.Revision, said.Revision == n.target.Revision && !n.Stale && !slices.Equal(said.Targets, n.target.Targets):
		// A lockstep before this one has sent it further than is known here, under a revision that may be the same.
		all, _ := drainplan.Union(said.Targets, n.target.Targets)
		n.target.Revision, n.target.Targets, n.at, n.by, n.Stale = said.Revision, all, nil, nil, true
		n.Raised, n.Drained = said.Revision, said.Drained && slices.Equal(all, said.Targets)
	case said.Revision >= n.Raised && slices.Equal(said.Targets, n.target.Targets):
		n.Drained = said.Drained
	default:
		return // it was said before its present targets reached it
	}
	said.Targets, said.Plans, said.Gang = nil, nil, nil // they are those of n.target, or out of date
	n.progress = said
	switch {
	case said.Phase != api.Draining:
		n.DrainedAt = 0
	case n.Drained && !before:
		n.DrainedAt = now.Unix()
	}
	if n.Drained && !before && !v.ungrouped { // where plans or nodes came, the next decision finds out anew
		v.ready = v.ready || slices.ContainsFunc(n.group.plans, func(p *planEntry) bool { return p.Stage == api.StageDrain && p.isDrained() })
	}
}

// compareRevision notes whether a maintenance knows by now what it was sent. One that does not may have been reset, or have been about to end
// when it received it: it is sent that again where it goes on so.
func (n *node) compareRevision(said api.NodeProgress, now time.Time) {
	switch {
	case n.Stand == held && said.Revision >= n.target.Revision:
		n.ResendAt, n.Resent = 0, 0
	case n.ResendAt > 0:
	case n.Stand == held, n.Stand == ending && !n.Unsent && said.Phase != api.Releasing && said.Phase != api.Validating:
		n.ResendAt = now.Add(period.Doubled(retryFirst, retryMost, n.Resent)).Unix()
		n.Resent++
	}
}

// takeOver goes on where a maintenance is.
func (n *node) takeOver(said api.NodeProgress) {
	n.Stand, n.Tries, n.RetryAt = held, 0, 0
	targets, _ := drainplan.Union(said.Targets, n.target.Targets)
	n.target = api.NodeTarget{Revision: max(said.Revision, n.target.Revision), Targets: targets, Gang: said.Gang, Plans: said.Plans}
	n.Raised, n.at, n.by = said.Revision, nil, nil
	n.Drained = said.Drained && slices.Equal(targets, said.Targets)
	if n.Stale = !slices.Equal(targets, said.Targets); n.Stale {
		n.Raised = n.target.Revision + 1
	}
	if n.gang = ""; said.Gang != nil {
		n.gang = said.Gang.Name
	}
}

// end takes the end of a maintenance. Plans that still want the node go on without it.
func (v *inventory) end(n *node, phase api.Phase, failure string) {
	v.remove(n)
	if n.Stand == ending {
		return // it is begun anew where it is wanted by now
	}
	gone := departure{Phase: phase, Why: failure}
	switch {
	case phase == api.NodeGone:
		gone.Why = "the node is gone"
	case failure == "":
		gone.Why = "its maintenance was ended from outside: " + strings.ToLower(string(cmp.Or(phase, api.Cancelled)))
	}
	for _, p := range n.group.plans {
		if p.Left == nil {
			p.Left = map[string]departure{}
		}
		p.Left[n.name] = gone
	}
}

// ended takes the end of a maintenance that was not signalled.
func (v *inventory) ended(one activity.Result) {
	n := v.byName[one.Node]
	if n != nil && n.runs() && (n.Run == "" || one.RunID == "" || n.Run == one.RunID) {
		v.end(n, one.Phase, one.Failure)
	}
}
