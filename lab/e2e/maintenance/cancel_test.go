package maintenance

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// ways are the three ways to ask for a cancellation.
var ways = []struct {
	name   string
	cancel func(s *site.Site, run client.WorkflowRun)
}{
	{"signal", func(s *site.Site, run client.WorkflowRun) { s.Signal(run, api.MsgCancel, nil) }},
	{"update", func(s *site.Site, run client.WorkflowRun) {
		if _, err := s.Tell(run, api.MsgCancel, api.Cancel{Message: api.Message{By: "ann", Comment: "postponed"}}); err != nil {
			s.Fatal(err)
		}
	}},
	{"workflow cancellation", func(s *site.Site, run client.WorkflowRun) {
		if err := s.Temporal.CancelWorkflow(s.Ctx, run.GetID(), run.GetRunID()); err != nil {
			s.Fatal(err)
		}
	}},
}

// cancelsEachWay starts a maintenance for each way, lets reach bring it to where it is to be cancelled, cancels it, and
// checks that nothing is left of it.
func cancelsEachWay(s *site.Site, node string, reach func(s *site.Site) client.WorkflowRun) {
	s.Helper()
	before := s.Imprint(node)
	for _, way := range ways {
		s.Sub(way.name, func(s *site.Site) {
			run := reach(s)
			way.cancel(s, run)
			s.Undone(run, node, before)
		})
	}
}

func TestCancelWhilePending(t *testing.T) {
	s := site.New(t, "")
	s.Until(s.Begin("worker-20"), api.Ready)
	cancelsEachWay(s, "worker-01", func(s *site.Site) client.WorkflowRun {
		run := s.Begin("worker-01")
		s.WaitsFor(run, "maxParallel 1")
		return run
	})
	s.Eventually("nothing waits for a slot any more", func() error {
		if pending := s.State().PendingAll; pending > 0 {
			return errors.New("something does")
		}
		return nil
	})
	for _, r := range s.Touched() {
		if r.Object.Name == "worker-01" {
			t.Errorf("a maintenance without a slot touched its node: %+v", r)
		}
	}
}

func TestCancelWhileWaitingForPods(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Deployment(ns, "task", 1, site.On("worker-01"))
	pod := s.One(ns, "task")
	cancelsEachWay(s, "worker-01", func(s *site.Site) client.WorkflowRun {
		run := s.BeginWith("worker-01", `"waitForPodCompletion":{"podSelector":"app=task"}`)
		s.Until(run, api.WaitingForPods)
		return run
	})
	s.MustStay(pod)
}

func TestCancelWhileDraining(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	pod := s.One(ns, "web")
	cancelsEachWay(s, "worker-01", func(s *site.Site) client.WorkflowRun {
		before := len(s.Evictions(ns))
		run := s.Begin("worker-01")
		s.Until(run, api.Draining)
		s.Eventually("an eviction is refused", func() error {
			if len(s.Evictions(ns)) == before {
				return errors.New("none was")
			}
			return nil
		})
		return run
	})
	// What is fenced off may not come back to life once the budget allows it.
	s.Allow(ns, "web")
	s.Always("the pod stays", 2*time.Second, func() error {
		if accepted := s.Accepted(ns); len(accepted) > 0 {
			return errors.New("it was evicted")
		}
		return nil
	})
	s.MustStay(pod)
}

func TestCancelWhileReadyKeepsTheNodeOut(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	for _, way := range ways {
		s.Sub(way.name, func(s *site.Site) {
			run := s.Begin("worker-01")
			s.Until(run, api.Ready)
			way.cancel(s, run)
			status := s.Until(run, api.RequestorFailed)
			if !strings.Contains(status.Failure, "cancelled") {
				s.Errorf("failure = %q", status.Failure)
			}
			s.MustShow("worker-01", run.GetRunID(), api.RequestorFailed)
			if !slices.Contains(s.Holders(), "worker-01") {
				s.Error("the slot was given back")
			}
			s.Signal(run, api.MsgCancel, api.Cancel{Release: true})
			s.Undone(run, "worker-01", before)
		})
	}
}

func TestCancelWhileRequestorFailed(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	run := s.Begin("worker-01")
	s.Until(run, api.Ready)
	s.Signal(run, api.MsgFailed, api.FailedMessage{Reason: "flash stopped at 40%"})
	s.Until(run, api.RequestorFailed)

	s.Signal(run, api.MsgCancel, nil)
	if m := s.Received(run, api.MsgCancel, 1); !strings.HasPrefix(m.Effect, "ignored") || !strings.Contains(m.Effect, "release") {
		t.Errorf("a cancel without release: %q", m.Effect)
	}
	if _, err := s.Tell(run, api.MsgCancel); err == nil || !strings.Contains(err.Error(), "release") {
		t.Errorf("an update without release: %v, want it refused", err)
	}
	if err := s.Temporal.CancelWorkflow(s.Ctx, run.GetID(), run.GetRunID()); err != nil {
		t.Fatal(err)
	}
	s.Received(run, "cancellation of the workflow", 1)
	status := s.MustStatus(run)
	if status.Phase != api.RequestorFailed || status.Failure != "flash stopped at 40%" {
		t.Errorf("the maintenance is %s with failure %q", status.Phase, status.Failure)
	}
	s.MustShow("worker-01", run.GetRunID(), api.RequestorFailed)

	if _, err := s.Tell(run, api.MsgCancel, api.Cancel{Release: true}); err != nil {
		t.Fatal(err)
	}
	s.Undone(run, "worker-01", before)
}
