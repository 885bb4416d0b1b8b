package plan

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/spec"
)

// apart lets pods run on some nodes only, and no two of a workload on one.
func apart(nodes ...string) site.Option {
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
	s := site.New(t, "scheduler: {maxParallel: 2}")
	ns := s.Namespace()
	// Each of the nodes has one pod of each workload, and each workload can lose one.
	for _, app := range []string{"a", "b"} {
		s.Deployment(ns, app, 2, apart("worker-01", "worker-02"))
		s.Budget(ns, app, 1)
	}
	wish := func(app, node, value string) {
		for _, pod := range s.PodsOn(ns, node) {
			if pod.Labels["app"] == app {
				s.PatchPod(pod, `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":`+value+`}}}`)
			}
		}
	}
	nodes := []string{"worker-01", "worker-02"}
	for _, node := range nodes {
		wish("a", node, `"true"`)
		wish("b", node, `"true"`)
	}
	first, second := s.Begin("worker-01"), s.Begin("worker-02")
	s.BlockedBy(first, "DoNotDisrupt")
	s.BlockedBy(second, "DoNotDisrupt")
	// Each node loses another one first, and then each wants the one that the other's budget does not give.
	wish("a", "worker-01", "null")
	wish("b", "worker-02", "null")
	s.Eventually("each has lost one", func() error {
		if accepted := s.Accepted(ns); len(accepted) != 2 {
			return fmt.Errorf("evicted %v", accepted)
		}
		return nil
	})
	wish("b", "worker-01", "null")
	wish("a", "worker-02", "null")
	s.BlockedBy(first, "DisruptionBudget")
	s.BlockedBy(second, "DisruptionBudget")
	s.EvictedOnce(ns, 2)
	s.Signal(second, api.MsgEscalate, api.Escalate{Do: spec.GiveBack})

	// What the second node lost comes back to it, and so the first can lose its own.
	s.Until(first, api.Ready)
	if status := s.UntilStatus(second, "given back", func(status api.Status) bool { return status.Attempt == 2 }); status.Phase != api.Pending || status.Attempt != 2 {
		t.Errorf("the second is %s in attempt %d", status.Phase, status.Attempt)
	}
	s.Done(first)
	s.DeploymentReady(ns, "a", 2)
	s.DeploymentReady(ns, "b", 2)
	s.Signal(second, api.MsgRetryNow, nil)
	s.Until(second, api.Ready)
	s.Done(second)
	s.EvictedOnce(ns, 5)
}

func TestAWorkerDrainsItsOwnNode(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "drydock", "worker-01", site.SlowToEnd("2s"))
	s.Guarded(ns, "web", "worker-01")
	s.Deployment(ns, "quick", 3, site.On("worker-01"))
	run := s.Begin("worker-01")
	s.RefusedOnce(ns)
	// This worker drains by now. Another one is elsewhere.
	first := s.Worker
	s.Cleanup(first.Kill)
	s.StartWorker()
	stopped := standsFor(s, s.One(ns, "drydock"), first)
	s.Allow(ns, "drydock")
	select {
	case err := <-stopped:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(site.Patience):
		t.Fatal("the pod was not told to end")
	}
	s.Allow(ns, "web")
	s.Until(run, api.Ready)
	if left := s.PodsOn(ns, "worker-01"); len(left) > 0 {
		t.Errorf("the node is Ready with pods %v", left)
	}
	s.EvictedOnce(ns, 5)
	s.Done(run)
}

// standsFor stops a worker as soon as a pod is told to end, as the kubelet would.
func standsFor(s *site.Site, pod corev1.Pod, worker interface{ Stop(time.Duration) error }) <-chan error {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Ctx, site.Patience)
	s.Cleanup(cancel)
	stream, err := s.Kube.CoreV1().Pods(pod.Namespace).Watch(ctx, metav1.ListOptions{
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
				ended <- worker.Stop(site.StopTime)
				return
			}
		}
		ended <- errors.New("the watch of pod " + pod.Name + " ended")
	}()
	return ended
}
