package scheduler

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/meter"
)

const (
	// firstReclaimRetry is the pause after an error that Temporal does not retry by itself. It doubles up to maxReclaimRetry.
	firstReclaimRetry = 30 * time.Second
	maxReclaimRetry   = time.Hour
	// shownWithin is after what time every watch shows what a transition has made of its node. The activity of one that was terminated
	// may write for as long as an attempt of it may take, which is 30 s, and watches lag behind that.
	shownWithin = 45 * time.Second
)

// reclaimer takes slots back from holders that will never release them.
type reclaimer struct {
	*scheduler
	// reclaiming are the requests whose slot is being taken back, failures how often that failed.
	reclaiming map[string]bool
	failures   map[string]int
}

// reclaim takes the slot of a holder that will never release it: first the mark of a maintenance goes off the node, which fences the
// dead workflow's evictions, and then the slot is free.
func (r *reclaimer) reclaim(h api.Holder, why string) {
	if !r.slots.holds(h.RequestID) || r.reclaiming[h.RequestID] || r.leaving() {
		return // the next run finds it again: it is still among the holders
	}
	r.reclaiming[h.RequestID] = true
	r.decisions.record("", fmt.Sprintf("reclaiming the slot of %s on %s", h.Requestor, h.Node), why)
	r.try(h, why)
}

// split separates the holders whose slot is being taken back, and returns their marks.
func (r *reclaimer) split(holders []api.Holder) (rest []api.Holder, ending []cluster.KnownMark) {
	for _, h := range holders {
		if r.reclaiming[h.RequestID] {
			ending = append(ending, cluster.KnownMark{Node: h.Node, RunID: h.RunID})
		} else {
			rest = append(rest, h)
		}
	}
	return rest, ending
}

// try finds out once more what became of the holder: between what made it seem dead and now it may have been reset.
func (r *reclaimer) try(h api.Holder, why string) {
	r.act("see what became of "+h.Requestor+" on "+h.Node, call.Executions.AskFate, execution.HolderRef{
		WorkflowID: h.WorkflowID(r.cluster), RunID: h.RunID, Since: h.GrantedAt,
	}, func(future workflow.Future) {
		var found execution.Found
		switch err := future.Get(r.ctx, &found); {
		case err != nil:
			r.retryLater(h, why, "it could not be found out what became of "+h.Requestor+" on "+h.Node, err.Error())
		case found.Fate == execution.Alive:
			r.leave(h, "it runs")
		case h.Kind == schedule.KindControlPlane: // also where its execution was deleted: what it has made is not
			r.freeOnceDone(h, why)
		case !h.IsMarked():
			r.finish(h)
		case found.Fate == execution.Unknown:
			// Nobody could have the slot, and there is no proof that the mark may be touched.
			r.abandon(h, meter.NodeUnknown, api.StrayUnknown)
		case r.OnOrphan == ReportOrphans:
			r.report(h, why)
		default:
			r.release(h, why)
		}
	})
}

// freeOnceDone frees the slot of a remediation that ended without a word once nothing of what it began is at work any more. The remediation
// that follows it has a slot of the same node.
func (r *reclaimer) freeOnceDone(h api.Holder, why string) {
	r.act("see whether the remediation of "+h.Node+" has left something at work", call.Health.SeeLeftWork, health.LeftInput{
		WorkflowID: h.WorkflowID(r.cluster),
	}, func(future workflow.Future) {
		var lasts bool
		switch err := future.Get(r.ctx, &lasts); {
		case err != nil:
			r.retryLater(h, why, "it could not be seen whether the remediation of "+h.Node+" has left something at work", err.Error())
		case lasts:
			delete(r.failures, h.RequestID) // the next look is soon, however often there was one
			r.retryLater(h, why, "the slot of "+h.Node+" is kept", "its remediation has ended without a word, and what it has begun may be at work")
		default:
			r.finish(h)
		}
	})
}

// freeOnceShown frees the slot of a profile's transition once every watch shows what that has made of the node. Until then it counts as
// taking the node out: what was observed may be older than its last write. The next run finds that the transition does not run.
func (r *reclaimer) freeOnceShown(h api.Holder) {
	if r.reclaiming[h.RequestID] {
		return
	}
	r.reclaiming[h.RequestID] = true // so that it is not watched
	r.after(shownWithin, "let watches show what a transition did", func() {
		r.forget(h)
		r.slots.free(h.RequestID, r.now())
		r.watcher.forget(h.RequestID)
		r.observer.invalidate()
	})
}

func (r *reclaimer) release(h api.Holder, why string) {
	r.act("release "+h.Node, call.Nodes.ReleaseNode, node.ReleaseInput{
		Node: h.Node, WorkflowID: h.WorkflowID(r.cluster), RunID: h.RunID, Event: orphanEvent(api.EventReclaimed, h, why),
		WithdrawRequests: true, Orphan: true,
	}, func(future workflow.Future) {
		switch err := future.Get(r.ctx, nil); {
		case err == nil || isUnmarked(err):
			meter.Reclaimed.Count(r.ctx, meter.NodeReleased)
			r.finish(h)
		case call.IsError(err, api.ErrorHolderAlive):
			r.leave(h, call.Cause(err))
		case call.IsError(err, api.ErrorMarkUnconfirmed):
			r.decisions.record("", "the node "+h.Node+" is left as it is", call.Cause(err))
			r.report(h, why)
		default:
			r.retryLater(h, why, "the node "+h.Node+" could not be released", err.Error())
		}
	})
}

// report says on the node that its maintenance has ended, and frees its slot: mark and cordon stay.
func (r *reclaimer) report(h api.Holder, why string) {
	r.act("report "+h.Node+" as orphaned", call.Nodes.AnnouncePhase, node.AnnounceInput{
		Node: h.Node, WorkflowID: h.WorkflowID(r.cluster), RunID: h.RunID, Phase: "Orphaned", Event: orphanEvent(api.EventOrphaned, h, why),
	}, func(future workflow.Future) {
		switch err := future.Get(r.ctx, nil); {
		case err == nil:
			r.abandon(h, meter.NodeReported, api.StrayOrphan)
		case isUnmarked(err):
			meter.Reclaimed.Count(r.ctx, meter.NodeReleased)
			r.finish(h)
		default:
			r.retryLater(h, why, "the node "+h.Node+" could not be reported as orphaned", err.Error())
		}
	})
}

// act begins an activity once there is room for it. Where the run ends before that, the next one finds the holder again.
func (r *reclaimer) act(summary string, activity, in any, then func(workflow.Future)) {
	r.commands.add(command{decides: true, then: then, start: func() workflow.Future {
		return workflow.ExecuteActivity(call.Within(call.Quick(r.ctx, summary), actWithin), activity, in)
	}})
}

func (r *reclaimer) finish(h api.Holder) {
	r.forget(h)
	r.free(h.RequestID)
}

// abandon takes the slot of a holder whose node stays as it is: from now on that is unavailable like any other that is cordoned. Whether a
// holder of which nothing is known has marked its node shows with the next look at the node.
func (r *reclaimer) abandon(h api.Holder, counted string, kind api.StrayKind) {
	meter.Reclaimed.Count(r.ctx, counted)
	r.forget(h)
	r.slots.drop(h.RequestID)
	r.watcher.forget(h.RequestID)
	if kind == api.StrayOrphan {
		r.strays.remember(api.StrayMark{
			Node: h.Node, Kind: kind, RunID: h.RunID, Requestor: h.Requestor, Since: h.GrantedAt, WorkflowID: h.WorkflowID(r.cluster),
		})
	}
	r.observer.invalidate()
}

func (r *reclaimer) leave(h api.Holder, why string) {
	r.forget(h)
	r.decisions.record("", fmt.Sprintf("%s on %s keeps its slot", h.Requestor, h.Node), why)
}

func (r *reclaimer) forget(h api.Holder) {
	delete(r.reclaiming, h.RequestID)
	delete(r.failures, h.RequestID)
}

// retryLater tries again after an error that Temporal does not retry by itself, such as a missing permission.
func (r *reclaimer) retryLater(h api.Holder, why, what, cause string) {
	r.decisions.record("", what, cause)
	wait := period.Doubled(firstReclaimRetry, maxReclaimRetry, r.failures[h.RequestID])
	r.failures[h.RequestID]++
	r.after(wait, "reclaim again", func() {
		if !r.leaving() {
			r.try(h, why)
		}
	})
}

// isUnmarked reports whether there is nothing left to take off the node.
func isUnmarked(err error) bool { return call.IsError(err, api.ErrorNodeGone, api.ErrorNotHolder) }

func orphanEvent(reason api.EventReason, h api.Holder, why string) nodeevent.Event {
	return nodeevent.Event{
		Warning: true, Reason: reason, Key: h.RunID,
		Message: fmt.Sprintf("the maintenance by %s does not run any more (%s)", h.Requestor, why),
	}
}
