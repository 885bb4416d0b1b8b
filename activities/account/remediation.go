package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/record"
)

// IsRemediation reports whether a reference is to a remediation rather than to a maintenance.
func IsRemediation(ref api.Reference) bool {
	_, _, _, err := api.ParseRemediationID(ref.WorkflowID)
	return err == nil
}

// RecordOfRemediation reads the audit record of a remediation on the task queue of the activity that asks; one that is about to end
// is waited for, so long at most. Errors: NotAMaintenance, where what is referred to is no remediation, or is not known any more.
func RecordOfRemediation(ctx context.Context, from client.Client, ref api.Reference, wait time.Duration, proof *Proof) (record.Record, error) {
	cluster, check, node, err := api.ParseRemediationID(ref.WorkflowID)
	if err != nil {
		return record.Record{}, refused("%v", err)
	}
	if own := api.ClusterOf(activity.GetInfo(ctx).TaskQueue); cluster != own {
		return record.Record{}, refused("workflowId: %s is a remediation of cluster %q, and this is cluster %q", ref.WorkflowID, cluster, own)
	}
	last, end, err := over(ctx, from, ref, api.NodeRemediationType, wait)
	if err != nil {
		return record.Record{}, err
	}
	var status api.RemediationStatus
	value, err := from.QueryWorkflow(ctx, ref.WorkflowID, last.GetExecution().GetRunId(), api.QueryStatus)
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
		return record.Record{}, fmt.Errorf("asking remediation %s what happened: %w", ref.WorkflowID, err)
	}
	if err != nil {
		status = api.RemediationStatus{Check: check, Node: node, WorkflowID: ref.WorkflowID, RunID: ref.RunID}
		status.Progress = health.Progress{StartedAt: last.GetStartTime().AsTime()}
	}
	r := api.RecordOfRemediation(status, cluster, end.At)
	if !status.Progress.Ended && (end.Why != "" || err != nil) {
		r.Phase, r.Failure, r.TerminatedBy = closedPhase(last.GetStatus()), withUnreadable(end.Why, err), end.By
	}
	r.Provenance, r.LastRunID = &proof.Provenance, lastRunID(ref.RunID, last)
	return r.Bounded(), nil
}
