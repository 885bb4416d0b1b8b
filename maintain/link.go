package maintain

import (
	"cmp"
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
	// early are the reports that came while run was not known, the last of them.
	early []api.MaintenanceReport
	// changes counts what react has to look at.
	changes int

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
}

// A report is asked for again after askFirst, then after twice as long each time, up to askLast; one that came is asked for again after
// askLast, since later ones may be lost where the maintenance is reset. A year of that is within what a history takes.
const (
	askFirst = 10 * time.Second
	askLast  = 3 * time.Hour
	maxEarly = 16
)

// listen takes the reports that come.
func (l *link) listen(ctx workflow.Context) {
	reports := workflow.GetSignalChannel(ctx, l.signal)
	workflow.GoNamed(ctx, "reports of "+l.maintenance, func(ctx workflow.Context) {
		for ctx.Err() == nil {
			next := workflow.NewSelector(ctx)
			next.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
			next.AddReceive(reports, func(c workflow.ReceiveChannel, _ bool) {
				var report api.MaintenanceReport
				c.Receive(ctx, &report)
				l.take(report)
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
	if l.run = cmp.Or(l.run, report.RunID); report.RunID != l.run {
		return
	}
	l.latest = report
	l.changes++
	l.answered = l.answered || answers
	if answers && report.Phase == api.Ready {
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
	if !l.askedAt.IsZero() {
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

// start starts the maintenance as an abandoned child, or has the one that runs report to the caller.
func (l *link) start(ctx workflow.Context, queue string, input map[string]any) error {
	l.run, l.gone, l.latest, l.pause, l.endedBy = "", false, api.MaintenanceReport{}, askFirst, ""
	// A context that ends would take the child with it.
	free, _ := workflow.NewDisconnectedContext(ctx)
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(free, workflow.ChildWorkflowOptions{
		WorkflowID: l.maintenance, TaskQueue: queue, ParentClosePolicy: enums.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}), api.NodeMaintenanceType, input)
	var started workflow.Execution
	err := child.GetChildWorkflowExecution().Get(ctx, &started)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return l.ask(ctx)
	}
	if err != nil {
		return fmt.Errorf("starting workflow %s: %w", l.maintenance, err)
	}
	l.run, l.answered, l.askedAt = started.RunID, true, workflow.Now(ctx)
	for _, report := range l.early { // after a reset all reports may be there before it is known that the child was started
		l.take(report)
	}
	workflow.GoNamed(free, "end of "+l.maintenance, func(ctx workflow.Context) { l.takeEnd(started.RunID, child.Get(ctx, nil)) })
	return nil
}

// takeEnd takes how the child has ended. One that reported its end needs none of that, and one that was reset may still run: it is asked.
func (l *link) takeEnd(run string, err error) {
	if l.run != run || l.latest.Phase.Ended() {
		return
	}
	refused, is := errors.AsType[*temporal.ApplicationError](err)
	if is {
		l.latest.Phase, l.latest.Message = api.Failed, refused.Message() // a wrong input is refused before anything is reported
	} else {
		l.endedBy = "it was terminated"
		l.askNow()
	}
	l.changes++
}
