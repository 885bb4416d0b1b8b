package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
)

func TestAWorkerKilledWhileDrainingChangesNothing(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	before := s.imprint("worker-01")
	// When the worker dies one pod is blocked, others are on their way out, and others are gone.
	s.guarded(ns, "web", "worker-01")
	s.deployment(ns, "quick", 3, on("worker-01"))
	s.deployment(ns, "slow", 3, on("worker-01"), kept)
	s.Cleanup(func() { s.letGo(ns) })
	there := s.podsOn(ns, "worker-01")
	run := s.begin("worker-01")
	s.refusedOnce(ns)
	s.eventually("all but one are evicted", func() error {
		if accepted := s.accepted(ns); len(accepted) != len(there)-1 {
			return fmt.Errorf("%d of %d", len(accepted), len(there))
		}
		return nil
	})
	s.worker.Kill()
	s.allow(ns, "web")
	s.startWorker()
	s.letGo(ns)
	s.until(run, api.Ready)
	for name := range there {
		if times := s.accepted(ns)[name]; times != 1 {
			t.Errorf("the eviction of pod %s was accepted %d times", name, times)
		}
	}
	if left := s.podsOn(ns, "worker-01"); len(left) > 0 {
		t.Errorf("the node is Ready with pods %v", left)
	}
	s.done(run)
	s.back("worker-01", before)
	s.slotFree("worker-01")
}

func TestADrainTakenBackWhileItsWorkerIsLostIsBegunAnew(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	pod := s.one(ns, "web")
	run := s.begin("worker-01")
	s.refusedOnce(ns)
	// The server takes the lost worker's drain for running for some seconds yet, and is told to cancel it.
	s.worker.Kill()
	s.signal(run, api.MsgSkipPod, api.SkipPod{Pod: ns + "/" + pod.Name})
	s.startWorker()
	s.until(run, api.Ready)
	s.mustStay(pod)
	s.done(run)
}

func TestAWorkerKilledInARolloutEndsInTheSameState(t *testing.T) {
	slow(t)
	s := newSite(t, "scheduler: {maxParallel: 2}")
	ns := s.namespace()
	s.deployment(ns, "web", 8)
	s.budget(ns, "web", 7)
	before := s.imprints()
	nodes := s.watchNodes()
	rollout := s.spawn("rollout", "worker-01", "worker-02", "worker-03", "worker-04",
		"--max-parallel", "4", "--yes", "--", "true")
	// The kill comes at whatever the worker is doing then.
	s.eventually("a second node is taken", func() error {
		if now := nodes.takenAll(); now < 2 {
			return fmt.Errorf("%d so far", now)
		}
		return nil
	})
	s.worker.Kill()
	s.startWorker()
	// An eviction that the kill cut off may be counted by the budget already, with the pod still there: Kubernetes takes
	// it back after two minutes.
	s.exits(rollout.endWithin(cutOffEviction+patience), 0, "4 nodes: 4 done")
	if most := s.nobodyHolds(nodes); most > 2 {
		t.Errorf("%d nodes were held at one instant, want 2 at most", most)
	}
	for name, imprint := range before {
		s.back(name, imprint)
	}
	for pod, times := range s.accepted(ns) {
		if times != 1 {
			t.Errorf("the eviction of pod %s was accepted %d times", pod, times)
		}
	}
}

// cutOffEviction is for how long a budget counts an eviction whose pod was not deleted.
const cutOffEviction = 2 * time.Minute

func TestATerminatedMaintenanceLosesItsSlotAndItsNode(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	before := s.imprint("worker-01")
	s.guarded(ns, "web", "worker-01")
	pod := s.one(ns, "web")
	run := s.begin("worker-01")
	s.until(run, api.Draining)
	s.refusedOnce(ns)
	next := s.begin("worker-02")
	s.waitsFor(next, "maxParallel 1")

	if err := s.temporal.TerminateWorkflow(s.ctx, run.GetID(), run.GetRunID(), "by hand"); err != nil {
		t.Fatal(err)
	}
	s.until(next, api.Ready)
	s.back("worker-01", before)
	s.allow(ns, "web")
	s.always("the pod is left alone", 2*time.Second, func() error {
		if accepted := s.accepted(ns); len(accepted) > 0 {
			return fmt.Errorf("evicted: %v", accepted)
		}
		return nil
	})
	s.mustStay(pod)
	if told := s.nodeEvents("worker-01", "MaintenanceReclaimed"); len(told) != 1 || told[0].Type != "Warning" {
		t.Errorf("events: %+v", told)
	}
}

func TestATerminatedMaintenanceIsReportedWhereAskedTo(t *testing.T) {
	s := newSite(t, "scheduler: {onOrphan: report}")
	run := s.begin("worker-01")
	s.untilHeld(run)
	if err := s.temporal.TerminateWorkflow(s.ctx, run.GetID(), run.GetRunID(), "by hand"); err != nil {
		t.Fatal(err)
	}
	s.eventually("the slot is reclaimed", func() error {
		if holders := s.holders(); len(holders) > 0 {
			return fmt.Errorf("holders %v", holders)
		}
		return nil
	})
	s.mustShow("worker-01", run.GetRunID(), "Orphaned")
	if told := s.nodeEvents("worker-01", "MaintenanceOrphaned"); len(told) != 1 {
		t.Errorf("events: %+v", told)
	}
}

func TestASlotIsReclaimedInTheMiddleOfARollout(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 3}")
	before := s.imprint("worker-20")
	dead := s.begin("worker-20")
	s.untilHeld(dead)
	// It grants all the time, so that whoever looks after the holders is interrupted all the time.
	rollout := s.spawn("rollout", "-v", "--selector", corev1.LabelHostname+"!=worker-20", "--yes", "--max-parallel", "2", "--", "sleep", "4")
	rollout.says("Ready")
	if err := s.temporal.TerminateWorkflow(s.ctx, dead.GetID(), dead.GetRunID(), "by hand"); err != nil {
		t.Fatal(err)
	}
	s.eventually("the node is given back", func() error {
		select {
		case <-rollout.exited:
			t.Fatal("the rollout is over, and the node is not given back")
		default:
		}
		if after := s.imprint("worker-20"); after != before {
			return errors.New(after)
		}
		return nil
	})
	rollout.interrupt()
	s.exits(rollout.end(), 3)
}
