package scheduler

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/schedule"
)

// shownWithin is after what time every watch shows what a transition has made of its node. The activity of one that was terminated may
// write for as long as an attempt of it may take, which is 30 s, and watches lag behind that.
const shownWithin = 45 * time.Second

// freeLater frees the slot of a profile's transition once every watch shows what that has made of the node. Until then it counts as
// taking the node out: what was observed may be older than its last write.
func freeLater(s *scheduler, h api.Holder) {
	if s.reclaimer.reclaiming[h.RequestID] {
		return
	}
	s.reclaimer.reclaiming[h.RequestID] = true // it is not watched meanwhile
	timer := workflow.NewTimerWithOptions(s.ctx, shownWithin, workflow.TimerOptions{Summary: "let watches show what a transition did"})
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
