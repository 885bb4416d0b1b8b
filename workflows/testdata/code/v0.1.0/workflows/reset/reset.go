package reset

import (
	"fmt"
	"go.temporal.io/sdk/workflow"
)

// Run runs a workflow's procedure, and calls noticed in a run that came by reset: in the first workflow task after the
// part of the history that was copied, before the procedure or anything else goes on in it. What noticed sets before it
// first waits, everybody else finds set.
//
// Noticed returns the run that the server names to an activity of its (activity.GetInfo), which tells a reset of this
// run from one that was copied with the history of an earlier run: until it names this run, Run goes on looking. The
// procedure has a coroutine of its own, with the context it is given, and must not return while noticed waits for
// something that it needs.
//
// To replay a recorded history of such a run, its own run ID has to be given (worker.ReplayWorkflowHistoryOptions).
func Run(ctx workflow.Context, noticed func(workflow.Context) (runID string, err error), procedure func(workflow.Context) error) error {
	info := workflow.GetInfo(ctx)
	w := &watch{length: info.GetCurrentHistoryLength, noticed: noticed, runID: info.WorkflowExecution.RunID}
	w.came = info.OriginalRunID != "" && info.OriginalRunID != w.runID
	return w.run(ctx, procedure)
}

// watch looks for the place in the history where a run came by reset.
type watch struct {
	// came: the run came by reset, and it is not known yet where.
	came    bool
	runID   string
	length  func() int
	noticed func(workflow.Context) (string, error)
}

// run looks in the coroutine it is called in. That must be the workflow's first: it is the first in every workflow task,
// so that nobody acts before it looked, and the order of all others is that of a run that was not reset.
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

// look asks whether the workflow task at this place in the history is the first that was not copied: a version that the
// copied history knows nothing of is the default in its replay, and is recorded from the first task on that is none.
func (w *watch) look(ctx workflow.Context, place int) {
	if workflow.GetVersion(ctx, fmt.Sprintf("reset-at-%d", place), workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	run, err := w.noticed(ctx)
	if err != nil {
		workflow.GetLogger(ctx).Error("the reset of this run could not be dealt with", "error", err)
		return
	}
	w.came = run != w.runID
}
