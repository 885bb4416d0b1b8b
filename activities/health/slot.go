package health

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/api"
)

// LeftInput is a remediation that has ended without a word.
type LeftInput struct {
	WorkflowID string `json:"workflowId"`
}

// About implements caller.Input.
func (in LeftInput) About() caller.Subject { return caller.Subject{WorkflowID: in.WorkflowID} }

// SeeLeftWork reports whether what a remediation has begun may be at work that has ended: its node is leased for it still, or the maintenance
// runs that its check has begun, which may take longer than the lease lasts. Nobody renews the lease but a remediation that follows it.
func (a *Activities) SeeLeftWork(ctx context.Context, in LeftInput) (bool, error) {
	_, check, node, err := api.ParseRemediationID(in.WorkflowID)
	if err != nil {
		return false, temporal.NewNonRetryableApplicationError("workflowId: "+err.Error(), api.ErrorInvalidSpec, nil)
	}
	lasts, err := a.leases().Lasts(ctx, node, LeaseHolder(check))
	if err != nil || lasts {
		return lasts, failure.Translate(ctx, a.Objects.Kube(), err)
	}
	repair, err := a.FindRepair(ctx, RepairInput{Check: check, Node: node})
	return repair.RunID != "", err
}

// holdsSlot asks the scheduler whether a request holds its slot: an answer that the remediation has received
// is no proof. Anybody may have sent it, and the remediation may have been reset to a time when it held the slot.
func (a *Activities) holdsSlot(ctx context.Context, request string) (bool, error) {
	if request == "" {
		return false, nil
	}
	scheduler := api.SchedulerID(api.ClusterOf(activity.GetInfo(ctx).TaskQueue))
	answer, err := a.Temporal.QueryWorkflow(ctx, scheduler, "", api.QuerySlotsHeld, api.SlotQuestion{RequestIDs: []string{request}})
	var held api.SlotsHeld
	if err == nil {
		err = answer.Get(&held)
	}
	if err == nil && held.Rebuilding {
		err = errors.New("the scheduler does not know yet who holds a slot")
	}
	return held.Of(request).Held, err
}
