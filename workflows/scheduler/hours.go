package scheduler

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/windows"
	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/number"
	"drydock/rules/schedule"
	"drydock/rules/window"
	"drydock/workflows/call"
)

const (
	// horizonFor is how long openings that were computed are good for. They reach further than that by more than any
	// maintenance may say that it takes.
	horizonFor = 24 * time.Hour
	// askNext is the longest pause before another worker is asked.
	askNext = 2 * time.Second
	// notComputed is what is said where that fails.
	notComputed = "it could not be found out when windows are open"
	// changeWindows: windows count, and requests may name some. Before, such a request was refused as one that is not understood.
	changeWindows = "windows"
)

// hours knows when windows are open, as far ahead as a decision needs it, and wakes the scheduler when one that matters
// opens or closes. While nothing names a window it does nothing.
type hours struct {
	*loop
	decisions *decisions
	// horizon is nil before openings are computed, and where that failed: nothing is granted under a window then. stale says
	// that the worker's windows have changed since.
	horizon *window.Horizon
	trouble string
	stale   bool
	// wanted are the windows of the worker that was started last, as far as one has said which it has.
	wanted api.WindowsChanged
	// busy: they are being computed, or that is to be tried again.
	busy bool
	// wakes is when a timer is due, zero where there is none; stopTimer ends it.
	wakes     time.Time
	stopTimer workflow.CancelFunc
	since     since
}

// inForce tells whether windows count.
func (h *hours) inForce() bool { return h.since.known(h.ctx) }

// named tells whether a request says anything of windows.
func named(r schedule.Request) bool {
	return len(r.Windows) > 0 || r.ExpectedDuration > 0 || r.IgnoreWindows != ""
}

// add completes what a decision depends on; where no window counts it leaves them out.
func (h *hours) add(in schedule.Input) schedule.Input {
	inGroups := func(g schedule.Group) bool { return len(g.Windows) > 0 }
	if len(in.Limits.Windows) == 0 && !slices.ContainsFunc(in.Limits.Groups, inGroups) && !slices.ContainsFunc(in.Pending, named) {
		return in
	}
	if !h.inForce() {
		in.Limits.Windows, in.Limits.Groups = nil, slices.Clone(in.Limits.Groups)
		for i := range in.Limits.Groups {
			in.Limits.Groups[i].Windows = nil
		}
		return in
	}
	in.Now, in.Horizon, in.HorizonTrouble = h.now(), h.horizon, h.trouble
	return in
}

// follow has the openings computed that a decision lacked, and wakes the scheduler when it may turn out otherwise.
func (h *hours) follow(d schedule.Decision) {
	old := h.horizon != nil && !h.now().Before(h.horizon.At.Add(horizonFor))
	if d.Windows && !h.busy && (d.Unknown || h.stale || old) {
		h.compute()
	}
	h.wakeAt(d.Next)
}

func (h *hours) compute() {
	h.busy, h.stale = true, false
	// Any worker may be asked, and that with the windows that are wanted is one of many.
	ctx := call.Pausing(call.Within(call.Quick(h.ctx, "see when windows are open"), actWithin), askNext)
	asked := h.wanted
	future := workflow.ExecuteActivity(ctx, call.Windows.ComputeOpenings, windows.ComputeInput{At: h.now(), Digest: asked.Digest})
	h.whenDone(future, func(future workflow.Future) {
		h.busy = false
		var computed window.Horizon
		err := future.Get(ctx, &computed)
		if call.IsError(err, api.ErrorOtherWindows) {
			h.forget(asked)
			return
		}
		if err != nil {
			h.horizon, h.trouble = nil, call.Cause(err)
			h.retryLater(err)
			return
		}
		h.decisions.works(notComputed)
		if h.horizon == nil || h.horizon.Digest != computed.Digest || h.horizon.Zones != computed.Zones {
			h.decisions.record("", "computed when "+number.Are(len(computed.Windows), "window")+" open", computed.Zones)
		}
		if computed.Digest == h.wanted.Digest {
			computed.Since = h.wanted.Since
		}
		h.horizon, h.trouble, h.stale = &computed, "", h.wanted.Digest != "" && h.wanted.Digest != computed.Digest
	})
}

// forget drops the windows of a worker that runs no more. Those of any other count, until it says which it has.
func (h *hours) forget(gone api.WindowsChanged) {
	h.decisions.record("", "no worker has the windows any more that were gone by", "those of the others count")
	if h.wanted == gone {
		h.wanted = api.WindowsChanged{}
	}
	h.stale = true
}

func (h *hours) retryLater(err error) {
	h.busy = true
	wait := h.decisions.fails(notComputed, err, tryAgainMost)
	timer := workflow.NewTimerWithOptions(h.ctx, wait, workflow.TimerOptions{Summary: "see again when windows are open"})
	// Nothing is lost with it: the next run asks at once.
	h.whenReady(timer, func(workflow.Future) { h.busy = false })
}

// changed hears from a worker that its windows are others than those that are known. Those of a worker that was started
// earlier than the one whose windows count do not.
func (h *hours) changed(c api.WindowsChanged) {
	bounds.Fit(&c)
	if now := h.now(); c.Since.After(now) {
		c.Since = now
	}
	if c.Since.Before(h.wanted.Since) {
		return
	}
	h.wanted = c
	h.stale = h.stale || h.horizon != nil && h.horizon.Digest != c.Digest
}

// goOn takes up what a run before this one handed over.
func (h *hours) goOn(horizon *window.Horizon, wanted api.WindowsChanged) {
	h.horizon, h.wanted = horizon, wanted
	h.stale = horizon != nil && wanted.Digest != "" && horizon.Digest != wanted.Digest
}

// wakeAt has one timer for the next opening or close that matters, none where none does.
func (h *hours) wakeAt(at time.Time) {
	if at.Equal(h.wakes) {
		return
	}
	if h.stopTimer != nil {
		h.stopTimer()
		h.stopTimer = nil
	}
	if h.wakes = at; at.IsZero() {
		return
	}
	ctx, cancel := workflow.WithCancel(h.ctx)
	h.stopTimer = cancel
	wait := max(at.Sub(h.now()), time.Second)
	timer := workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: "a window opens or closes"})
	// Nothing is lost with it: the next run begins another.
	h.onceReady(timer, func(workflow.Future) {
		if ctx.Err() == nil {
			h.wakes, h.stopTimer, h.dirty = time.Time{}, nil, true
		}
	})
}
