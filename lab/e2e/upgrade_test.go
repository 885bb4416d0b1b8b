package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
)

// inEveryPhase begins maintenances and leaves one waiting for a slot, one draining and one Ready.
func (s *site) inEveryPhase(ns string) (pending, draining, ready client.WorkflowRun) {
	s.Helper()
	s.guarded(ns, "web", "worker-02")
	ready = s.begin("worker-01")
	s.untilHeld(ready)
	draining = s.begin("worker-02")
	s.refusedOnce(ns)
	pending = s.begin("worker-03")
	s.waitsFor(pending, "maxParallel 2")
	return pending, draining, ready
}

// finish brings what inEveryPhase began to its end.
func (s *site) finish(ns string, pending, draining, ready client.WorkflowRun) {
	s.Helper()
	s.done(ready)
	s.until(pending, api.Ready)
	s.allow(ns, "web")
	s.until(draining, api.Ready)
	s.done(draining)
	s.done(pending)
	s.evictedOnce(ns, 1)
}

func TestMaintenancesGoOnWithANewWorker(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 2}")
	ns := s.namespace()
	pending, draining, ready := s.inEveryPhase(ns)
	old := s.worker
	s.startWorker()
	s.stopWorker(old)
	s.finish(ns, pending, draining, ready)
}

func TestMaintenancesMoveToTheVersionThatIsMadeCurrent(t *testing.T) {
	s := prepareSite(t, "scheduler: {maxParallel: 2}\nversioning: {deployment: "+t.Name()+"}")
	deployment := s.temporal.WorkerDeploymentClient().GetHandle(t.Name())
	s.startVersion("v1")
	old := s.worker
	s.eventually("it says how to make it current", func() error {
		if !strings.Contains(s.logOf(old), "set-current-version --deployment-name "+t.Name()+" --build-id v1") {
			return errors.New("it does not")
		}
		return nil
	})
	s.makeCurrent(deployment, "v1")
	s.state()
	ns := s.namespace()
	pending, draining, ready := s.inEveryPhase(ns)

	s.startVersion("v2")
	s.Cleanup(old.Kill)
	s.makeCurrent(deployment, "v2")
	s.stopWorker(old)
	s.finish(ns, pending, draining, ready)
	for _, run := range []client.WorkflowRun{pending, draining, ready} {
		described, err := s.temporal.DescribeWorkflowExecution(s.ctx, run.GetID(), run.GetRunID())
		if err != nil {
			t.Fatal(err)
		}
		if now := described.WorkflowExecutionInfo.VersioningInfo.GetDeploymentVersion().GetBuildId(); now != "v2" {
			t.Errorf("%s ended on version %q", run.GetID(), now)
		}
	}
}

// startVersion starts a worker as a version of the deployment, and does not wait for the scheduler: a version that is not
// current gets no work.
func (s *site) startVersion(build string) {
	s.Helper()
	o := s.nextWorker()
	o.Environment = append(o.Environment, "DRYDOCK_BUILD_ID="+build)
	w, err := devstack.StartWorker(s.ctx, o)
	if err != nil {
		s.Fatal(err)
	}
	s.worker = w
}

func (s *site) makeCurrent(deployment client.WorkerDeploymentHandle, build string) {
	s.Helper()
	s.eventually("version "+build+" is current", func() error {
		// The server learns of a version from its pollers.
		if _, err := deployment.SetCurrentVersion(s.ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build}); err != nil {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
}
