package k8s

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// PodsOn are the pods on a node.
func PodsOn(ctx context.Context, client kubernetes.Interface, node string) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	on := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}
	err := eachPage(on, func(o metav1.ListOptions) (string, error) {
		list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("listing the pods of node %s: %w", node, err)
		}
		for i := range list.Items {
			pods = append(pods, &list.Items[i])
		}
		return list.Continue, nil
	})
	return pods, err
}

// BudgetsIn are the budgets of some namespaces.
func BudgetsIn(ctx context.Context, client kubernetes.Interface, namespaces map[string]bool) ([]*policyv1.PodDisruptionBudget, error) {
	var budgets []*policyv1.PodDisruptionBudget
	if len(namespaces) == 0 {
		return nil, nil
	}
	err := eachPage(metav1.ListOptions{}, func(o metav1.ListOptions) (string, error) {
		list, err := client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("listing budgets: %w", err)
		}
		for i := range list.Items {
			if namespaces[list.Items[i].Namespace] {
				budgets = append(budgets, &list.Items[i])
			}
		}
		return list.Continue, nil
	})
	return budgets, err
}

// page is how many objects are read at a time, so that a cluster of any size passes through little memory.
const page = 500

// eachPage reads a list to its end.
func eachPage(o metav1.ListOptions, read func(metav1.ListOptions) (next string, err error)) error {
	o.Limit = page
	for {
		next, err := read(o)
		if err != nil || next == "" {
			return err
		}
		o.Continue = next
	}
}
