package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/schedule"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"fmt"
	"go.temporal.io/sdk/workflow"
	"slices"
	"time"
)

const (
	// rewatchEvery is the shortest time between two starts of the watch for the sake of new holders.
	rewatchEvery = 5 * time.Second
	// restFor is the time in which a maintenance reacts to a change of its node. It doubles with each change of the same
	// node up to restMost: what cannot be healed must not fill histories.
	restFor  = 2 * time.Second
	restMost = 10 * time.Minute
)

// watcher has at most one WatchCluster running.
type watcher struct {
	*loop
	cluster   string
	decisions *decisions
	running   *clusterWatch
	// By request: whose node was changed a moment ago, and how long it was given to react, whose mark a watch has seen
	// (true) or reported as missing (false).
	resting map[string]bool
	rested  map[string]time.Duration
	marked  map[string]bool

	// holds tells whether a request still holds its slot, noticed acts upon a report, and failed on the lack of one.
	holds   func(requestID string) bool
	noticed func(cluster.WatchReport)
	failed  func(what string, err error)
}

// clusterWatch is a running WatchCluster.
type clusterWatch struct {
	in      cluster.WatchInput
	began   time.Time
	cancel  workflow.CancelFunc
	stopped bool
	timer   bool
}

func newWatcher(l *loop, cluster string, d *decisions) *watcher {
	return &watcher{
		loop: l, cluster: cluster, decisions: d,
		resting: map[string]bool{}, rested: map[string]time.Duration{}, marked: map[string]bool{},
	}
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
	if left := rewatchEvery - w.now().Sub(w.running.began); left > 0 {
		w.startIn(left)
		return
	}
	w.stop()
	w.start(want)
}

// wanted is a watch of the cluster, if there is a digest, and of those holders that are not at work on what was noticed.
// Known are the marks that are expected besides those of the holders.
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
			want.Told = append(want.Told, h.RequestID)
		}
		want.Holders = append(want.Holders, cluster.WatchedHolder{
			RequestID: h.RequestID, Node: h.Node, RunID: h.RunID, Since: h.GrantedAt,
			WorkflowID: api.MaintenanceID(w.cluster, h.Node, h.Requestor),
		})
	}
	return want
}

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

// comparesWith tells whether a running watch notices that what was observed no longer holds.
func (w *watcher) comparesWith(digest string) bool {
	return w.running != nil && w.running.in.Digest == digest
}

func (w *watcher) start(in cluster.WatchInput) {
	ctx, cancel := workflow.WithCancel(w.ctx)
	ctx = call.Long(ctx, fmt.Sprintf("watch the cluster and %d holders", len(in.Holders)))
	this := &clusterWatch{in: in, began: w.now(), cancel: cancel}
	w.running = this
	future := workflow.ExecuteActivity(ctx, call.Cluster.WatchCluster, in)
	w.whenReady(future, func() {
		if this.stopped {
			return
		}
		var report cluster.WatchReport
		if err := future.Get(ctx, &report); err != nil {
			w.stop()
			w.failed(notWatched, err)
			return
		}
		w.decisions.works(notWatched)
		w.running = nil
		w.noteMarks(in.Holders, report)
		w.noticed(report)
	})
}

// noteMarks notes what the next watch has to be told.
func (w *watcher) noteMarks(watched []cluster.WatchedHolder, report cluster.WatchReport) {
	for _, h := range watched {
		_, marked := slices.BinarySearch(report.Marked, h.RequestID)
		_, told := slices.BinarySearch(report.Told, h.RequestID)
		if marked || told {
			w.marked[h.RequestID] = marked
		} else {
			delete(w.marked, h.RequestID)
		}
	}
}

func (w *watcher) startIn(d time.Duration) {
	if w.running.timer {
		return
	}
	w.running.timer = true
	timer := workflow.NewTimerWithOptions(w.ctx, d, workflow.TimerOptions{Summary: "watch the new holders too"})
	w.whenDone(timer, func() {})
}

// stop ends a watch that is of no use any more. What it has seen is lost.
func (w *watcher) stop() {
	if w.running == nil {
		return
	}
	w.running.stopped = true
	w.running.cancel()
	for _, h := range w.running.in.Holders {
		w.assumeMarked(h.RequestID)
	}
	w.running = nil
}

// rest leaves a maintenance time to react to a change of its node: a watch begun at once would see the change again.
// The others are watched meanwhile. What happens to its mark in that time must be seen afterwards; a node that is away is
// awaited by the maintenance itself.
func (w *watcher) rest(change api.NodeChange) {
	requestID := change.RequestID
	w.resting[requestID] = true
	rest := max(restFor, min(2*w.rested[requestID], restMost))
	w.rested[requestID] = rest
	timer := workflow.NewTimerWithOptions(w.ctx, rest, workflow.TimerOptions{Summary: "let the holder react"})
	// Nothing is lost with it: it must not keep the scheduler from continuing as new.
	w.whenReady(timer, func() {
		delete(w.resting, requestID)
		if w.holds(requestID) && change.Unmarked {
			w.assumeMarked(requestID)
		}
		if w.running != nil {
			w.running.began = time.Time{} // this one is worth a new watch at once
		}
	})
}

// assumeMarked takes a mark as seen where nobody can tell any more whether it was. If it never was there, the next
// watch says so, and the maintenance knows better; not to ask would lose the node's deletion for good.
func (w *watcher) assumeMarked(requestID string) { w.marked[requestID] = true }

// forget drops what is known of a request that does not hold any more.
func (w *watcher) forget(requestID string) {
	delete(w.marked, requestID)
	delete(w.rested, requestID)
}
