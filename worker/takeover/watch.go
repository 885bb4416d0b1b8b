package takeover

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"drydock.dev/drydock/workflows/call"
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

// mayBegin reports whether an attempt of an activity may be begun anew: one of a watch that a worker carries out. An attempt that is being
// cancelled or paused is left alone, and so is the last attempt of an activity that may not be tried again, which would end it.
func (w watches) mayBegin(workflowType string, a *workflowpb.PendingActivityInfo) bool {
	last := a.GetMaximumAttempts() > 0 && a.GetAttempt() >= a.GetMaximumAttempts()
	return slices.Contains(w.names[workflowType], a.GetActivityType().GetName()) &&
		a.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED && !a.GetPaused() && !last
}

// suspicion is which workers may have died.
type suspicion interface {
	// covers reports whether the worker of an attempt may have died.
	covers(a *workflowpb.PendingActivityInfo) bool
	// why is the reason that the server shows for the end of an attempt.
	why(a *workflowpb.PendingActivityInfo) string
}

// newcomer is a worker that starts: whatever another worker began before may be a dead one's.
type newcomer struct {
	identity string
	started  time.Time
}

func (n newcomer) covers(a *workflowpb.PendingActivityInfo) bool {
	return a.GetLastWorkerIdentity() != n.identity &&
		a.GetLastStartedTime() != nil && !a.GetLastStartedTime().AsTime().After(n.started.Add(clockSkew))
}

func (n newcomer) why(a *workflowpb.PendingActivityInfo) string {
	return fmt.Sprintf("worker %s has started, and that of this attempt, %s, may have died", n.identity, a.GetLastWorkerIdentity())
}

// silent are the identities of workers that do not poll any more.
type silent []string

func (s silent) covers(a *workflowpb.PendingActivityInfo) bool {
	return slices.Contains(s, a.GetLastWorkerIdentity())
}

func (s silent) why(a *workflowpb.PendingActivityInfo) string {
	return fmt.Sprintf("worker %s does not poll any more", a.GetLastWorkerIdentity())
}
