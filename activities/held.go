package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock/k8s"
)

// heldNode is the live view of a node that a maintenance holds, and of the pods on it.
type heldNode struct {
	name       string
	uid        types.UID
	workflowID string
	runID      string

	pulse *pulse
	node  *k8s.Watch[*corev1.Node]
	pods  *k8s.Watch[*corev1.Pod]
}

func watchHeld(ctx context.Context, client kubernetes.Interface, pulse *pulse, name, uid, runID string) (*heldNode, error) {
	h := &heldNode{
		name: name, uid: types.UID(uid), runID: runID, pulse: pulse,
		workflowID: activity.GetInfo(ctx).WorkflowExecution.ID,
	}
	pods, err := k8s.NewWatch(ctx, client.CoreV1().RESTClient(), &corev1.Pod{}, k8s.WatchOptions{
		Resource: "pods", Fields: fields.OneTermEqualSelector("spec.nodeName", name),
	})
	if err != nil {
		return nil, err
	}
	h.pods = pods
	if h.node, err = watchNode(ctx, client, name); err != nil {
		return nil, err
	}
	return h, h.pods.Synced(ctx, "pods of node "+name)
}

// fence refuses every further step once the node is not this maintenance's: gone, replaced, or without its mark; or once
// another attempt may have taken over.
func (h *heldNode) fence() error {
	if err := errors.Join(h.pulse.alive(), h.node.Err(), h.pods.Err()); err != nil {
		return err
	}
	node, ok := h.node.Get(h.name)
	switch {
	case !ok:
		return fmt.Errorf("node %s: %w", h.name, k8s.ErrNodeGone)
	case node.UID != h.uid:
		return fmt.Errorf("node %s: %w", h.name, k8s.ErrNodeReplaced)
	}
	mark, err := k8s.MarkOf(node)
	if err != nil {
		return err
	}
	if !mark.HeldBy(h.workflowID, h.runID) {
		return fmt.Errorf("node %s: %w", h.name, k8s.ErrNotHolder)
	}
	return nil
}

// podsByName are the pods on the node in a fixed order.
func (h *heldNode) podsByName() []*corev1.Pod {
	pods := h.pods.List()
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(podName(a), podName(b)) })
	return pods
}

// current finds the pod again just before it is acted upon: the very same one, and not on its way out, unless that is
// to be hurried.
func (h *heldNode) current(pod *corev1.Pod, evenLeaving bool) bool {
	now, ok := h.pods.Get(podName(pod))
	return ok && now.UID == pod.UID && (now.DeletionTimestamp == nil || evenLeaving)
}

// ready tells whether the node's kubelet answers.
func (h *heldNode) ready() bool {
	node, ok := h.node.Get(h.name)
	return ok && k8s.IsReady(node)
}

func podName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
