package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

func TestReadyTimeoutKeepsTheNodeOutUntilRetryAndDone(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	run := s.beginWith("worker-01", `"readyTimeout":"15s"`)
	status := s.until(run, api.RequestorFailed)
	if held := s.entered(status.Transitions, api.RequestorFailed).Sub(s.entered(status.Transitions, api.Ready)); held < 15*time.Second {
		t.Errorf("Ready for %s only", held)
	}
	if !strings.Contains(status.Failure, "readyTimeout") {
		t.Errorf("failure = %q", status.Failure)
	}
	s.mustShow("worker-01", run.GetRunID(), api.RequestorFailed)
	if !slices.Equal(s.holders(), []string{"worker-01"}) {
		t.Errorf("holders = %v, want the slot kept", s.holders())
	}
	s.eventually("a warning says so", func() error {
		if warned := s.nodeEvents("worker-01", "MaintenanceRequestorFailed"); len(warned) != 1 || warned[0].Type != "Warning" {
			return fmt.Errorf("events: %+v", warned)
		}
		return nil
	})

	s.signal(run, api.MsgRetry, nil)
	s.until(run, api.Ready)
	if _, err := s.tell(run, api.MsgExtend, map[string]string{"for": "1h"}); err != nil {
		t.Fatal(err)
	}
	status = s.mustStatus(run)
	if left := time.Until(*status.ReadyDeadline); left < 59*time.Minute || left > time.Hour {
		t.Errorf("an hour's extension leaves %s", left)
	}
	s.mustShow("worker-01", run.GetRunID(), api.Ready)
	s.done(run)
	s.back("worker-01", before)
}

// entered is when a maintenance first came into a phase, which may be over.
func (s *site) entered(passed []api.Transition, phase api.Phase) time.Time {
	s.Helper()
	first := slices.IndexFunc(passed, func(t api.Transition) bool { return t.Phase == phase })
	if first < 0 {
		s.Fatalf("it was never %s: %+v", phase, passed)
	}
	return passed[first].At
}

func TestReadyTimeoutReleasesWhereAskedTo(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	run := s.beginWith("worker-01", `"readyTimeout":"1s","onReadyTimeout":"release"`)
	result := s.mustEnd(run, api.Completed)
	if !slices.ContainsFunc(result.Transitions, func(t api.Transition) bool { return strings.Contains(t.Message, "readyTimeout") }) {
		t.Errorf("the result does not tell why: %+v", result.Transitions)
	}
	s.back("worker-01", before)
}

func TestAFailedRequestorDecidesLater(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	run := s.begin("worker-01")
	s.until(run, api.Ready)
	for n := range 2 {
		s.signal(run, api.MsgFailed, api.FailedMessage{Reason: fmt.Sprintf("try %d", n)})
		if status := s.until(run, api.RequestorFailed); status.Failure != fmt.Sprintf("try %d", n) || status.ReadyDeadline != nil {
			t.Errorf("failure %q, deadline %v", status.Failure, status.ReadyDeadline)
		}
		s.mustShow("worker-01", run.GetRunID(), api.RequestorFailed)
		s.signal(run, api.MsgRetry, nil)
		if status := s.until(run, api.Ready); status.Failure != "" {
			t.Errorf("failure %q after retry", status.Failure)
		}
		s.mustShow("worker-01", run.GetRunID(), api.Ready)
	}
	// Done counts where the requestor had failed, too: somebody has repaired it meanwhile.
	s.signal(run, api.MsgFailed, nil)
	s.until(run, api.RequestorFailed)
	s.done(run)
	s.back("worker-01", before)
}

func TestAReplacedNodeIsAdoptedWhileReady(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	run := s.begin("worker-01")
	s.untilHeld(run)
	old := s.node("worker-01").UID
	// Whoever tells of held nodes has to have seen this one held.
	s.watched(run)
	fresh := s.deleteNode("worker-01")
	s.untilAdopting(run)
	if !slices.Equal(s.holders(), []string{"worker-01"}) {
		t.Errorf("holders = %v, want the slot kept while the node is away", s.holders())
	}
	s.createNode(fresh)
	if s.node("worker-01").UID == old {
		t.Fatal("the node was not replaced")
	}
	s.untilHeldAnew("worker-01", run)
	if phase := s.mustStatus(run).Phase; phase != api.Ready {
		t.Errorf("phase = %s", phase)
	}
	s.done(run)
	s.back("worker-01", before)
	s.slotFree("worker-01")
}

// watched waits until the scheduler's watch has the holder of a run.
func (s *site) watched(run interface{ GetRunID() string }) {
	s.Helper()
	s.eventually("the scheduler watches the holder", func() error {
		described, err := s.temporal.DescribeWorkflowExecution(s.ctx, api.SchedulerID(s.cluster), "")
		if err != nil {
			return err
		}
		for _, a := range described.PendingActivities {
			for _, p := range a.HeartbeatDetails.GetPayloads() {
				if strings.Contains(string(p.GetData()), run.GetRunID()) {
					return nil
				}
			}
		}
		return errors.New("it does not")
	})
}

func TestAReplacedNodeEndsTheMaintenanceWhereAskedTo(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	run := s.beginWith("worker-01", `"onNodeReplaced":"end"`)
	s.untilHeld(run)
	s.watched(run)
	s.createNode(s.deleteNode("worker-01"))
	s.mustEnd(run, api.NodeGone)
	s.back("worker-01", before)
	s.slotFree("worker-01")
}

func TestANodeDeletedBeforeReadyIsGone(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 1}")
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	draining := s.begin("worker-01")
	s.until(draining, api.Draining)
	s.refusedOnce(ns)
	pending := s.begin("worker-02")
	s.waitsFor(pending, "maxParallel 1")

	s.deleteNode("worker-02")
	s.mustEnd(pending, api.NodeGone)
	s.deleteNode("worker-01")
	s.mustEnd(draining, api.NodeGone)
	s.slotFree("worker-01")
	if accepted := s.accepted(ns); len(accepted) > 0 {
		t.Errorf("evicted: %v", accepted)
	}
	// The slot is of use to the next one.
	s.until(s.begin("worker-03"), api.Ready)
}

func TestAPersonWhoUncordonsIsToldThreeTimes(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	run := s.begin("worker-01")
	s.untilHeld(run)
	for n := 1; n <= 3; n++ {
		s.schedulable("worker-01", true)
		s.eventually("the node is cordoned again", func() error {
			if !s.node("worker-01").Spec.Unschedulable {
				return errors.New("it is not")
			}
			return nil
		})
		s.eventually("a warning says so", func() error {
			events := s.nodeEvents("worker-01", "CordonRestored")
			if len(events) != n || events[0].Type != "Warning" {
				return fmt.Errorf("%d events: %+v", len(events), events)
			}
			return nil
		})
	}
	s.schedulable("worker-01", true)
	s.eventually("the last warning says that it is left schedulable", func() error {
		if events := s.nodeEvents("worker-01", "CordonContested"); len(events) != 1 || events[0].Type != "Warning" {
			return fmt.Errorf("events: %+v", events)
		}
		return nil
	})
	s.always("the node is left schedulable", time.Second, func() error {
		if s.node("worker-01").Spec.Unschedulable {
			return errors.New("it is cordoned once more")
		}
		return nil
	})
	s.done(run)
	s.back("worker-01", before)
}

func TestNodesReplacedOneAfterTheOtherAreAllAdopted(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 4}")
	names := []string{"worker-01", "worker-02", "worker-03"}
	runs := map[string]client.WorkflowRun{}
	before := s.imprints()
	for _, name := range names {
		runs[name] = s.begin(name)
	}
	for _, name := range names {
		s.untilHeld(runs[name])
		s.watched(runs[name])
	}
	// Re-imaging a pool deletes nodes one after the other, each as soon as the one before was noticed.
	fresh := map[string]*corev1.Node{}
	for _, name := range names {
		fresh[name] = s.deleteNode(name)
		s.untilAdopting(runs[name])
	}
	for _, name := range names {
		s.createNode(fresh[name])
		s.untilHeldAnew(name, runs[name])
	}
	for _, name := range names {
		s.done(runs[name])
		s.back(name, before[name])
	}
}

// untilAdopting waits until a maintenance knows that its node is gone.
func (s *site) untilAdopting(run client.WorkflowRun) {
	s.Helper()
	s.untilStatus(run, "aware of the deletion", func(status api.Status) bool {
		return strings.Contains(status.Transitions[len(status.Transitions)-1].Message, "adopted")
	})
}

// untilHeldAnew waits until the replacement of a node is held and cordoned.
func (s *site) untilHeldAnew(name string, run client.WorkflowRun) {
	s.Helper()
	s.eventually("the replacement of "+name+" is held", func() error {
		n := s.node(name)
		mark, err := k8s.MarkOf(n)
		if err != nil || !mark.HeldBy(run.GetID(), run.GetRunID()) || !n.Spec.Unschedulable {
			return fmt.Errorf("unschedulable %t, mark %+v, %v", n.Spec.Unschedulable, mark, err)
		}
		return nil
	})
}
