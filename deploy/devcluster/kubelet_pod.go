package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a test puts on a pod to make it slow or broken.
const (
	neverStartLabel     = "devcluster.drydock.dev/never-start"
	neverReadyLabel     = "devcluster.drydock.dev/never-ready"
	completionDelayKey  = "devcluster.drydock.dev/completion-delay"
	terminationDelayKey = "devcluster.drydock.dev/termination-delay"
	failureKey          = "devcluster.drydock.dev/failure"
)

// neverReadyReason marks readiness that the label took away, and that returns
// without it. Readiness lost for another reason is left alone, so that a test
// can set it by hand.
const neverReadyReason = "DevclusterNeverReady"

// podAction is what a kubelet does to a pod next.
type podAction int

const (
	podNothing podAction = iota
	podStart
	podLoseReadiness
	podRegainReadiness
	podComplete
	podFail
	podReboot
	podEnd
)

// String says what failed, in errors.
func (a podAction) String() string {
	return [...]string{"leave", "start", "take the readiness of", "give readiness to", "complete", "fail", "reboot by", "end"}[a]
}

// podStep is what is to happen to a pod that is bound to a node, and how long
// from now: a delay runs from the pod's last change.
func podStep(pod *corev1.Pod, changed, now time.Time) (action podAction, wait time.Duration) {
	action, delay := nextAction(pod)
	if delay <= 0 {
		return action, 0
	}
	return action, max(0, changed.Add(delay).Sub(now))
}

func nextAction(pod *corev1.Pod) (action podAction, delay time.Duration) {
	ready := podReadyCondition(pod)
	neverReady := pod.Labels[neverReadyLabel] == "true"
	switch {
	case pod.DeletionTimestamp != nil:
		return endOf(pod)
	case pod.Status.Phase == corev1.PodPending:
		if ready.Status != corev1.ConditionTrue && pod.Labels[neverStartLabel] != "true" {
			return podStart, 0
		}
	case pod.Status.Phase != corev1.PodRunning:
	case neverReady:
		if ready.Status == corev1.ConditionTrue {
			return podLoseReadiness, 0
		}
	case ready.Reason == neverReadyReason:
		return podRegainReadiness, 0
	case ofJob(pod):
		return endOfWork(pod), duration(pod.Annotations[completionDelayKey])
	}
	return podNothing, 0
}

// endOfWork is how the pod of a Job ends.
func endOfWork(pod *corev1.Pod) podAction {
	switch {
	case pod.Annotations[rebootKey] != "":
		return podReboot
	case pod.Annotations[failureKey] != "":
		return podFail
	default:
		return podComplete
	}
}

func endOf(pod *corev1.Pod) (action podAction, delay time.Duration) {
	if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 {
		if len(pod.Finalizers) > 0 {
			return podNothing, 0 // the API server lets it go with the last of them
		}
		return podEnd, 0
	}
	value, ok := pod.Annotations[terminationDelayKey]
	if !ok {
		value = pod.Labels[terminationDelayKey]
	}
	return podEnd, duration(value)
}

// duration is 0 for what is none.
func duration(value string) time.Duration {
	parsed, err := time.ParseDuration(value)
	if err != nil {
		return 0
	}
	return parsed
}

func ofJob(pod *corev1.Pod) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.Kind == "Job" {
			return true
		}
	}
	return false
}

// podReadyCondition is empty for a pod without one.
func podReadyCondition(pod *corev1.Pod) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition
		}
	}
	return corev1.PodCondition{}
}

// podCondition is a condition in a patch: without a reason, it takes away the
// one that was there.
type podCondition struct {
	Type               corev1.PodConditionType `json:"type"`
	Status             corev1.ConditionStatus  `json:"status"`
	Reason             *string                 `json:"reason"`
	LastTransitionTime metav1.Time             `json:"lastTransitionTime"`
}

func podConditions(now time.Time, status corev1.ConditionStatus, reason string, types ...corev1.PodConditionType) []podCondition {
	var conditions []podCondition
	for _, kind := range types {
		condition := podCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(now)}
		if reason != "" {
			condition.Reason = &reason
		}
		conditions = append(conditions, condition)
	}
	return conditions
}

// readiness are the conditions by which a pod is Ready, or is not for a reason.
func readiness(now time.Time, reason string) []podCondition {
	status := corev1.ConditionTrue
	if reason != "" {
		status = corev1.ConditionFalse
	}
	return podConditions(now, status, reason, corev1.PodReady, corev1.ContainersReady)
}

// startedStatus is the status of a pod that starts on the node with this
// address for its own, unless it uses the node's.
func startedStatus(pod *corev1.Pod, node *corev1.Node, address string, now time.Time) object {
	reason := ""
	if pod.Labels[neverReadyLabel] == "true" {
		reason = neverReadyReason
	}
	conditions := append(podConditions(now, corev1.ConditionTrue, "", corev1.PodInitialized), readiness(now, reason)...)
	for _, gate := range pod.Spec.ReadinessGates {
		conditions = append(conditions, podConditions(now, corev1.ConditionTrue, "", gate.ConditionType)...)
	}
	status := object{
		"conditions":            conditions,
		"containerStatuses":     startedContainers(pod.Spec.Containers, reason == "", now),
		"initContainerStatuses": startedInitContainers(pod.Spec.InitContainers, now),
		"phase":                 corev1.PodRunning,
		"startTime":             metav1.NewTime(now),
	}
	hosts := nodeAddresses(node, corev1.NodeInternalIP)
	addresses := []string{address}
	if pod.Spec.HostNetwork {
		addresses = hosts
	}
	putAddresses(status, "hostIP", hosts)
	putAddresses(status, "podIP", addresses)
	return status
}

func putAddresses(status object, field string, addresses []string) {
	if len(addresses) == 0 {
		return
	}
	var all []object
	for _, address := range addresses {
		all = append(all, object{"ip": address})
	}
	status[field], status[field+"s"] = addresses[0], all
}

func startedContainers(containers []corev1.Container, ready bool, now time.Time) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, container := range containers {
		statuses = append(statuses, runningContainer(container, ready, now))
	}
	return statuses
}

// startedInitContainers have ended, but for those that run next to the others.
func startedInitContainers(containers []corev1.Container, now time.Time) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, container := range containers {
		policy := container.RestartPolicy
		if policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			statuses = append(statuses, runningContainer(container, true, now))
		} else {
			statuses = append(statuses, endedContainer(container, metav1.NewTime(now), now, true))
		}
	}
	return statuses
}

func runningContainer(container corev1.Container, ready bool, now time.Time) corev1.ContainerStatus {
	started := true
	return corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, Ready: ready, Started: &started,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}},
	}
}

func endedContainer(container corev1.Container, started metav1.Time, now time.Time, ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, Ready: ready,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: started, FinishedAt: metav1.NewTime(now),
		}},
	}
}

// completedStatus is the status of a pod whose containers have ended well.
func completedStatus(pod *corev1.Pod, now time.Time) object {
	begun := metav1.NewTime(now)
	if pod.Status.StartTime != nil {
		begun = *pod.Status.StartTime // its containers started with it
	}
	started := false
	var statuses []corev1.ContainerStatus
	for _, container := range pod.Spec.Containers {
		status := endedContainer(container, begun, now, false)
		status.Started = &started
		statuses = append(statuses, status)
	}
	return object{
		"conditions":        readiness(now, "PodCompleted"),
		"containerStatuses": statuses,
		"phase":             corev1.PodSucceeded,
	}
}
