package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/cluster"
	nodeactivity "drydock/activities/node"
	"drydock/activities/nodeevent"
	"drydock/api"
	"drydock/rules/schedule"
	"drydock/workflows/call"
)

const (
	// rewatchEvery is the shortest time between two starts of the watch for the sake of new holders.
	rewatchEvery = 5 * time.Second
	// restFor is the time in which a maintenance reacts to a change of its node. It doubles with each change of the same
	// node up to restMost: what cannot be healed must not fill histories.
	restFor  = 2 * time.Second
	restMost = 10 * time.Minute
)

// sayAfter bounds an activity of the scheduler's own: what does not succeed for so long is said, and begun anew. None
// may keep the scheduler from continuing as new.
const sayAfter = time.Minute

// observe asks for the state of the cluster, where requests wait whose nodes' state is not known.
func (s *scheduler) observe() {
	if s.observing || !slices.ContainsFunc(s.Pending, func(p api.PendingRequest) bool { return p.Code == schedule.Unobserved }) {
		return
	}
	in := cluster.ObserveInput{Groups: s.Limits.Groups, Revision: s.Revision}
	for _, h := range s.Holders {
		in.Names = append(in.Names, h.Node)
		in.Ours = append(in.Ours, h.Node)
	}
	for _, r := range s.Released {
		in.Ours = append(in.Ours, r.Node)
	}
	for _, p := range s.Pending {
		in.Names = append(in.Names, p.Node)
	}
	in.Names, in.Ours = Distinct(in.Names), Distinct(in.Ours)
	s.observing = true
	s.inFlight++
	ctx := call.Within(call.Quick(s.ctx, fmt.Sprintf("observe %d nodes", len(in.Names))), sayAfter)
	future := workflow.ExecuteActivity(ctx, call.Cluster.ObserveNodes, in)
	s.whenReady(future, func() {
		s.observing = false
		s.inFlight--
		var observed cluster.Observed
		err := future.Get(ctx, &observed)
		if err == nil {
			observed, err = observed.Unpack(in.Names)
		}
		if err != nil {
			s.decided("", "the cluster could not be observed", err.Error())
			s.retryLater()
			return
		}
		s.Observed = &observed
	})
}

// retryLater wakes the scheduler up again after an error that no event will end.
func (s *scheduler) retryLater() {
	s.inFlight++
	s.observing = true
	timer := workflow.NewTimerWithOptions(s.ctx, 10*time.Second, workflow.TimerOptions{Summary: "observe again"})
	s.whenReady(timer, func() {
		s.inFlight--
		s.observing = false
	})
}

// clusterWatch is a running WatchCluster.
type clusterWatch struct {
	in      cluster.WatchInput
	began   time.Time
	cancel  workflow.CancelFunc
	stopped bool
	timer   bool
}

// keepWatch has one WatchCluster running while requests wait or slots are held, and none otherwise.
func (s *scheduler) keepWatch() {
	if len(s.Holders) == 0 && len(s.Pending) == 0 {
		s.stopWatch()
		return
	}
	want := s.wanted()
	if s.watch == nil {
		if s.observing {
			// What is observed may be granted at once, and the watch then begins with the new holders.
			return
		}
		s.startWatch(want)
		return
	}
	if covers(s.watch.in, want) {
		return
	}
	// A rollout grants all the time: the watch follows every few seconds.
	if left := rewatchEvery - workflow.Now(s.ctx).Sub(s.watch.began); left > 0 {
		s.rewatchIn(left)
		return
	}
	s.stopWatch()
	s.startWatch(want)
}

func (s *scheduler) wanted() cluster.WatchInput {
	want := cluster.WatchInput{Groups: s.Limits.Groups}
	if len(s.Pending) > 0 && s.Observed != nil && s.Observed.Observation.Revision == s.Revision {
		want.Digest = s.Observed.Digest
	}
	for _, h := range s.Holders {
		if s.reclaims[h.RequestID] || s.resting[h.RequestID] {
			continue // it is known to have ended, or is at work on what was noticed
		}
		if marked, known := s.marked[h.RequestID]; marked {
			want.Marked = append(want.Marked, h.RequestID)
		} else if known {
			want.Told = append(want.Told, h.RequestID)
		}
		want.Holders = append(want.Holders, cluster.WatchedHolder{
			RequestID: h.RequestID, Node: h.Node, RunID: h.RunID,
			WorkflowID: api.MaintenanceID(s.cluster, h.Node, h.Requestor),
		})
	}
	return want
}

// doubtUnwatched keeps the next request from being granted on what was observed while nobody looked any more for what
// makes it out of date.
func (s *scheduler) doubtUnwatched() {
	if len(s.Pending) == 0 && s.Observed != nil && (s.watch == nil || s.watch.in.Digest != s.Observed.Digest) {
		s.doubt()
	}
}

// doubt makes all requests wait for the next observation: this one is of no revision of the limits.
func (s *scheduler) doubt() { s.Observed.Observation.Revision = -1 }

// covers tells whether a running watch sees all that is wanted. One that sees more is good enough.
func covers(have, want cluster.WatchInput) bool {
	if want.Digest != "" && have.Digest != want.Digest {
		return false
	}
	// Holders are in the order of their grants in both: what is wanted is a part of what is watched, or it is not.
	watched := have.Holders
	for _, h := range want.Holders {
		i := slices.Index(watched, h)
		if i < 0 {
			return false
		}
		watched = watched[i+1:]
	}
	return true
}

func (s *scheduler) startWatch(in cluster.WatchInput) {
	ctx, cancel := workflow.WithCancel(s.ctx)
	ctx = call.Long(ctx, fmt.Sprintf("watch the cluster and %d holders", len(in.Holders)))
	w := &clusterWatch{in: in, began: workflow.Now(s.ctx), cancel: cancel}
	s.watch = w
	future := workflow.ExecuteActivity(ctx, call.Cluster.WatchCluster, in)
	s.whenReady(future, func() {
		if w.stopped {
			return
		}
		var report cluster.WatchReport
		if err := future.Get(ctx, &report); err != nil {
			s.stopWatch()
			s.decided("", "the cluster could not be watched", err.Error())
			s.retryLater()
			return
		}
		s.watch = nil
		for _, h := range in.Holders {
			_, marked := slices.BinarySearch(report.Marked, h.RequestID)
			_, told := slices.BinarySearch(report.Told, h.RequestID)
			if marked || told {
				s.marked[h.RequestID] = marked
			} else {
				delete(s.marked, h.RequestID)
			}
		}
		s.noticed(report)
	})
}

// rest leaves a maintenance time to react to a change of its node: a watch begun at once would see the change again.
// The others are watched meanwhile. What happens to its mark in that time must be seen afterwards; a node that is away is
// awaited by the maintenance itself.
func (s *scheduler) rest(change api.NodeChange) {
	requestID := change.RequestID
	s.resting[requestID] = true
	rest := max(restFor, min(2*s.rested[requestID], restMost))
	s.rested[requestID] = rest
	timer := workflow.NewTimerWithOptions(s.ctx, rest, workflow.TimerOptions{Summary: "let the holder react"})
	// Nothing is lost with it: it must not keep the scheduler from continuing as new.
	s.whenReady(timer, func() {
		delete(s.resting, requestID)
		if _, held := s.holder(requestID); held && change.Unmarked {
			s.assumeMarked(requestID)
		}
		if s.watch != nil {
			s.watch.began = time.Time{} // this one is worth a new watch at once
		}
	})
}

// stopWatch ends a watch that is of no use any more. What it has seen is lost.
func (s *scheduler) stopWatch() {
	if s.watch != nil {
		s.watch.stopped = true
		s.watch.cancel()
		for _, h := range s.watch.in.Holders {
			s.assumeMarked(h.RequestID)
		}
		s.watch = nil
	}
}

// assumeMarked takes a mark as seen where nobody can tell any more whether it was. If it never was there, the next
// watch says so, and the maintenance knows better; not to ask would lose the node's deletion for good.
func (s *scheduler) assumeMarked(requestID string) { s.marked[requestID] = true }

func (s *scheduler) rewatchIn(d time.Duration) {
	if s.watch.timer {
		return
	}
	s.watch.timer = true
	s.inFlight++
	timer := workflow.NewTimerWithOptions(s.ctx, d, workflow.TimerOptions{Summary: "watch the new holders too"})
	s.whenReady(timer, func() { s.inFlight-- })
}

// noticed acts upon what the watch reports.
func (s *scheduler) noticed(report cluster.WatchReport) {
	if report.Stale && s.Observed != nil {
		s.doubt()
	}
	for _, change := range report.Changes {
		if h, ok := s.holder(change.RequestID); ok {
			s.rest(change)
			s.signalHolder(h, api.SignalNodeChanged, change)
		}
	}
	for _, ended := range report.Ended {
		if h, ok := s.holder(ended.RequestID); ok {
			s.reclaim(h, "its workflow is "+ended.Status)
		}
	}
}

// reclaim takes the slot of a holder that will never release it: first the mark goes off the node, which fences the
// dead workflow's evictions, and then the slot is free.
func (s *scheduler) reclaim(h api.Holder, why string) {
	if _, held := s.holder(h.RequestID); !held || s.reclaims[h.RequestID] || s.leaving() {
		return // the next run finds it again: it is still among the holders
	}
	s.reclaims[h.RequestID] = true
	s.decided("", fmt.Sprintf("reclaiming the slot of %s on %s", h.Requestor, h.Node), why)
	s.tryReclaim(h, why)
}

func (s *scheduler) tryReclaim(h api.Holder, why string) {
	s.inFlight++
	future := s.releaseOrphan(h.Node, api.MaintenanceID(s.cluster, h.Node, h.Requestor), h.RunID, h.Requestor, why)
	s.whenReady(future, func() {
		s.inFlight--
		if err := future.Get(s.ctx, nil); err != nil && !harmless(err) {
			s.decided("", "the node "+h.Node+" could not be released", err.Error())
			s.retryReclaim(h, why)
			return
		}
		delete(s.reclaims, h.RequestID)
		s.free(h.RequestID)
	})
}

// retryReclaim tries again after an error that Temporal does not retry by itself, such as a missing permission.
func (s *scheduler) retryReclaim(h api.Holder, why string) {
	s.inFlight++
	timer := workflow.NewTimerWithOptions(s.ctx, 30*time.Second, workflow.TimerOptions{Summary: "reclaim again"})
	s.whenReady(timer, func() {
		s.inFlight--
		if !s.leaving() {
			s.tryReclaim(h, why)
		}
	})
}

// harmless are errors after which there is nothing left to take off the node.
func harmless(err error) bool {
	var cause *temporal.ApplicationError
	return errors.As(err, &cause) && (cause.Type() == api.ErrorNodeGone || cause.Type() == api.ErrorNotHolder)
}

func (s *scheduler) releaseOrphan(node, workflowID, runID, requestor, why string) workflow.Future {
	event := nodeevent.Event{
		Warning: true, Reason: "MaintenanceReclaimed", Key: runID,
		Message: fmt.Sprintf("the maintenance by %s does not run any more (%s)", requestor, why),
	}
	if s.OnOrphan == ReportOrphans {
		event.Reason = "MaintenanceOrphaned"
		return workflow.ExecuteActivity(call.Within(call.Quick(s.ctx, "report "+node+" as orphaned"), sayAfter), call.Nodes.AnnouncePhase, nodeactivity.AnnounceInput{
			Node: node, WorkflowID: workflowID, RunID: runID, Phase: "Orphaned", Event: event,
		})
	}
	return workflow.ExecuteActivity(call.Within(call.Quick(s.ctx, "release "+node), sayAfter), call.Nodes.ReleaseNode, nodeactivity.ReleaseInput{
		Node: node, WorkflowID: workflowID, RunID: runID, Event: event, WithdrawRequests: true,
	})
}

// free takes a slot back.
func (s *scheduler) free(requestID string) {
	if h, ok := s.holder(requestID); ok {
		s.Released = append(s.Released, ReleasedNode{Node: h.Node, At: workflow.Now(s.ctx)})
		s.Holders = slices.DeleteFunc(s.Holders, func(h api.Holder) bool { return h.RequestID == requestID })
	}
	s.Pending = slices.DeleteFunc(s.Pending, func(p api.PendingRequest) bool { return p.ID == requestID })
	delete(s.marked, requestID)
	delete(s.rested, requestID)
	s.forget(requestID)
}

func (s *scheduler) forgetReleased() {
	now := workflow.Now(s.ctx)
	s.Released = slices.DeleteFunc(s.Released, func(r ReleasedNode) bool { return now.Sub(r.At) > releasedFor })
}
