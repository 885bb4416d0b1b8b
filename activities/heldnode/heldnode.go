// Package heldnode is the live view of a node that a maintenance holds, and the fence around all that is done to it.
package heldnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock/k8s"
)

// View is the live view of a node that a maintenance holds, and of the pods on it.
type View struct {
	Name       string
	uid        types.UID
	WorkflowID string
	RunID      string

	heartbeats interface{ Alive() error }
	Node       *k8s.Watch[*corev1.Node]
	Pods       *k8s.Watch[*corev1.Pod]
}

// Options say which node is held, and by whom.
type Options struct {
	Name              string
	UID               string
	WorkflowID, RunID string
	// Heartbeats tell whether this attempt may still act; nil always may.
	Heartbeats interface{ Alive() error }
}

// Watch begins to watch a node and its pods, and returns once both are known.
func Watch(ctx context.Context, client kubernetes.Interface, o Options) (*View, error) {
	v := &View{Name: o.Name, uid: types.UID(o.UID), WorkflowID: o.WorkflowID, RunID: o.RunID, heartbeats: o.Heartbeats}
	pods, err := k8s.NewWatch(ctx, client.CoreV1().RESTClient(), &corev1.Pod{}, k8s.WatchOptions{
		Resource: "pods", Fields: fields.OneTermEqualSelector("spec.nodeName", o.Name),
	})
	if err != nil {
		return nil, err
	}
	v.Pods = pods
	if v.Node, err = k8s.WatchNode(ctx, client, o.Name); err != nil {
		return nil, err
	}
	return v, v.Pods.Synced(ctx, "pods of node "+o.Name)
}

// Fence refuses every further step once the node is not this maintenance's: gone, replaced, or without its mark; or once
// another attempt may have taken over.
func (v *View) Fence() error {
	var silent error
	if v.heartbeats != nil {
		silent = v.heartbeats.Alive()
	}
	if err := errors.Join(silent, v.Node.Err(), v.Pods.Err()); err != nil {
		return err
	}
	node, ok := v.Node.Get(v.Name)
	switch {
	case !ok:
		return fmt.Errorf("node %s: %w", v.Name, k8s.ErrNodeGone)
	case node.UID != v.uid:
		return fmt.Errorf("node %s: %w", v.Name, k8s.ErrNodeReplaced)
	}
	mark, err := k8s.MarkOf(node)
	if err != nil {
		return err
	}
	if !mark.HeldBy(v.WorkflowID, v.RunID) {
		return fmt.Errorf("node %s: %w", v.Name, k8s.ErrNotHolder)
	}
	return nil
}

// PodsByName are the pods on the node in a fixed order.
func (v *View) PodsByName() []*corev1.Pod {
	pods := v.Pods.List()
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(k8s.PodName(a), k8s.PodName(b)) })
	return pods
}

// Current finds the pod again just before it is acted upon: the very same one, and not on its way out, unless that is
// to be hurried.
func (v *View) Current(pod *corev1.Pod, evenLeaving bool) bool {
	now, ok := v.Pods.Get(k8s.PodName(pod))
	return ok && now.UID == pod.UID && (now.DeletionTimestamp == nil || evenLeaving)
}

// Ready tells whether the node's kubelet answers.
func (v *View) Ready() bool {
	node, ok := v.Node.Get(v.Name)
	return ok && k8s.IsReady(node)
}
