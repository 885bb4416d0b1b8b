package controller

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/rules/period"
)

// Watch is an activity that returns when something changes. It runs while Decide returns it, in every run of the workflow. It only reads, or
// writes what may be written twice.
type Watch struct {
	Key     Key
	Summary string
	Call    Call
	Input   any
	// Want is what the watch is about: it begins anew where Want changes, compared as JSON. Nil stands for Input. Where Input also has what is
	// known already, which changes with each report, Want is Input without that.
	Want any
	// Lasts lets a watch whose Want has changed run on until the pace lets it begin anew. Its reports count until then, and Outcome.Begun has
	// the Want with which it began. It is for a watch that would never report where Want changes often.
	Lasts bool
}

// A watch begins at most once in a pace. The pace doubles, up to slowest, with each start after which the watch reported nothing new:
// otherwise a watch that begins anew before it can report would never report.
const (
	pace    = time.Second
	slowest = 32 * time.Second
)

// watching is a watch that runs, or one that ran and may run again.
type watching struct {
	Watch
	want  uint64
	began time.Time
	// idle counts the starts in a row without a new report, reported is the digest of the latest report.
	idle     int
	reported uint64
	// future and cancel are nil while it does not run.
	future workflow.Future
	cancel workflow.CancelFunc
}

// stop ends a watch. What it reports after that is ignored.
func (w *watching) stop() {
	if w.future != nil {
		w.cancel()
		w.future, w.cancel = nil, nil
	}
}

func (e *engine[C]) watch(wanted []Watch, now time.Time) {
	keys, known := make(map[Key]bool, len(wanted)), make(map[Key]*watching, len(e.watches))
	for _, one := range wanted {
		keys[one.Key] = true
	}
	e.watches = slices.DeleteFunc(e.watches, func(w *watching) bool {
		if keys[w.Key] {
			known[w.Key] = w
			return false
		}
		w.stop()
		e.base.works(w.Key)
		return true
	})
	for _, one := range wanted {
		if known[one.Key] == nil {
			known[one.Key] = &watching{}
			e.watches = append(e.watches, known[one.Key])
		}
		e.watchOne(known[one.Key], one, now)
	}
}

// watchOne begins a watch that does not run, or whose Want has changed.
func (e *engine[C]) watchOne(w *watching, wanted Watch, now time.Time) {
	want, _ := digest(cmp.Or(wanted.Want, wanted.Input))
	runs := w.future != nil
	if runs && w.want == want {
		return
	}
	due := w.began.Add(period.Doubled(pace, slowest, w.idle)) // long ago for one that never began
	if r := e.base.find(wanted.Key); r != nil && r.Until.After(due) {
		due = r.Until
	}
	if runs && wanted.Lasts && now.Before(due) {
		e.wakeAt(due, "watch anew: "+wanted.Summary)
		return
	}
	w.Watch = wanted // its key is looked up before it runs
	if runs {
		// Its report would be about a Want that does not hold any more.
		w.stop()
		w.idle++
	}
	if now.Before(due) {
		e.wakeAt(due, "watch again: "+wanted.Summary)
		return
	}
	ctx, cancel := workflow.WithCancel(e.ctx)
	w.want, w.began, w.cancel = want, now, cancel
	w.future = wanted.Call.run(ctx, wanted.Summary, wanted.Input)
}

// takeReports processes the reports of running watches. A watch that fails backs off, unless Outcome has set a backoff.
func (e *engine[C]) takeReports() (taken int) {
	for _, w := range e.watches {
		if w.future == nil || !w.future.IsReady() {
			continue
		}
		future := w.future
		w.future, w.cancel = nil, nil
		taken++
		o := Outcome{Key: w.Key, What: Reported, Begun: w.Watch}
		if o.take(e.ctx, future); o.Err != nil {
			e.feedBack(o, w.Summary, e.now())
			continue
		}
		e.base.works(w.Key)
		if w.idle++; isNew(&w.reported, o.result.GetData()) {
			w.idle = 0
		}
		e.c.Outcome(o, e.now())
	}
	return taken
}

// stopWatches ends all watches: the next run, or the next turn after a reset, begins them anew.
func (e *engine[C]) stopWatches() {
	for _, w := range e.watches {
		w.stop()
	}
	e.watches = nil
}
