package profile

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	rules "drydock.dev/drydock/rules/profile"
)

// failing is a check of a profile that has begun to fail on a node.
type failing struct {
	Ref
	// since is when the profile came into its state.
	since           time.Time
	instance, error string
}

// beginToFail returns the checks that fail, and did not the last time.
func beginToFail(all []rules.Evaluation, before map[string]rules.History) []failing {
	var begun []failing
	for _, one := range all {
		for _, p := range one.Profiles {
			for _, o := range p.Failing() {
				if !before[one.Node].Fails(p.Profile, o.Instance) {
					begun = append(begun, failing{Ref{p.Profile, one.Node}, p.Since, o.Instance, o.Error})
				}
			}
		}
	}
	return begun
}

// complainOf bounds the Events about checks that one evaluation records: what all nodes ask for, as a Prometheus server, fails for
// all of them at once.
const complainOf = 20

// complain records on nodes which checks have begun to fail, once for each stay in a state.
func (e *evaluator) complain(ctx context.Context, nodes map[string]*corev1.Node, begun []failing) {
	if len(begun) == 0 {
		return
	}
	first := begun[0]
	activity.GetLogger(ctx).Warn("checks of profiles fail: their transitions wait",
		"checks", len(begun), "node", first.Node, "profile", first.Profile, "check", first.instance, "error", first.error)
	for _, f := range begun[:min(len(begun), complainOf)] {
		e.Events.Record(ctx, f.Node, nodes[f.Node].UID, nodeevent.Event{
			Reason: api.EventProfileFailed, Warning: true, Key: fmt.Sprintf("check/%s/%s/%d", f.Profile, f.instance, f.since.UnixNano()),
			Message: fmt.Sprintf("At least one check failed for profile %s: %s: %s", f.Profile, f.instance, f.error),
		})
	}
}
