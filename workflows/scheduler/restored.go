package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/number"
)

const (
	// restoredBy is who freezes then, and by whose name that is thawed.
	restoredBy = "drydock"
	// leastPause is how long nothing has to happen for a restored database to be the reason. The latest maxPauses are remembered.
	leastPause = time.Minute
	maxPauses  = 20
	// restoredAgain is how long after such a freeze there is no other: anyone who can write a mark could freeze for ever.
	restoredAgain = 24 * time.Hour
	// restoredLeast is how many nodes have to show it: one may have forged its own mark.
	restoredLeast = 2
)

// pauses are the latest times in which the scheduler did nothing. A database that is restored to an earlier state leaves one: from the last
// event that was kept until now.
type pauses struct {
	last  time.Time
	times []span
}

type span struct{ from, to time.Time }

func (p *pauses) event(now time.Time) {
	if !p.last.IsZero() && now.Sub(p.last) >= leastPause {
		p.times = append(p.times, span{p.last, now})
		p.times = p.times[max(len(p.times)-maxPauses, 0):]
	}
	p.last = now
}

func (p *pauses) contain(t time.Time) bool {
	return slices.ContainsFunc(p.times, func(s span) bool { return t.After(s.from) && t.Before(s.to) })
}

// freezeIfRestored freezes where marks show that Temporal was restored to an earlier state: they name maintenances of this very namespace
// that neither Temporal nor this scheduler knows, and that marked their nodes while the scheduler, as far as it knows, did nothing. Only a
// scheduler that is forgotten can have granted them, or somebody has forged them: a kubelet can on its own node. So one node freezes
// nothing, more of them freeze grants, and running maintenances are held only where those nodes are at least half of the marked ones.
//
// Before are the marks that were known before.
func (s rebuilding) freezeIfRestored(inventory execution.Inventory, before []api.StrayMark) {
	var lost []string
	for _, mark := range inventory.Strays {
		if isUnknown(mark) && s.pauses.contain(mark.Since) && !s.slots.expects(mark.Node, mark.RunID) && !slices.ContainsFunc(before, isMark(mark.Node, mark.RunID)) {
			lost = append(lost, mark.Node)
		}
	}
	slices.Sort(lost)
	lost = slices.Compact(lost)
	if len(lost) == 0 || s.now().Sub(s.RestoredAt) < restoredAgain || !s.isUpgraded(restoredState) {
		return
	}
	why := fmt.Sprintf("Temporal seems to be restored to an earlier state: it does not know the maintenances of %s (%s): see docs/tasks/disaster.md",
		number.Of(len(lost), "node"), strings.Join(lost[:min(len(lost), 3)], ", "))
	if len(lost) < restoredLeast {
		s.decisions.record(restoredBy, "nothing frozen for a single node", why+"; drydock freeze if it was")
		return
	}
	s.RestoredAt = s.now()
	why = bounds.Cut(why+", then drydock thaw --by "+restoredBy, maxText)
	what := s.controls.freeze(api.FreezeRequest{By: restoredBy, Reason: why, Running: 2*len(lost) >= markedNodes(inventory)}, s.now())
	s.decisions.record(restoredBy, what, why)
}

// markedNodes counts the nodes that carry marks of this Drydock.
func markedNodes(inventory execution.Inventory) int {
	nodes := map[string]bool{}
	for _, mark := range slices.Concat(inventory.Marked, inventory.Ended) {
		nodes[mark.Node] = true
	}
	for _, mark := range inventory.Strays {
		if isUnknown(mark) {
			nodes[mark.Node] = true
		}
	}
	return len(nodes)
}
