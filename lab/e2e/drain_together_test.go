package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

// apart lets pods run on some nodes only, and no two of a workload on one.
func apart(nodes ...string) option {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes},
				}}},
			}},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: t.Labels},
			}}},
		}
	}
}

func TestTwoNodesThatWaitForEachOtherDoNotForEver(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 2}")
	ns := s.namespace()
	// Each of the nodes has one pod of each workload, and each workload can lose one.
	for _, app := range []string{"a", "b"} {
		s.deployment(ns, app, 2, apart("worker-01", "worker-02"))
		s.budget(ns, app, 1)
	}
	wish := func(app, node, value string) {
		for _, pod := range s.podsOn(ns, node) {
			if pod.Labels["app"] == app {
				s.patchPod(pod, `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":`+value+`}}}`)
			}
		}
	}
	nodes := []string{"worker-01", "worker-02"}
	for _, node := range nodes {
		wish("a", node, `"true"`)
		wish("b", node, `"true"`)
	}
	first, second := s.begin("worker-01"), s.begin("worker-02")
	s.blockedBy(first, "DoNotDisrupt")
	s.blockedBy(second, "DoNotDisrupt")
	// Each node loses another one first, and then each wants the one that the other's budget does not give.
	wish("a", "worker-01", "null")
	wish("b", "worker-02", "null")
	s.eventually("each has lost one", func() error {
		if accepted := s.accepted(ns); len(accepted) != 2 {
			return fmt.Errorf("evicted %v", accepted)
		}
		return nil
	})
	wish("b", "worker-01", "null")
	wish("a", "worker-02", "null")
	s.blockedBy(first, "DisruptionBudget")
	s.blockedBy(second, "DisruptionBudget")
	s.evictedOnce(ns, 2)
	s.signal(second, api.MsgEscalate, api.Escalate{Do: spec.GiveBack})

	// What the second node lost comes back to it, and so the first can lose its own.
	s.until(first, api.Ready)
	if status := s.untilStatus(second, "given back", func(status api.Status) bool { return status.Attempt == 2 }); status.Phase != api.Pending || status.Attempt != 2 {
		t.Errorf("the second is %s in attempt %d", status.Phase, status.Attempt)
	}
	s.done(first)
	s.deploymentReady(ns, "a", 2)
	s.deploymentReady(ns, "b", 2)
	s.signal(second, api.MsgRetryNow, nil)
	s.until(second, api.Ready)
	s.done(second)
	s.evictedOnce(ns, 5)
}

func TestAWorkerDrainsItsOwnNode(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.guarded(ns, "drydock", "worker-01", slowToEnd("2s"))
	s.guarded(ns, "web", "worker-01")
	s.deployment(ns, "quick", 3, on("worker-01"))
	run := s.begin("worker-01")
	s.refusedOnce(ns)
	// This worker drains by now. Another one is elsewhere.
	first := s.worker
	s.Cleanup(first.Kill)
	s.startWorker()
	stopped := s.standsFor(s.one(ns, "drydock"), first)
	s.allow(ns, "drydock")
	select {
	case err := <-stopped:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("the pod was not told to end")
	}
	s.allow(ns, "web")
	s.until(run, api.Ready)
	if left := s.podsOn(ns, "worker-01"); len(left) > 0 {
		t.Errorf("the node is Ready with pods %v", left)
	}
	s.evictedOnce(ns, 5)
	s.done(run)
}

// standsFor stops a worker as soon as a pod is told to end, as the kubelet would.
func (s *site) standsFor(pod corev1.Pod, worker interface{ Stop(time.Duration) error }) <-chan error {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	s.Cleanup(cancel)
	stream, err := s.kube.CoreV1().Pods(pod.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + pod.Name, ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(stream.Stop)
	ended := make(chan error, 1)
	go func() {
		for event := range stream.ResultChan() {
			now, ok := event.Object.(*corev1.Pod)
			if !ok {
				ended <- fmt.Errorf("the watch of pod %s broke: %v", pod.Name, event.Object)
				return
			}
			if now.DeletionTimestamp != nil {
				ended <- worker.Stop(stopTime)
				return
			}
		}
		ended <- errors.New("the watch of pod " + pod.Name + " ended")
	}()
	return ended
}
