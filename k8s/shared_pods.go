package k8s

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/k8s/kube"
)

// NodePods are the pods of single nodes, each node's watched once for all who follow it. Of a pod only its owner is kept, and since when it
// is there, is kept.
type NodePods struct {
	client kube.Interface

	mu    sync.Mutex
	nodes map[string]*Shared[*corev1.Pod]
}

// NewNodePods prepares the watches; nothing runs before somebody follows a node's.
func NewNodePods(client kube.Interface) *NodePods {
	return &NodePods{client: client, nodes: map[string]*Shared[*corev1.Pod]{}}
}

// Follow joins the watch of the pods on a node for as long as ctx lives.
func (n *NodePods) Follow(ctx context.Context, node string, concerns func(*corev1.Pod, bool) bool) (*SharedView[*corev1.Pod], error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, shared := range n.nodes {
		if name != node && !shared.IsRunning() {
			delete(n.nodes, name)
		}
	}
	if n.nodes[node] == nil {
		n.nodes[node] = share("pods of node "+node, func() rest.Interface { return n.client.CoreV1().RESTClient() }, &corev1.Pod{}, WatchOptions{
			Resource: "pods", Fields: fields.OneTermEqualSelector("spec.nodeName", node), Listed: true, Strip: stripArrived,
		})
	}
	return n.nodes[node].Follow(ctx, concerns)
}

// IsRunning reports whether the watch runs.
func (s *Shared[T]) IsRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live != nil
}

// stripArrived keeps of a pod what ArrivedAt looks at.
func stripArrived(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	small := pod.DeepCopy()
	small.ManagedFields, small.Spec = nil, corev1.PodSpec{NodeName: pod.Spec.NodeName}
	small.Status = corev1.PodStatus{Phase: pod.Status.Phase}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			small.Status.Conditions = []corev1.PodCondition{c}
		}
	}
	return small, nil
}
