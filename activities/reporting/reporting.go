// Package reporting signals a workflow what keeps its activity from ending.
package reporting

import (
	"context"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/api"
)

const (
	// MaxBlockers bounds the list in heartbeats and signals: a count and the first names.
	MaxBlockers = 10
	// maxBlockedSignals bounds what a drain adds to its workflow's history.
	maxBlockedSignals = 10
	// BlockedAfter keeps refusals that heal by themselves at once out of the history.
	BlockedAfter = 2 * time.Second
	// signalEvery is the shortest time between two signals of one drain.
	signalEvery = 5 * time.Second
	// maxCountSignals bounds those about counts alone, whose pauses double from signalEvery on.
	maxCountSignals = 10
)

// Blocked shows how many pods are blocked, by reason.
type Blocked interface{ Show(reasons map[string]int) }

// Reporter reports how a drain goes: by heartbeat, and what blocks it also by a bounded number of signals, since
// heartbeat details never reach workflow code.
type Reporter struct {
	Temporal client.Client
	Signal   string
	// Heartbeats carry the progress; nil carries none.
	Heartbeats *heartbeat.Loop
	// Counts adds signals with how many pods are left, where the workflow passes that on.
	Counts bool
	// Blocked is shown why pods are blocked; nil shows nothing.
	Blocked Blocked

	sent     int
	sentSet  string
	lastSent time.Time
	// began is when it reported for the first time.
	began time.Time
	// left and leaving are the counts that were sent last, counted how often they were sent alone.
	left, leaving, counted int
	// Last is the progress reported last.
	Last api.DrainProgress
}

// Report reports how an activity goes, and what keeps it from ending.
func (r *Reporter) Report(ctx context.Context, p api.DrainProgress) {
	r.Last = p
	if r.began.IsZero() {
		r.began = time.Now()
	}
	if r.Blocked != nil {
		r.Blocked.Show(p.Reasons)
	}
	r.Heartbeats.Show(ctx, p)
	set := blockedSet(p, time.Now())
	blocked := set != r.sentSet && r.sent < maxBlockedSignals && time.Since(r.lastSent) >= signalEvery
	if !blocked && !r.countsDue(p) {
		return
	}
	execution := activity.GetInfo(ctx).WorkflowExecution
	if err := caller.Signal(ctx, r.Temporal, execution.ID, execution.RunID, r.Signal, p); err != nil {
		activity.GetLogger(ctx).Warn("blockers not signalled", "error", err)
		return
	}
	if blocked {
		r.sent++
	} else {
		r.counted++
	}
	r.sentSet, r.lastSent, r.left, r.leaving = set, time.Now(), p.Remaining, p.Terminating
}

// countsDue reports whether other counts are to be sent than those that were. Those of a drain that is soon over are not worth it.
func (r *Reporter) countsDue(p api.DrainProgress) bool {
	return r.Counts && p.Looked() && time.Since(r.began) >= BlockedAfter && (p.Remaining != r.left || p.Terminating != r.leaving) && r.counted < maxCountSignals &&
		time.Since(r.lastSent) >= signalEvery<<r.counted
}

// blockedSet names the blockers that have lasted, so that a changed set differs from the same one.
func blockedSet(p api.DrainProgress, now time.Time) string {
	var set strings.Builder
	for _, b := range p.Blockers {
		if now.Sub(b.Since) >= BlockedAfter {
			set.WriteString(b.Pod + "=" + b.Reason + ";")
		}
	}
	return set.String()
}
