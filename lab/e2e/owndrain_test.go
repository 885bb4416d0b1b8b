package e2e

import (
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
)

// workerPods are spread as the chart spreads them, and are there until their process has ended.
func workerPods(t *corev1.PodTemplateSpec) {
	t.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: t.Labels},
		}},
	}}
	kept(t)
}

// startWorkerOf starts the process that a pod would run: no container runs on the nodes of these tests.
func (s *site) startWorkerOf(pod corev1.Pod) *devstack.Worker {
	s.Helper()
	before := s.options.Environment
	s.options.Environment = append(before[:len(before):len(before)], "DRYDOCK_POD_UID="+string(pod.UID))
	s.startWorker()
	s.options.Environment = before
	s.Cleanup(s.worker.Kill)
	return s.worker
}

// stopAsKubelet sends SIGTERM to a worker once its pod was told to end, and lets the pod go when the process has ended.
func (s *site) stopAsKubelet(pod corev1.Pod, worker *devstack.Worker) (ended time.Time) {
	s.Helper()
	s.leaving(pod)
	s.stopWorker(worker)
	ended = time.Now()
	s.letGo(pod.Namespace)
	return ended
}

// blockedDrain is the drain of the node of a worker's pod, which a budget stops when all but two pods are gone.
func (s *site) blockedDrain(ns string, own corev1.Pod) client.WorkflowRun {
	s.Helper()
	s.deployment(ns, "app", 3, on(own.Spec.NodeName))
	s.guarded(ns, "web", own.Spec.NodeName)
	run := s.begin(own.Spec.NodeName)
	s.refusedOnce(ns)
	s.eventually("all that may go is gone", func() error {
		if n := len(s.podsOn(ns, own.Spec.NodeName)); n != 2 {
			return errors.New("other pods are there")
		}
		return nil
	})
	s.mustStay(own)
	return run
}

// handedOver checks that the drain ended after its first worker had, and evicted every pod once, the worker's last.
func (s *site) handedOver(ns string, run client.WorkflowRun, own corev1.Pod, ended time.Time) {
	s.Helper()
	status := s.until(run, api.Ready)
	if ready := status.Since; ready.Before(ended) {
		s.Errorf("the drain ended at %s, before its worker did at %s", ready, ended)
	}
	if status.Drain.Evicted != 5 {
		s.Errorf("%d pods were evicted by its own account: %+v", status.Drain.Evicted, status.Drain)
	}
	accepted := s.accepted(ns)
	for pod, times := range accepted {
		if times != 1 {
			s.Errorf("the eviction of %s was accepted %d times", pod, times)
		}
	}
	all := s.evictions(ns)
	if last := all[len(all)-1]; len(accepted) != 5 || last.Object.Name != own.Name {
		s.Errorf("evicted %v, at last %s instead of %s", accepted, last.Object.Name, own.Name)
	}
	s.done(run)
}

func TestAWorkerThatDrainsItsOwnNodeIsEvictedLastAndHandsOver(t *testing.T) {
	s := prepareSite(t, "")
	ns := s.namespace()
	s.Cleanup(func() { s.letGo(ns) })
	s.deployment(ns, "drydock-worker", 2, workerPods)
	s.budget(ns, "drydock-worker", 1)
	pods := s.pods(ns)
	own := pods[0]
	first := s.startWorkerOf(own)
	run := s.blockedDrain(ns, own)
	s.startWorkerOf(pods[1])
	s.allow(ns, "web")
	ended := s.stopAsKubelet(own, first)
	s.handedOver(ns, run, own, ended)
}

func TestTheOnlyWorkerDrainsItsOwnNodeAndGoesOnElsewhere(t *testing.T) {
	s := prepareSite(t, "")
	ns := s.namespace()
	s.Cleanup(func() { s.letGo(ns) })
	s.deployment(ns, "drydock-worker", 1, workerPods)
	own := s.one(ns, "drydock-worker")
	first := s.startWorkerOf(own)
	run := s.blockedDrain(ns, own)
	s.allow(ns, "web")
	ended := s.stopAsKubelet(own, first)
	var next corev1.Pod
	s.eventually("the pod runs elsewhere", func() error {
		for _, pod := range s.pods(ns) {
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
	s.startWorkerOf(next)
	s.handedOver(ns, run, own, ended)
}
