package drain

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/k8s"
)

// bindsWithin is how long after the cordon a pod may land on the node that the scheduler had chosen for it before.
const bindsWithin = 3 * time.Second

// bindings knows whether a pod may still be on its way to the node: a scheduler binds a pod some time after it has chosen
// the node, and looks at no cordon in between. Until it is bound, such a pod is one without a node.
type bindings struct {
	node *heldnode.View
	// until is when the last of them has landed.
	until time.Time
	// confirmed: a list that was read after that shows no pod that the watch did not show.
	confirmed bool
}

// bindingsBefore looks for pods without a node. The first copy of the node's pods is to be read after that: where there are
// none, it shows all pods that will ever land.
func (d *Activities) bindingsBefore(ctx context.Context, cordoned time.Time) (*bindings, error) {
	unbound, err := d.Sources.Unbound.Follow(ctx, func(*corev1.Pod, bool) bool { return false })
	if err != nil {
		return nil, err
	}
	if err := unbound.Synced(ctx); err != nil {
		return nil, err
	}
	b := &bindings{confirmed: true}
	for _, pod := range unbound.List() {
		// A pod that was created after the cordon is bound elsewhere. Its time is in whole seconds, by another clock.
		if pod.CreationTimestamp.Time.Before(cordoned.Add(time.Second)) {
			b.confirmed = false
		}
	}
	// Whatever the clocks say, it is no longer than from now.
	now := time.Now()
	if b.until = cordoned.Add(bindsWithin); b.until.After(now.Add(bindsWithin)) {
		b.until = now.Add(bindsWithin)
	}
	return b, nil
}

// isOver reports whether a node that looks empty is, and else when to look again.
func (b *bindings) isOver(ctx context.Context, d *Activities) (over bool, again time.Duration, err error) {
	if b.confirmed {
		return true, 0, nil
	}
	if left := time.Until(b.until); left > 0 {
		return false, left, nil
	}
	pods, err := k8s.PodsOn(ctx, d.Client, b.node.Name)
	if err != nil {
		return false, 0, err
	}
	for _, pod := range pods {
		if known, ok := b.node.Pods.Get(k8s.PodName(pod)); !ok || known.UID != pod.UID {
			return false, bindsLag, nil
		}
	}
	b.confirmed = true
	return false, 0, nil // what the watch shows by now is to be looked at
}

// bindsLag is how soon the node is read again where the watch lags behind.
const bindsLag = 200 * time.Millisecond
