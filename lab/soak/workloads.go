package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/lab/world"
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

// populate labels the nodes and runs the workloads.
func populate(ctx context.Context, kube kubernetes.Interface, nodes int) error {
	in := world.Namespace{Kube: kube, Name: namespace}
	if err := in.Create(ctx); err != nil {
		return err
	}
	for i := range nodes {
		var patch string
		switch {
		case i >= nodes-spareNodes:
			patch = fmt.Sprintf(`{"metadata":{"labels":{%q:""}},"spec":{"taints":[{"key":%q,"effect":"NoSchedule"}]}}`, spareLabel, spareLabel)
		case i < agentNodes:
			patch = fmt.Sprintf(`{"metadata":{"labels":{%q:""}}}`, agentLabel)
		default:
			continue
		}
		if err := world.PatchNode(ctx, kube, world.NodeName(i), "%s", patch); err != nil {
			return err
		}
	}
	for _, w := range workloads() {
		if err := w.create(ctx, in); err != nil {
			return fmt.Errorf("workload %s: %w", w.name, err)
		}
	}
	agent := podsOf("agent")
	agent.Spec.NodeSelector = map[string]string{agentLabel: ""}
	return in.DaemonSet(ctx, agent)
}

func (w workload) create(ctx context.Context, in world.Namespace) error {
	least := intstr.FromInt32(int32(w.minAvailable))
	if err := in.Budget(ctx, w.name, w.name, policyv1.PodDisruptionBudgetSpec{MinAvailable: &least}); err != nil {
		return err
	}
	if w.stateful {
		return in.StatefulSet(ctx, podsOf(w.name), w.replicas)
	}
	return in.Deployment(ctx, podsOf(w.name), w.replicas)
}

// podsOf is a template of pods that take a moment to end.
func podsOf(app string) corev1.PodTemplateSpec {
	t := world.Pods(app)
	t.Annotations = map[string]string{world.TerminationDelay: "700ms"}
	return t
}
