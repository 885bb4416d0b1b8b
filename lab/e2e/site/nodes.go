package site

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/nodestate"
)

// ControlPlaneLabel makes a node one of the control plane.
const ControlPlaneLabel = "node-role.kubernetes.io/control-plane"

// Node is a node as it is now.
func (s *Site) Node(name string) *corev1.Node {
	s.Helper()
	n, err := s.Kube.CoreV1().Nodes().Get(s.Ctx, name, metav1.GetOptions{})
	s.NoError(err)
	return n
}

// Nodes are all nodes as they are now.
func (s *Site) Nodes() []corev1.Node {
	s.Helper()
	list, err := s.Kube.CoreV1().Nodes().List(s.Ctx, metav1.ListOptions{})
	s.NoError(err)
	return list.Items
}

// PatchNode changes a node by a merge patch.
func (s *Site) PatchNode(name, patch string) {
	s.Helper()
	if err := world.PatchNode(s.Ctx, s.Kube, name, "%s", patch); err != nil {
		s.Error(err)
	}
}

// Schedulable cordons and uncordons a node as a person would.
func (s *Site) Schedulable(name string, is bool) {
	s.Helper()
	s.PatchNode(name, fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, !is))
}

// Ready takes a node down and up again, and waits until it is so.
func (s *Site) Ready(name string, is bool) {
	s.Helper()
	s.turn(name, is, `"true"`)
}

// Silent has a node's kubelet answer no more, until it is ready again.
func (s *Site) Silent(name string) {
	s.Helper()
	s.turn(name, false, `"unknown"`)
}

func (s *Site) turn(name string, is bool, label string) {
	s.Helper()
	if is {
		label = "null"
	}
	s.PatchNode(name, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, world.NotReadyLabel, label))
	s.Eventually(fmt.Sprintf("node %s has Ready=%t", name, is), func() error {
		if nodestate.IsReady(s.Node(name)) != is {
			return errors.New("not yet")
		}
		return nil
	})
}

// Imprint is all of a node that a maintenance could leave behind.
func (s *Site) Imprint(name string) string {
	s.Helper()
	return witness.Imprint(s.Node(name))
}

// Imprints are those of all nodes.
func (s *Site) Imprints() map[string]string {
	s.Helper()
	all := map[string]string{}
	for _, n := range s.Nodes() {
		all[n.Name] = witness.Imprint(&n)
	}
	return all
}

// Back waits until a node is as it was before.
func (s *Site) Back(name, before string) {
	s.Helper()
	s.Eventually("node "+name+" is as it was", func() error {
		if after := s.Imprint(name); after != before {
			return errors.New("before " + before + ", after " + after)
		}
		return nil
	})
}

// MustBeHeld checks that a node is held by a run and cordoned.
func (s *Site) MustBeHeld(name, run string) {
	s.Helper()
	n := s.Node(name)
	mark, err := k8s.MarkOf(n)
	held := slices.ContainsFunc(mark.Holders, func(h k8s.Holder) bool { return h.RunID == run })
	if err != nil || !held || !n.Spec.Unschedulable {
		s.Fatalf("node %s: want it cordoned and held by %s; unschedulable %t, annotation %s, %v",
			name, run, n.Spec.Unschedulable, n.Annotations[api.HoldersAnnotation], err)
	}
}

// MustShow checks that a node is held by a run, and waits until its label shows the phase, which it follows.
func (s *Site) MustShow(name, run string, phase api.Phase) {
	s.Helper()
	s.MustBeHeld(name, run)
	s.Eventually(fmt.Sprintf("node %s shows %s", name, phase), func() error {
		if label := s.Node(name).Labels[api.PhaseLabel]; label != string(phase) {
			return fmt.Errorf("its label says %q", label)
		}
		return nil
	})
}

// MustBeFree checks that Drydock has nothing to do with a node.
func (s *Site) MustBeFree(name string) {
	s.Helper()
	if n := s.Node(name); n.Annotations[api.HoldersAnnotation] != "" || n.Spec.Unschedulable {
		s.Fatalf("node %s is not free: unschedulable %t, annotations %v", name, n.Spec.Unschedulable, n.Annotations)
	}
}

// DeleteNode deletes a node and returns what its replacement begins as: the same but for what a running node has
// been given. The test's end brings it back if the test does not.
func (s *Site) DeleteNode(name string) *corev1.Node {
	s.Helper()
	old := s.Node(name)
	fresh := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status:     corev1.NodeStatus{Capacity: old.Status.Capacity, Allocatable: old.Status.Allocatable, Addresses: old.Status.Addresses},
	}
	maps.Copy(fresh.Labels, old.Labels)
	delete(fresh.Labels, api.PhaseLabel)
	s.NoError(s.Kube.CoreV1().Nodes().Delete(s.Ctx, name, metav1.DeleteOptions{}))
	s.Cleanup(func() { s.CreateNode(fresh) })
	return fresh
}

// CreateNode registers a node, unless it is there, and waits until it is Ready and takes pods.
func (s *Site) CreateNode(n *corev1.Node) {
	s.Helper()
	nodes := s.Kube.CoreV1().Nodes()
	if _, err := nodes.Get(s.Ctx, n.Name, metav1.GetOptions{}); err != nil {
		_, err := nodes.Create(s.Ctx, n, metav1.CreateOptions{})
		s.NoError(err)
	}
	s.Eventually("node "+n.Name+" is Ready", func() error {
		if now := s.Node(n.Name); !nodestate.IsReady(now) || HasTaint(now, corev1.TaintNodeNotReady) {
			return fmt.Errorf("taints %v", now.Spec.Taints)
		}
		return nil
	})
}

// HasTaint reports whether a node has a taint of a key.
func HasTaint(n *corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// NodeEvents are the Kubernetes Events about a node with a reason; those of earlier tests are gone.
func (s *Site) NodeEvents(name, reason string) []corev1.Event {
	s.Helper()
	list, err := s.Kube.CoreV1().Events(metav1.NamespaceDefault).List(s.Ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Node,involvedObject.name=" + name + ",reason=" + reason,
	})
	s.NoError(err)
	return slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return !strings.Contains(e.ReportingController, "drydock") })
}
