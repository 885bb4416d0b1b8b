package maintain

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
)

// link is how a holding and its maintenance speak with each other.
type link struct {
	// caller is the workflow's ID, origin the run that it began as, which a reset does not change, and signal the name of the reports.
	caller, origin, signal string
	// maintenance is the ID of the maintenance's workflow, and run its first run; run is empty until it is known.
	maintenance, run string
	latest           api.MaintenanceReport
	// listening is set once reports are taken: not before another call of the workflow, which has the same signal, has ended.
	listening bool
	// adopted is set for a maintenance that was not started by this call.
	adopted bool
	// early are the reports that came before the answer by which a maintenance is adopted, the last of them.
	early []api.MaintenanceReport
	// changes counts what react has to look at.
	changes int

	// reset is set once it is known that the workflow was reset.
	reset bool

	// asked is the ID of the latest report-to, and answered is set once its answer came. pause is how long an answer is waited for.
	asked    string
	answered bool
	askedAt  time.Time
	pause    time.Duration
	// gone is set when the maintenance runs no more, and endedBy says why, if it is known.
	gone    bool
	endedBy string
	// confirmed is the hold, by its beginning, of which the maintenance has said on request that it holds. A report that nobody asked for may
	// be of the past: it may come late, or be in the history that a reset has copied.
	confirmed time.Time
	// unsaid is set where the maintenance has said on request that its requestor is not done.
	unsaid bool
}

// A report is asked for again after askFirst, then after twice as long each time, up to askLast; one that came is asked for again after
// askLast, since later ones may be lost where the maintenance is reset. A node costs the history some 14,000 events a year by that.
const (
	askFirst = 10 * time.Second
	askLast  = 12 * time.Hour
	maxEarly = 16
)

// listen takes the reports that come, and those that have come before.
func (l *link) listen(ctx workflow.Context) {
	if l.listening {
		return
	}
	l.listening = true
	reports := workflow.GetSignalChannel(ctx, l.signal)
	workflow.GoNamed(ctx, "reports of "+l.maintenance, func(ctx workflow.Context) {
		for ctx.Err() == nil && !l.latest.Phase.Ended() { // what comes after the end is for the next call
			next := workflow.NewSelector(ctx)
			next.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
			next.AddReceive(reports, func(c workflow.ReceiveChannel, _ bool) {
				var report api.MaintenanceReport
				if c.ReceiveAsync(&report) { // one that cannot be read is dropped
					l.take(report)
				}
			})
			next.Select(ctx)
		}
	})
}

// take takes a report of this maintenance: one of an earlier maintenance of the node has another run.
func (l *link) take(report api.MaintenanceReport) {
	answers := !l.answered && l.asked != "" && report.Answers == l.asked
	if l.run == "" && !answers {
		l.early = append(l.early, report)
		l.early = l.early[max(len(l.early)-maxEarly, 0):]
		return
	}
	if l.run == "" && report.Phase.Ended() && !l.reset {
		return // it was another call's, and is about to close
	}
	if l.run == "" {
		l.run, l.adopted = report.RunID, true
	}
	if report.RunID != l.run {
		return
	}
	l.latest = report
	l.changes++
	if !answers {
		return
	}
	l.answered, l.unsaid = true, report.DoneID == ""
	if report.Phase == api.Ready {
		l.confirmed = report.Since
	}
}

// ask has the maintenance report to the caller, now and later.
func (l *link) ask(ctx workflow.Context) error {
	id := workflow.GetRandomStream(ctx, "drydock.dev/drydock/maintain").Uint64() // a reset caller asks with other IDs than before
	l.asked, l.answered, l.askedAt = "report-"+strconv.FormatUint(id, 36), false, workflow.Now(ctx)
	return l.send(ctx, api.MsgReportTo, api.ReportTo{
		Message: api.Message{ID: l.asked, By: "workflow " + l.caller}, Workflow: l.caller, Signal: l.signal, Run: l.run,
	})
}

// askNow has the next react ask.
func (l *link) askNow() { l.answered, l.asked, l.askedAt, l.pause = false, "", time.Time{}, askFirst }

func (l *link) askAt() time.Time {
	if l.answered {
		return l.askedAt.Add(askLast)
	}
	return l.askedAt.Add(l.pause)
}

func (l *link) askIfDue(ctx workflow.Context) error {
	if l.gone || workflow.Now(ctx).Before(l.askAt()) {
		return nil
	}
	switch {
	case l.answered:
		l.pause = askFirst
	case !l.askedAt.IsZero():
		l.pause = min(2*l.pause, askLast)
	}
	return l.ask(ctx)
}

// send signals the maintenance. One that runs no more sets gone.
func (l *link) send(ctx workflow.Context, name string, payload any) error {
	err := workflow.SignalExternalWorkflow(ctx, l.maintenance, "", name, payload).Get(ctx, nil)
	if _, unknown := errors.AsType[*temporal.UnknownExternalWorkflowExecutionError](err); unknown {
		l.gone = true
		l.changes++
		return nil
	}
	if err != nil {
		return fmt.Errorf("sending %s to workflow %s: %w", name, l.maintenance, err)
	}
	return nil
}

// start starts the maintenance as an abandoned child, or has the one that runs report to the caller. Where another call in the workflow has it
// maintain the node, start waits for the end of that; root is the context that cancels the wait.
func (l *link) start(ctx, root workflow.Context, queue string, input map[string]any) error {
	l.run, l.gone, l.latest, l.endedBy = "", false, api.MaintenanceReport{}, ""
	// A context that ends would take the child with it.
	free, _ := workflow.NewDisconnectedContext(ctx)
	free = workflow.WithChildOptions(free, workflow.ChildWorkflowOptions{
		WorkflowID: l.maintenance, TaskQueue: queue, ParentClosePolicy: enums.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	})
	for pause := time.Second; ; pause = min(2*pause, askLast) {
		child := workflow.ExecuteChildWorkflow(free, api.NodeMaintenanceType, input)
		var started workflow.Execution
		err := child.GetChildWorkflowExecution().Get(ctx, &started)
		_, byServer := errors.AsType[*temporal.ChildWorkflowExecutionError](err)
		switch taken := temporal.IsWorkflowExecutionAlreadyStartedError(err); {
		case err == nil:
			l.follow(ctx, free, child, started.RunID)
			l.listen(ctx)
			return nil
		case !taken:
			return fmt.Errorf("starting workflow %s: %w", l.maintenance, err)
		case byServer:
			l.pause = askFirst
			l.listen(ctx)
			return l.ask(ctx)
		}
		if err := l.awaitOther(ctx, root, pause); err != nil {
			return err
		}
	}
}

// awaitOther waits before the next try where a child of this run, of another call, has the workflow ID.
func (l *link) awaitOther(ctx, root workflow.Context, pause time.Duration) error {
	if l.reset {
		// The end of a child is not among what a reset copies.
		if err := l.send(ctx, api.MsgReportTo, api.ReportTo{Workflow: l.caller, Signal: l.signal, Run: "none"}); err != nil {
			return err
		}
		if l.gone {
			return temporal.NewNonRetryableApplicationError("workflow "+l.maintenance+
				" ended before this workflow was reset, which therefore cannot start it again: start this workflow anew", api.ErrorConflict, nil)
		}
	}
	return workflow.Sleep(root, pause)
}

// follow takes the end of the child where it did not report that.
func (l *link) follow(ctx, free workflow.Context, child workflow.ChildWorkflowFuture, run string) {
	l.run, l.answered, l.askedAt = run, true, workflow.Now(ctx)
	if l.reset {
		l.askNow()
	}
	workflow.GoNamed(free, "end of "+l.maintenance, func(ctx workflow.Context) {
		var result api.Result
		err := child.Get(ctx, &result)
		if l.run == run && !l.latest.Phase.Ended() {
			l.takeEnd(result.Phase, err)
		}
	})
}

// takeEnd takes how the child has ended. One that was terminated may have been reset, and still run: it is asked.
func (l *link) takeEnd(phase api.Phase, err error) {
	failed, is := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil:
		l.latest.Phase = phase
	case is:
		l.latest.Phase, l.latest.Message = api.Failed, failed.Message()
	case temporal.IsCanceledError(err):
		l.latest.Phase = api.Cancelled
	default:
		l.endedBy = "it was terminated"
		l.askNow()
	}
	l.changes++
}
