// Package reset lets a workflow notice that its run came by reset: the run goes on from a point in its past, while the cluster has changed
// since.
package reset

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// Run runs a workflow's procedure, and calls noticed in a run that came by reset. It does so in the first workflow task after the copied part
// of the history, before any other coroutine runs in that task: they see what noticed sets before it first waits.
//
// Noticed returns the run ID that the server gives to an activity (activity.GetInfo). It differs from this run's where the reset was one of an
// earlier run, whose history was copied too; Run then goes on looking. The procedure runs in a coroutine of its own with the context that it
// is given, and must not return while noticed waits for something.
//
// To replay a recorded history of such a run, give its run ID (worker.ReplayWorkflowHistoryOptions).
func Run(ctx workflow.Context, noticed func(workflow.Context) (runID string, err error), procedure func(workflow.Context) error) error {
	return RunNamed(ctx, "", noticed, procedure)
}

// RunNamed is Run for a procedure that is a part of a workflow, and begins in any coroutine of it. Its name is not that of any other part, before
// or beside it: what one of them has noticed says nothing of the others.
func RunNamed(ctx workflow.Context, name string, noticed func(workflow.Context) (runID string, err error), procedure func(workflow.Context) error) error {
	info := workflow.GetInfo(ctx)
	w := &watch{name: name, length: info.GetCurrentHistoryLength, noticed: noticed, runID: info.WorkflowExecution.RunID}
	w.came = info.OriginalRunID != "" && info.OriginalRunID != w.runID
	return w.run(ctx, procedure)
}

// watch looks for the end of the copied history in a run that came by reset.
type watch struct {
	name string
	// came: the run came by reset, and the end of the copied history was not found yet.
	came    bool
	runID   string
	length  func() int
	noticed func(workflow.Context) (string, error)
}

// run looks in the coroutine that calls it, which must be the workflow's first. That one runs first in every workflow task, so that no other
// coroutine acts before it, and the order of the others is that of a run that was not reset.
func (w *watch) run(ctx workflow.Context, procedure func(workflow.Context) error) error {
	var outcome error
	done := false
	workflow.GoNamed(ctx, "procedure", func(ctx workflow.Context) {
		outcome = procedure(ctx)
		done = true
	})
	// The procedure decides what a cancellation means.
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for w.came && !done {
		looked := w.length()
		w.look(ctx, looked)
		if err := workflow.Await(ctx, func() bool { return done || !w.came || w.length() != looked }); err != nil {
			return err
		}
	}
	if err := workflow.Await(ctx, func() bool { return done }); err != nil {
		return err
	}
	return outcome
}

// look handles the reset where the workflow task at this length of the history is the first that was not copied. A change ID that the copied
// history does not have gets the default version in its replay; from the first new task on its version is recorded.
func (w *watch) look(ctx workflow.Context, place int) {
	if workflow.GetVersion(ctx, fmt.Sprintf("reset-at-%d", place)+w.name, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	run, err := w.noticed(ctx)
	if err != nil {
		workflow.GetLogger(ctx).Error("the reset of this run could not be dealt with", "error", err)
		return
	}
	w.came = run != w.runID
}
