package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
)

const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

func (s *site) node(name string) *corev1.Node {
	s.Helper()
	n, err := s.kube.CoreV1().Nodes().Get(s.ctx, name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *site) nodes() []corev1.Node {
	s.Helper()
	list, err := s.kube.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

func (s *site) patchNode(name, patch string) {
	s.Helper()
	_, err := s.kube.CoreV1().Nodes().Patch(s.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		s.Error(err)
	}
}

// schedulable cordons and uncordons a node as a person would.
func (s *site) schedulable(name string, is bool) {
	s.Helper()
	s.patchNode(name, fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, !is))
}

// ready takes a node down and up again, and waits until it is so.
func (s *site) ready(name string, is bool) {
	s.Helper()
	s.turn(name, is, `"true"`)
}

// silent has a node's kubelet answer no more, until it is ready again.
func (s *site) silent(name string) {
	s.Helper()
	s.turn(name, false, `"unknown"`)
}

func (s *site) turn(name string, is bool, label string) {
	s.Helper()
	if is {
		label = "null"
	}
	s.patchNode(name, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, world.NotReadyLabel, label))
	s.eventually(fmt.Sprintf("node %s has Ready=%t", name, is), func() error {
		if k8s.IsReady(s.node(name)) != is {
			return errors.New("not yet")
		}
		return nil
	})
}

// imprint is all of a node that a maintenance could leave behind.
func (s *site) imprint(name string) string {
	s.Helper()
	return witness.Imprint(s.node(name))
}

// imprints are those of all nodes.
func (s *site) imprints() map[string]string {
	s.Helper()
	all := map[string]string{}
	for _, n := range s.nodes() {
		all[n.Name] = witness.Imprint(&n)
	}
	return all
}

// back waits until a node is as it was before.
func (s *site) back(name, before string) {
	s.Helper()
	s.eventually("node "+name+" is as it was", func() error {
		if after := s.imprint(name); after != before {
			return errors.New("before " + before + ", after " + after)
		}
		return nil
	})
}

// mustBeHeld checks that a node is held by a run and cordoned.
func (s *site) mustBeHeld(name, run string) {
	s.Helper()
	n := s.node(name)
	mark, err := k8s.MarkOf(n)
	held := slices.ContainsFunc(mark.Holders, func(h k8s.Holder) bool { return h.RunID == run })
	if err != nil || !held || !n.Spec.Unschedulable {
		s.Fatalf("node %s: want it cordoned and held by %s; unschedulable %t, annotation %s, %v",
			name, run, n.Spec.Unschedulable, n.Annotations[api.HoldersAnnotation], err)
	}
}

// mustShow checks that a node is held by a run, and waits until its label shows the phase, which it follows.
func (s *site) mustShow(name, run string, phase api.Phase) {
	s.Helper()
	s.mustBeHeld(name, run)
	s.eventually(fmt.Sprintf("node %s shows %s", name, phase), func() error {
		if label := s.node(name).Labels[api.PhaseLabel]; label != string(phase) {
			return fmt.Errorf("its label says %q", label)
		}
		return nil
	})
}

// mustBeFree checks that Drydock has nothing to do with a node.
func (s *site) mustBeFree(name string) {
	s.Helper()
	if n := s.node(name); n.Annotations[api.HoldersAnnotation] != "" || n.Spec.Unschedulable {
		s.Fatalf("node %s is not free: unschedulable %t, annotations %v", name, n.Spec.Unschedulable, n.Annotations)
	}
}

// deleteNode deletes a node and returns what its replacement begins as: the same but for what a running node has
// been given. The test's end brings it back if the test does not.
func (s *site) deleteNode(name string) *corev1.Node {
	s.Helper()
	old := s.node(name)
	fresh := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status:     corev1.NodeStatus{Capacity: old.Status.Capacity, Allocatable: old.Status.Allocatable, Addresses: old.Status.Addresses},
	}
	for key, value := range old.Labels {
		if key != api.PhaseLabel {
			fresh.Labels[key] = value
		}
	}
	if err := s.kube.CoreV1().Nodes().Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { s.createNode(fresh) })
	return fresh
}

// createNode registers a node, unless it is there, and waits until it is Ready and takes pods.
func (s *site) createNode(n *corev1.Node) {
	s.Helper()
	nodes := s.kube.CoreV1().Nodes()
	if _, err := nodes.Get(s.ctx, n.Name, metav1.GetOptions{}); err != nil {
		if _, err := nodes.Create(s.ctx, n, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
	s.eventually("node "+n.Name+" is Ready", func() error {
		if now := s.node(n.Name); !k8s.IsReady(now) || hasTaint(now, corev1.TaintNodeNotReady) {
			return fmt.Errorf("taints %v", now.Spec.Taints)
		}
		return nil
	})
}

func hasTaint(n *corev1.Node, key string) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Key == key {
			return true
		}
	}
	return false
}

// nodeEvents are the Kubernetes Events about a node with a reason; those of earlier tests are gone.
func (s *site) nodeEvents(name, reason string) []corev1.Event {
	s.Helper()
	list, err := s.kube.CoreV1().Events(metav1.NamespaceDefault).List(s.ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Node,involvedObject.name=" + name + ",reason=" + reason,
	})
	if err != nil {
		s.Fatal(err)
	}
	var found []corev1.Event
	for _, e := range list.Items {
		if strings.Contains(e.ReportingController, "drydock") {
			found = append(found, e)
		}
	}
	return found
}
