package activities

import (
	"context"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
)

// DrainProgress is how far a drain, or a wait for pods, has come: the heartbeat details of the activity, and in the
// status of a maintenance the last that is known.
type DrainProgress struct {
	At time.Time `json:"at"`
	// Total counts the pods the drain was about so far, Evicted those it evicted, Remaining those still there.
	Total     int `json:"total"`
	Evicted   int `json:"evicted"`
	Remaining int `json:"remaining"`
	// Terminating counts the remaining pods that are on their way out.
	Terminating int `json:"terminating,omitempty"`
	// Skipped counts pods that stay: those of DaemonSets, static pods, and pods that were not selected.
	Skipped  int       `json:"skipped,omitempty"`
	Blockers []Blocker `json:"blockers,omitempty"`
	// MoreBlockers counts the blockers beyond those listed.
	MoreBlockers int `json:"moreBlockers,omitempty"`
}

// Blocker is a pod that keeps a node from being empty, and why.
type Blocker struct {
	Pod string `json:"pod"`
	// Reason is one word for programs, Message says what would unblock it.
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Budget  string    `json:"budget,omitempty"`
	Since   time.Time `json:"since"`
}

const (
	// maxBlockers bounds the list in heartbeats and signals: a count and the first names.
	maxBlockers = 10
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

	sent     int
	sentSet  string
	lastSent time.Time
}

func (r *reporter) report(ctx context.Context, p DrainProgress) {
	activity.RecordHeartbeat(ctx, p)
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
func blockedSet(p DrainProgress, now time.Time) string {
	var set strings.Builder
	for _, b := range p.Blockers {
		if now.Sub(b.Since) >= blockedAfter {
			set.WriteString(b.Pod + "=" + b.Reason + ";")
		}
	}
	return set.String()
}
