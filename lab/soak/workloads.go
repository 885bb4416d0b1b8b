package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

const (
	// namespace holds the workloads.
	namespace = "soak"
	// spareLabel and spareTaint are on the nodes that run no workload, so that they may fail.
	spareLabel = "soak.drydock.dev/spare"
	// agentLabel is on the nodes that run a DaemonSet's pod.
	agentLabel = "soak.drydock.dev/agent"
	// spareNodes are the last ones, agentNodes the first.
	spareNodes, agentNodes = 10, 30
)

// workload is a Deployment or a StatefulSet under a budget.
type workload struct {
	name         string
	replicas     int32
	minAvailable int
	stateful     bool
}

// workloads are those of a run: most let some pods go at a time, two let none.
func workloads() (all []workload) {
	for i := range 20 {
		all = append(all, workload{name: fmt.Sprintf("web-%02d", i), replicas: 16, minAvailable: 12})
	}
	for i := range 6 {
		all = append(all, workload{name: fmt.Sprintf("db-%d", i), replicas: 3, minAvailable: 2, stateful: true})
	}
	for i := range 2 {
		all = append(all, workload{name: fmt.Sprintf("stuck-%d", i), replicas: 5, minAvailable: 5})
	}
	return all
}

// minAvailable is what the budgets want, by workload.
func minAvailable() map[string]int {
	wanted := map[string]int{}
	for _, w := range workloads() {
		wanted[w.name] = w.minAvailable
	}
	return wanted
}

func nodeName(i int) string { return fmt.Sprintf("worker-%02d", i+1) }

// isSpare tells whether the i-th of so many nodes runs no workload.
func isSpare(i, nodes int) bool { return i >= nodes-spareNodes }

// populate labels the nodes and runs the workloads.
func populate(ctx context.Context, kube kubernetes.Interface, nodes int) error {
	if _, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range nodes {
		var patch string
		switch {
		case isSpare(i, nodes):
			patch = fmt.Sprintf(`{"metadata":{"labels":{%q:""}},"spec":{"taints":[{"key":%q,"effect":"NoSchedule"}]}}`, spareLabel, spareLabel)
		case i < agentNodes:
			patch = fmt.Sprintf(`{"metadata":{"labels":{%q:""}}}`, agentLabel)
		default:
			continue
		}
		if _, err := kube.CoreV1().Nodes().Patch(ctx, nodeName(i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	for _, w := range workloads() {
		if err := w.create(ctx, kube); err != nil {
			return fmt.Errorf("workload %s: %w", w.name, err)
		}
	}
	agent := podsOf("agent")
	agent.Spec.NodeSelector = map[string]string{agentLabel: ""}
	_, err := kube.AppsV1().DaemonSets(namespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Template: agent, Selector: &metav1.LabelSelector{MatchLabels: agent.Labels}},
	}, metav1.CreateOptions{})
	return err
}

func (w workload) create(ctx context.Context, kube kubernetes.Interface) error {
	template := podsOf(w.name)
	selector := &metav1.LabelSelector{MatchLabels: template.Labels}
	meta := metav1.ObjectMeta{Name: w.name}
	least := intstr.FromInt32(int32(w.minAvailable))
	if _, err := kube.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: selector},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	var err error
	if w.stateful {
		_, err = kube.AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{
			ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
				Replicas: &w.replicas, Template: template, Selector: selector, ServiceName: w.name, PodManagementPolicy: appsv1.ParallelPodManagement,
			},
		}, metav1.CreateOptions{})
	} else {
		_, err = kube.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &w.replicas, Template: template, Selector: selector},
		}, metav1.CreateOptions{})
	}
	return err
}

// podsOf is a template of pods that take a moment to end.
func podsOf(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{appLabel: app},
			Annotations: map[string]string{"devcluster.drydock.dev/termination-delay": "700ms"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/soak:v1"}}},
	}
}
