package execution

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock.dev/drydock/k8s"
)

// maxSkew is how far the clock of another worker may be ahead.
const maxSkew = 10 * time.Minute

// GivenBack is what a node is to keep of its release by the calling activity.
func (n Namespace) GivenBack(ctx context.Context, holder k8s.Caller, reason string) *k8s.GivenBack {
	info := activity.GetInfo(ctx)
	return &k8s.GivenBack{
		WorkflowID: holder.WorkflowID, RunID: holder.RunID, Namespace: n.ID, At: time.Now().UTC().Truncate(time.Second), Reason: reason,
		KeptSeconds: int64(n.Retention / time.Second),
		By:          info.WorkflowExecution.ID, Run: info.WorkflowExecution.RunID, Activity: info.ActivityID,
	}
}

// MustKnow reports whether the namespace has to have the history of a release still. It was kept for as long as the namespace said when
// its workflow ended, or says since. What is said of a time to come is no release.
func (n Namespace) MustKnow(g k8s.GivenBack) bool {
	age := time.Since(g.At)
	return age > -maxSkew && age < n.Retention && age < time.Duration(min(g.KeptSeconds, int64(n.Retention/time.Second)))*time.Second
}
