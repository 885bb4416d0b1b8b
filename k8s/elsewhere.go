package k8s

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/nodestate"
)

// HasElsewhere reports whether there is another node for a pod than the one it is on: ready and schedulable, selected by its
// node selector and required node affinity, and without a taint that it does not tolerate. Room is not looked at.
func HasElsewhere(ctx context.Context, client kube.Interface, pod *corev1.Pod) (found bool, err error) {
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	err = eachPage(metav1.ListOptions{}, func(o metav1.ListOptions) (string, error) {
		list, err := client.CoreV1().Nodes().List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("listing nodes: %w", err)
		}
		for i := range list.Items {
			if n := &list.Items[i]; n.Name != pod.Spec.NodeName && !nodestate.IsUnavailable(n) && admits(n, pod, affinity) {
				found = true
				return "", nil
			}
		}
		return list.Continue, nil
	})
	return found, err
}

func admits(node *corev1.Node, pod *corev1.Pod, affinity nodeaffinity.RequiredNodeAffinity) bool {
	matches, err := affinity.Match(node)
	_, repelled := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, repels, false)
	return err == nil && matches && !repelled
}
