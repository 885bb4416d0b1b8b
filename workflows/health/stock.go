package health

import (
	"time"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/health"
	"drydock/workflows/call"
	"drydock/workflows/loop"
)

// patience is how long remediations have, when a check begins anew, to say how far they are before it decides without.
const patience = 30 * time.Second

// stock finds out which remediations of the check run where that is not known: in a check that begins anew, and in one that was
// reset.
type stock struct {
	*core
	fleet  *fleet
	taking bool
	// silent are the nodes whose remediations have not said how far they are.
	silent map[string]bool
	// doubts count how often it was found out in vain.
	doubts int
	tries  int
	// until is how long those who run have to speak, next when it is tried again.
	until, next time.Time
	// suspected: a remediation of which nothing is known has spoken. again is when that may be looked into once more.
	suspected bool
	again     time.Time
}

// findsRemediations is what fails where it cannot be found out which remediations run.
const findsRemediations = "it cannot be found out which remediations run"

// suspectEvery is how often it is looked into that a remediation speaks of which nothing is known: anybody may say so.
const suspectEvery = 10 * time.Minute

// suspect has it seen which remediations run, while the check goes on.
func (s *stock) suspect() { s.suspected, s.Dirty = true, true }

// recount corrects which runs of remediations there are.
func (s *stock) recount() {
	if !s.suspected || s.taking {
		return
	}
	if s.Now().Before(s.again) {
		s.WakeAt(s.again, "see which remediations run")
		return
	}
	s.suspected, s.taking, s.again = false, true, s.Now().Add(suspectEvery)
	asked, doubts := s.Now(), s.doubts
	s.Does("recount", s.look(), func(f workflow.Future) {
		s.taking = false
		var found activity.Stock
		if err := f.Get(s.Ctx, &found); err != nil {
			s.fails(findsRemediations, err, s.again)
			s.suspected = true
			return
		}
		s.Works(findsRemediations)
		if doubts != s.doubts {
			return // all is found out anew
		}
		for _, one := range found.Remediations {
			s.correct(one, asked)
		}
	})
}

// correct takes up a remediation that was seen to run, where another is believed to, or none.
func (s *stock) correct(one activity.FoundRemediation, asked time.Time) {
	h, l := &s.state.Health, s.fleet.leg(one.Node)
	n, _ := h.Node(one.Node)
	believed := l.run
	if n.Remediation != nil && n.Remediation.Progress != nil {
		believed = n.Remediation.Progress.RunID
	}
	switch {
	case n.Remediation == nil && n.Past != nil && n.Past.EndedAt.After(asked):
		return // it has ended since
	case n.Remediation != nil && believed == one.RunID:
		return
	}
	h.Runs(one.Node, one.RunID, s.Now())
	l.doubted, l.next, l.tries, l.run = true, time.Time{}, 0, one.RunID
	s.note("took up the remediation of "+one.Node, "it was taken for over, or for another: run "+one.RunID+" runs")
}

// look finds the remediations that run.
func (s *stock) look() workflow.Future {
	in := activity.StockInput{Check: s.name, TaskQueue: workflow.GetInfo(s.Ctx).TaskQueueName}
	return workflow.ExecuteActivity(s.within("find the remediations of check "+s.name), call.Health.StockRemediations, in)
}

// doubt has everything found out anew.
func (s *stock) doubt() {
	s.state.Known, s.Dirty = false, true
	s.doubts++
}

// known tells that remediations that run are known and have said how far they are, and has it found out where they are not.
func (s *stock) known() bool {
	if !s.state.Known {
		s.take()
		return false
	}
	s.recount()
	if s.Now().Before(s.until) && len(s.silent) > 0 {
		s.WakeAt(s.until, "wait for the word of remediations")
		s.fleet.run()
		return false
	}
	return true
}

// heardOf notes that a remediation has said how far it is.
func (s *stock) heardOf(node string) { delete(s.silent, node) }

// waitsFor says in words what has to be known before anything is decided.
func (s *stock) waitsFor() string {
	switch {
	case !s.state.Known:
		return "finding out which remediations run"
	case s.Now().Before(s.until) && len(s.silent) > 0:
		return "remediations that run to say how far they are"
	default:
		return ""
	}
}

// take finds out which remediations run.
func (s *stock) take() {
	if s.taking {
		return
	}
	if s.Now().Before(s.next) {
		s.WakeAt(s.next, "find out again which remediations run")
		return
	}
	s.taking = true
	doubts := s.doubts
	s.Does("stock", s.look(), func(f workflow.Future) {
		s.taking = false
		var found activity.Stock
		if err := f.Get(s.Ctx, &found); err != nil {
			s.next = s.Now().Add(loop.Backoff(s.tries))
			s.fails(findsRemediations, err, s.next)
			s.tries++
			return
		}
		s.Works(findsRemediations)
		if doubts != s.doubts {
			return // it may be from before a reset
		}
		s.found(found.Remediations)
	})
}

// found takes which remediations run.
func (s *stock) found(all []activity.FoundRemediation) {
	h := &s.state.Health
	s.state.Known, s.until, s.tries = true, s.Now().Add(patience), 0
	runs := make(map[string]bool, len(all))
	for _, one := range all {
		name := one.Node
		runs[name] = true
		// One that does not say how far it is counts as one that runs.
		h.Runs(name, one.RunID, s.Now())
		s.silent[name] = true
		l := s.fleet.leg(name)
		l.doubted, l.next, l.tries, l.run = true, time.Time{}, 0, one.RunID
	}
	for _, n := range h.Nodes {
		if n.Remediation != nil && !runs[n.Name] && !s.fleet.queued(n.Name) {
			s.fleet.lost(n.Name)
		}
	}
	if len(all) > 0 {
		s.note("found remediations that run", "they say how far they are before anything is decided")
	}
}
