package health

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	rules "drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/nodestate"
)

// etcdNamespace is where OpenShift has etcd's budget and guard pods.
const etcdNamespace = "openshift-etcd"

// permitted reports whether the control plane can do without a node.
type permitted struct {
	Allowed bool
	Why     string
}

// etcdPods is where kubeadm has etcd's members as static pods, and their labels.
const etcdPods, etcdPodLabels = metav1.NamespaceSystem, "component=etcd,tier=control-plane"

// mayLose reports whether the control plane can do without a node. Where etcd has a disruption budget, which a guard pod on each member's
// node is under, the budget decides, and OpenShift has one. Elsewhere a majority of etcd's pods has to be Ready without the node, or, where
// there are no such pods, a majority of the control plane's nodes.
func (a *Activities) mayLose(ctx context.Context, node string, etcd *rules.EtcdQuestion) (permitted, error) {
	namespace, name := etcdNamespace, ""
	if etcd != nil && etcd.Allow == rules.AllowAlways {
		return permitted{Allowed: true}, nil
	}
	if etcd != nil {
		namespace, name = etcd.Namespace, etcd.Budget
	}
	var budgets policyv1.PodDisruptionBudgetList
	err := a.Objects.Kube().PolicyV1().RESTClient().Get().Namespace(namespace).Resource("poddisruptionbudgets").Do(ctx).Into(&budgets)
	if err != nil {
		return permitted{}, fmt.Errorf("listing the budgets in namespace %s: %w", namespace, err)
	}
	if len(budgets.Items) == 0 && etcd == nil {
		if openShift, err := a.Objects.Preferred(ctx, configGroup); openShift == "" || err != nil {
			if err != nil {
				return permitted{}, err
			}
			return a.membersWithout(ctx, node)
		}
	}
	var chosen []policyv1.PodDisruptionBudget
	for _, b := range budgets.Items {
		if name == "" || b.Name == name {
			chosen = append(chosen, b)
		}
	}
	switch {
	case len(chosen) == 1 && chosen[0].Status.ObservedGeneration < chosen[0].Generation:
		return permitted{Why: fmt.Sprintf("budget %s/%s has changed, and its status does not say so yet", namespace, chosen[0].Name)}, nil
	case len(chosen) != 1:
		return permitted{Why: fmt.Sprintf("namespace %s has %d budgets for etcd: want one", namespace, len(chosen))}, nil
	case chosen[0].Status.DisruptionsAllowed >= 1:
		return permitted{Allowed: true}, nil
	}
	return a.guardSays(ctx, node, chosen[0])
}

// guardSays reports whether the member on a node is down already, where the budget lets none go.
func (a *Activities) guardSays(ctx context.Context, node string, budget policyv1.PodDisruptionBudget) (permitted, error) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return permitted{}, fmt.Errorf("budget %s/%s: %w", budget.Namespace, budget.Name, err)
	}
	pods, err := a.Objects.Kube().CoreV1().Pods(budget.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: selector.String(), FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return permitted{}, fmt.Errorf("listing the pods of budget %s/%s: %w", budget.Namespace, budget.Name, err)
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status != corev1.ConditionFalse {
				return permitted{Why: fmt.Sprintf("budget %s/%s allows no disruption, and pod %s on the node is not down", budget.Namespace, budget.Name, pod.Name)}, nil
			}
		}
	}
	return permitted{Allowed: true}, nil
}

// membersWithout asks etcd's static pods.
func (a *Activities) membersWithout(ctx context.Context, node string) (permitted, error) {
	pods, err := a.Objects.Kube().CoreV1().Pods(etcdPods).List(ctx, metav1.ListOptions{LabelSelector: etcdPodLabels})
	if err != nil {
		return permitted{}, fmt.Errorf("listing etcd's pods in namespace %s: %w", etcdPods, err)
	}
	if len(pods.Items) == 0 {
		return a.majorityWithout(ctx, node)
	}
	ready, onNode := 0, false
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == node {
			onNode = true
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if want := len(pods.Items)/2 + 1; onNode && ready < want {
		return permitted{Why: fmt.Sprintf("%d of %d members of etcd are Ready without the one on this node, and a majority is %d; controlPlane.allow %q does not ask",
			ready, len(pods.Items), want, rules.AllowAlways)}, nil
	}
	return permitted{Allowed: true}, nil
}

func (a *Activities) majorityWithout(ctx context.Context, name string) (permitted, error) {
	view, err := a.Nodes.View(ctx)
	if err != nil {
		return permitted{}, err
	}
	defer view.Close()
	all, ready := 0, 0
	for _, node := range view.List() {
		if !nodestate.IsControlPlane(node.Labels) {
			continue
		}
		all++
		if node.Name != name && nodestate.IsReady(node) {
			ready++
		}
	}
	if want := all/2 + 1; ready < want {
		return permitted{Why: fmt.Sprintf("%d of %d control-plane nodes are Ready without this one, and a majority is %d; controlPlane.allow %q does not ask",
			ready, all, want, rules.AllowAlways)}, nil
	}
	return permitted{Allowed: true}, nil
}
