package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"fmt"
	"go.temporal.io/sdk/workflow"
	"slices"
	"strings"
	"time"
)

const (
	// maxStrays bounds the marks that are remembered, and maxStraysTold those that the state tells of.
	maxStrays     = 500
	maxStraysTold = 100
	// lookAgain is how long to wait before it is asked again what became of a holder that is not found.
	lookAgain = time.Hour
)

// strays are the marks on nodes that are nobody's slot. None is touched.
type strays struct {
	*loop
	decisions *decisions
	// ours are this cluster's maintenances' marks, foreign the first of the others, foreignAll their count.
	ours       []api.StrayMark
	foreign    []api.StrayMark
	foreignAll int
	// said is what was last put on record of foreign marks, looking that a timer runs.
	said    string
	looking bool
	// lookedFor hears that it is time to ask again.
	lookedFor func()
}

// remember keeps a mark of ours that is no holder's, so that it is no surprise any more.
func (s *strays) remember(mark api.StrayMark) {
	if s.knows(mark.Node, mark.RunID) {
		return
	}
	if len(s.ours) >= maxStrays {
		s.decisions.record("", fmt.Sprintf("more than %d marks are nobody's slot", maxStrays), "see drydock doctor")
		return
	}
	s.ours = append(s.ours, mark)
	if mark.Kind == api.StrayUnknown {
		s.decisions.record("", "the mark of "+mark.Requestor+" on "+mark.Node+" is left as it is", "its workflow "+mark.WorkflowID+" is not known")
	}
	s.lookLater()
}

func (s *strays) full() bool { return len(s.ours) >= maxStrays }

func (s *strays) knows(node, run string) bool {
	return slices.ContainsFunc(s.ours, func(m api.StrayMark) bool { return m.Node == node && m.RunID == run })
}

// forget drops marks that are not on their nodes any more, or that became a holder's.
func (s *strays) forget(node, run string) bool {
	before := len(s.ours)
	s.ours = slices.DeleteFunc(s.ours, func(m api.StrayMark) bool { return m.Node == node && m.RunID == run })
	return len(s.ours) < before
}

// doubtUnknown drops those of which it has to be found out again what they are.
func (s *strays) doubtUnknown() {
	s.ours = slices.DeleteFunc(s.ours, func(m api.StrayMark) bool { return m.Kind == api.StrayUnknown })
}

// known are the marks that are no surprise.
func (s *strays) known() []cluster.KnownMark {
	var known []cluster.KnownMark
	for _, m := range s.ours {
		known = append(known, cluster.KnownMark{Node: m.Node, RunID: m.RunID, Stray: true})
	}
	return known
}

// sawForeign notes the marks of others.
func (s *strays) sawForeign(first []api.StrayMark, all int) {
	s.foreign, s.foreignAll = first[:min(len(first), maxStraysTold)], all
	workflow.GetMetricsHandler(s.ctx).Gauge("drydock_foreign_marks").Update(float64(all))
	said := ""
	if all > 0 {
		var nodes []string
		for _, m := range first[:min(len(first), 3)] {
			nodes = append(nodes, m.Node)
		}
		said = fmt.Sprintf("%d marks on nodes are not of this Drydock and are left as they are (%s)", all, strings.Join(nodes, ", "))
	}
	if said != s.said && said != "" {
		s.decisions.record("", said, "they name another Temporal namespace or another Drydock, or cannot be read")
	}
	s.said = said
}

// told are the first of all stray marks, and their count.
func (s *strays) told() ([]api.StrayMark, int) {
	all := append(slices.Clone(s.ours), s.foreign...)
	return all[:min(len(all), maxStraysTold)], len(s.ours) + s.foreignAll
}

// lookLater has it asked again what became of those whose workflow is not found.
func (s *strays) lookLater() {
	if s.looking || !s.anyUnknown() {
		return
	}
	s.looking = true
	timer := workflow.NewTimerWithOptions(s.ctx, lookAgain, workflow.TimerOptions{Summary: "look again at unknown marks"})
	s.whenReady(timer, func() {
		s.looking = false
		if s.anyUnknown() {
			s.lookedFor()
		}
	})
}

func (s *strays) anyUnknown() bool {
	return slices.ContainsFunc(s.ours, func(m api.StrayMark) bool { return m.Kind == api.StrayUnknown })
}
