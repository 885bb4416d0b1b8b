package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"k8s.io/utils/lru"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/auditrecord"
)

const (
	// terminatedFor is how far back a worker looks when it starts: no worker may have run for a while.
	terminatedFor = 7 * 24 * time.Hour
	// visibleWithin is how late a list may show that a workflow has ended.
	visibleWithin = 10 * time.Minute
	// maxTerminated bounds the runs that are remembered, seenAtOnce those that are seen to in one go, each of which takes a few
	// requests, and maxRecordIDs the IDs under which a record is tried to be kept.
	maxTerminated = 20_000
	seenAtOnce    = 200
	maxRecordIDs  = 5
)

// terminated has the records kept of maintenances and plans that somebody terminated, or whose time was over: these cannot do it
// themselves. The scheduler need not have known them. A list is only a hint: what is recorded is read from the workflow.
type terminated struct {
	temporal         client.Client
	logger           *slog.Logger
	namespace, queue string
	// wanted: this worker keeps records at all.
	wanted bool
	// looked is when the list was last read to its end, seen are the runs that were seen to.
	looked time.Time
	seen   *lru.Cache
	// pass is the list that is being read, nil if none is.
	pass *pass
}

// pass is one reading of the list, in as many goes as it takes.
type pass struct {
	began time.Time
	list  *workflowservice.ListWorkflowExecutionsRequest
	// failed are the runs of which no record could be kept: a later pass tries them again.
	failed map[string]bool
}

func newTerminated(o Options, temporal client.Client, namespace, queue string) *terminated {
	return &terminated{
		temporal: temporal, logger: o.Logger, namespace: namespace, queue: queue, wanted: len(o.Config.Audit.Sinks) > 0,
		seen: lru.New(maxTerminated),
	}
}

// recordAt has records kept whenever it is time, beside what must not wait for that.
func (k *terminated) recordAt(ctx context.Context, due <-chan time.Time) {
	for {
		select {
		case now := <-due:
			if err := k.record(ctx, now); err != nil && ctx.Err() == nil {
				k.logger.Warn("the audit records of terminated workflows could not be kept", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// record sees to the next terminated runs. One that fails keeps none from the others.
func (k *terminated) record(ctx context.Context, now time.Time) error {
	if !k.wanted {
		return nil
	}
	if k.pass == nil {
		k.pass = k.begin(now)
	}
	var failures []error
	for budget := seenAtOnce; ; {
		page, err := k.temporal.ListWorkflow(ctx, k.pass.list)
		if err != nil {
			k.pass = nil // its place in the list may be what the server refuses
			return errors.Join(append(failures, fmt.Errorf("listing terminated maintenances: %w", err))...)
		}
		for _, info := range page.GetExecutions() {
			run := info.GetExecution().GetRunId()
			if _, known := k.seen.Get(run); known || k.pass.failed[run] {
				continue
			}
			if budget == 0 {
				return errors.Join(failures...) // the next go continues with this page
			}
			budget--
			if err := k.see(ctx, info); err != nil {
				k.pass.failed[run] = true
				failures = append(failures, err)
			}
		}
		if k.pass.list.NextPageToken = page.GetNextPageToken(); len(k.pass.list.NextPageToken) == 0 {
			break
		}
	}
	if len(k.pass.failed) == 0 {
		k.looked = k.pass.began
	}
	k.pass = nil
	return errors.Join(failures...)
}

func (k *terminated) begin(now time.Time) *pass {
	since := now.Add(-terminatedFor)
	if visible := k.looked.Add(-visibleWithin); visible.After(since) {
		since = visible
	}
	return &pass{began: now, failed: map[string]bool{}, list: &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: k.namespace, PageSize: 500, Query: fmt.Sprintf(
			`WorkflowType IN ("%s", "%s") AND TaskQueue="%s" AND ExecutionStatus IN ("Terminated", "TimedOut") AND CloseTime>"%s"`,
			api.NodeMaintenanceType, api.MaintenancePlanType, k.queue, since.UTC().Format(time.RFC3339)),
	}}
}

// see has the record of a run kept.
func (k *terminated) see(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) error {
	run := info.GetExecution()
	described, err := k.temporal.DescribeWorkflowExecution(ctx, run.GetWorkflowId(), run.GetRunId())
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound): // its retention is over
	case err != nil:
		return fmt.Errorf("describing workflow %s: %w", run.GetWorkflowId(), err)
	case described.GetWorkflowExtendedInfo().GetResetRunId() == "": // otherwise a reset goes on with it
		ref := api.Reference{WorkflowID: run.GetWorkflowId(), RunID: described.GetWorkflowExecutionInfo().GetFirstRunId()}
		if id := recordIDOf(ref); id != "" {
			if err := k.keep(ctx, id, ref, described.GetWorkflowExecutionInfo().GetCloseTime().AsTime()); err != nil {
				return err
			}
		}
	}
	k.seen.Add(run.GetRunId(), true)
	return nil
}

// recordIDOf is the workflow ID of what keeps the record of a maintenance or a plan, empty for what is neither.
func recordIDOf(ref api.Reference) string {
	if cluster, node, requestor, err := api.ParseMaintenanceID(ref.WorkflowID); err == nil {
		return api.AuditRecordID(cluster, node, requestor, ref.RunID)
	}
	if cluster, name, err := api.ParsePlanID(ref.WorkflowID); err == nil {
		return api.PlanRecordID(cluster, name, ref.RunID)
	}
	return ""
}

// keep starts what keeps the record of an end, unless that was done. Somebody who has taken its ID does not suppress the record, and
// nor does the record of an earlier end, which a reset has undone.
func (k *terminated) keep(ctx context.Context, id string, ref api.Reference, ended time.Time) error {
	for n := 1; n <= maxRecordIDs; n++ {
		at := api.FurtherID(id, n)
		_, err := k.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: at, TaskQueue: k.queue, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
			WorkflowExecutionErrorWhenAlreadyStarted: true, StaticSummary: auditrecord.Summary(ref),
		}, api.AuditRecordType, ref)
		var taken *serviceerror.WorkflowExecutionAlreadyStarted
		if err == nil {
			k.logger.Info("the audit record of a terminated workflow is kept", "workflow", ref.WorkflowID, "run", ref.RunID)
			return nil
		}
		if !errors.As(err, &taken) {
			return fmt.Errorf("having the audit record of %s kept: %w", ref.WorkflowID, err)
		}
		by, err := k.temporal.DescribeWorkflowExecution(ctx, at, "")
		if err != nil {
			return fmt.Errorf("describing workflow %s: %w", at, err)
		}
		if closed := by.GetWorkflowExecutionInfo().GetCloseTime(); closed != nil && closed.AsTime().Before(ended) {
			continue
		}
		does, err := delivery.Does(ctx, k.temporal, k.queue, delivery.SameInput{
			WorkflowID: at, WorkflowType: api.AuditRecordType, Maintenance: ref,
		}, by.GetWorkflowExecutionInfo())
		if does || err != nil {
			return err
		}
	}
	k.logger.Error("the audit record of a terminated workflow is not kept: its IDs are taken", "workflow", ref.WorkflowID, "record", id)
	return nil
}
