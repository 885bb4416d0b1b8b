package maintain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
)

// holding is one node that a workflow holds, or is to hold. It knows the maintenance by its reports alone, and does what the latest one
// calls for (react): the same after a restart of the worker, a report that came twice, or a node that was lost and is held again.
type holding struct {
	in    Input
	input map[string]any
	work  Work
	link

	// tried is the hold for which the work was begun last.
	tried time.Time
	// begun is set once the work may have begun, in this run or in one before it.
	begun    bool
	working  bool
	stop     workflow.CancelFunc
	deadline time.Time
	extendAt time.Time

	// again is how long the next start waits where the maintenance ended before it was adopted.
	again time.Duration
	// over is set when the work has returned, until react has taken its outcome. stopped is set where it was ended from here.
	over, stopped bool
	outcome       error
	// finished is set once the work has succeeded, failed is its error once the maintenance was told of that, and said is the hold in which
	// the maintenance was told that the work is done.
	finished bool
	failed   error
	said     time.Time
}

// hold reacts to each change until the node is not the caller's matter any more. Messages are sent in a context that is not cancelled: the
// maintenance has to hear how a cancelled work has ended.
func (h *holding) hold(ctx, root workflow.Context) error {
	h.watchCancellation(ctx, root)
	for {
		seen := h.changes
		returns, err := h.react(ctx, root)
		if returns || err != nil {
			if h.working {
				h.stop()
				_ = workflow.Await(ctx, func() bool { return !h.working }) // ctx is not cancelled before hold returns
			}
			return err
		}
		if h.changes == seen {
			h.await(ctx, seen, h.wakeAt(workflow.Now(ctx)))
		}
	}
}

// wakeAt is when a report is to be asked for, or the hold to be extended.
func (h *holding) wakeAt(now time.Time) time.Time {
	wake := now.Add(askLast)
	if !h.gone {
		wake = h.askAt()
	}
	if !h.gone && h.working && !h.extendAt.IsZero() && h.extendAt.Before(wake) {
		wake = h.extendAt
	}
	return wake
}

// react does what the latest report calls for; returns is set when there is nothing more to do.
func (h *holding) react(ctx, root workflow.Context) (returns bool, err error) {
	if h.working {
		return false, h.accompany(ctx)
	}
	if h.over {
		if err := h.conclude(ctx, root); err != nil {
			return true, err
		}
	}
	if over, err := h.end(ctx, root); over || err != nil {
		return over, err
	}
	since := h.latest.Since
	switch {
	case h.finished && h.held() && (h.unsaid || !h.said.Equal(since)):
		h.said, h.unsaid = since, false
		return false, h.sayDone(ctx)
	case root.Err() != nil:
		return true, h.giveUp(ctx, root)
	case h.latest.Phase == api.Ready && !h.finished && !h.confirmed.Equal(since) && h.answered:
		h.pause = askFirst
		return false, h.ask(ctx)
	case h.latest.Phase == api.Ready && !h.finished && h.confirmed.Equal(since) && !h.tried.Equal(since):
		h.begin(root)
		return false, nil
	}
	return false, h.askIfDue(ctx)
}

func (h *holding) sayDone(ctx workflow.Context) error {
	h.changes++
	return h.send(ctx, api.MsgDone, api.Done{Message: h.message(api.MsgDone), Run: h.run})
}

// held reports whether the node is out of service for the caller: Ready, or RequestorFailed, in which nobody else touches it either.
func (h *holding) held() bool {
	return h.latest.Phase == api.Ready || h.latest.Phase == api.RequestorFailed
}

func (h *holding) begin(root workflow.Context) {
	ctx, stop := workflow.WithCancel(root)
	h.begun, h.working, h.stop, h.stopped, h.tried = true, true, stop, false, h.latest.Since
	h.deadline, h.extendAt = time.Time{}, time.Time{}
	held := &Held{Node: h.in.Node, Requestor: h.in.Requestor, WorkflowID: h.id, RunID: h.run}
	workflow.GoNamed(ctx, "work on "+h.in.Node, func(ctx workflow.Context) {
		h.outcome = h.work(ctx, held)
		stop()
		h.working, h.over = false, true
		h.changes++
	})
	h.changes++
}

// accompany looks after the node while the work is done: it stops work on a node that is held no longer, and extends the hold when half of
// its time is over.
func (h *holding) accompany(ctx workflow.Context) error {
	if !h.stopped && (h.gone || h.latest.Phase != "" && !h.held()) {
		h.stopped = true
		h.stop()
	}
	now := workflow.Now(ctx)
	if until := h.latest.ReadyDeadline; until != nil && !until.Equal(h.deadline) {
		h.deadline, h.extendAt = *until, now.Add(max(until.Sub(now)/2, time.Second))
	}
	if !h.extendAt.IsZero() && !now.Before(h.extendAt) && !h.gone {
		h.extendAt, h.pause = time.Time{}, askFirst
		if err := h.send(ctx, api.MsgExtend, api.Extend{Message: h.message("extend-" + strconv.FormatInt(now.Unix(), 36)), Run: h.run}); err != nil {
			return err
		}
		return h.ask(ctx)
	}
	return h.askIfDue(ctx)
}

// conclude takes the outcome of the work, and tells the maintenance of a failure. It returns the error with which the node is left.
func (h *holding) conclude(ctx, root workflow.Context) error {
	h.over = false
	switch {
	case h.outcome == nil:
		h.finished, h.failed = true, nil
		return nil
	case h.stopped && root.Err() == nil:
		return nil // it begins again with the next hold
	case root.Err() != nil && (h.in.GiveBackOnCancel || !h.held()):
		return h.undo(ctx, root, true)
	}
	why := api.FailedMessage{Message: h.message(api.MsgFailed), Reason: bounds.Cut(cause(h.outcome), bounds.Text), Run: h.run}
	if err := h.send(ctx, api.MsgFailed, why); err != nil {
		return err
	}
	if root.Err() != nil {
		return root.Err()
	}
	h.failed = h.outcome
	if h.in.AwaitDecision {
		return nil
	}
	return h.outcome
}

// giveUp undoes the maintenance, as the workflow is cancelled. A Ready node is given back if its work cannot have begun or the caller wants
// that, and otherwise waits for a decision.
func (h *holding) giveUp(ctx, root workflow.Context) error {
	if h.finished || h.run == "" || h.latest.Phase == api.RequestorFailed {
		return root.Err()
	}
	return h.undo(ctx, root, !h.begun && !h.adopted || h.in.GiveBackOnCancel)
}

// undo cancels the maintenance, and returns why the workflow ends.
func (h *holding) undo(ctx, root workflow.Context, release bool) error {
	return cmp.Or(h.send(ctx, api.MsgCancel, api.Cancel{Message: h.message(api.MsgCancel), Release: release, Run: h.run}), root.Err())
}

// end says how the maintenance has ended, if it has. One that ended before it could be adopted is followed by another.
func (h *holding) end(ctx, root workflow.Context) (over bool, err error) {
	if h.latest.Phase == api.Completed && (h.finished || h.hasFailed() || h.saidDone(h.latest)) ||
		h.gone && h.run == "" && slices.ContainsFunc(h.early, h.completedBySelf) {
		return true, nil
	}
	ended := &EndedError{Node: h.in.Node, Phase: h.latest.Phase, Message: h.latest.Message}
	switch {
	case ended.Phase == api.Completed:
		ended.Message = "the work was said to be done, and not by this call"
	case ended.Phase.Ended():
	case h.gone && h.run == "":
		h.again = min(max(2*h.again, time.Second), askLast)
		if err := workflow.Sleep(root, h.again); err != nil {
			return true, err
		}
		return false, h.start(ctx, root, h, h.in.Cluster.queue(), h.input)
	case h.gone:
		ended.Phase, ended.Message = "", h.endedBy
	default:
		return false, nil
	}
	if h.failed != nil {
		return true, fmt.Errorf("%w (%w)", h.failed, ended)
	}
	return true, ended
}

func (h *holding) hasFailed() bool { return h.failed != nil }

// saidDone reports whether this workflow has said that the work is done, perhaps in a run before a reset.
func (h *holding) saidDone(r report) bool {
	return strings.HasPrefix(r.DoneID, h.messageID(api.MsgDone))
}

func (h *holding) completedBySelf(r report) bool {
	return r.Phase == api.Completed && h.saidDone(r)
}

// doneBefore reports whether a run before a reset had the node maintained: its reports come to this run too, unless the reset leaves them out.
func (h *holding) doneBefore(ctx workflow.Context) bool {
	reports := workflow.GetSignalChannel(ctx, h.signal)
	var r report
	for reports.ReceiveAsync(&r) {
		if h.completedBySelf(r) {
			return true
		}
	}
	return false
}

// message is said by the caller. Its ID is that of the caller's first run and of the hold: a reset caller that says it again is heard once.
func (h *holding) message(what string) api.Message {
	return api.Message{ID: h.messageID(what) + strconv.FormatInt(h.latest.Since.UnixNano(), 36), By: "workflow " + h.caller}
}

// messageID begins the IDs of such messages.
func (h *holding) messageID(what string) string { return what + "-" + h.origin + "-" }

// wasReset has the node confirmed before anything more is done to it.
func (h *holding) wasReset(ctx workflow.Context) (run string, err error) {
	if run, err = noticed(ctx); err == nil {
		h.noticeReset()
	}
	return run, err
}

func (h *holding) noticeReset() {
	h.begun, h.tried = h.begun || h.run != "", time.Time{}
	if h.working {
		h.stopped = true
		h.stop()
	}
	h.link.noticeReset()
}

// cause is the text of an error without what Temporal wraps around it.
func cause(err error) string {
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return application.Message()
	}
	return err.Error()
}
