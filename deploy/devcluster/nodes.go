package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

const controlPlaneRole = "node-role.kubernetes.io/control-plane"

// requestsAtOnce bounds parallel writes: more only queue up in the API server.
const requestsAtOnce = 16

// nodeSpec describes the nodes a cluster is to have.
type nodeSpec struct {
	workers, controlPlanes int
	prefix                 string
	labels                 map[string]string
	zones                  int
	images                 int
}

// build returns the nodes in a fixed order. The width of the number does not
// depend on how many there are, so that a cluster can grow between runs.
func (s nodeSpec) build() []*corev1.Node {
	var nodes []*corev1.Node
	for i := range s.workers {
		node := s.node(fmt.Sprintf("%s%02d", s.prefix, i+1), i, 16)
		maps.Copy(node.Labels, s.labels)
		nodes = append(nodes, node)
	}
	for i := range s.controlPlanes {
		node := s.node(fmt.Sprintf("control-plane-%02d", i+1), i, 31)
		node.Labels[controlPlaneRole] = ""
		node.Spec.Taints = []corev1.Taint{{Key: controlPlaneRole, Effect: corev1.TaintEffectNoSchedule}}
		nodes = append(nodes, node)
	}
	return nodes
}

// node makes one node, with an address in 172.<network>.0.0/16 and beyond.
func (s nodeSpec) node(name string, index, network int) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity.DeepCopy(),
			Images:      images(s.images),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeAddress(index, network)},
				{Type: corev1.NodeHostName, Address: name},
			},
		},
	}
	if s.zones > 0 {
		node.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("zone-%c", 'a'+index%s.zones)
	}
	return node
}

func nodeAddress(index, network int) string {
	number := index + 1
	return fmt.Sprintf("172.%d.%d.%d", network+number>>16, number>>8&0xff, number&0xff)
}

// images pads a node object to the size that real ones have.
func images(count int) []corev1.ContainerImage {
	var list []corev1.ContainerImage
	for i := range count {
		name := fmt.Sprintf("registry.example/devcluster/image-%03d", i+1)
		list = append(list, corev1.ContainerImage{
			Names:     []string{fmt.Sprintf("%s@sha256:%064x", name, i+1), name + ":v1"},
			SizeBytes: int64(i+1) << 20,
		})
	}
	return list
}

// createNodes creates those that do not exist yet.
func createNodes(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(requestsAtOnce)
	for _, node := range nodes {
		group.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// waitForNodes waits until all nodes take pods. Those that a test of an earlier
// run left down on purpose are not waited for.
func waitForNodes(ctx context.Context, lister corelisters.NodeLister, nodes []*corev1.Node) error {
	return poll(ctx, "nodes", 50*time.Millisecond, func(context.Context) error {
		missing := 0
		for _, wanted := range nodes {
			node, err := lister.Get(wanted.Name)
			if err != nil || !takesPods(node) && node.Labels[notReadyLabel] == "" {
				missing++
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d of %d nodes are not ready", missing, len(nodes))
		}
		return nil
	})
}

// takesPods is true for a Ready node that the node lifecycle controller has
// also noticed to be so: every node starts with a taint until then.
func takesPods(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	return nodeReady(node) == corev1.ConditionTrue
}

// nodeReady is the status of the Ready condition, empty for a node without one.
func nodeReady(node *corev1.Node) corev1.ConditionStatus {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}
	return ""
}
