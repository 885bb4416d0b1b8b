package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func nodeOfPod(pod any) ([]string, error) {
	return []string{pod.(*corev1.Pod).Spec.NodeName}, nil
}

// slimNode keeps of a node what is needed here; a cluster may have thousands.
func slimNode(seen any) (any, error) {
	node, ok := seen.(*corev1.Node)
	if !ok {
		return seen, nil
	}
	slim := &corev1.Node{ObjectMeta: slimMeta(node), Status: node.Status}
	slim.Labels, slim.Annotations = node.Labels, ownKeys(node.Annotations)
	slim.CreationTimestamp = node.CreationTimestamp
	slim.Spec.Taints = node.Spec.Taints
	slim.Status.Images = nil
	return slim, nil
}

// slimPod does so for a pod.
func slimPod(seen any) (any, error) {
	pod, ok := seen.(*corev1.Pod)
	if !ok {
		return seen, nil
	}
	slim := &corev1.Pod{ObjectMeta: slimMeta(pod)}
	slim.Labels, slim.Annotations = ownKeys(pod.Labels), ownKeys(pod.Annotations)
	slim.OwnerReferences, slim.Finalizers = pod.OwnerReferences, pod.Finalizers
	slim.DeletionTimestamp, slim.DeletionGracePeriodSeconds = pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds
	slim.Spec = corev1.PodSpec{
		NodeName: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, ReadinessGates: pod.Spec.ReadinessGates,
		Containers: slimContainers(pod.Spec.Containers), InitContainers: slimContainers(pod.Spec.InitContainers),
	}
	slim.Status = corev1.PodStatus{
		Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, PodIP: pod.Status.PodIP, StartTime: pod.Status.StartTime,
	}
	return slim, nil
}

func slimMeta(of metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: of.GetNamespace(), Name: of.GetName(), UID: of.GetUID(), ResourceVersion: of.GetResourceVersion(),
	}
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	var slim []corev1.Container
	for _, container := range containers {
		slim = append(slim, corev1.Container{Name: container.Name, Image: container.Image, RestartPolicy: container.RestartPolicy})
	}
	return slim
}

// ownKeys are the labels or annotations that mean something here.
func ownKeys(all map[string]string) map[string]string {
	var own map[string]string
	for key, value := range all {
		if strings.HasPrefix(key, "devcluster.drydock.dev/") {
			if own == nil {
				own = map[string]string{}
			}
			own[key] = value
		}
	}
	return own
}
