package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/record"
)

// IsPlan reports whether a reference is to a plan rather than to a maintenance.
func IsPlan(ref api.Reference) bool {
	_, _, err := api.ParsePlanID(ref.WorkflowID)
	return err == nil
}

// RecordOfPlan reads the audit record of a plan on the task queue of the activity that asks; one that is about to end is
// waited for, so long at most. Errors: NotAMaintenance, where what is referred to is no plan, or is not known any more.
func RecordOfPlan(ctx context.Context, from client.Client, ref api.Reference, wait time.Duration, proof *Proof) (record.Record, error) {
	cluster, name, err := api.ParsePlanID(ref.WorkflowID)
	if err != nil {
		return record.Record{}, refused("%v", err)
	}
	if own := api.ClusterOf(activity.GetInfo(ctx).TaskQueue); cluster != own {
		return record.Record{}, refused("workflowId: %s is a plan of cluster %q, and this is cluster %q", ref.WorkflowID, cluster, own)
	}
	last, end, err := over(ctx, from, ref, api.MaintenancePlanType, wait)
	if err != nil {
		return record.Record{}, err
	}
	var status api.PlanStatus
	value, err := from.QueryWorkflow(ctx, ref.WorkflowID, last.GetExecution().GetRunId(), api.QueryStatus, api.PlanStatusRequest{Limit: record.MaxPlanNodes})
	if err == nil {
		err = value.Get(&status)
	}
	unproven := proof.prove(ctx, from, ref, last)
	switch {
	case unproven != nil:
		return record.Record{}, unproven
	case proof.Broken != "":
		err = errors.New("it is not believed: " + proof.Broken)
	case err == nil && status.RunID != ref.RunID:
		return record.Record{}, refused("workflow %s says that it is run %s: want run %s", ref.WorkflowID, status.RunID, ref.RunID)
	case err != nil && (!execution.CannotAnswer(err) || activity.GetInfo(ctx).Attempt < believeAfter):
		return record.Record{}, fmt.Errorf("asking plan %s what happened: %w", ref.WorkflowID, err)
	}
	if err != nil {
		status = api.PlanStatus{Name: name, WorkflowID: ref.WorkflowID, RunID: ref.RunID, CreatedAt: last.GetStartTime().AsTime()}
	}
	r := api.RecordOfPlan(status, cluster)
	if !status.Phase.Ended() {
		r.Phase, r.EndedAt, r.TerminatedBy = closedPhase(last.GetStatus()), end.At, end.By
		r.Failure = end.Why
		if status.Phase != "" {
			r.Failure += fmt.Sprintf(" (it was %s)", status.Phase)
		}
		r.Failure = withUnreadable(r.Failure, err)
	}
	r.Provenance, r.LastRunID = &proof.Provenance, lastRunID(ref.RunID, last)
	return r.Bounded(), nil
}

// over is the last run of a workflow of a type that has ended, and how; one that is about to end is waited for, so long at most.
func over(ctx context.Context, from client.Client, ref api.Reference, kind string, wait time.Duration) (*workflowpb.WorkflowExecutionInfo, *Closed, error) {
	last, err := lastRun(ctx, from, ref, kind)
	if err == nil && isRunning(last) {
		awaitEnd(ctx, from, last, wait)
		last, err = lastRun(ctx, from, ref, kind)
	}
	if err != nil {
		return nil, nil, err
	}
	if isRunning(last) {
		return nil, nil, fmt.Errorf("%s has not ended yet", ref.WorkflowID)
	}
	end, err := closed(ctx, from, last)
	return last, end, err
}

func closedPhase(status enums.WorkflowExecutionStatus) string {
	if status == enums.WORKFLOW_EXECUTION_STATUS_CANCELED {
		return string(api.Cancelled)
	}
	return string(api.Failed)
}
