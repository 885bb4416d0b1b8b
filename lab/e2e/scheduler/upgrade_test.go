package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/e2e/site"
)

// inEveryPhase begins maintenances and leaves one waiting for a slot, one draining and one Ready.
func inEveryPhase(s *site.Site, ns string) (pending, draining, ready client.WorkflowRun) {
	s.Helper()
	s.Guarded(ns, "web", "worker-02")
	ready = s.Begin("worker-01")
	s.UntilHeld(ready)
	draining = s.Begin("worker-02")
	s.RefusedOnce(ns)
	pending = s.Begin("worker-03")
	s.WaitsFor(pending, "maxParallel 2")
	return pending, draining, ready
}

// finish brings what inEveryPhase began to its end.
func finish(s *site.Site, ns string, pending, draining, ready client.WorkflowRun) {
	s.Helper()
	s.Done(ready)
	s.Until(pending, api.Ready)
	s.Allow(ns, "web")
	s.Until(draining, api.Ready)
	s.Done(draining)
	s.Done(pending)
	s.EvictedOnce(ns, 1)
}

func TestMaintenancesGoOnWithANewWorker(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	ns := s.Namespace()
	pending, draining, ready := inEveryPhase(s, ns)
	old := s.Worker
	s.StartWorker()
	s.StopWorker(old)
	finish(s, ns, pending, draining, ready)
}

func TestMaintenancesMoveToTheVersionThatIsMadeCurrent(t *testing.T) {
	s := site.Prepare(t, "scheduler: {maxParallel: 2}\nversioning: {deployment: "+t.Name()+"}")
	deployment := s.Temporal.WorkerDeploymentClient().GetHandle(t.Name())
	startVersion(s, "v1")
	old := s.Worker
	s.Eventually("it says how to make it current", func() error {
		if !strings.Contains(s.LogOf(old), "set-current-version --deployment-name "+t.Name()+" --build-id v1") {
			return errors.New("it does not")
		}
		return nil
	})
	makeCurrent(s, deployment, "v1")
	s.State()
	ns := s.Namespace()
	pending, draining, ready := inEveryPhase(s, ns)

	startVersion(s, "v2")
	s.Cleanup(old.Kill)
	makeCurrent(s, deployment, "v2")
	s.StopWorker(old)
	finish(s, ns, pending, draining, ready)
	for _, run := range []client.WorkflowRun{pending, draining, ready} {
		described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, run.GetID(), run.GetRunID())
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
func startVersion(s *site.Site, build string) {
	s.Helper()
	o := s.NextWorker()
	o.Environment = append(o.Environment, "DRYDOCK_BUILD_ID="+build)
	w, err := devstack.StartWorker(s.Ctx, o)
	if err != nil {
		s.Fatal(err)
	}
	s.Worker = w
}

func makeCurrent(s *site.Site, deployment client.WorkerDeploymentHandle, build string) {
	s.Helper()
	s.Eventually("version "+build+" is current", func() error {
		// The server learns of a version from its pollers.
		if _, err := deployment.SetCurrentVersion(s.Ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build}); err != nil {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
}
