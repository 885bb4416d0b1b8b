package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"fmt"
)

// news is what the scheduler makes of what it hears of the cluster.
type news struct{ *scheduler }

// noticed acts upon what the watch reports.
func (s news) noticed(report cluster.WatchReport) {
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
	s.sawMarks(report.Unknown, report.Vanished)
}

// saw acts upon the marks that an observation found.
func (s news) saw(marks cluster.MarksSeen) {
	s.strays.sawForeign(marks.Foreign, marks.ForeignAll)
	s.sawMarks(marks.Unknown, marks.Vanished)
}

// sawMarks doubts the holders where a mark tells of one that is not known, and forgets the stray marks that are gone.
func (s news) sawMarks(unknown []api.StrayMark, vanished []cluster.KnownMark) {
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
func (s news) orphaned(h api.Holder, kind api.StrayKind) {
	s.ledger.drop(h.RequestID)
	s.watcher.forget(h.RequestID)
	if kind == api.StrayOrphan {
		s.strays.remember(api.StrayMark{
			Node: h.Node, Kind: kind, RunID: h.RunID, Requestor: h.Requestor, Since: h.GrantedAt,
			WorkflowID: api.MaintenanceID(s.cluster, h.Node, h.Requestor),
		})
	}
	s.observer.doubt()
}
