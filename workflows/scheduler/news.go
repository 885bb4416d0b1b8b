package scheduler

import (
	"fmt"

	"drydock/activities/cluster"
	"drydock/api"
)

// noticed acts upon what the watch reports.
func (s *scheduler) noticed(report cluster.WatchReport) {
	if report.Stale {
		s.observer.doubt()
	}
	for _, change := range report.Changes {
		if h, ok := s.ledger.holder(change.RequestID); ok {
			s.watcher.rest(change)
			s.outbox.changed(h, change)
		}
	}
	for _, ended := range report.Ended {
		if h, ok := s.ledger.holder(ended.RequestID); ok {
			s.reclaimer.reclaim(h, "its workflow is "+ended.Status)
		}
	}
	s.checkMarks(report.Unknown, report.Vanished)
}

// sawMarks acts upon the marks that an observation found.
func (s *scheduler) sawMarks(marks cluster.MarksSeen) {
	s.strays.sawForeign(marks.Foreign, marks.ForeignAll)
	s.checkMarks(marks.Unknown, marks.Vanished)
}

// checkMarks doubts the holders where a mark tells of one that is not known, and forgets the stray marks that are gone.
func (s *scheduler) checkMarks(unknown []api.StrayMark, vanished []cluster.KnownMark) {
	for _, gone := range vanished {
		if s.strays.forget(gone.Node, gone.RunID) {
			s.observer.doubt()
		}
	}
	for _, mark := range unknown {
		// What was granted, given back or found since is no surprise.
		if s.ledger.expects(mark.Node, mark.RunID) || s.strays.knows(mark.Node, mark.RunID) || s.strays.full() {
			continue
		}
		s.observer.doubt()
		s.doubtHolders(fmt.Sprintf("node %s carries the mark of %s, of which nothing is known", mark.Node, mark.Requestor))
		return
	}
}

// orphaned takes the slot of a holder that will never release it, and whose node stays as it is: from now on it is
// unavailable like any other that is cordoned. Whether one of which nothing is known has marked its node shows when that
// is looked at again.
func (s *scheduler) orphaned(h api.Holder, kind api.StrayKind) {
	s.ledger.drop(h.RequestID)
	s.watcher.forget(h.RequestID)
	if kind == api.StrayOrphan {
		s.strays.remember(api.StrayMark{
			Node: h.Node, Kind: kind, RunID: h.RunID, Requestor: h.Requestor, Since: h.GrantedAt,
			WorkflowID: h.WorkflowID(s.cluster),
		})
	}
	s.observer.doubt()
}
