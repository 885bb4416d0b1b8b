package drain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/k8s"
)

// elsewhereAgain is the time between two looks for a node that the worker's own pod could go to.
const elsewhereAgain = 5 * time.Second

// keepUntilLast leaves the pod of the worker that drains alone while another pod of its tier is still to be evicted: once
// it is evicted the drain is handed over, and where there is no other worker it rests until the pod's replacement runs.
func (found *observation) keepUntilLast(worker types.UID) {
	is := func(t target) bool { return t.UID == worker }
	keeps := func(t target) bool { return !is(t) && !k8s.IsFinished(t.Pod) }
	refuses := func(r refusedPod) bool { return !k8s.IsFinished(r.pod) }
	if slices.ContainsFunc(found.targets, keeps) || slices.ContainsFunc(found.refused, refuses) || len(found.awaited) > 0 {
		found.targets = slices.DeleteFunc(found.targets, is)
	}
}

// ownPod is the pod of the worker that drains, where it is on the node.
type ownPod struct {
	looked time.Time
	stays  bool
}

// stay takes the worker's own pod out of the targets where no other node takes it: evicted, it would run nowhere, and nobody
// would be left to give the node back.
func (o *ownPod) stay(ctx context.Context, r *run, found *observation) error {
	i := slices.IndexFunc(found.targets, func(t target) bool { return t.UID == r.Pod })
	if i < 0 {
		return nil
	}
	if time.Since(o.looked) > elsewhereAgain {
		elsewhere, err := k8s.HasElsewhere(ctx, r.Client, found.targets[i].Pod)
		if err != nil {
			return err
		}
		o.looked, o.stays = time.Now(), !elsewhere
	}
	if o.stays {
		pod := found.targets[i].Pod
		found.refused = append(found.refused, refusedPod{pod, k8s.Verdict{
			Class: k8s.Refuse, Reason: reasonOnlyWorker, Message: fmt.Sprintf("runs this drain, and no other node takes it: nobody would be left to give "+
				"the node back. Let it run elsewhere, or leave it on the node (drydock drain skip %s %s)", pod.Spec.NodeName, k8s.PodName(pod)),
		}})
		found.targets = slices.Delete(found.targets, i, i+1)
	}
	return nil
}
