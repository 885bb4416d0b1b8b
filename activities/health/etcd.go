package health

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"drydock/k8s"
	rules "drydock/rules/health"
)

// etcdNamespace is where OpenShift has etcd's budget and guard pods.
const etcdNamespace = "openshift-etcd"

type permitKey struct{ check, node string }

type permitState struct {
	Permitted
	at time.Time
}

// mayLose tells whether the control plane can do without a node. Where etcd has a disruption budget, which a guard pod on each member's
// node is under, that decides. Elsewhere, where etcd's members cannot be asked, a majority of the control plane's nodes has to be Ready
// without this one: that is what etcd needs where each of them has a member, and more than it needs where etcd is somewhere else.
func (l lookout) mayLose(ctx context.Context, node string, etcd *rules.Etcd) (Permitted, error) {
	namespace, name := etcdNamespace, ""
	if etcd != nil {
		namespace, name = etcd.Namespace, etcd.Budget
	}
	var budgets policyv1.PodDisruptionBudgetList
	err := l.Objects.Kube().PolicyV1().RESTClient().Get().Namespace(namespace).Resource("poddisruptionbudgets").Do(ctx).Into(&budgets)
	if err != nil {
		return Permitted{}, fmt.Errorf("listing the budgets in namespace %s: %w", namespace, err)
	}
	var chosen []policyv1.PodDisruptionBudget
	for _, b := range budgets.Items {
		if name == "" || b.Name == name {
			chosen = append(chosen, b)
		}
	}
	switch {
	case len(chosen) == 0 && etcd == nil:
		return l.majorityWithout(ctx, node)
	case len(chosen) != 1:
		return Permitted{Why: fmt.Sprintf("namespace %s has %d budgets for etcd: want one", namespace, len(chosen))}, nil
	case chosen[0].Status.DisruptionsAllowed >= 1:
		return Permitted{Allowed: true}, nil
	}
	return l.guardSays(ctx, node, chosen[0])
}

// guardSays tells whether the member on a node is down already, where the budget lets none go.
func (l lookout) guardSays(ctx context.Context, node string, budget policyv1.PodDisruptionBudget) (Permitted, error) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return Permitted{}, fmt.Errorf("budget %s/%s: %w", budget.Namespace, budget.Name, err)
	}
	pods, err := l.Objects.Kube().CoreV1().Pods(budget.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: selector.String(), FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return Permitted{}, fmt.Errorf("listing the pods of budget %s/%s: %w", budget.Namespace, budget.Name, err)
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status != corev1.ConditionFalse {
				return Permitted{Why: fmt.Sprintf("budget %s/%s allows no disruption, and pod %s on the node is not down", budget.Namespace, budget.Name, pod.Name)}, nil
			}
		}
	}
	return Permitted{Allowed: true}, nil
}

func (l lookout) majorityWithout(ctx context.Context, name string) (Permitted, error) {
	view, err := l.Nodes.View(ctx)
	if err != nil {
		return Permitted{}, err
	}
	defer view.Close()
	all, ready := 0, 0
	for _, node := range view.List() {
		if !IsControlPlane(node) {
			continue
		}
		all++
		if node.Name != name && k8s.IsReady(node) {
			ready++
		}
	}
	if want := all/2 + 1; ready < want {
		return Permitted{Why: fmt.Sprintf("%d of %d control-plane nodes are Ready without this one, and a majority is %d", ready, all, want)}, nil
	}
	return Permitted{Allowed: true}, nil
}
