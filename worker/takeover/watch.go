package takeover

import (
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"drydock/workflows/call"
)

// clockSkew is how far this worker's clock may be behind the server's. Where it is further behind, the latest watches of a dead
// worker are begun anew after their heartbeat timeouts.
const clockSkew = 5 * time.Second

// watches are the activities that watch.
type watches struct {
	// kinds are the types of the workflows that call them, the most urgent first.
	kinds []string
	// names are the names of the activities, by those types.
	names map[string][]string
}

func allWatches() watches {
	all := watches{names: map[string][]string{}}
	for _, w := range call.Watches() {
		if !slices.Contains(all.kinds, w.Workflow) {
			all.kinds = append(all.kinds, w.Workflow)
		}
		all.names[w.Workflow] = append(all.names[w.Workflow], w.ActivityType())
	}
	return all
}

// newcomer is the worker that starts.
type newcomer struct {
	identity string
	started  time.Time
}

// takes reports whether an attempt of an activity is to be begun anew: one of a watch that another worker began before this one
// started, whether that worker lives or not. An attempt that is being cancelled or paused is left alone, and so is the last attempt
// of an activity that may not be tried again, which would end it.
func (n newcomer) takes(all watches, workflowType string, a *workflowpb.PendingActivityInfo) bool {
	last := a.GetMaximumAttempts() > 0 && a.GetAttempt() >= a.GetMaximumAttempts()
	return slices.Contains(all.names[workflowType], a.GetActivityType().GetName()) &&
		a.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED && !a.GetPaused() && !last &&
		a.GetLastWorkerIdentity() != n.identity &&
		a.GetLastStartedTime() != nil && !a.GetLastStartedTime().AsTime().After(n.started.Add(clockSkew))
}
