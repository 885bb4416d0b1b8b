package scheduler

import (
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/schedule"
)

// freeLater frees the slot of a profile's transition once every watch shows what that has made of the node. Until then it counts as
// taking the node out: what was observed may be older than its last write.
func freeLater(s *scheduler, h api.Holder) {
	if s.reclaimer.reclaiming[h.RequestID] {
		return
	}
	s.reclaimer.reclaiming[h.RequestID] = true // it is not watched meanwhile
	timer := workflow.NewTimerWithOptions(s.ctx, releasedFor, workflow.TimerOptions{Summary: "let watches show what a transition did"})
	// Nothing is lost with it: the next run finds that the transition does not run.
	s.whenReady(timer, func(workflow.Future) {
		s.reclaimer.done(h)
		s.ledger.free(h.RequestID, s.now())
		s.watcher.forget(h.RequestID)
		s.observer.doubt()
	})
}

// countsNode tells whether a decision on a request or a slot depends on what is seen of its node.
func countsNode(kind schedule.HolderKind) bool { return kind != schedule.KindControlPlane }
