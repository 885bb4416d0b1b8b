package activities

import (
	"context"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"drydock/api"
)

const (
	// maxBlockers bounds the list in heartbeats and signals: a count and the first names.
	maxBlockers = 10
	// maxPods bounds the list of pods that were told to end, which is in every heartbeat.
	maxPods = 100
	// maxBlockedSignals bounds what a drain adds to its workflow's history.
	maxBlockedSignals = 10
	// blockedAfter keeps refusals that heal by themselves at once out of the history.
	blockedAfter = 2 * time.Second
	// signalEvery is the shortest time between two signals of one drain.
	signalEvery = 5 * time.Second
)

// reporter tells the world how a drain goes: by heartbeat, and for what blocks it a bounded number of times by signal
// to the workflow, since heartbeat details never reach workflow code.
type reporter struct {
	temporal client.Client
	signal   string
	// pulse carries the progress; nil carries none.
	pulse *pulse
	// metrics shows the blockers of a node; nil does not.
	metrics *DrainMetrics
	node    string

	sent     int
	sentSet  string
	lastSent time.Time
	// last is the progress reported last.
	last api.DrainProgress
}

func (r *reporter) report(ctx context.Context, p api.DrainProgress) {
	r.last = p
	r.metrics.blocked(r.node, p.Reasons)
	r.pulse.show(ctx, p)
	set := blockedSet(p, time.Now())
	if set == r.sentSet || r.sent >= maxBlockedSignals || time.Since(r.lastSent) < signalEvery {
		return
	}
	execution := activity.GetInfo(ctx).WorkflowExecution
	if err := r.temporal.SignalWorkflow(ctx, execution.ID, execution.RunID, r.signal, p); err != nil {
		activity.GetLogger(ctx).Warn("blockers not signalled", "error", err)
		return
	}
	r.sent, r.sentSet, r.lastSent = r.sent+1, set, time.Now()
}

// blockedSet names the blockers that have lasted, so that a changed set can be told from the same one.
func blockedSet(p api.DrainProgress, now time.Time) string {
	var set strings.Builder
	for _, b := range p.Blockers {
		if now.Sub(b.Since) >= blockedAfter {
			set.WriteString(b.Pod + "=" + b.Reason + ";")
		}
	}
	return set.String()
}
