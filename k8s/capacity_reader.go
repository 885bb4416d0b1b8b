package k8s

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/nodestate"
)

// CapacityReader finds out what is free on the nodes of a cluster. Those who ask at the same time share one reading.
type CapacityReader struct {
	client  kube.Interface
	waiting atomic.Int32

	mu    sync.Mutex
	began time.Time
	last  []NodeCapacity
}

// NewCapacityReader prepares to read; nothing is asked before the first.
func NewCapacityReader(client kube.Interface) *CapacityReader {
	return &CapacityReader{client: client}
}

// Read returns the nodes that are ready and schedulable, with what is free on them. It is never older than the call.
// What it returns is shared and must not be changed.
func (s *CapacityReader) Read(ctx context.Context) ([]NodeCapacity, error) {
	asked := time.Now()
	s.waiting.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	// The last caller drops the reading: of a large cluster it is megabytes.
	defer func() {
		if s.waiting.Add(-1) == 0 {
			s.last = nil
		}
	}()
	if s.last != nil && s.began.After(asked) {
		return s.last, nil
	}
	began := time.Now()
	nodes, err := readCapacity(ctx, s.client)
	if err != nil {
		return nil, err
	}
	s.began, s.last = began, nodes
	return nodes, nil
}

func readCapacity(ctx context.Context, client kube.Interface) ([]NodeCapacity, error) {
	nodes := []NodeCapacity{}
	at := map[string]int{}
	err := eachPage(metav1.ListOptions{}, func(o metav1.ListOptions) (string, error) {
		list, err := client.CoreV1().Nodes().List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("listing nodes: %w", err)
		}
		for i := range list.Items {
			if n := &list.Items[i]; !nodestate.IsUnavailable(n) {
				at[n.Name] = len(nodes)
				nodes = append(nodes, NodeCapacity{Node: forScheduling(n), Free: amountsOf(n.Status.Allocatable)})
			}
		}
		return list.Continue, nil
	})
	if err != nil {
		return nil, err
	}
	running := fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed").String()
	err = EachPod(ctx, client, running, func(p *corev1.Pod) {
		if node, known := at[p.Spec.NodeName]; known {
			nodes[node].Free.take(requestsOf(p))
		}
	})
	return nodes, err
}

func forScheduling(node *corev1.Node) *corev1.Node {
	small := &corev1.Node{}
	small.Name, small.Labels, small.Spec.Taints = node.Name, node.Labels, node.Spec.Taints
	small.Status.Allocatable = node.Status.Allocatable
	return small
}

// Without leaves nodes out.
func Without(nodes []NodeCapacity, names ...string) []NodeCapacity {
	return slices.DeleteFunc(slices.Clone(nodes), func(n NodeCapacity) bool { return slices.Contains(names, n.Node.Name) })
}
