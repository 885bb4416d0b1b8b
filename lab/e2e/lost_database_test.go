package e2e

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
)

// namespaceOn is the Temporal namespace that a node's mark names.
func (s *site) namespaceOn(node string) string {
	s.Helper()
	mark, err := k8s.MarkOf(s.node(node))
	if err != nil || len(mark.Holders) != 1 || mark.Holders[0].Namespace == "" {
		s.Fatalf("the mark of %s is %+v, %v", node, mark, err)
	}
	return mark.Holders[0].Namespace
}

// unmarks has the doctor give nodes back whose histories are lost, on somebody's word.
func (s *site) unmarks(lost, node string) {
	s.Helper()
	report := s.doctored("--fix", "--yes", "--comment", "e2e", "--lost", lost, node)
	if len(report.Findings) > 0 || len(report.Healed) != 1 || report.Healed[0].Node != node {
		s.Errorf("found %+v, healed %+v", report.Findings, report.Healed)
	}
	s.recorded(node)
}

// What docs/disaster.md says of a Temporal whose database is lost: nothing is given back by itself, nobody takes the old marks
// for those of the new namespace, and the nodes come back on somebody's word.
func TestNodesComeBackAfterTheDatabaseIsLost(t *testing.T) {
	slow(t)
	t.Parallel()
	temporal, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{
		Dir: filepath.Join(shared.dir, "lost-temporal"), InMemory: true, Attributes: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(temporal.Process) })
	s := prepareSiteOf(t, shared.lanes.take(t), temporal, "")
	s.startWorker()
	before := s.imprint("worker-01")
	s.readyNow("worker-01")
	lost, old := s.namespaceOn("worker-01"), s.worker

	temporal.Kill()
	if err := temporal.Start(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.within(schedulerEvery+patience, "the worker ends", func() error {
		select {
		case <-old.Exited():
			return nil
		default:
			return errors.New("it runs")
		}
	})
	if old.ExitStatus() == 0 || !strings.Contains(s.logOf(old), "is another one by now") {
		t.Errorf("exit status %d\n%s", old.ExitStatus(), old.Tail())
	}

	s.startWorker()
	if node := s.node("worker-01"); !node.Spec.Unschedulable || s.namespaceOn("worker-01") != lost {
		t.Errorf("the node was touched: %s", s.imprint("worker-01"))
	}
	report := s.finds("MarkForeign worker-01")
	if len(report.Findings) == 1 && !strings.Contains(report.Findings[0].NextStep, "drydock doctor --fix --lost "+lost+" worker-01") {
		t.Errorf("it says %s", report.Findings[0].NextStep)
	}
	s.exits(s.drydock("doctor", "--fix", "--yes", "--lost", "another", "worker-01"), 1, "MarkForeign")
	s.unmarks(lost, "worker-01")
	s.back("worker-01", before)
	s.finds()
	s.done(s.readyNow("worker-01"))
}

// The same of a Temporal that was restored to a state from before a maintenance: its namespace is the same.
func TestNodesComeBackWhoseMaintenanceTemporalHasForgotten(t *testing.T) {
	slow(t)
	s := newSite(t, "scheduler: {onOrphan: report}")
	before := s.imprint("worker-01")
	run := s.readyNow("worker-01")
	s.terminate(run)
	if _, err := s.temporal.WorkflowService().DeleteWorkflowExecution(s.ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &common.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()},
	}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the workflow is forgotten", func() error {
		_, err := s.temporal.DescribeWorkflowExecution(s.ctx, run.GetID(), "")
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	s.eventually("the slot is not its own any more", func() error {
		if holders := s.holders(); len(holders) > 0 {
			return errors.New("it is")
		}
		return nil
	})
	report := s.finds("MarkUnknown worker-01")
	if len(report.Findings) == 1 && !strings.Contains(report.Findings[0].NextStep, "--lost "+s.namespaceOn("worker-01")) {
		t.Errorf("it says %s", report.Findings[0].NextStep)
	}
	s.unmarks(s.namespaceOn("worker-01"), "worker-01")
	s.back("worker-01", before)
	s.finds()
	if _, labelled := s.node("worker-01").Labels[api.PhaseLabel]; labelled {
		t.Error("the node's label is left")
	}
	s.done(s.readyNow("worker-01"))
}
