package main

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

func testPod(name string, labels, annotations map[string]string) *corev1.Pod {
	all := map[string]string{"test": name}
	maps.Copy(all, labels)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, Labels: all, Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/main:v1"}}},
	}
}

func tokenRequest() *authenticationv1.TokenRequest {
	seconds := int64(3600)
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
}

func mustCreatePod(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := client.CoreV1().Pods(pod.Namespace).Create(background, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func mustDelete(t *testing.T, client kubernetes.Interface, pod string) {
	t.Helper()
	err := client.CoreV1().Pods(metav1.NamespaceDefault).Delete(background, pod, metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func mustPatchNode(t *testing.T, client kubernetes.Interface, node, patch string) {
	t.Helper()
	_, err := client.CoreV1().Nodes().Patch(background, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func mustPatchPod(t *testing.T, client kubernetes.Interface, pod, patch string) {
	t.Helper()
	_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Patch(background, pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// podReady is nil for a pod that runs and is Ready.
func podReady(pod *corev1.Pod) error {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pod.Status.Phase == corev1.PodRunning {
			return nil
		}
	}
	return fmt.Errorf("not ready: %s, %+v", pod.Status.Phase, pod.Status.Conditions)
}

func waitPod(t *testing.T, client kubernetes.Interface, name string, check func(*corev1.Pod) error) {
	t.Helper()
	eventually(t, "pod "+name, func() error {
		pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(background, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return check(pod)
	})
}

func waitPodGone(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) {
	t.Helper()
	eventually(t, "pod "+pod.Name+" is gone", func() error {
		current, err := client.CoreV1().Pods(pod.Namespace).Get(background, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && current.UID != pod.UID {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
}

func waitNodeReadyIs(t *testing.T, client kubernetes.Interface, name string, want corev1.ConditionStatus) corev1.NodeCondition {
	t.Helper()
	var ready corev1.NodeCondition
	eventually(t, fmt.Sprintf("Ready of node %s is %s", name, want), func() error {
		var err error
		if ready, err = nodeReadyCondition(client, name); err != nil {
			return err
		}
		if ready.Status != want {
			return fmt.Errorf("it is %q", ready.Status)
		}
		return nil
	})
	return ready
}

func mustNodeReadyStatus(t *testing.T, client kubernetes.Interface, name string) corev1.ConditionStatus {
	t.Helper()
	ready, err := nodeReadyCondition(client, name)
	if err != nil {
		t.Fatal(err)
	}
	return ready.Status
}

func nodeReadyCondition(client kubernetes.Interface, name string) (corev1.NodeCondition, error) {
	node, err := client.CoreV1().Nodes().Get(background, name, metav1.GetOptions{})
	if err != nil {
		return corev1.NodeCondition{}, err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition, nil
		}
	}
	return corev1.NodeCondition{}, fmt.Errorf("node %s has no Ready condition", name)
}

// expectLeaseRenewal waits until a node's lease is renewed once more.
func expectLeaseRenewal(t *testing.T, client kubernetes.Interface, node string) {
	t.Helper()
	var first *metav1.MicroTime
	eventually(t, "the lease of node "+node+" is renewed", func() error {
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(background, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if first == nil {
			first = lease.Spec.RenewTime
		}
		if !first.Before(lease.Spec.RenewTime) {
			return fmt.Errorf("renewed at %s only", first)
		}
		return nil
	})
}
