package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
)

// ways are the three ways to ask for a cancellation.
var ways = []struct {
	name   string
	cancel func(s *site, run client.WorkflowRun)
}{
	{"signal", func(s *site, run client.WorkflowRun) { s.signal(run, api.MsgCancel, nil) }},
	{"update", func(s *site, run client.WorkflowRun) {
		if _, err := s.tell(run, api.MsgCancel, api.Cancel{Message: api.Message{By: "ann", Comment: "postponed"}}); err != nil {
			s.Fatal(err)
		}
	}},
	{"workflow cancellation", func(s *site, run client.WorkflowRun) {
		if err := s.temporal.CancelWorkflow(s.ctx, run.GetID(), run.GetRunID()); err != nil {
			s.Fatal(err)
		}
	}},
}

// cancelsEachWay starts a maintenance for each way, lets reach bring it to where it is to be cancelled, cancels it, and
// checks that nothing is left of it.
func (s *site) cancelsEachWay(node string, reach func(s *site) client.WorkflowRun) {
	s.Helper()
	before := s.imprint(node)
	for _, way := range ways {
		s.sub(way.name, func(s *site) {
			run := reach(s)
			way.cancel(s, run)
			s.undone(run, node, before)
		})
	}
}

// undone checks that a maintenance ended Cancelled and left nothing behind.
func (s *site) undone(run client.WorkflowRun, node, before string) {
	s.Helper()
	s.mustEnd(run, api.Cancelled)
	var cancelled *temporal.CanceledError
	if err := run.Get(s.ctx, nil); !errors.As(err, &cancelled) {
		s.Errorf("the workflow ended with %v, want it cancelled", err)
	}
	s.back(node, before)
	s.slotFree(node)
}

// slotFree waits until nobody holds the slot of a node.
func (s *site) slotFree(node string) {
	s.Helper()
	s.eventually("the slot of "+node+" is free", func() error {
		if slices.Contains(s.holders(), node) {
			return errors.New("it is taken")
		}
		return nil
	})
}

func TestCancelWhilePending(t *testing.T) {
	s := newSite(t, "")
	s.until(s.begin("worker-20"), api.Ready)
	s.cancelsEachWay("worker-01", func(s *site) client.WorkflowRun {
		run := s.begin("worker-01")
		s.waitsFor(run, "maxParallel 1")
		return run
	})
	s.eventually("nothing waits for a slot any more", func() error {
		if pending := s.state().PendingAll; pending > 0 {
			return errors.New("something does")
		}
		return nil
	})
	for _, r := range s.touched() {
		if r.Object.Name == "worker-01" {
			t.Errorf("a maintenance without a slot touched its node: %+v", r)
		}
	}
}

func TestCancelWhileWaitingForPods(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.deployment(ns, "task", 1, on("worker-01"))
	pod := s.one(ns, "task")
	s.cancelsEachWay("worker-01", func(s *site) client.WorkflowRun {
		run := s.beginWith("worker-01", `"waitForPodCompletion":{"podSelector":"app=task"}`)
		s.until(run, api.WaitingForPods)
		return run
	})
	s.mustStay(pod)
}

func TestCancelWhileDraining(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	pod := s.one(ns, "web")
	s.cancelsEachWay("worker-01", func(s *site) client.WorkflowRun {
		before := len(s.evictions(ns))
		run := s.begin("worker-01")
		s.until(run, api.Draining)
		s.eventually("an eviction is refused", func() error {
			if len(s.evictions(ns)) == before {
				return errors.New("none was")
			}
			return nil
		})
		return run
	})
	// What is fenced off may not come back to life once the budget allows it.
	s.allow(ns, "web")
	s.always("the pod stays", 2*time.Second, func() error {
		if accepted := s.accepted(ns); len(accepted) > 0 {
			return errors.New("it was evicted")
		}
		return nil
	})
	s.mustStay(pod)
}

func TestCancelWhileReadyKeepsTheNodeOut(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	for _, way := range ways {
		s.sub(way.name, func(s *site) {
			run := s.begin("worker-01")
			s.until(run, api.Ready)
			way.cancel(s, run)
			status := s.until(run, api.RequestorFailed)
			if !strings.Contains(status.Failure, "cancelled") {
				s.Errorf("failure = %q", status.Failure)
			}
			s.mustShow("worker-01", run.GetRunID(), api.RequestorFailed)
			if !slices.Contains(s.holders(), "worker-01") {
				s.Error("the slot was given back")
			}
			s.signal(run, api.MsgCancel, api.Cancel{Release: true})
			s.undone(run, "worker-01", before)
		})
	}
}

func TestCancelWhileRequestorFailed(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	run := s.begin("worker-01")
	s.until(run, api.Ready)
	s.signal(run, api.MsgFailed, api.FailedMessage{Reason: "flash stopped at 40%"})
	s.until(run, api.RequestorFailed)

	s.signal(run, api.MsgCancel, nil)
	if m := s.received(run, api.MsgCancel, 1); !strings.HasPrefix(m.Effect, "ignored") || !strings.Contains(m.Effect, "release") {
		t.Errorf("a cancel without release: %q", m.Effect)
	}
	if _, err := s.tell(run, api.MsgCancel); err == nil || !strings.Contains(err.Error(), "release") {
		t.Errorf("an update without release: %v, want it refused", err)
	}
	if err := s.temporal.CancelWorkflow(s.ctx, run.GetID(), run.GetRunID()); err != nil {
		t.Fatal(err)
	}
	s.received(run, "cancellation of the workflow", 1)
	status := s.mustStatus(run)
	if status.Phase != api.RequestorFailed || status.Failure != "flash stopped at 40%" {
		t.Errorf("the maintenance is %s with failure %q", status.Phase, status.Failure)
	}
	s.mustShow("worker-01", run.GetRunID(), api.RequestorFailed)

	if _, err := s.tell(run, api.MsgCancel, api.Cancel{Release: true}); err != nil {
		t.Fatal(err)
	}
	s.undone(run, "worker-01", before)
}
