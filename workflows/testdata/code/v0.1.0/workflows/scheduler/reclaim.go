package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/execution"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/node"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/nodeevent"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"errors"
	"fmt"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"time"
)

// reclaimAgain is how long to wait after an error that Temporal does not retry by itself. It doubles up to
// reclaimAgainMost.
const (
	reclaimAgain     = 30 * time.Second
	reclaimAgainMost = time.Hour
)

// reclaimer takes slots back from holders that will never release them.
type reclaimer struct {
	*commands
	cluster   string
	decisions *decisions
	// onOrphan is ReleaseOrphans or ReportOrphans.
	onOrphan string
	// reclaiming are the requests whose slot is being taken back.
	reclaiming map[string]bool
	// failures counts how often a node could not be released.
	failures map[string]int

	// holds tells whether a request still holds its slot, free takes that back, and orphaned takes it back from one whose
	// node stays as it is.
	holds    func(requestID string) bool
	free     func(requestID string)
	orphaned func(api.Holder, api.StrayKind)
}

func newReclaimer(c *commands, cluster string, d *decisions, onOrphan string) *reclaimer {
	return &reclaimer{
		commands: c, cluster: cluster, decisions: d, onOrphan: onOrphan, reclaiming: map[string]bool{}, failures: map[string]int{},
	}
}

// reclaim takes the slot of a holder that will never release it: first the mark goes off the node, which fences the
// dead workflow's evictions, and then the slot is free.
func (r *reclaimer) reclaim(h api.Holder, why string) {
	if !r.holds(h.RequestID) || r.reclaiming[h.RequestID] || r.leaving() {
		return // the next run finds it again: it is still among the holders
	}
	r.reclaiming[h.RequestID] = true
	r.decisions.record("", fmt.Sprintf("reclaiming the slot of %s on %s", h.Requestor, h.Node), why)
	r.try(h, why)
}

// part tells the holders apart from those whose slot is being taken back, which are told by their marks.
func (r *reclaimer) part(holders []api.Holder) (rest []api.Holder, ending []cluster.KnownMark) {
	for _, h := range holders {
		if r.reclaiming[h.RequestID] {
			ending = append(ending, cluster.KnownMark{Node: h.Node, RunID: h.RunID})
		} else {
			rest = append(rest, h)
		}
	}
	return rest, ending
}

// try finds out once more what became of the holder: between what made it seem dead and its turn it may have been reset.
func (r *reclaimer) try(h api.Holder, why string) {
	r.act(func() workflow.Future { return r.askFate(h) }, func(future workflow.Future) {
		var found execution.Found
		switch err := future.Get(r.ctx, &found); {
		case err != nil:
			r.decisions.record("", "it could not be found out what became of "+h.Requestor+" on "+h.Node, err.Error())
			r.retryLater(h, why)
		case found.Fate == execution.Alive:
			r.keep(h, "it runs")
		case found.Fate == execution.Unknown:
			// There is nobody to have the slot, and no proof that a mark may be touched.
			r.done(h)
			r.orphaned(h, api.StrayUnknown)
		case r.onOrphan == ReportOrphans:
			r.report(h, why)
		default:
			r.release(h, why)
		}
	})
}

func (r *reclaimer) release(h api.Holder, why string) {
	r.act(func() workflow.Future { return r.releaseOrphan(h, why) }, func(future workflow.Future) {
		switch err := future.Get(r.ctx, nil); {
		case err == nil || harmless(err):
			r.done(h)
			r.free(h.RequestID)
		case isAlive(err):
			r.keep(h, call.Cause(err))
		default:
			r.decisions.record("", "the node "+h.Node+" could not be released", err.Error())
			r.retryLater(h, why)
		}
	})
}

// report says on the node that it is an orphan's, and frees its slot: mark and cordon stay.
func (r *reclaimer) report(h api.Holder, why string) {
	r.act(func() workflow.Future { return r.announceOrphan(h, why) }, func(future workflow.Future) {
		switch err := future.Get(r.ctx, nil); {
		case err == nil:
			r.done(h)
			r.orphaned(h, api.StrayOrphan)
		case harmless(err):
			r.done(h)
			r.free(h.RequestID)
		default:
			r.decisions.record("", "the node "+h.Node+" could not be reported as orphaned", err.Error())
			r.retryLater(h, why)
		}
	})
}

// act begins an activity once there is room for one more. What the run ends before is found again by the next.
func (r *reclaimer) act(start func() workflow.Future, then func(workflow.Future)) {
	r.give(command{start: start, then: then, decides: true})
}

func (r *reclaimer) done(h api.Holder) {
	delete(r.reclaiming, h.RequestID)
	delete(r.failures, h.RequestID)
}

// keep leaves a holder its slot that was taken for dead.
func (r *reclaimer) keep(h api.Holder, why string) {
	r.done(h)
	r.decisions.record("", fmt.Sprintf("%s on %s keeps its slot", h.Requestor, h.Node), why)
}

// retryLater tries again after an error that Temporal does not retry by itself, such as a missing permission.
func (r *reclaimer) retryLater(h api.Holder, why string) {
	wait := doubled(reclaimAgain, reclaimAgainMost, r.failures[h.RequestID])
	r.failures[h.RequestID]++
	timer := workflow.NewTimerWithOptions(r.ctx, wait, workflow.TimerOptions{Summary: "reclaim again"})
	// Nothing is lost with it: the next run finds the holder again.
	r.whenReady(timer, func() {
		if !r.leaving() {
			r.try(h, why)
		}
	})
}

func isAlive(err error) bool {
	var cause *temporal.ApplicationError
	return errors.As(err, &cause) && cause.Type() == api.ErrorHolderAlive
}

// harmless are errors after which there is nothing left to take off the node.
func harmless(err error) bool {
	var cause *temporal.ApplicationError
	return errors.As(err, &cause) && (cause.Type() == api.ErrorNodeGone || cause.Type() == api.ErrorNotHolder)
}

// releaseOrphan takes the mark of a holder that ended off its node.
func (r *reclaimer) releaseOrphan(h api.Holder, why string) workflow.Future {
	ctx := call.Within(call.Quick(r.ctx, "release "+h.Node), actWithin)
	return workflow.ExecuteActivity(ctx, call.Nodes.ReleaseNode, node.ReleaseInput{
		Node: h.Node, WorkflowID: r.workflowOf(h), RunID: h.RunID, Event: orphanEvent("MaintenanceReclaimed", h, why),
		WithdrawRequests: true, Orphan: true,
	})
}

// askFate finds out once more what became of a holder.
func (r *reclaimer) askFate(h api.Holder) workflow.Future {
	ctx := call.Within(call.Quick(r.ctx, "see what became of "+h.Requestor+" on "+h.Node), actWithin)
	return workflow.ExecuteActivity(ctx, call.Executions.AskFate, execution.HolderRef{
		WorkflowID: r.workflowOf(h), RunID: h.RunID, Since: h.GrantedAt,
	})
}

// announceOrphan only says that the node is an orphan's.
func (r *reclaimer) announceOrphan(h api.Holder, why string) workflow.Future {
	ctx := call.Within(call.Quick(r.ctx, "report "+h.Node+" as orphaned"), actWithin)
	return workflow.ExecuteActivity(ctx, call.Nodes.AnnouncePhase, node.AnnounceInput{
		Node: h.Node, WorkflowID: r.workflowOf(h), RunID: h.RunID, Phase: "Orphaned", Event: orphanEvent("MaintenanceOrphaned", h, why),
	})
}

func (r *reclaimer) workflowOf(h api.Holder) string {
	return api.MaintenanceID(r.cluster, h.Node, h.Requestor)
}

func orphanEvent(reason string, h api.Holder, why string) nodeevent.Event {
	return nodeevent.Event{
		Warning: true, Reason: reason, Key: h.RunID,
		Message: fmt.Sprintf("the maintenance by %s does not run any more (%s)", h.Requestor, why),
	}
}
