package scheduler

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/call"
)

const (
	// rewatchEvery is the shortest time between two starts of the watch for the sake of new holders.
	rewatchEvery = 5 * time.Second
	// restFor is the time in which a maintenance reacts to a change of its node. It doubles with each change of the same node up to
	// restMost: what cannot be healed must not fill histories.
	restFor  = 2 * time.Second
	restMost = 10 * time.Minute
)

// watcher has at most one WatchCluster running.
type watcher struct {
	*scheduler
	running *clusterWatch
	// By request: whose node was changed a moment ago, and how long its holder was given to react; whose mark a watch has seen (true) or
	// reported as missing (false).
	resting map[string]bool
	rested  map[string]time.Duration
	marked  map[string]bool
}

type clusterWatch struct {
	in     cluster.WatchInput
	began  time.Time
	cancel workflow.CancelFunc
	timer  bool
}

// keep has a watch running that sees all that is wanted.
func (w *watcher) keep(want cluster.WatchInput) {
	if w.running == nil {
		w.start(want)
		return
	}
	if covers(w.running.in, want) {
		return
	}
	// A rollout grants all the time: the watch follows every few seconds.
	left := rewatchEvery - w.now().Sub(w.running.began)
	if left <= 0 {
		w.stop()
		w.start(want)
		return
	}
	if !w.running.timer {
		w.running.timer = true
		timer := workflow.NewTimerWithOptions(w.ctx, left, workflow.TimerOptions{Summary: "watch the new holders too"})
		w.whenDone(timer, func(workflow.Future) {})
	}
}

// wanted is a watch of the cluster, if there is a digest, and of the holders that are not reacting to a change. Known are the marks that
// are expected besides those of the holders.
func (w *watcher) wanted(groups []schedule.Group, digest string, holders []api.Holder, known []cluster.KnownMark) cluster.WatchInput {
	want := cluster.WatchInput{Groups: groups, Digest: digest, Cluster: w.cluster, Known: known}
	for _, h := range holders {
		if w.resting[h.RequestID] {
			want.Known = append(want.Known, cluster.KnownMark{Node: h.Node, RunID: h.RunID})
			continue
		}
		if marked, known := w.marked[h.RequestID]; marked {
			want.Marked = append(want.Marked, h.RequestID)
		} else if known {
			want.Missing = append(want.Missing, h.RequestID)
		}
		want.Holders = append(want.Holders, cluster.WatchedHolder{
			RequestID: h.RequestID, Node: h.Node, RunID: h.RunID, Since: h.GrantedAt, WorkflowID: h.WorkflowID(w.cluster),
			Unmarked: !h.IsMarked(),
		})
	}
	return want
}

// covers reports whether a running watch sees all that is wanted.
func covers(have, want cluster.WatchInput) bool {
	if want.Digest != "" && have.Digest != want.Digest {
		return false
	}
	// Holders are in the order of their grants in both.
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

func (w *watcher) start(in cluster.WatchInput) {
	ctx, cancel := workflow.WithCancel(w.ctx)
	ctx = call.Long(ctx, "watch the cluster and "+number.Of(len(in.Holders), "holder"))
	this := &clusterWatch{in: in, began: w.now(), cancel: cancel}
	w.running = this
	future := workflow.ExecuteActivity(ctx, call.Cluster.WatchCluster, in)
	w.whenReady(future, func(future workflow.Future) {
		if w.running != this {
			return // it was stopped
		}
		var report cluster.WatchReport
		if err := future.Get(ctx, &report); err != nil {
			w.stop()
			w.observer.retryLater(notWatched, err)
			return
		}
		w.decisions.works(notWatched)
		w.running = nil
		w.noteMarks(in.Holders, report)
		w.take(report)
	})
}

func (w *watcher) noteMarks(watched []cluster.WatchedHolder, report cluster.WatchReport) {
	for _, h := range watched {
		_, marked := slices.BinarySearch(report.Marked, h.RequestID)
		_, missing := slices.BinarySearch(report.Missing, h.RequestID)
		if marked || missing {
			w.marked[h.RequestID] = marked
		} else {
			delete(w.marked, h.RequestID)
		}
	}
}

func (w *watcher) take(report cluster.WatchReport) {
	if report.Stale {
		w.observer.invalidate()
	}
	for _, change := range report.Changes {
		if h, held := w.slots.holder(change.RequestID); held {
			w.rest(change)
			w.outbox.sendChange(h, change)
		}
	}
	for _, ended := range report.Ended {
		if h, held := w.slots.holder(ended.RequestID); held {
			w.reclaimer.reclaim(h, "its workflow is "+ended.Status)
		}
	}
	w.strays.compare(report.Unknown, report.Vanished)
}

// stop ends a watch that is of no use any more. What it has seen is lost.
func (w *watcher) stop() {
	if w.running == nil {
		return
	}
	w.running.cancel()
	for _, h := range w.running.in.Holders {
		w.assumeMarked(h.RequestID)
	}
	w.running = nil
}

// rest leaves a maintenance time to react to a change of its node: a watch begun at once would see the change again. The other holders are
// watched. What happens to its mark in that time must be seen afterwards; a missing node the maintenance itself waits for.
func (w *watcher) rest(change api.NodeChange) {
	requestID := change.RequestID
	w.resting[requestID] = true
	rest := max(restFor, min(2*w.rested[requestID], restMost))
	w.rested[requestID] = rest
	w.after(rest, "let the holder react", func() {
		delete(w.resting, requestID)
		if w.slots.holds(requestID) && change.Unmarked {
			w.assumeMarked(requestID)
		}
		if w.running != nil {
			w.running.began = time.Time{} // this holder is worth a new watch at once
		}
	})
}

// assumeMarked takes a mark as seen where it is not known whether it was. If it never was there, the next watch says so, and the maintenance
// knows better; to leave it out would miss the node's deletion for good.
func (w *watcher) assumeMarked(requestID string) { w.marked[requestID] = true }

func (w *watcher) forget(requestID string) {
	delete(w.marked, requestID)
	delete(w.rested, requestID)
}
