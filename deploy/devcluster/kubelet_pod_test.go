package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// boundPod is a pod that has just been bound, changed by the changes.
func boundPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := testPod("p", map[string]string{}, map[string]string{})
	pod.UID, pod.Spec.NodeName, pod.Status.Phase = "1", "n1", corev1.PodPending
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func running(ready corev1.ConditionStatus, reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, Reason: reason}}
	}
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels[key] = value }
}

func noted(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[key] = value }
}

func owned(kind string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind}} }
}

func deletedWithin(grace int64, finalizers ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		at := metav1.NewTime(testNow)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds, pod.Finalizers = &at, &grace, finalizers
	}
}

func TestPodStep(t *testing.T) {
	const second = time.Second
	type changes = []func(*corev1.Pod)
	for name, test := range map[string]struct {
		pod     changes
		elapsed time.Duration // since its last change
		want    podAction
		wait    time.Duration
	}{
		"starts at once":              {nil, 0, podStart, 0},
		"never starts":                {changes{labelled(neverStartLabel, "true")}, 0, podNothing, 0},
		"never starts, another value": {changes{labelled(neverStartLabel, "no")}, 0, podStart, 0},
		"starts unready":              {changes{labelled(neverReadyLabel, "true")}, 0, podStart, 0},
		"runs":                        {changes{running("True", "")}, 0, podNothing, 0},
		"loses readiness":             {changes{running("True", ""), labelled(neverReadyLabel, "true")}, 0, podLoseReadiness, 0},
		"stays unready":               {changes{running("False", neverReadyReason), labelled(neverReadyLabel, "true")}, 0, podNothing, 0},
		"regains readiness":           {changes{running("False", neverReadyReason)}, 0, podRegainReadiness, 0},
		"unready by hand":             {changes{running("False", "Mine")}, 0, podNothing, 0},
		"completes at once":           {changes{running("True", ""), owned("Job")}, 0, podComplete, 0},
		"completes later":             {changes{running("True", ""), owned("Job"), noted(completionDelayKey, "3s")}, second, podComplete, 2 * second},
		"completes now":               {changes{running("True", ""), owned("Job"), noted(completionDelayKey, "3s")}, 3 * second, podComplete, 0},
		"completes unready":           {changes{running("False", ""), owned("Job")}, 0, podComplete, 0},
		"never ready, so not done":    {changes{running("False", neverReadyReason), owned("Job"), labelled(neverReadyLabel, "true")}, 0, podNothing, 0},
		"not of a job":                {changes{running("True", ""), owned("ReplicaSet"), noted(completionDelayKey, "0s")}, 0, podNothing, 0},
		"is done":                     {changes{owned("Job"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }}, 0, podNothing, 0},
		"ends at once":                {changes{running("True", ""), deletedWithin(30)}, 0, podEnd, 0},
		"ends before it starts":       {changes{labelled(neverStartLabel, "true"), deletedWithin(30)}, 0, podEnd, 0},
		"ends later":                  {changes{running("True", ""), deletedWithin(30), noted(terminationDelayKey, "2s")}, 0, podEnd, 2 * second},
		"ends later by label":         {changes{running("True", ""), deletedWithin(30), labelled(terminationDelayKey, "2s")}, second, podEnd, second},
		"the annotation goes first":   {changes{deletedWithin(30), noted(terminationDelayKey, "0s"), labelled(terminationDelayKey, "2s")}, 0, podEnd, 0},
		"ends now":                    {changes{running("True", ""), deletedWithin(30), noted(terminationDelayKey, "2s")}, 5 * second, podEnd, 0},
		"not a duration":              {changes{deletedWithin(30), noted(terminationDelayKey, "soon")}, 0, podEnd, 0},
		"without grace":               {changes{deletedWithin(0), noted(terminationDelayKey, "2s")}, 0, podEnd, 0},
		"held by a finalizer":         {changes{deletedWithin(0, "mine/hold")}, 0, podNothing, 0},
		"a finalizer, not asked yet":  {changes{deletedWithin(30, "mine/hold")}, 0, podEnd, 0},
	} {
		t.Run(name, func(t *testing.T) {
			action, wait := podStep(boundPod(test.pod...), testNow, testNow.Add(test.elapsed))
			if action != test.want || wait != test.wait {
				t.Errorf("%s after %s, want %s after %s", action, wait, test.want, test.wait)
			}
		})
	}
}

func TestStartedStatus(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	node := playedNode(t, nil)
	host := nodeAddresses(node, corev1.NodeInternalIP)[0]
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		ready  bool
		ip     string
	}{
		"plain":       {func(*corev1.Pod) {}, true, "10.244.0.1"},
		"never ready": {labelled(neverReadyLabel, "true"), false, "10.244.0.1"},
		"of the host": {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, true, host},
	} {
		t.Run(name, func(t *testing.T) {
			pod := boundPod(test.change)
			pod.Spec.InitContainers = []corev1.Container{{Name: "first"}, {Name: "sidecar", RestartPolicy: &always}}
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "mine/gate"}}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
			status := mustPatch(t, pod, startedStatus(pod, node, "10.244.0.1", testNow)).Status

			if status.Phase != corev1.PodRunning || status.PodIP != test.ip || status.PodIPs[0].IP != test.ip ||
				status.HostIP != host || status.HostIPs[0].IP != host || !status.StartTime.Time.Equal(testNow) {
				t.Errorf("status %+v", status)
			}
			got := map[corev1.PodConditionType]bool{}
			for _, condition := range status.Conditions {
				got[condition.Type] = condition.Status == corev1.ConditionTrue
			}
			for kind, want := range map[corev1.PodConditionType]bool{
				corev1.PodScheduled: true, corev1.PodInitialized: true, "mine/gate": true,
				corev1.PodReady: test.ready, corev1.ContainersReady: test.ready,
			} {
				if is, ok := got[kind]; is != want || !ok || len(got) != 5 {
					t.Errorf("%s is %t, want %t, in %v", kind, is, want, got)
				}
			}
			main, inits := status.ContainerStatuses[0], status.InitContainerStatuses
			if main.Name != "main" || main.Ready != test.ready || main.State.Running == nil {
				t.Errorf("container %+v", main)
			}
			if len(inits) != 2 || inits[0].State.Terminated == nil || inits[1].State.Running == nil || !inits[0].Ready || !inits[1].Ready {
				t.Errorf("init containers %+v", inits)
			}
		})
	}
}

func TestReadinessComesAndGoes(t *testing.T) {
	pod := boundPod(running("True", ""))
	for _, reason := range []string{neverReadyReason, ""} {
		pod = mustPatch(t, pod, object{"conditions": readiness(testNow, reason)})
		want := corev1.ConditionTrue
		if reason != "" {
			want = corev1.ConditionFalse
		}
		if got := podReadyCondition(pod); got.Status != want || got.Reason != reason {
			t.Errorf("condition %+v, want %s for reason %q", got, want, reason)
		}
	}
}

func TestCompletedStatus(t *testing.T) {
	pod := boundPod(running("True", ""))
	begun := metav1.NewTime(testNow.Add(-time.Minute))
	pod.Status.StartTime = &begun
	status := mustPatch(t, pod, completedStatus(pod, testNow)).Status
	ended := status.ContainerStatuses[0].State.Terminated
	if status.Phase != corev1.PodSucceeded || ended == nil || ended.ExitCode != 0 || !ended.StartedAt.Equal(&begun) || !ended.FinishedAt.Time.Equal(testNow) {
		t.Errorf("status %+v", status)
	}
	if ready := status.Conditions[0]; ready.Status != corev1.ConditionFalse || ready.Reason != "PodCompleted" {
		t.Errorf("condition %+v", ready)
	}
}

func TestPodIPs(t *testing.T) {
	ips := newPodIPs()
	ips.keep("old", "10.244.0.2")
	ips.keep("without", "")
	for _, step := range []struct {
		pod  types.UID
		want string
	}{{"a", "10.244.0.1"}, {"b", "10.244.0.3"}, {"a", "10.244.0.1"}, {"old", "10.244.0.2"}} {
		if got := ips.get(step.pod); got != step.want {
			t.Errorf("pod %s has %s, want %s", step.pod, got, step.want)
		}
	}
	ips.giveBack("a")
	ips.next = lastPodIP
	for _, want := range []string{lastPodIP.String(), "10.244.0.1", "10.244.0.4"} {
		if got := ips.get(types.UID(want)); got != want {
			t.Errorf("address %s, want %s", got, want)
		}
	}
}
