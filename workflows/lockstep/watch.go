package lockstep

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/heartbeat"
	activity "drydock/activities/lockstep"
	"drydock/workflows/call"
)

// watcher has one activity look whether maintenances and plans end without a word.
type watcher struct {
	*core
	cancel workflow.CancelFunc
	// notBefore is when it is tried again.
	notBefore time.Time
}

// keep has it run while there is something to look at.
func (w *watcher) keep() {
	wanted := len(w.book.plans)+len(w.book.silent) > 0
	for _, n := range w.book.nodes {
		wanted = wanted || n.runs()
	}
	switch {
	case !wanted:
		w.stop()
	case w.cancel == nil && !w.now().Before(w.notBefore):
		w.start()
	}
}

func (w *watcher) start() {
	ctx, cancel := workflow.WithCancel(w.ctx)
	w.cancel = cancel
	future := workflow.ExecuteActivity(call.Beating(ctx, "watch maintenances and plans", heartbeat.WatchTimeout), call.Lockstep.WatchShared,
		activity.StockInput{TaskQueue: workflow.GetInfo(w.ctx).TaskQueueName})
	workflow.GoNamed(w.ctx, "watch", func(gctx workflow.Context) {
		var seen activity.Seen
		err := future.Get(gctx, &seen)
		if ctx.Err() != nil {
			return // it was stopped
		}
		if w.dirty, w.changed = true, true; err != nil {
			w.note("maintenances and plans could not be watched", call.Cause(err))
			w.cancel, w.notBefore = nil, w.now().Add(tryAgain)
			w.wakeIn(tryAgain)
			return
		}
		w.cancel = nil
		w.gone(seen.Gone)
		for _, p := range seen.Plans {
			if w.book.silent[p.Name] == p.RunID {
				delete(w.book.silent, p.Name)
			}
			if w.book.drop(p.RunID) {
				w.note("plan "+p.Name+" does not run any more", "its nodes are given back")
			}
		}
	})
}

// stop ends it: the next one sees what it has seen.
func (w *watcher) stop() {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}
