package drain

import (
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/e2e/site"
)

// workerPods are spread as the chart spreads them, and are there until their process has ended.
func workerPods(t *corev1.PodTemplateSpec) {
	t.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: t.Labels},
		}},
	}}
	site.Kept(t)
}

// startWorkerOf starts the process that a pod would run: no container runs on the nodes of these tests.
func startWorkerOf(s *site.Site, pod corev1.Pod) *devstack.Worker {
	s.Helper()
	before := s.Options.Environment
	s.Options.Environment = append(before[:len(before):len(before)], "DRYDOCK_POD_UID="+string(pod.UID))
	s.StartWorker()
	s.Options.Environment = before
	s.Cleanup(s.Worker.Kill)
	return s.Worker
}

// stopAsKubelet sends SIGTERM to a worker once its pod was told to end, and lets the pod go when the process has ended.
func stopAsKubelet(s *site.Site, pod corev1.Pod, worker *devstack.Worker) (ended time.Time) {
	s.Helper()
	s.Leaving(pod)
	s.StopWorker(worker)
	ended = time.Now()
	s.LetGo(pod.Namespace)
	return ended
}

// blockedDrain is the drain of the node of a worker's pod, which a budget stops when all but two pods are gone.
func blockedDrain(s *site.Site, ns string, own corev1.Pod) client.WorkflowRun {
	s.Helper()
	s.Deployment(ns, "app", 3, site.On(own.Spec.NodeName))
	s.Guarded(ns, "web", own.Spec.NodeName)
	run := s.Begin(own.Spec.NodeName)
	s.RefusedOnce(ns)
	s.Eventually("all that may go is gone", func() error {
		if n := len(s.PodsOn(ns, own.Spec.NodeName)); n != 2 {
			return errors.New("other pods are there")
		}
		return nil
	})
	s.MustStay(own)
	return run
}

// handedOver checks that the drain ended after its first worker had, and evicted every pod once, the worker's last.
func handedOver(s *site.Site, ns string, run client.WorkflowRun, own corev1.Pod, ended time.Time) {
	s.Helper()
	status := s.Until(run, api.Ready)
	if ready := status.Since; ready.Before(ended) {
		s.Errorf("the drain ended at %s, before its worker did at %s", ready, ended)
	}
	if status.Drain.Evicted != 5 {
		s.Errorf("%d pods were evicted by its own account: %+v", status.Drain.Evicted, status.Drain)
	}
	accepted := s.Accepted(ns)
	for pod, times := range accepted {
		if times != 1 {
			s.Errorf("the eviction of %s was accepted %d times", pod, times)
		}
	}
	all := s.Evictions(ns)
	if last := all[len(all)-1]; len(accepted) != 5 || last.Object.Name != own.Name {
		s.Errorf("evicted %v, at last %s instead of %s", accepted, last.Object.Name, own.Name)
	}
	s.Done(run)
}

func TestAWorkerThatDrainsItsOwnNodeIsEvictedLastAndHandsOver(t *testing.T) {
	s := site.Prepare(t, "")
	ns := s.Namespace()
	s.Cleanup(func() { s.LetGo(ns) })
	s.Deployment(ns, "drydock-worker", 2, workerPods)
	s.Budget(ns, "drydock-worker", 1)
	pods := s.Pods(ns)
	own := pods[0]
	first := startWorkerOf(s, own)
	run := blockedDrain(s, ns, own)
	startWorkerOf(s, pods[1])
	s.Allow(ns, "web")
	ended := stopAsKubelet(s, own, first)
	handedOver(s, ns, run, own, ended)
}

func TestTheOnlyWorkerDrainsItsOwnNodeAndGoesOnElsewhere(t *testing.T) {
	s := site.Prepare(t, "")
	ns := s.Namespace()
	s.Cleanup(func() { s.LetGo(ns) })
	s.Deployment(ns, "drydock-worker", 1, workerPods)
	own := s.One(ns, "drydock-worker")
	first := startWorkerOf(s, own)
	run := blockedDrain(s, ns, own)
	s.Allow(ns, "web")
	ended := stopAsKubelet(s, own, first)
	var next corev1.Pod
	s.Eventually("the pod runs elsewhere", func() error {
		for _, pod := range s.Pods(ns) {
			if pod.Labels["app"] == "drydock-worker" && pod.UID != own.UID && pod.Status.Phase == corev1.PodRunning {
				next = pod
				return nil
			}
		}
		return errors.New("it does not")
	})
	if next.Spec.NodeName == own.Spec.NodeName {
		t.Fatalf("it came back to %s", own.Spec.NodeName)
	}
	startWorkerOf(s, next)
	handedOver(s, ns, run, own, ended)
}
