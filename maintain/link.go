package maintain

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
)

// link is how a call and what it asks for, a maintenance or a plan, speak with each other.
type link struct {
	// caller is the workflow's ID, origin the run that it began as, which a reset does not change, and signal the name of the reports.
	caller, origin, signal string
	// plan is the name of the plan; empty of a maintenance. id is its workflow ID, and run its first run; run is empty until it is known.
	plan, id, run string
	latest        report
	// listening is set once reports are taken: not before another call of the workflow, which has the same signal, has ended.
	listening bool
	// adopted is set for a workflow that was not started by this call.
	adopted bool
	// early are the reports that came before the answer by which the workflow is adopted, the last of them.
	early []report
	// changes counts what react has to look at.
	changes int

	// reset is set once it is known that the workflow was reset.
	reset bool

	// asked is the ID of the latest report-to, and answered is set once its answer came. pause is how long an answer is waited for.
	asked    string
	answered bool
	askedAt  time.Time
	pause    time.Duration
	// follows is set while the end of the child is to come: not in a workflow that was reset, which may never hear of it.
	follows bool
	// gone is set when the workflow runs no more, and endedBy says why, if it is known.
	gone    bool
	endedBy string
	// confirmed is the hold, by its beginning, of which the maintenance has said on request that it holds. A report that nobody asked for may
	// be of the past: it may come late, or be in the history that a reset has copied.
	confirmed time.Time
	// unsaid is set where the maintenance has said on request that its requestor is not done.
	unsaid bool
}

// report is a report of a maintenance or, with Plan, of a plan. What both have are the maintenance's fields.
type report struct {
	api.MaintenanceReport
	Plan         string        `json:"plan"`
	Maintenances []api.NodeRun `json:"maintenances"`
}

// listener takes reports while it listens. Those that come later are for the next call of the workflow.
type listener interface {
	listens() bool
	take(report)
}

// newLink is the link to the workflow of an ID. Its reports have a name of their own: a workflow may call for many nodes at once.
func newLink(ctx workflow.Context, id string) link {
	info := workflow.GetInfo(ctx)
	return link{
		caller: info.WorkflowExecution.ID, origin: cmp.Or(info.OriginalRunID, info.WorkflowExecution.RunID), id: id, signal: signalOf(id),
	}
}

// maxReadable is the length up to which an ID is a part of a signal's name, which may have 255 bytes.
const maxReadable = 200

func signalOf(id string) string {
	if len(id) > maxReadable {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return "drydock/" + id
}

func (r report) ended() bool {
	if r.Plan != "" {
		return api.PlanPhase(r.Phase).Ended() || api.PlanPhase(r.Phase) == api.PlanFailed
	}
	return r.Phase.Ended()
}

func (l *link) listens() bool { return !l.latest.ended() }

// A report is asked for again after askFirst, then after twice as long each time, up to askLast; one that came is asked for again after
// askLast, since later ones may be lost where the maintenance is reset. A node costs the history some 14,000 events a year by that.
const (
	askFirst = 10 * time.Second
	askLast  = 12 * time.Hour
	maxEarly = 16
)

// listen has to take the reports that come, and those that have come before.
func (l *link) listen(ctx workflow.Context, to listener) {
	if l.listening {
		return
	}
	l.listening = true
	reports := workflow.GetSignalChannel(ctx, l.signal)
	workflow.GoNamed(ctx, "reports of "+l.id, func(ctx workflow.Context) {
		for ctx.Err() == nil && to.listens() {
			next := workflow.NewSelector(ctx)
			next.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
			next.AddReceive(reports, func(c workflow.ReceiveChannel, _ bool) {
				var r report
				if c.ReceiveAsync(&r) { // one that cannot be read is dropped
					to.take(r)
				}
			})
			next.Select(ctx)
		}
	})
}

func (l *link) take(r report) { l.accept(r) }

// accept takes a report if it is of the workflow that the link is to: one of an earlier workflow of its ID has another run.
func (l *link) accept(r report) (taken bool) {
	answers := !l.answered && l.asked != "" && r.Answers == l.asked
	if l.run == "" && !answers {
		l.early = append(l.early, r)
		l.early = l.early[max(len(l.early)-maxEarly, 0):]
		if r.ended() {
			l.askNow()
			l.changes++
		}
		return false
	}
	if l.run == "" && !l.reset && (r.ended() || r.DoneID != "") {
		return false // its work was another call's, as of a workflow that was terminated since: it is followed by one of this call's
	}
	if l.run == "" {
		l.run, l.adopted = r.RunID, true
	}
	if r.RunID != l.run {
		if answers {
			l.gone, l.endedBy = true, "it has ended, and another one has begun"
			l.changes++
		}
		return false
	}
	l.latest = r
	l.changes++
	if !answers {
		return true
	}
	l.answered, l.unsaid = true, r.DoneID == ""
	if r.Phase == api.Ready {
		l.confirmed = r.Since
	}
	return true
}

// ask has the workflow report to the caller, now and later. It names no run: where another workflow of the ID has begun, that one answers.
func (l *link) ask(ctx workflow.Context) error {
	id := workflow.GetRandomStream(ctx, "drydock.dev/drydock/maintain").Uint64() // a reset caller asks with other IDs than before
	l.asked, l.answered, l.askedAt = "report-"+strconv.FormatUint(id, 36), false, workflow.Now(ctx)
	return l.send(ctx, api.MsgReportTo, api.ReportTo{
		Message: api.Message{ID: l.asked, By: "workflow " + l.caller}, Workflow: l.caller, Signal: l.signal,
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

// send signals the workflow. One that runs no more sets gone, where it is no child whose end says more.
func (l *link) send(ctx workflow.Context, name string, payload any) error {
	err := workflow.SignalExternalWorkflow(ctx, l.id, "", name, payload).Get(ctx, nil)
	if _, unknown := errors.AsType[*temporal.UnknownExternalWorkflowExecutionError](err); unknown {
		if !l.follows {
			l.gone = true
			l.changes++
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("sending %s to workflow %s: %w", name, l.id, err)
	}
	return nil
}

// start starts the workflow as an abandoned child, or has the one that runs report to the caller. Where it runs for another call in the
// caller, start waits for the end of that; root is the context that cancels the wait.
func (l *link) start(ctx, root workflow.Context, to listener, queue string, input map[string]any) error {
	l.run, l.gone, l.latest, l.endedBy = "", false, report{Plan: l.plan}, ""
	// A context that ends would take the child with it.
	free, _ := workflow.NewDisconnectedContext(ctx)
	free = workflow.WithChildOptions(free, workflow.ChildWorkflowOptions{
		WorkflowID: l.id, TaskQueue: queue, ParentClosePolicy: enums.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	})
	kind := api.NodeMaintenanceType
	if l.plan != "" {
		kind = api.MaintenancePlanType
	}
	for pause := time.Second; ; pause = min(2*pause, askLast) {
		child := workflow.ExecuteChildWorkflow(free, kind, input)
		var started workflow.Execution
		err := child.GetChildWorkflowExecution().Get(ctx, &started)
		_, byServer := errors.AsType[*temporal.ChildWorkflowExecutionError](err)
		switch taken := temporal.IsWorkflowExecutionAlreadyStartedError(err); {
		case err == nil:
			l.follow(ctx, free, child, started.RunID)
			l.listen(ctx, to)
			return nil
		case !taken:
			return fmt.Errorf("starting workflow %s: %w", l.id, err)
		case byServer:
			l.pause = askFirst
			l.listen(ctx, to)
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
		if l.gone && pause > time.Second { // the end of one that has just closed is still to come
			return temporal.NewNonRetryableApplicationError("workflow "+l.id+
				" ended before this workflow was reset, which therefore cannot start it again: start this workflow anew", api.ErrorConflict, nil)
		}
	}
	l.gone = false
	return workflow.Sleep(root, pause)
}

// follow takes the end of the child where it did not report that.
func (l *link) follow(ctx, free workflow.Context, child workflow.ChildWorkflowFuture, run string) {
	l.run, l.answered, l.askedAt = run, true, workflow.Now(ctx)
	if l.reset || l.plan != "" { // a plan may adopt maintenances that were reported Ready to a caller before this one
		l.askNow()
	}
	l.follows = !l.reset
	workflow.GoNamed(free, "end of "+l.id, func(ctx workflow.Context) {
		var end end
		err := child.Get(ctx, &end)
		l.follows = l.follows && l.run != run
		if l.run == run && !l.latest.ended() {
			l.takeEnd(end, err)
		}
	})
}

// end is what is read of the result of a maintenance or a plan.
type end struct {
	Phase   api.Phase `json:"phase"`
	Message string    `json:"message"`
	DoneID  string    `json:"doneId"`
}

// takeEnd takes how the child has ended. One that was terminated may have been reset, and still run: it is asked.
func (l *link) takeEnd(how end, err error) {
	failed, hasFailed := errors.AsType[*temporal.ApplicationError](err)
	wasCancelled := temporal.IsCanceledError(err)
	switch {
	case hasFailed:
		how = end{Phase: api.Failed, Message: failed.Message()}
	case wasCancelled:
		how.Phase = api.Cancelled
	}
	l.changes++
	if err != nil && !hasFailed && !wasCancelled {
		l.endedBy = "it was terminated"
		l.askNow()
		return
	}
	l.latest.Phase, l.latest.Message, l.latest.DoneID = how.Phase, cmp.Or(how.Message, l.latest.Message), cmp.Or(how.DoneID, l.latest.DoneID)
}

// watchCancellation has the link see when the caller is cancelled, until ctx is.
func (l *link) watchCancellation(ctx, root workflow.Context) {
	workflow.GoNamed(ctx, "cancellation", func(ctx workflow.Context) {
		done := workflow.NewSelector(ctx)
		done.AddReceive(root.Done(), func(workflow.ReceiveChannel, bool) {})
		done.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
		done.Select(ctx)
		l.changes++
	})
}

// await waits for a change after seen, or until wake.
func (l *link) await(ctx workflow.Context, seen int, wake time.Time) {
	// Without that the timer of a wait that ends early would go on.
	waiting, cancel := workflow.WithCancel(ctx)
	defer cancel()
	// An error would say that the wait was cancelled, which it is not before the call returns.
	_, _ = workflow.AwaitWithOptions(waiting, workflow.AwaitOptions{
		Timeout: max(wake.Sub(workflow.Now(ctx)), time.Millisecond), TimerOptions: workflow.TimerOptions{Summary: "look after " + l.id},
	}, func() bool { return l.changes != seen })
}

// noticeReset has the workflow asked again: the answer to an earlier question may be one of those that the reset applies again.
func (l *link) noticeReset() {
	l.reset, l.follows, l.confirmed = true, false, time.Time{}
	l.askNow()
	l.changes++
}

// noticed is the run that notices a reset (reset.RunNamed).
func noticed(ctx workflow.Context) (run string, err error) {
	run = workflow.GetInfo(ctx).WorkflowExecution.RunID
	err = workflow.SideEffect(ctx, func(workflow.Context) any { return run }).Get(&run)
	return run, err
}
