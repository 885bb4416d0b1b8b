package scheduler

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestAWorkerKilledWhileDrainingChangesNothing(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	before := s.Imprint("worker-01")
	// When the worker dies one pod is blocked, others are on their way out, and others are gone.
	s.Guarded(ns, "web", "worker-01")
	s.Deployment(ns, "quick", 3, site.On("worker-01"))
	s.Deployment(ns, "slow", 3, site.On("worker-01"), site.Kept)
	s.Cleanup(func() { s.LetGo(ns) })
	there := s.PodsOn(ns, "worker-01")
	run := s.Begin("worker-01")
	s.RefusedOnce(ns)
	s.Eventually("all but one are evicted", func() error {
		if accepted := s.Accepted(ns); len(accepted) != len(there)-1 {
			return fmt.Errorf("%d of %d", len(accepted), len(there))
		}
		return nil
	})
	s.Worker.Kill()
	s.Allow(ns, "web")
	s.StartWorker()
	s.LetGo(ns)
	s.Until(run, api.Ready)
	for name := range there {
		if times := s.Accepted(ns)[name]; times != 1 {
			t.Errorf("the eviction of pod %s was accepted %d times", name, times)
		}
	}
	if left := s.PodsOn(ns, "worker-01"); len(left) > 0 {
		t.Errorf("the node is Ready with pods %v", left)
	}
	s.Done(run)
	s.Back("worker-01", before)
	s.SlotFree("worker-01")
}

func TestADrainTakenBackWhileItsWorkerIsLostIsBegunAnew(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	pod := s.One(ns, "web")
	run := s.Begin("worker-01")
	s.RefusedOnce(ns)
	// The server takes the lost worker's drain for running for some seconds yet, and is told to cancel it.
	s.Worker.Kill()
	s.Signal(run, api.MsgSkipPod, api.SkipPod{Pod: ns + "/" + pod.Name})
	s.StartWorker()
	s.Until(run, api.Ready)
	s.MustStay(pod)
	s.Done(run)
}

func TestSlowAWorkerKilledInARolloutEndsInTheSameState(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	ns := s.Namespace()
	s.Deployment(ns, "web", 8)
	s.Budget(ns, "web", 7)
	before := s.Imprints()
	nodes := s.WatchNodes()
	rollout := s.Spawn("rollout", "worker-01", "worker-02", "worker-03", "worker-04",
		"--max-parallel", "4", "--yes", "--", "true")
	// The kill comes at whatever the worker is doing then.
	s.Eventually("a second node is taken", func() error {
		if now := nodes.TakenAll(); now < 2 {
			return fmt.Errorf("%d so far", now)
		}
		return nil
	})
	s.Worker.Kill()
	s.StartWorker()
	// An eviction that the kill cut off may be counted by the budget already, with the pod still there: Kubernetes takes
	// it back after two minutes.
	s.Exits(rollout.EndWithin(cutOffEviction+site.Patience), 0, "4 nodes: 4 done")
	if most := s.NobodyHolds(nodes); most > 2 {
		t.Errorf("%d nodes were held at one instant, want 2 at most", most)
	}
	for name, imprint := range before {
		s.Back(name, imprint)
	}
	for pod, times := range s.Accepted(ns) {
		if times != 1 {
			t.Errorf("the eviction of pod %s was accepted %d times", pod, times)
		}
	}
}

// cutOffEviction is for how long a budget counts an eviction whose pod was not deleted.
const cutOffEviction = 2 * time.Minute

func TestATerminatedMaintenanceLosesItsSlotAndItsNode(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	before := s.Imprint("worker-01")
	s.Guarded(ns, "web", "worker-01")
	pod := s.One(ns, "web")
	run := s.Begin("worker-01")
	s.Until(run, api.Draining)
	s.RefusedOnce(ns)
	next := s.Begin("worker-02")
	s.WaitsFor(next, "maxParallel 1")

	if err := s.Temporal.TerminateWorkflow(s.Ctx, run.GetID(), run.GetRunID(), "by hand"); err != nil {
		t.Fatal(err)
	}
	s.Until(next, api.Ready)
	s.Back("worker-01", before)
	s.Allow(ns, "web")
	s.Always("the pod is left alone", 2*time.Second, func() error {
		if accepted := s.Accepted(ns); len(accepted) > 0 {
			return fmt.Errorf("evicted: %v", accepted)
		}
		return nil
	})
	s.MustStay(pod)
	if told := s.NodeEvents("worker-01", "MaintenanceReclaimed"); len(told) != 1 || told[0].Type != "Warning" {
		t.Errorf("events: %+v", told)
	}
}

func TestATerminatedMaintenanceIsReportedWhereAskedTo(t *testing.T) {
	s := site.New(t, "scheduler: {onOrphan: report}")
	run := s.Begin("worker-01")
	s.UntilHeld(run)
	if err := s.Temporal.TerminateWorkflow(s.Ctx, run.GetID(), run.GetRunID(), "by hand"); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the slot is reclaimed", func() error {
		if holders := s.Holders(); len(holders) > 0 {
			return fmt.Errorf("holders %v", holders)
		}
		return nil
	})
	s.MustShow("worker-01", run.GetRunID(), "Orphaned")
	if told := s.NodeEvents("worker-01", "MaintenanceOrphaned"); len(told) != 1 {
		t.Errorf("events: %+v", told)
	}
}

func TestASlotIsReclaimedInTheMiddleOfARollout(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 3}")
	before := s.Imprint("worker-20")
	dead := s.Begin("worker-20")
	s.UntilHeld(dead)
	// It grants all the time, so that whoever looks after the holders is interrupted all the time.
	rollout := s.Spawn("rollout", "-v", "--selector", corev1.LabelHostname+"!=worker-20", "--yes", "--max-parallel", "2", "--", "sleep", "4")
	rollout.Says("Ready")
	if err := s.Temporal.TerminateWorkflow(s.Ctx, dead.GetID(), dead.GetRunID(), "by hand"); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the node is given back", func() error {
		select {
		case <-rollout.Exited:
			t.Fatal("the rollout is over, and the node is not given back")
		default:
		}
		if after := s.Imprint("worker-20"); after != before {
			return errors.New(after)
		}
		return nil
	})
	rollout.Interrupt()
	s.Exits(rollout.End(), 3)
}
