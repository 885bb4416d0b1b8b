package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// rebootKey is what a test puts on the pod of a Job that reboots its node: for
	// how long the node is away.
	rebootKey = "devcluster.drydock.dev/reboot"
	// rebootingKey is what a node has as long as it is away: which pod rebooted it,
	// and until when.
	rebootingKey = "devcluster.drydock.dev/rebooting"
)

// reboot is one of a node, by a pod.
type reboot struct {
	by    types.UID
	until time.Time
}

// rebootOf is that of a node that is away.
func rebootOf(node *corev1.Node) (reboot, bool) {
	by, until, found := strings.Cut(node.Annotations[rebootingKey], " ")
	at, err := time.Parse(time.RFC3339Nano, until)
	return reboot{types.UID(by), at}, found && err == nil
}

func (r reboot) String() string { return string(r.by) + " " + r.until.Format(time.RFC3339Nano) }

// bootID is the node's after the reboot: the same however often that is played.
func (r reboot) bootID() string { return "rebooted-by-" + string(r.by) }

// beginReboot takes the node away, unless the pod has rebooted it: then the pod
// is dead, and whoever restarts it too late finds it so.
func (k *kubelets) beginReboot(ctx context.Context, pod *corev1.Pod, node *corev1.Node, now time.Time) error {
	r := reboot{pod.UID, now.Add(duration(pod.Annotations[rebootKey]))}
	if node.Status.NodeInfo.BootID == r.bootID() {
		return k.patchPodStatus(ctx, pod, killedStatus(pod.Spec.Containers, now))
	}
	return k.annotate(ctx, node, r.String())
}

// annotate sets what a node has as long as it is away; nil takes it off.
func (k *kubelets) annotate(ctx context.Context, node *corev1.Node, value any) error {
	patch, err := json.Marshal(object{"metadata": object{"uid": node.UID, "annotations": object{rebootingKey: value}}})
	if err == nil {
		_, err = k.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	return err
}

// playReboot keeps a node away until its time, and brings it back with another
// boot ID after it has restarted the pods that stay, and lost those that do not.
func (k *kubelets) playReboot(ctx context.Context, node *corev1.Node, r reboot, now time.Time) (again time.Duration, err error) {
	if left := r.until.Sub(now); left > 0 {
		if nodeReady(node) != corev1.ConditionTrue {
			return left, nil
		}
		away := corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "the node reboots",
		}
		return left, k.patchNodeStatus(ctx, node, object{"conditions": []corev1.NodeCondition{stamped(away, now, now)}})
	}
	if err := k.restartPods(ctx, node.Name, r.until); err != nil {
		return 0, err
	}
	if err := k.patchNodeStatus(ctx, node, object{
		"conditions": []corev1.NodeCondition{stamped(healthyConditions[0], now, now)},
		"nodeInfo":   object{"bootID": r.bootID()},
	}); err != nil {
		return 0, err
	}
	return 0, k.annotate(ctx, node, nil)
}

func (k *kubelets) patchNodeStatus(ctx context.Context, node *corev1.Node, status object) error {
	patch, err := json.Marshal(object{"metadata": object{"uid": node.UID}, "status": status})
	if err == nil {
		_, err = k.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	return err
}

func (k *kubelets) patchPodStatus(ctx context.Context, pod *corev1.Pod, status object) error {
	patch, err := json.Marshal(object{"metadata": object{"uid": pod.UID}, "status": status})
	if err == nil {
		_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	return err
}

// restartPods is what a kubelet finds when its node is back: no container runs. Those
// of Jobs have failed, the others run again.
func (k *kubelets) restartPods(ctx context.Context, node string, at time.Time) error {
	pods, err := k.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	var failures []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		status := killedStatus(pod.Spec.Containers, at)
		if !ofJob(pod) {
			status = restartedStatus(pod.Status.ContainerStatuses, at)
		}
		if err := k.patchPodStatus(ctx, pod, status); err != nil && !overtaken(err) {
			failures = append(failures, fmt.Errorf("restart pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
	}
	return errors.Join(failures...)
}

// killedStatus is the status of a pod whose containers were killed with their node.
func killedStatus(containers []corev1.Container, now time.Time) object {
	return failedStatus(containers, now, corev1.ContainerStateTerminated{Reason: "Unknown", ExitCode: 255})
}

// failedStatus is the status of a pod whose containers have ended so.
func failedStatus(containers []corev1.Container, now time.Time, end corev1.ContainerStateTerminated) object {
	var statuses []corev1.ContainerStatus
	for _, container := range containers {
		ended := end
		ended.FinishedAt = metav1.NewTime(now)
		statuses = append(statuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, State: corev1.ContainerState{Terminated: &ended},
		})
	}
	return object{"conditions": readiness(now, "PodFailed"), "containerStatuses": statuses, "phase": corev1.PodFailed}
}

// restartedStatus has containers run again that began before the reboot was over.
func restartedStatus(containers []corev1.ContainerStatus, at time.Time) object {
	var statuses []corev1.ContainerStatus
	for _, status := range containers {
		if running := status.State.Running; running != nil && running.StartedAt.Time.Before(at) {
			status.RestartCount++
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}
		}
		statuses = append(statuses, status)
	}
	return object{"containerStatuses": statuses}
}
