package drain

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/failure"
)

// PodInput names a pod, "namespace/name", and the node that it is to be on.
type PodInput struct {
	Node string `json:"node"`
	Pod  string `json:"pod"`
}

// About implements caller.Input.
func (in PodInput) About() caller.Subject { return caller.Subject{Node: in.Node} }

// PodFound says why there is no such pod; empty if there is.
type PodFound struct {
	Missing string `json:"missing,omitempty"`
}

// FindPod looks whether a pod is on a node. Errors: MissingPermission.
func (d *Activities) FindPod(ctx context.Context, in PodInput) (PodFound, error) {
	namespace, name, _ := strings.Cut(in.Pod, "/")
	// To list is what the worker may do with pods anyway.
	pods, err := d.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
	})
	if err != nil {
		return PodFound{}, failure.Translate(ctx, d.Client, fmt.Errorf("looking for pod %s: %w", in.Pod, err))
	}
	for _, pod := range pods.Items {
		switch {
		case pod.Name != name:
		case pod.Spec.NodeName == in.Node:
			return PodFound{}, nil
		case pod.Spec.NodeName == "":
			return PodFound{Missing: fmt.Sprintf("pod %s is on no node yet", in.Pod)}, nil
		default:
			return PodFound{Missing: fmt.Sprintf("pod %s is on node %s, and not on %s", in.Pod, pod.Spec.NodeName, in.Node)}, nil
		}
	}
	return PodFound{Missing: "there is no pod " + in.Pod}, nil
}
