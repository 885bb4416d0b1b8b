package scheduler

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/e2e/site"
)

// namespaceOn is the Temporal namespace that a node's mark names.
func namespaceOn(s *site.Site, node string) string {
	s.Helper()
	mark, err := k8s.MarkOf(s.Node(node))
	if err != nil || len(mark.Holders) != 1 || mark.Holders[0].Namespace == "" {
		s.Fatalf("the mark of %s is %+v, %v", node, mark, err)
	}
	return mark.Holders[0].Namespace
}

// unmarks has the doctor give nodes back whose histories are lost, on somebody's word.
func unmarks(s *site.Site, lost, node string) {
	s.Helper()
	report := s.Doctored("--fix", "--yes", "--comment", "e2e", "--lost", lost, node)
	if len(report.Findings) > 0 || len(report.Healed) != 1 || report.Healed[0].Node != node {
		s.Errorf("found %+v, healed %+v", report.Findings, report.Healed)
	}
	recorded(s, node)
}

// What docs/tasks/disaster.md says of a Temporal whose database is lost: nothing is given back by itself, nobody takes the old marks
// for those of the new namespace, and the nodes come back on somebody's word.
func TestSlowNodesComeBackAfterTheDatabaseIsLost(t *testing.T) {
	t.Parallel()
	temporal, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{
		Dir: filepath.Join(site.Shared.Dir, "lost-temporal"), InMemory: true, Attributes: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { site.Stop(temporal.Process) })
	s := site.PrepareOf(t, site.Shared.Lanes.Take(t), temporal, "")
	s.StartWorker()
	before := s.Imprint("worker-01")
	s.ReadyNow("worker-01")
	lost, old := namespaceOn(s, "worker-01"), s.Worker

	temporal.Kill()
	if err := temporal.Start(s.Ctx); err != nil {
		t.Fatal(err)
	}
	s.Within(schedulerEvery+site.Patience, "the worker ends", func() error {
		select {
		case <-old.Exited():
			return nil
		default:
			return errors.New("it runs")
		}
	})
	if old.ExitStatus() == 0 || !strings.Contains(s.LogOf(old), "is another one by now") {
		t.Errorf("exit status %d\n%s", old.ExitStatus(), old.Tail())
	}

	s.StartWorker()
	if node := s.Node("worker-01"); !node.Spec.Unschedulable || namespaceOn(s, "worker-01") != lost {
		t.Errorf("the node was touched: %s", s.Imprint("worker-01"))
	}
	report := finds(s, "MarkForeign worker-01")
	if len(report.Findings) == 1 && !strings.Contains(report.Findings[0].NextStep, "drydock doctor --fix --lost "+lost+" worker-01") {
		t.Errorf("it says %s", report.Findings[0].NextStep)
	}
	s.Exits(s.Drydock("doctor", "--fix", "--yes", "--lost", "another", "worker-01"), 1, "MarkForeign")
	unmarks(s, lost, "worker-01")
	s.Back("worker-01", before)
	finds(s)
	s.Done(s.ReadyNow("worker-01"))
}

// The same of a Temporal that was restored to a state from before a maintenance: its namespace is the same.
func TestSlowNodesComeBackWhoseMaintenanceTemporalHasForgotten(t *testing.T) {
	s := site.New(t, "scheduler: {onOrphan: report}")
	before := s.Imprint("worker-01")
	run := s.ReadyNow("worker-01")
	terminate(s, run)
	if _, err := s.Temporal.WorkflowService().DeleteWorkflowExecution(s.Ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &common.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()},
	}); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the workflow is forgotten", func() error {
		_, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, run.GetID(), "")
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	s.Eventually("the slot is not its own any more", func() error {
		if holders := s.Holders(); len(holders) > 0 {
			return errors.New("it is")
		}
		return nil
	})
	report := finds(s, "MarkUnknown worker-01")
	if len(report.Findings) == 1 && !strings.Contains(report.Findings[0].NextStep, "--lost "+namespaceOn(s, "worker-01")) {
		t.Errorf("it says %s", report.Findings[0].NextStep)
	}
	unmarks(s, namespaceOn(s, "worker-01"), "worker-01")
	s.Back("worker-01", before)
	finds(s)
	if _, labelled := s.Node("worker-01").Labels[api.PhaseLabel]; labelled {
		t.Error("the node's label is left")
	}
	s.Done(s.ReadyNow("worker-01"))
}
