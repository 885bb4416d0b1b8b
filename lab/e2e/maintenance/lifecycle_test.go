package maintenance

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
	"drydock.dev/drydock/lab/e2e/site"
)

func TestReadyTimeoutKeepsTheNodeOutUntilRetryAndDone(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	run := s.BeginWith("worker-01", `"readyTimeout":"15s"`)
	status := s.Until(run, api.RequestorFailed)
	if held := s.Entered(status.Transitions, api.RequestorFailed).Sub(s.Entered(status.Transitions, api.Ready)); held < 15*time.Second {
		t.Errorf("Ready for %s only", held)
	}
	if !strings.Contains(status.Failure, "readyTimeout") {
		t.Errorf("failure = %q", status.Failure)
	}
	s.MustShow("worker-01", run.GetRunID(), api.RequestorFailed)
	if !slices.Equal(s.Holders(), []string{"worker-01"}) {
		t.Errorf("holders = %v, want the slot kept", s.Holders())
	}
	s.Eventually("a warning says so", func() error {
		if warned := s.NodeEvents("worker-01", "MaintenanceRequestorFailed"); len(warned) != 1 || warned[0].Type != "Warning" {
			return fmt.Errorf("events: %+v", warned)
		}
		return nil
	})

	s.Signal(run, api.MsgRetry, nil)
	s.Until(run, api.Ready)
	if _, err := s.Tell(run, api.MsgExtend, map[string]string{"for": "1h"}); err != nil {
		t.Fatal(err)
	}
	status = s.MustStatus(run)
	if left := time.Until(*status.ReadyDeadline); left < 59*time.Minute || left > time.Hour {
		t.Errorf("an hour's extension leaves %s", left)
	}
	s.MustShow("worker-01", run.GetRunID(), api.Ready)
	s.Done(run)
	s.Back("worker-01", before)
}

func TestReadyTimeoutReleasesWhereAskedTo(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	run := s.BeginWith("worker-01", `"readyTimeout":"1s","onReadyTimeout":"release"`)
	result := s.MustEnd(run, api.Completed)
	if !slices.ContainsFunc(result.Transitions, func(t api.Transition) bool { return strings.Contains(t.Message, "readyTimeout") }) {
		t.Errorf("the result does not tell why: %+v", result.Transitions)
	}
	s.Back("worker-01", before)
}

func TestAFailedRequestorDecidesLater(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	run := s.Begin("worker-01")
	s.Until(run, api.Ready)
	for n := range 2 {
		s.Signal(run, api.MsgFailed, api.FailedMessage{Reason: fmt.Sprintf("try %d", n)})
		if status := s.Until(run, api.RequestorFailed); status.Failure != fmt.Sprintf("try %d", n) || status.ReadyDeadline != nil {
			t.Errorf("failure %q, deadline %v", status.Failure, status.ReadyDeadline)
		}
		s.MustShow("worker-01", run.GetRunID(), api.RequestorFailed)
		s.Signal(run, api.MsgRetry, nil)
		if status := s.Until(run, api.Ready); status.Failure != "" {
			t.Errorf("failure %q after retry", status.Failure)
		}
		s.MustShow("worker-01", run.GetRunID(), api.Ready)
	}
	// Done counts where the requestor had failed, too: somebody has repaired it meanwhile.
	s.Signal(run, api.MsgFailed, nil)
	s.Until(run, api.RequestorFailed)
	s.Done(run)
	s.Back("worker-01", before)
}

func TestAReplacedNodeIsAdoptedWhileReady(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	run := s.Begin("worker-01")
	s.UntilHeld(run)
	old := s.Node("worker-01").UID
	// Whoever reports held nodes has to have seen this one held.
	watched(s, run)
	fresh := s.DeleteNode("worker-01")
	untilAdopting(s, run)
	if !slices.Equal(s.Holders(), []string{"worker-01"}) {
		t.Errorf("holders = %v, want the slot kept while the node is away", s.Holders())
	}
	s.CreateNode(fresh)
	if s.Node("worker-01").UID == old {
		t.Fatal("the node was not replaced")
	}
	untilHeldAnew(s, "worker-01", run)
	if phase := s.MustStatus(run).Phase; phase != api.Ready {
		t.Errorf("phase = %s", phase)
	}
	s.Done(run)
	s.Back("worker-01", before)
	s.SlotFree("worker-01")
}

// watched waits until the scheduler's watch has the holder of a run.
func watched(s *site.Site, run interface{ GetRunID() string }) {
	s.Helper()
	s.Eventually("the scheduler watches the holder", func() error {
		described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, api.SchedulerID(s.Cluster), "")
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
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	run := s.BeginWith("worker-01", `"onNodeReplaced":"end"`)
	s.UntilHeld(run)
	watched(s, run)
	s.CreateNode(s.DeleteNode("worker-01"))
	s.MustEnd(run, api.NodeGone)
	s.Back("worker-01", before)
	s.SlotFree("worker-01")
}

func TestANodeDeletedBeforeReadyIsGone(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 1}")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	draining := s.Begin("worker-01")
	s.Until(draining, api.Draining)
	s.RefusedOnce(ns)
	pending := s.Begin("worker-02")
	s.WaitsFor(pending, "maxParallel 1")

	s.DeleteNode("worker-02")
	s.MustEnd(pending, api.NodeGone)
	s.DeleteNode("worker-01")
	s.MustEnd(draining, api.NodeGone)
	s.SlotFree("worker-01")
	if accepted := s.Accepted(ns); len(accepted) > 0 {
		t.Errorf("evicted: %v", accepted)
	}
	// The slot is of use to the next one.
	s.Until(s.Begin("worker-03"), api.Ready)
}

func TestAPersonWhoUncordonsIsToldThreeTimes(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	run := s.Begin("worker-01")
	s.UntilHeld(run)
	for n := 1; n <= 3; n++ {
		s.Schedulable("worker-01", true)
		s.Eventually("the node is cordoned again", func() error {
			if !s.Node("worker-01").Spec.Unschedulable {
				return errors.New("it is not")
			}
			return nil
		})
		s.Eventually("a warning says so", func() error {
			events := s.NodeEvents("worker-01", "CordonRestored")
			if len(events) != n || events[0].Type != "Warning" {
				return fmt.Errorf("%d events: %+v", len(events), events)
			}
			return nil
		})
	}
	s.Schedulable("worker-01", true)
	s.Eventually("the last warning says that it is left schedulable", func() error {
		if events := s.NodeEvents("worker-01", "CordonContested"); len(events) != 1 || events[0].Type != "Warning" {
			return fmt.Errorf("events: %+v", events)
		}
		return nil
	})
	s.Always("the node is left schedulable", time.Second, func() error {
		if s.Node("worker-01").Spec.Unschedulable {
			return errors.New("it is cordoned once more")
		}
		return nil
	})
	s.Done(run)
	s.Back("worker-01", before)
}

func TestNodesReplacedOneAfterTheOtherAreAllAdopted(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 4}")
	names := []string{"worker-01", "worker-02", "worker-03"}
	runs := map[string]client.WorkflowRun{}
	before := s.Imprints()
	for _, name := range names {
		runs[name] = s.Begin(name)
	}
	for _, name := range names {
		s.UntilHeld(runs[name])
		watched(s, runs[name])
	}
	// Re-imaging a pool deletes nodes one after the other, each as soon as the one before was noticed.
	fresh := map[string]*corev1.Node{}
	for _, name := range names {
		fresh[name] = s.DeleteNode(name)
		untilAdopting(s, runs[name])
	}
	for _, name := range names {
		s.CreateNode(fresh[name])
		untilHeldAnew(s, name, runs[name])
	}
	for _, name := range names {
		s.Done(runs[name])
		s.Back(name, before[name])
	}
}

// untilAdopting waits until a maintenance knows that its node is gone.
func untilAdopting(s *site.Site, run client.WorkflowRun) {
	s.Helper()
	s.UntilStatus(run, "aware of the deletion", func(status api.Status) bool {
		return strings.Contains(status.Transitions[len(status.Transitions)-1].Message, "adopted")
	})
}

// untilHeldAnew waits until the replacement of a node is held and cordoned.
func untilHeldAnew(s *site.Site, name string, run client.WorkflowRun) {
	s.Helper()
	s.Eventually("the replacement of "+name+" is held", func() error {
		n := s.Node(name)
		mark, err := k8s.MarkOf(n)
		if err != nil || !mark.HeldBy(run.GetID(), run.GetRunID()) || !n.Spec.Unschedulable {
			return fmt.Errorf("unschedulable %t, mark %+v, %v", n.Spec.Unschedulable, mark, err)
		}
		return nil
	})
}
