package activities

import (
	"context"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"drydock/workflows/drainplan"
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
	// Direct counts the pods for which nobody answered an EvictionRequest (drain.via) and that are evicted directly,
	// DirectWhy says why the last of them is.
	Direct    int    `json:"direct,omitempty"`
	DirectWhy string `json:"directWhy,omitempty"`
	// Pods are the first of those that were told to end, MorePods counts the rest.
	Pods     []EndedPod `json:"pods,omitempty"`
	MorePods int        `json:"morePods,omitempty"`
	// Skipped counts pods that stay: those of DaemonSets, static pods, and pods that were not selected.
	Skipped int `json:"skipped,omitempty"`
	// Stays are the first of the pods that a tier is about and that stay all the same, and why.
	Stays []Blocker `json:"stays,omitempty"`
	// Tier and Tiers say which tier of how many is drained, Targets which pods that are (KEP-4212, drainTargets).
	Tier    int               `json:"tier,omitempty"`
	Tiers   int               `json:"tiers,omitempty"`
	Targets []drainplan.Entry `json:"targets,omitempty"`
	// Blockers are the first of those that keep the node from being empty; Reasons counts all of them by reason.
	Blockers []Blocker      `json:"blockers,omitempty"`
	Reasons  map[string]int `json:"reasons,omitempty"`
	// MoreBlockers counts the blockers beyond those listed.
	MoreBlockers int `json:"moreBlockers,omitempty"`
}

// EndedPod is a pod, "namespace/name", that a drain told to end. How is evicted, deleted or killed.
type EndedPod struct {
	Pod string    `json:"pod"`
	At  time.Time `json:"at"`
	How string    `json:"how"`
}

// Blocker is a pod that keeps a node from being empty, and why.
type Blocker struct {
	Pod string `json:"pod"`
	// Reason is one word for programs, Message says what would unblock it.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Budget is the first budget that refuses, Budgets are all that select the pod.
	Budget  string        `json:"budget,omitempty"`
	Budgets []BudgetState `json:"budgets,omitempty"`
	// Owner is who re-creates the pod, "Kind name"; empty for a bare pod.
	Owner string    `json:"owner,omitempty"`
	Since time.Time `json:"since"`
}

// BudgetState are the numbers of a PodDisruptionBudget.
type BudgetState struct {
	Name    string `json:"name"`
	Allowed int32  `json:"allowed"`
	Healthy int32  `json:"healthy"`
	Desired int32  `json:"desired"`
	Pods    int32  `json:"pods"`
	// Impossible: no disruption can ever be allowed as the budget is written.
	Impossible bool `json:"impossible,omitempty"`
}

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
	last DrainProgress
}

func (r *reporter) report(ctx context.Context, p DrainProgress) {
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
func blockedSet(p DrainProgress, now time.Time) string {
	var set strings.Builder
	for _, b := range p.Blockers {
		if now.Sub(b.Since) >= blockedAfter {
			set.WriteString(b.Pod + "=" + b.Reason + ";")
		}
	}
	return set.String()
}
