package scheduler

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// refuses waits until somebody has tried the cable in vain.
func refuses(s *site.Site, c *site.Cable) {
	s.Helper()
	listener, err := net.Listen("tcp", c.Address)
	if err != nil {
		s.Fatal(err)
	}
	defer listener.Close()
	// The one that connects is hung up on, which is as bad as being refused.
	in, err := listener.Accept()
	if err != nil {
		s.Fatal(err)
	}
	in.Close()
}

func TestADrainCutOffFromTemporalStopsAndGoesOnLater(t *testing.T) {
	s := site.Prepare(t, "")
	cable := s.NewCable(site.Shared.Temporal.Address)
	s.Options.Environment = []string{"TEMPORAL_ADDRESS=" + cable.Address}
	s.Connect(cable)
	s.StartWorker()
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	pod := s.One(ns, "web")
	run := s.Begin("worker-01")
	s.Until(run, api.Draining)
	s.RefusedOnce(ns)
	cable.Cut()
	// The server takes the drain for lost when its heartbeats have been missing for ten seconds, and gives it to
	// another worker: by then this one must have stopped by itself.
	s.Eventually("the server has given the drain up", func() error {
		described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, run.GetID(), run.GetRunID())
		if err == nil && (len(described.PendingActivities) != 1 || described.PendingActivities[0].Attempt < 2) {
			err = errors.New("not yet")
		}
		return err
	})
	s.Allow(ns, "web")
	s.Always("nothing is evicted", 3*time.Second, func() error {
		if accepted := s.Accepted(ns); len(accepted) > 0 {
			return fmt.Errorf("evicted: %v", accepted)
		}
		return nil
	})
	s.MustStay(pod)
	s.Connect(cable)
	s.Until(run, api.Ready)
	if times := s.Accepted(ns)[pod.Name]; times != 1 {
		t.Errorf("the eviction was accepted %d times", times)
	}
	s.Done(run)
}

func TestAnAPIServerThatIsAwayIsWaitedFor(t *testing.T) {
	s := site.Prepare(t, "")
	cable := s.CableToAPIServer()
	s.StartWorker()
	before := s.Imprint("worker-01")
	run := s.Begin("worker-01")
	s.Until(run, api.Pending)
	refuses(s, cable)
	s.Connect(cable)
	s.UntilHeld(run)

	// What brings the node back must succeed however long it takes.
	cable.Cut()
	s.Signal(run, api.MsgDone, nil)
	s.Until(run, api.Releasing)
	refuses(s, cable)
	s.Connect(cable)
	s.MustEnd(run, api.Completed)
	s.Back("worker-01", before)
}
