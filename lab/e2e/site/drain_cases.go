package site

import (
	"errors"
	"slices"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
)

// keeper is a finalizer that nobody but a test removes.
const keeper = "e2e.drydock.dev/keeper"

// Kept pods do not go before the test lets them.
func Kept(t *corev1.PodTemplateSpec) { t.Finalizers = []string{keeper} }

// EndsWithin is how long pods may take to end by themselves.
func EndsWithin(seconds int64) Option {
	return func(t *corev1.PodTemplateSpec) { t.Spec.TerminationGracePeriodSeconds = &seconds }
}

// PatchPod changes a pod by a merge patch.
func (s *Site) PatchPod(pod corev1.Pod, patch string) {
	s.Helper()
	_, err := s.Kube.CoreV1().Pods(pod.Namespace).Patch(s.Ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.NoError(err)
}

// LetGo removes the finalizers of a namespace's pods, now and at the test's end.
func (s *Site) LetGo(ns string) {
	for _, pod := range s.Pods(ns) {
		if len(pod.Finalizers) > 0 {
			s.PatchPod(pod, `{"metadata":{"finalizers":null}}`)
		}
	}
}

// Leaving waits until a pod is told to end, and returns it.
func (s *Site) Leaving(pod corev1.Pod) *corev1.Pod {
	s.Helper()
	var now *corev1.Pod
	s.Eventually("pod "+pod.Name+" is told to end", func() (err error) {
		now, err = s.Kube.CoreV1().Pods(pod.Namespace).Get(s.Ctx, pod.Name, metav1.GetOptions{})
		if err == nil && now.DeletionTimestamp == nil {
			err = errors.New("it is not")
		}
		return err
	})
	return now
}

// BlockedBy waits until pods of a maintenance are blocked for a reason, and returns the first of those blockers.
func (s *Site) BlockedBy(run client.WorkflowRun, reason string) api.Blocker {
	s.Helper()
	is := func(b api.Blocker) bool { return b.Reason == reason }
	status := s.UntilStatus(run, "blocked by "+reason, func(status api.Status) bool {
		return status.Drain != nil && slices.ContainsFunc(status.Drain.Blockers, is)
	})
	return status.Drain.Blockers[slices.IndexFunc(status.Drain.Blockers, is)]
}

// EvictedOnce checks that every pod whose eviction was accepted was evicted once, and how many those were.
func (s *Site) EvictedOnce(ns string, pods int) {
	s.Helper()
	accepted := s.Accepted(ns)
	for pod, times := range accepted {
		if times != 1 {
			s.Errorf("the eviction of pod %s was accepted %d times", pod, times)
		}
	}
	if len(accepted) != pods {
		s.Errorf("evicted %v, want %d pods", accepted, pods)
	}
}
