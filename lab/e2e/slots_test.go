package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"drydock.dev/drydock/api"
)

func TestRolloutOf20NodesNeverExceedsTheSlots(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 3}")
	ns := s.namespace()
	s.deployment(ns, "web", 30)
	s.budget(ns, "web", 25)
	s.daemonSet(ns, "agent")
	first := s.podsByApp(ns)
	before := s.imprints()
	nodes := s.watchNodes()

	// The first command waits until all slots are in use.
	dir := t.TempDir()
	command := fmt.Sprintf("touch %[1]s/{node}; until [ $(ls %[1]s | wc -l) -ge 3 ]; do sleep 0.1; done", dir)
	out := s.mustDrydock("rollout", "--all", "--yes", "--max-parallel", "10", "--", "sh", "-c", command)

	if !strings.Contains(out, "20 nodes: 20 done") {
		t.Errorf("the summary is\n%s", out)
	}
	if most := s.nobodyHolds(nodes); most != 3 {
		t.Errorf("%d nodes were held at one instant, want never more than the 3 slots, and these in use", most)
	}
	for name, imprint := range before {
		if taken := nodes.taken(name); taken != 1 {
			t.Errorf("node %s was taken %d times", name, taken)
		}
		s.back(name, imprint)
	}
	s.deploymentReady(ns, "web", 30)
	now := s.podsByApp(ns)
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
	for pod, times := range s.accepted(ns) {
		if times != 1 {
			t.Errorf("the eviction of pod %s was accepted %d times", pod, times)
		}
	}
}

// podsByApp are the nodes of a namespace's pods, by workload and UID.
func (s *site) podsByApp(ns string) map[string]map[string]string {
	s.Helper()
	found := map[string]map[string]string{}
	for _, pod := range s.pods(ns) {
		app := pod.Labels["app"]
		if found[app] == nil {
			found[app] = map[string]string{}
		}
		found[app][string(pod.UID)] = pod.Spec.NodeName
	}
	return found
}

func TestMaxUnavailableCountsANotReadyNode(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 5, maxUnavailable: 2}")
	s.ready("worker-20", false)
	first := s.begin("worker-01")
	s.until(first, api.Ready)
	second := s.begin("worker-02")
	s.waitsFor(second, "maxUnavailable 2")
	s.mustBeFree("worker-02")

	// What makes room is the other node's recovery, which nobody tells Drydock of.
	s.ready("worker-20", true)
	s.until(second, api.Ready)
	third := s.begin("worker-03")
	s.waitsFor(third, "maxUnavailable 2")
}

// waitsFor waits until a maintenance is told why it has no slot, and returns the reason.
func (s *site) waitsFor(run interface{ GetID() string }, reason string) string {
	s.Helper()
	var found string
	s.eventually(run.GetID()+" waits for "+reason, func() error {
		for _, p := range s.state().Pending {
			if api.MaintenanceID(s.cluster, p.Node, p.Requestor) == run.GetID() {
				if found = p.Reason; strings.Contains(found, reason) {
					return nil
				}
				return fmt.Errorf("it waits for %q", found)
			}
		}
		return errors.New("it does not wait")
	})
	return found
}

func TestMaxUnavailable0StopsNewNodesAndLetsTheRestGoOn(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 5}")
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	running := s.begin("worker-01")
	s.until(running, api.Draining)
	s.refusedOnce(ns)

	s.mustDrydock("limits", "set", "--max-unavailable", "0", "--comment", "incident 4711")
	limits := s.state().Limits
	if limits.MaxUnavailable.String() != "0" || limits.MaxParallel.String() != "5" || limits.SetBy == "" ||
		limits.SetBy == "configuration" || limits.Comment != "incident 4711" {
		t.Errorf("limits = %+v", limits)
	}
	stopped := s.begin("worker-02")
	s.waitsFor(stopped, "maxUnavailable 0: no further node may become unavailable")

	// A node that is down already costs nothing: it may be repaired.
	s.ready("worker-20", false)
	s.schedulable("worker-19", false)
	s.until(s.begin("worker-20"), api.Ready)
	s.until(s.begin("worker-19"), api.Ready)

	s.allow(ns, "web")
	s.until(running, api.Ready)
	s.done(running)
	if phase := s.mustStatus(stopped).Phase; phase != api.Pending {
		t.Errorf("%s is %s, want Pending", stopped.GetID(), phase)
	}
	s.mustBeFree("worker-02")

	s.mustDrydock("limits", "set", "--no-max-unavailable", "--comment", "over")
	s.until(stopped, api.Ready)
	var said []string
	for _, d := range s.state().Decisions {
		if strings.Contains(d.What, "limits changed") {
			said = append(said, d.Why)
		}
	}
	if strings.Join(said, ",") != "incident 4711,over" {
		t.Errorf("recorded changes of limits: %q", said)
	}
}

func TestGroupsOfNodesHaveLimitsOfTheirOwn(t *testing.T) {
	s := newSite(t, `scheduler:
  maxParallel: 10
  groups:
  - {name: zone, groupBy: [`+corev1.LabelTopologyZone+`], maxUnavailable: 1}
`)
	// Every third node is in the same zone.
	s.until(s.begin("worker-01"), api.Ready)
	other := s.begin("worker-04")
	s.waitsFor(other, "group zone["+corev1.LabelTopologyZone+"=zone-a] maxUnavailable 1")
	s.until(s.begin("worker-02"), api.Ready)
	s.until(s.begin("worker-03"), api.Ready)

	// A node of zone b that is down keeps the others of its zone in service when the maintenance there is over.
	s.ready("worker-05", false)
	s.done(s.runOf("worker-02"))
	same := s.begin("worker-08")
	s.waitsFor(same, "zone-b")
	s.mustBeFree("worker-08")
}

func TestANodeCordonedByHandStaysCordoned(t *testing.T) {
	s := newSite(t, "")
	s.schedulable("worker-01", false)
	s.eventually("the node's taint is there", func() error {
		if !hasTaint(s.node("worker-01"), corev1.TaintNodeUnschedulable) {
			return errors.New("it is not")
		}
		return nil
	})
	before := s.imprint("worker-01")
	nodes := s.watchNodes()
	run := s.begin("worker-01")
	s.until(run, api.Ready)
	s.mustShow("worker-01", run.GetRunID(), api.Ready)
	s.done(run)
	s.back("worker-01", before)
	s.nobodyHolds(nodes)
	if again := nodes.cordonedTimes("worker-01"); again != 1 {
		t.Errorf("the node became unschedulable %d times: the cordon was not left alone", again)
	}
}

func TestPodsOfADrainedNodeRunElsewhere(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.deployment(ns, "web", 20)
	s.budget(ns, "web", 18)
	s.budgetAllows(ns, "web", func(b *policyv1.PodDisruptionBudget) bool { return b.Status.DisruptionsAllowed == 2 })
	node := s.pods(ns)[0].Spec.NodeName
	there := s.podsOn(ns, node)
	run := s.begin(node)
	s.until(run, api.Ready)
	if left := s.podsOn(ns, node); len(left) > 0 {
		t.Errorf("the node is Ready with %d pods", len(left))
	}
	s.deploymentReady(ns, "web", 20)
	if accepted := s.accepted(ns); len(accepted) != len(there) {
		t.Errorf("evictions accepted: %v, want those of the %d pods on %s", accepted, len(there), node)
	}
}
