// Package heldnode is the live view of a node that a maintenance holds, and the fence around all that is done to it.
package heldnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/nodestate"
)

// View is the live view of a node that a maintenance holds, and of the pods on it.
type View struct {
	Name string
	uid  types.UID
	// Caller is on whose behalf the node is watched.
	k8s.Caller

	heartbeats interface{ Alive() error }
	nodes      *k8s.Nodes
	// Node is the shared watch of all nodes, which reports changes of this one.
	Node *k8s.View
	Pods *k8s.Watch[*corev1.Pod]
}

// Options say which node is held, and by whom.
type Options struct {
	Name string
	UID  string
	// Caller is who holds it.
	Caller k8s.Caller
	// Heartbeats tell whether this attempt may still act; nil always may.
	Heartbeats interface{ Alive() error }
}

// markLag is how long a mark that was just set may be missing in the shared watch, before the API server itself is asked.
const markLag = 2 * time.Second

// Watch begins to watch a node and its pods, and returns once both are known and the caller's run acts for the
// maintenance that holds the node.
func (a Acting) Watch(ctx context.Context, o Options) (*View, error) {
	v := &View{Name: o.Name, uid: types.UID(o.UID), Caller: o.Caller, heartbeats: o.Heartbeats, nodes: a.Nodes}
	var err error
	if v.Pods, err = k8s.WatchPodsOn(ctx, a.Client, o.Name); err != nil {
		return nil, err
	}
	if v.Node, err = a.Nodes.Follow(ctx, func(n *corev1.Node, _ bool) bool { return n.Name == o.Name }); err != nil {
		return nil, err
	}
	if err := v.Node.Synced(ctx); err != nil {
		return nil, err
	}
	if err := v.Pods.Synced(ctx, "pods of node "+o.Name); err != nil {
		return nil, err
	}
	if err := v.awaitMark(ctx, a.Client); err != nil {
		return nil, err
	}
	return v, a.takeUp(ctx, v)
}

// awaitMark waits until the shared watch has seen what was done to the node before the call, however long its stream hangs.
// Only the API server can say that a mark is missing: the next write finds that.
func (v *View) awaitMark(ctx context.Context, client kube.Interface) error {
	late := time.NewTicker(markLag)
	defer late.Stop()
	for {
		if err := v.Fence(); !isNotHeld(err) {
			return nil
		}
		select {
		case <-v.Node.Changed:
		case <-late.C:
			node, err := client.CoreV1().Nodes().Get(ctx, v.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && isNotHeld(v.fenceOf(node)) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isNotHeld reports whether a node is not, or not yet, the caller's.
func isNotHeld(err error) bool {
	return errors.Is(err, k8s.ErrNotHolder) || errors.Is(err, k8s.ErrNodeGone) || errors.Is(err, k8s.ErrNodeReplaced)
}

// takeUp takes the node over from an earlier run, and waits until the watch shows that.
func (a Acting) takeUp(ctx context.Context, v *View) error {
	if err := v.Fence(); !errors.Is(err, k8s.ErrOtherRun) {
		return nil // the next write finds everything else
	}
	if err := a.TakeOver(ctx, v.Name, v.Caller); err != nil {
		return err
	}
	for errors.Is(v.Fence(), k8s.ErrOtherRun) {
		select {
		case <-v.Node.Changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
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
	if !ok {
		return fmt.Errorf("node %s: %w", v.Name, k8s.ErrNodeGone)
	}
	return v.fenceOf(node)
}

// fenceOf is the fence of what was seen of the node.
func (v *View) fenceOf(node *corev1.Node) error {
	if node.UID != v.uid {
		return fmt.Errorf("node %s: %w", v.Name, k8s.ErrNodeReplaced)
	}
	mark, err := v.nodes.MarkOf(node)
	if err != nil {
		return err
	}
	if err := mark.Allows(v.Caller); err != nil {
		return fmt.Errorf("node %s: %w", v.Name, err)
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

// Silent reports whether the node's kubelet does not answer, or that there is no node.
func (v *View) Silent() bool {
	node, ok := v.Node.Get(v.Name)
	return !ok || nodestate.IsSilent(node)
}
