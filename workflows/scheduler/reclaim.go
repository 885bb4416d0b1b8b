package scheduler

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/node"
	"drydock/activities/nodeevent"
	"drydock/api"
	"drydock/workflows/call"
)

// reclaimAgain is how long to wait after an error that Temporal does not retry by itself.
const reclaimAgain = 30 * time.Second

// reclaimer takes slots back from holders that will never release them.
type reclaimer struct {
	*loop
	cluster   string
	decisions *decisions
	// onOrphan is ReleaseOrphans or ReportOrphans.
	onOrphan string
	// underWay are the requests whose slot is being taken back.
	underWay map[string]bool

	// holds tells whether a request still holds its slot, and free takes that back.
	holds func(requestID string) bool
	free  func(requestID string)
}

// reclaim takes the slot of a holder that will never release it: first the mark goes off the node, which fences the
// dead workflow's evictions, and then the slot is free.
func (r *reclaimer) reclaim(h api.Holder, why string) {
	if !r.holds(h.RequestID) || r.underWay[h.RequestID] || r.leaving() {
		return // the next run finds it again: it is still among the holders
	}
	r.underWay[h.RequestID] = true
	r.decisions.record("", fmt.Sprintf("reclaiming the slot of %s on %s", h.Requestor, h.Node), why)
	r.try(h, why)
}

// except are the holders whose slot is not being taken back.
func (r *reclaimer) except(holders []api.Holder) []api.Holder {
	var rest []api.Holder
	for _, h := range holders {
		if !r.underWay[h.RequestID] {
			rest = append(rest, h)
		}
	}
	return rest
}

func (r *reclaimer) try(h api.Holder, why string) {
	future := r.releaseOrphan(h, why)
	r.whenDone(future, func() {
		if err := future.Get(r.ctx, nil); err != nil && !harmless(err) {
			r.decisions.record("", "the node "+h.Node+" could not be released", err.Error())
			r.retryLater(h, why)
			return
		}
		delete(r.underWay, h.RequestID)
		r.free(h.RequestID)
	})
}

// retryLater tries again after an error that Temporal does not retry by itself, such as a missing permission.
func (r *reclaimer) retryLater(h api.Holder, why string) {
	timer := workflow.NewTimerWithOptions(r.ctx, reclaimAgain, workflow.TimerOptions{Summary: "reclaim again"})
	r.whenDone(timer, func() {
		if !r.leaving() {
			r.try(h, why)
		}
	})
}

// harmless are errors after which there is nothing left to take off the node.
func harmless(err error) bool {
	var cause *temporal.ApplicationError
	return errors.As(err, &cause) && (cause.Type() == api.ErrorNodeGone || cause.Type() == api.ErrorNotHolder)
}

// releaseOrphan takes the mark of a holder that ended off its node, or only says that it is there.
func (r *reclaimer) releaseOrphan(h api.Holder, why string) workflow.Future {
	workflowID := api.MaintenanceID(r.cluster, h.Node, h.Requestor)
	event := nodeevent.Event{
		Warning: true, Reason: "MaintenanceReclaimed", Key: h.RunID,
		Message: fmt.Sprintf("the maintenance by %s does not run any more (%s)", h.Requestor, why),
	}
	if r.onOrphan == ReportOrphans {
		event.Reason = "MaintenanceOrphaned"
		ctx := call.Within(call.Quick(r.ctx, "report "+h.Node+" as orphaned"), actWithin)
		return workflow.ExecuteActivity(ctx, call.Nodes.AnnouncePhase, node.AnnounceInput{
			Node: h.Node, WorkflowID: workflowID, RunID: h.RunID, Phase: "Orphaned", Event: event,
		})
	}
	ctx := call.Within(call.Quick(r.ctx, "release "+h.Node), actWithin)
	return workflow.ExecuteActivity(ctx, call.Nodes.ReleaseNode, node.ReleaseInput{
		Node: h.Node, WorkflowID: workflowID, RunID: h.RunID, Event: event, WithdrawRequests: true,
	})
}
