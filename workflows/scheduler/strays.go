package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/number"
)

const (
	// maxStrays bounds the marks that are remembered, and maxListed those that the state lists.
	maxStrays = 500
	maxListed = 100
	// strayRetry is how long to wait before the scheduler finds out again what became of a holder that was not found.
	strayRetry = time.Hour
)

// strays are the marks on nodes that are nobody's slot. None is touched.
type strays struct {
	*scheduler
	// foreign are the first of the marks that are not of this cluster's maintenances, foreignAll their count.
	foreign    api.List[api.StrayMark]
	foreignAll int
	// recorded is the latest entry of the log on foreign marks, waiting that there is a timer.
	recorded string
	waiting  bool
}

// remember keeps a mark of ours that is no holder's, so that it is known.
func (s *strays) remember(mark api.StrayMark) {
	if s.knows(mark.Node, mark.RunID) {
		return
	}
	if s.full() {
		s.decisions.record("", fmt.Sprintf("more than %d marks are nobody's slot", maxStrays), "see drydock doctor")
		return
	}
	s.Strays = append(s.Strays, mark)
	if mark.Kind == api.StrayUnknown {
		s.decisions.record("", "the mark of "+mark.Requestor+" on "+mark.Node+" is left as it is", "its workflow "+mark.WorkflowID+" is not known")
	}
	s.retryLater()
}

func (s *strays) full() bool { return len(s.Strays) >= maxStrays }

func (s *strays) knows(node, run string) bool {
	return slices.ContainsFunc(s.Strays, isMark(node, run))
}

func isUnknown(m api.StrayMark) bool { return m.Kind == api.StrayUnknown }

func isMark(node, run string) func(api.StrayMark) bool {
	return func(m api.StrayMark) bool { return m.Node == node && m.RunID == run }
}

func (s *strays) knownMarks() []cluster.KnownMark {
	var known []cluster.KnownMark
	for _, m := range s.Strays {
		known = append(known, cluster.KnownMark{Node: m.Node, RunID: m.RunID, Stray: true})
	}
	return known
}

// compare requires a rebuild where a mark is that of a holder that is not known, and forgets the stray marks that are gone.
func (s *strays) compare(unknown []api.StrayMark, vanished []cluster.KnownMark) {
	for _, gone := range vanished {
		if s.knows(gone.Node, gone.RunID) {
			s.Strays = slices.DeleteFunc(s.Strays, isMark(gone.Node, gone.RunID))
			s.observer.invalidate()
		}
	}
	for _, mark := range unknown {
		// What was granted, given back or found since then is known.
		if s.slots.expects(mark.Node, mark.RunID) || s.knows(mark.Node, mark.RunID) || s.full() {
			continue
		}
		s.observer.invalidate()
		s.requireRebuild(fmt.Sprintf("node %s carries the mark of %s, of which nothing is known", mark.Node, mark.Requestor))
		return
	}
}

func (s *strays) setForeign(first []api.StrayMark, all int) {
	s.foreign, s.foreignAll = first[:min(len(first), maxListed)], all
	found := ""
	if all > 0 {
		var nodes []string
		for _, m := range first[:min(len(first), 3)] {
			nodes = append(nodes, m.Node)
		}
		found = number.Form(all, "mark on nodes is not of this Drydock and is left as it is", "marks on nodes are not of this Drydock and are left as they are") +
			" (" + strings.Join(nodes, ", ") + ")"
	}
	if found != s.recorded && found != "" {
		s.decisions.record("", found, "they name another Temporal namespace or another Drydock, or cannot be read")
	}
	s.recorded = found
}

func (s *strays) list() ([]api.StrayMark, int) {
	all := append(slices.Clone(s.Strays), s.foreign...)
	return all[:min(len(all), maxListed)], len(s.Strays) + s.foreignAll
}

// counts are the stray marks by kind. Of foreign ones only the first are known one by one, and the rest count as foreign.
func (s *strays) counts() []api.StrayCount {
	counts := []api.StrayCount{
		{Kind: api.StrayForeign, Count: max(0, s.foreignAll-len(s.foreign))},
		{Kind: api.StrayMalformed}, {Kind: api.StrayUnknown}, {Kind: api.StrayOrphan},
	}
	for _, m := range slices.Concat(s.Strays, s.foreign) {
		if i := slices.IndexFunc(counts, func(c api.StrayCount) bool { return c.Kind == m.Kind }); i >= 0 {
			counts[i].Count++
		}
	}
	return counts
}

// retryLater requires a rebuild after a while where the workflow of a mark was not found.
func (s *strays) retryLater() {
	if s.waiting || !slices.ContainsFunc(s.Strays, isUnknown) {
		return
	}
	s.waiting = true
	s.after(strayRetry, "look again at unknown marks", func() {
		s.waiting = false
		if slices.ContainsFunc(s.Strays, isUnknown) {
			s.requireRebuild("time has passed since a mark was found of which nothing is known")
		}
	})
}
