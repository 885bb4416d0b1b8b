package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestRolloutOf20NodesNeverExceedsTheSlots(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 3}")
	ns := s.Namespace()
	s.Deployment(ns, "web", 30)
	s.Budget(ns, "web", 25)
	s.DaemonSet(ns, "agent")
	first := s.PodsByApp(ns)
	before := s.Imprints()
	nodes := s.WatchNodes()

	// The first command waits until all slots are in use.
	dir := t.TempDir()
	command := fmt.Sprintf("touch %[1]s/{node}; until [ $(ls %[1]s | wc -l) -ge 3 ]; do sleep 0.1; done", dir)
	out := s.MustDrydock("rollout", "--all", "--yes", "--max-parallel", "10", "--", "sh", "-c", command)

	if !strings.Contains(out, "20 nodes: 20 done") {
		t.Errorf("the summary is\n%s", out)
	}
	if most := s.NobodyHolds(nodes); most != 3 {
		t.Errorf("%d nodes were held at one instant, want never more than the 3 slots, and these in use", most)
	}
	for name, imprint := range before {
		if taken := nodes.Taken(name); taken != 1 {
			t.Errorf("node %s was taken %d times", name, taken)
		}
		s.Back(name, imprint)
	}
	s.DeploymentReady(ns, "web", 30)
	now := s.PodsByApp(ns)
	for uid, node := range first["agent"] {
		if now["agent"][uid] != node {
			t.Errorf("a daemon set's pod on %s was evicted", node)
		}
	}
	for uid, node := range first["web"] {
		if _, there := now["web"][uid]; there {
			t.Errorf("a pod on %s was not evicted", node)
		}
	}
	for pod, times := range s.Accepted(ns) {
		if times != 1 {
			t.Errorf("the eviction of pod %s was accepted %d times", pod, times)
		}
	}
}

func TestMaxUnavailableCountsANotReadyNode(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 5, maxUnavailable: 2}")
	s.Ready("worker-20", false)
	first := s.Begin("worker-01")
	s.Until(first, api.Ready)
	second := s.Begin("worker-02")
	s.WaitsFor(second, "maxUnavailable 2")
	s.MustBeFree("worker-02")

	// What makes room is the other node's recovery, which nobody tells Drydock of.
	s.Ready("worker-20", true)
	s.Until(second, api.Ready)
	third := s.Begin("worker-03")
	s.WaitsFor(third, "maxUnavailable 2")
}

func TestMaxUnavailable0StopsNewNodesAndLetsTheRestGoOn(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 5}")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	running := s.Begin("worker-01")
	s.Until(running, api.Draining)
	s.RefusedOnce(ns)

	s.MustDrydock("limits", "set", "--max-unavailable", "0", "--comment", "incident 4711")
	limits := s.State().Limits
	if limits.MaxUnavailable.String() != "0" || limits.MaxParallel.String() != "5" || limits.SetBy == "" ||
		limits.SetBy == "configuration" || limits.Comment != "incident 4711" {
		t.Errorf("limits = %+v", limits)
	}
	stopped := s.Begin("worker-02")
	s.WaitsFor(stopped, "maxUnavailable 0: no further node may become unavailable")

	// A node that is down already costs nothing: it may be repaired.
	s.Ready("worker-20", false)
	s.Schedulable("worker-19", false)
	s.Until(s.Begin("worker-20"), api.Ready)
	s.Until(s.Begin("worker-19"), api.Ready)

	s.Allow(ns, "web")
	s.Until(running, api.Ready)
	s.Done(running)
	if phase := s.MustStatus(stopped).Phase; phase != api.Pending {
		t.Errorf("%s is %s, want Pending", stopped.GetID(), phase)
	}
	s.MustBeFree("worker-02")

	s.MustDrydock("limits", "set", "--no-max-unavailable", "--comment", "over")
	s.Until(stopped, api.Ready)
	var said []string
	for _, d := range s.State().Decisions {
		if strings.Contains(d.What, "limits changed") {
			said = append(said, d.Why)
		}
	}
	if strings.Join(said, ",") != "incident 4711,over" {
		t.Errorf("recorded changes of limits: %q", said)
	}
}

func TestGroupsOfNodesHaveLimitsOfTheirOwn(t *testing.T) {
	s := site.New(t, `scheduler:
  maxParallel: 10
  groups:
  - {name: zone, groupBy: [`+corev1.LabelTopologyZone+`], maxUnavailable: 1}
`)
	// Every third node is in the same zone.
	s.Until(s.Begin("worker-01"), api.Ready)
	other := s.Begin("worker-04")
	s.WaitsFor(other, "group zone["+corev1.LabelTopologyZone+"=zone-a] maxUnavailable 1")
	s.Until(s.Begin("worker-02"), api.Ready)
	s.Until(s.Begin("worker-03"), api.Ready)

	// A node of zone b that is down keeps the others of its zone in service when the maintenance there is over.
	s.Ready("worker-05", false)
	s.Done(s.RunOf("worker-02"))
	same := s.Begin("worker-08")
	s.WaitsFor(same, "zone-b")
	s.MustBeFree("worker-08")
}

func TestANodeCordonedByHandStaysCordoned(t *testing.T) {
	s := site.New(t, "")
	s.Schedulable("worker-01", false)
	s.Eventually("the node's taint is there", func() error {
		if !site.HasTaint(s.Node("worker-01"), corev1.TaintNodeUnschedulable) {
			return errors.New("it is not")
		}
		return nil
	})
	before := s.Imprint("worker-01")
	nodes := s.WatchNodes()
	run := s.Begin("worker-01")
	s.Until(run, api.Ready)
	s.MustShow("worker-01", run.GetRunID(), api.Ready)
	s.Done(run)
	s.Back("worker-01", before)
	s.NobodyHolds(nodes)
	if again := nodes.CordonedTimes("worker-01"); again != 1 {
		t.Errorf("the node became unschedulable %d times: the cordon was not left alone", again)
	}
}

func TestPodsOfADrainedNodeRunElsewhere(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Deployment(ns, "web", 20)
	s.Budget(ns, "web", 18)
	s.BudgetAllows(ns, "web", func(b *policyv1.PodDisruptionBudget) bool { return b.Status.DisruptionsAllowed == 2 })
	node := s.Pods(ns)[0].Spec.NodeName
	there := s.PodsOn(ns, node)
	run := s.Begin(node)
	s.Until(run, api.Ready)
	if left := s.PodsOn(ns, node); len(left) > 0 {
		t.Errorf("the node is Ready with %d pods", len(left))
	}
	s.DeploymentReady(ns, "web", 20)
	if accepted := s.Accepted(ns); len(accepted) != len(there) {
		t.Errorf("evictions accepted: %v, want those of the %d pods on %s", accepted, len(there), node)
	}
}
