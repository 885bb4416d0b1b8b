// Package account reads from a maintenance itself what happened to it, while it runs and after its end: audit records and
// notifications of channels have no other source.
package account

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/who"
)

// Account is what a maintenance says of itself.
type Account struct {
	// Cluster is the one that it is of, empty if none is named.
	Cluster string
	// Status is the maintenance's own word. Where nobody answers for it any more, Unanswered says why, and of the status
	// only the identity is known.
	Status     api.Status
	Unanswered string
	// Closed is how its last run ended; nil while it runs.
	Closed *Closed
	// Provenance is what the server vouches for, once Prove has found it out.
	Provenance *record.Provenance

	last *workflowpb.WorkflowExecutionInfo
}

// Closed is how a workflow ended.
type Closed struct {
	At time.Time
	// Why is empty if the maintenance came to its own end.
	Why string
	// By is who terminated it; nil if nobody did.
	By *record.Sender
}

// believeAfter is the attempt from which on it is believed that nobody answers for a maintenance: a worker of an older
// build may have been the one asked, and a server may not know yet what another does.
const believeAfter = 4

// maxRuns bounds the runs of one maintenance that are followed to its last one.
const maxRuns = 1000

// Of reads the account of a maintenance on the task queue of the activity that asks; one that runs is waited for, so long
// at most. Errors: NotAMaintenance, where what is referred to is none, or is not known any more.
func Of(ctx context.Context, from client.Client, ref api.Reference, wait time.Duration) (Account, error) {
	cluster, err := check(ctx, ref)
	if err != nil {
		return Account{}, refused("%v", err)
	}
	last, err := lastRun(ctx, from, ref, api.NodeMaintenanceType)
	if err == nil && wait > 0 && isRunning(last) {
		awaitEnd(ctx, from, last, wait)
		last, err = lastRun(ctx, from, ref, api.NodeMaintenanceType)
	}
	if err != nil {
		return Account{}, err
	}
	a := Account{Cluster: cluster, last: last}
	// It is asked after its state was looked at: what is closed says nothing more.
	if !isRunning(last) {
		if a.Closed, err = closed(ctx, from, last); err != nil {
			return Account{}, err
		}
	}
	a.Status, err = statusOf(ctx, from, last)
	switch {
	case err == nil && (a.Status.WorkflowID != ref.WorkflowID || a.Status.RunID != ref.RunID):
		return Account{}, refused("workflow %s says that it is %s, run %s: want run %s", ref.WorkflowID, a.Status.WorkflowID, a.Status.RunID, ref.RunID)
	case err == nil:
		return a, nil
	case a.Closed != nil && execution.CannotAnswer(err) && activity.GetInfo(ctx).Attempt >= believeAfter:
		a.Unanswered = err.Error()
		a.Status, err = identityOnly(ctx, from, ref, last)
		return a, err
	}
	return Account{}, fmt.Errorf("asking maintenance %s what happened: %w", ref.WorkflowID, err)
}

// Prove finds out whether what a maintenance that has ended says can be an invention, and takes back what is one. The proof is that
// of an earlier attempt, or empty.
func (a *Account) Prove(ctx context.Context, from client.Client, ref api.Reference, proof *Proof) (err error) {
	if err := proof.prove(ctx, from, ref, a.last); err != nil {
		return err
	}
	a.Provenance = &proof.Provenance
	if proof.Broken == "" {
		return nil
	}
	a.Unanswered = "it is not believed: " + proof.Broken
	a.Status, err = identityOnly(ctx, from, ref, a.last)
	return err
}

func isRunning(run *workflowpb.WorkflowExecutionInfo) bool {
	return run.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// awaitEnd waits a while for the end of a run that is about to end. That it has not ended by then is no error.
func awaitEnd(ctx context.Context, from client.Client, run *workflowpb.WorkflowExecutionInfo, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := closeEvent(ctx, from, run.GetExecution()); err != nil {
		activity.GetLogger(ctx).Debug("not ended yet", "workflow", run.GetExecution().GetWorkflowId(), "error", err)
	}
}

// identityOnly is the status of a maintenance that nobody answers for any more.
func identityOnly(ctx context.Context, from client.Client, ref api.Reference, last *workflowpb.WorkflowExecutionInfo) (api.Status, error) {
	s := api.Status{WorkflowID: ref.WorkflowID, RunID: ref.RunID, Since: last.GetStartTime().AsTime()}
	first, err := from.DescribeWorkflowExecution(ctx, ref.WorkflowID, ref.RunID)
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return s, nil // the first of many runs is not kept any more
	case err != nil:
		return s, fmt.Errorf("describing workflow %s: %w", ref.WorkflowID, err)
	}
	s.Since = first.GetWorkflowExecutionInfo().GetStartTime().AsTime()
	return s, nil
}

// check refuses a reference to anything but a maintenance of this worker's.
func check(ctx context.Context, ref api.Reference) (cluster string, err error) {
	if cluster, err = ref.Check(); err != nil {
		return "", err
	}
	if own := api.ClusterOf(activity.GetInfo(ctx).TaskQueue); cluster != own {
		return "", fmt.Errorf("workflowId: %s is a maintenance of cluster %q, and this is cluster %q", ref.WorkflowID, cluster, own)
	}
	return cluster, nil
}

func refused(format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(bounds.Cut(fmt.Sprintf(format, args...), bounds.Text), api.ErrorNotAMaintenance, nil)
}

// lastRun is the last run of a maintenance or a plan, which is not the present one of its workflow ID where a later maintenance
// has taken that.
func lastRun(ctx context.Context, from client.Client, ref api.Reference, kind string) (*workflowpb.WorkflowExecutionInfo, error) {
	present, err := from.DescribeWorkflowExecution(ctx, ref.WorkflowID, "")
	if err != nil {
		return nil, unknown(ctx, ref, err)
	}
	if info := present.GetWorkflowExecutionInfo(); info.GetFirstRunId() == ref.RunID {
		if err := ofOurs(ctx, info, kind); err != nil {
			return nil, err
		}
		return info, beginsAsOurs(ctx, from, info, kind)
	}
	run := ref.RunID
	for range maxRuns {
		described, err := from.DescribeWorkflowExecution(ctx, ref.WorkflowID, run)
		if err != nil {
			return nil, unknown(ctx, ref, err)
		}
		info := described.GetWorkflowExecutionInfo()
		if err := ofOurs(ctx, info, kind); err != nil {
			return nil, err
		}
		if info.GetFirstRunId() != ref.RunID {
			return nil, refused("run %s of workflow %s is not the first run of a maintenance", ref.RunID, ref.WorkflowID)
		}
		next := described.GetWorkflowExtendedInfo().GetResetRunId()
		if next == "" && info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
			event, err := closeEvent(ctx, from, info.GetExecution())
			if err != nil {
				return nil, err
			}
			next = event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		}
		if next == "" {
			return info, nil
		}
		run = next
		if activity.GetInfo(ctx).HeartbeatTimeout > 0 {
			activity.RecordHeartbeat(ctx)
		}
	}
	return nil, refused("maintenance %s has more than %d runs", ref.WorkflowID, maxRuns)
}

// unknown is the error of a workflow that cannot be described.
func unknown(ctx context.Context, ref api.Reference, err error) error {
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) && activity.GetInfo(ctx).Attempt >= believeAfter {
		return refused("nothing is known of workflow %s, run %s: it never was, or its history is not kept any more", ref.WorkflowID, ref.RunID)
	}
	return fmt.Errorf("describing workflow %s: %w", ref.WorkflowID, err)
}

// ofOurs refuses a workflow that other code than ours can have run.
func ofOurs(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, kind string) error {
	id := info.GetExecution().GetWorkflowId()
	if is := info.GetType().GetName(); is != kind {
		return refused("workflow %s is a %s: want a %s", id, is, kind)
	}
	if queue, own := info.GetTaskQueue(), activity.GetInfo(ctx).TaskQueue; queue != own {
		return refused("workflow %s is on task queue %q: want %q", id, queue, own)
	}
	return nil
}

// beginsAsOurs refuses a run whose chain other code than ours began: that is how a state is made up and handed to a worker. A first
// run that is not kept any more is Prove's to say.
func beginsAsOurs(ctx context.Context, from client.Client, run *workflowpb.WorkflowExecutionInfo, kind string) error {
	if run.GetFirstRunId() == run.GetExecution().GetRunId() {
		return nil
	}
	first, err := from.DescribeWorkflowExecution(ctx, run.GetExecution().GetWorkflowId(), run.GetFirstRunId())
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return nil
	case err != nil:
		return fmt.Errorf("describing the first run of workflow %s: %w", run.GetExecution().GetWorkflowId(), err)
	}
	return ofOurs(ctx, first.GetWorkflowExecutionInfo(), kind)
}

func statusOf(ctx context.Context, from client.Client, run *workflowpb.WorkflowExecutionInfo) (s api.Status, err error) {
	value, err := from.QueryWorkflow(ctx, run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId(), api.QueryStatus)
	if err != nil {
		return s, err
	}
	return s, value.Get(&s)
}

// closed returns how a run ended.
func closed(ctx context.Context, from client.Client, run *workflowpb.WorkflowExecutionInfo) (*Closed, error) {
	event, err := closeEvent(ctx, from, run.GetExecution())
	if err != nil {
		return nil, err
	}
	return &Closed{At: run.GetCloseTime().AsTime(), Why: why(event), By: terminatedBy(event)}, nil
}

// why is how a run ended that did not come to an end of its own, in words.
func why(event *historypb.HistoryEvent) string {
	text := ""
	switch event.GetEventType() {
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		a := event.GetWorkflowExecutionTerminatedEventAttributes()
		text = "the workflow was terminated"
		if by := terminatedBy(event); *by != (record.Sender{}) {
			text += " by " + who.Started(by.Identity, by.Principal)
		}
		if reason := a.GetReason(); reason != "" {
			text += ": " + reason
		}
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		text = "the workflow's time was over"
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		text = event.GetWorkflowExecutionFailedEventAttributes().GetFailure().GetMessage()
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		text = "the workflow was cancelled"
	}
	return bounds.Cut(text, bounds.Text)
}

// terminatedBy is who terminated a run, nil if nobody did.
func terminatedBy(event *historypb.HistoryEvent) *record.Sender {
	if event.GetEventType() != enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED {
		return nil
	}
	by := execution.SenderOf(event.GetWorkflowExecutionTerminatedEventAttributes().GetIdentity(), event.GetPrincipal())
	return &record.Sender{Identity: by.Identity, Principal: by.Principal}
}

// closeEvent is the last event of a run, which is waited for as long as the context lasts.
func closeEvent(ctx context.Context, from client.Client, run *commonpb.WorkflowExecution) (*historypb.HistoryEvent, error) {
	events := from.GetWorkflowHistory(ctx, run.GetWorkflowId(), run.GetRunId(), true, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	if !events.HasNext() {
		return nil, fmt.Errorf("the end of workflow %s, run %s, is not known", run.GetWorkflowId(), run.GetRunId())
	}
	event, err := events.Next()
	if err != nil {
		return nil, fmt.Errorf("reading the end of workflow %s: %w", run.GetWorkflowId(), err)
	}
	return event, nil
}

// Record is the audit record of a maintenance that has ended, however it did.
func (a Account) Record() record.Record {
	r := api.RecordOf(a.Status, a.Cluster)
	r.Provenance = a.Provenance
	if a.Closed != nil {
		r.LastRunID = lastRunID(r.RunID, a.last)
	}
	if a.Closed == nil || r.Ended() {
		return r.Bounded()
	}
	// Somebody or something ended it before it came to an end of its own.
	r.Phase, r.EndedAt, r.TerminatedBy = string(api.Failed), a.Closed.At, a.Closed.By
	r.Failure = a.Closed.Why
	if phase := a.Status.Phase; phase != "" {
		r.Failure += fmt.Sprintf(" (it was %s)", phase)
	}
	if a.Unanswered != "" {
		r.Failure = withUnreadable(r.Failure, errors.New(a.Unanswered))
	}
	return r.Bounded()
}

// lastRunID is the run that ended, empty if it is the first.
func lastRunID(first string, last *workflowpb.WorkflowExecutionInfo) string {
	if run := last.GetExecution().GetRunId(); run != first {
		return run
	}
	return ""
}

// withUnreadable adds to how a workflow ended why no more is known; nil is nothing.
func withUnreadable(failure string, why error) string {
	if why == nil {
		return failure
	}
	return strings.TrimPrefix(failure+"; what happened before cannot be read: "+why.Error(), "; ")
}
