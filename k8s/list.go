package k8s

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"drydock.dev/drydock/k8s/kube"
)

// PodsOn are the pods on a node, as they are now. They are few: a limit would keep the API server from what it remembers.
func PodsOn(ctx context.Context, client kube.Interface, node string) ([]*corev1.Pod, error) {
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of node %s: %w", node, err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, nil
}

// EachPod reads the pods of all namespaces that a field selector selects, a page at a time.
func EachPod(ctx context.Context, client kube.Interface, selector string, do func(*corev1.Pod)) error {
	return eachPage(metav1.ListOptions{FieldSelector: selector}, func(o metav1.ListOptions) (string, error) {
		list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("listing pods: %w", err)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		return list.Continue, nil
	})
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
