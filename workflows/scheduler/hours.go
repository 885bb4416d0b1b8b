package scheduler

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/windows"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/window"
	"drydock.dev/drydock/workflows/call"
)

const (
	// horizonFor is how long computed openings are used. They reach further than that by more than any maintenance may say that it takes.
	horizonFor = 24 * time.Hour
	// nextWorkerWithin is the longest pause before another worker is asked.
	nextWorkerWithin = 2 * time.Second
	// notComputed is the trouble that is shown where that fails.
	notComputed = "it could not be found out when windows are open"
)

// hours knows when windows are open, as far ahead as a decision needs it, and wakes the scheduler when one that matters opens or closes.
// While nothing names a window it does nothing.
type hours struct {
	*scheduler
	// trouble is why the openings could not be computed. stale: the worker's windows have changed since they were.
	trouble string
	stale   bool
	// busy: openings are being computed, or that is to be tried again.
	busy bool
	// wakes is when a timer is due, zero if there is none; stopTimer ends it.
	wakes     time.Time
	stopTimer workflow.CancelFunc
}

// follow has the openings computed that a decision lacked, and wakes the scheduler when the decision may change.
func (h *hours) follow(d schedule.Decision) {
	old := h.Horizon != nil && !h.now().Before(h.Horizon.At.Add(horizonFor))
	if d.Windows && !h.busy && (d.Unknown || h.stale || old) {
		h.compute()
	}
	h.wakeAt(d.Next)
}

func (h *hours) compute() {
	h.busy, h.stale = true, false
	// Any worker may be asked, and the one with the wanted windows is one of many.
	ctx := call.Pausing(call.Within(call.Quick(h.ctx, "see when windows are open"), actWithin), nextWorkerWithin)
	wanted := h.WindowsOf
	future := workflow.ExecuteActivity(ctx, call.Windows.ComputeOpenings, windows.ComputeInput{At: h.now(), Digest: wanted.Digest})
	h.whenDone(future, func(future workflow.Future) {
		h.busy = false
		var computed window.Horizon
		err := future.Get(ctx, &computed)
		if call.IsError(err, api.ErrorOtherWindows) {
			h.forget(wanted)
			return
		}
		if err != nil {
			h.Horizon, h.trouble, h.busy = nil, call.Cause(err), true
			h.after(h.decisions.fails(notComputed, err, maxRetry), "see again when windows are open", func() { h.busy = false })
			return
		}
		h.decisions.works(notComputed)
		if h.Horizon == nil || h.Horizon.Digest != computed.Digest || h.Horizon.Zones != computed.Zones {
			h.decisions.record("", "computed when "+number.Are(len(computed.Windows), "window")+" open", computed.Zones)
		}
		if computed.Digest == h.WindowsOf.Digest {
			computed.Since = h.WindowsOf.Since
		}
		h.Horizon, h.trouble = &computed, ""
		h.stale = h.differs()
	})
}

// differs reports whether the horizon is of other windows than those that are wanted.
func (h *hours) differs() bool {
	return h.Horizon != nil && h.WindowsOf.Digest != "" && h.Horizon.Digest != h.WindowsOf.Digest
}

// forget drops the windows of a worker that does not run any more. Those of any other count, until one says which it has.
func (h *hours) forget(gone api.WindowsChanged) {
	h.decisions.record("", "no worker has the windows any more that were gone by", "those of the others count")
	if h.WindowsOf == gone {
		h.WindowsOf = api.WindowsChanged{}
	}
	h.stale = true
}

// changed takes the windows that a worker says it has. Those of a worker that was started earlier than the one whose windows count do not.
func (h *hours) changed(c api.WindowsChanged) {
	bounds.Fit(&c)
	if now := h.now(); c.Since.After(now) {
		c.Since = now
	}
	if c.Since.Before(h.WindowsOf.Since) {
		return
	}
	h.WindowsOf = c
	h.stale = h.stale || h.differs()
}

// wakeAt keeps one timer for the next opening or close that matters.
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
