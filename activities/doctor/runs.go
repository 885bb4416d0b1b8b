package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/spec"
)

const (
	// answersWithin is how long a workflow has to answer a query.
	answersWithin = 10 * time.Second
	// pageOfState is how many requests that wait are asked of the scheduler at a time.
	pageOfState = 1000
)

// runs asks Temporal, and the runs of workflows themselves, how they are.
type runs struct{ temporal client.Client }

func (d *Activities) runs() runs { return runs{temporal: d.Temporal} }

// execution describes a run, or the latest of a workflow.
func (r runs) execution(ctx context.Context, workflowID, runID string) (doctor.Execution, error) {
	described, err := r.temporal.DescribeWorkflowExecution(ctx, workflowID, runID)
	var notFound *serviceerror.NotFound
	var invalid *serviceerror.InvalidArgument // a mark may name anything as its run
	if errors.As(err, &notFound) || errors.As(err, &invalid) {
		return doctor.Execution{RunID: runID, Status: "gone"}, nil
	}
	if err != nil {
		return doctor.Execution{}, fmt.Errorf("describing workflow %s: %w", workflowID, err)
	}
	info := described.GetWorkflowExecutionInfo()
	var ended time.Time
	if t := info.GetCloseTime(); t != nil {
		ended = t.AsTime()
	}
	return doctor.Execution{
		EndedBy: ended,
		RunID:   info.GetExecution().GetRunId(), StartedAt: info.GetStartTime().AsTime(), Status: info.GetStatus().String(),
		Running: info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
		Attempt: int(described.GetPendingWorkflowTask().GetAttempt()),
	}, nil
}

// scheduler is what the scheduler says of itself, page by page.
func (r runs) scheduler(ctx context.Context, names Names) (doctor.Scheduler, error) {
	s := doctor.Scheduler{WorkflowID: names.Scheduler}
	var err error
	if s.Execution, err = r.execution(ctx, names.Scheduler, ""); err != nil || !s.Running {
		return s, err
	}
	for offset := 0; ; {
		var state api.State
		page := api.StateRequest{Offset: offset, Limit: pageOfState}
		if s.Unanswered, err = r.ask(ctx, names.Scheduler, s.RunID, names.QueryState, &state, page); err != nil || s.Unanswered != "" {
			return s, err
		}
		cluster := api.ClusterOf(names.Scheduler)
		s.Rebuilding, s.Holders = state.Rebuilding, nil
		for _, h := range state.Holders {
			s.Holders = append(s.Holders, doctor.Slot{
				RequestID: h.RequestID, Node: h.Node, Requestor: h.Requestor, RunID: h.RunID, GrantedAt: h.GrantedAt, Kind: string(h.Kind), WorkflowID: h.WorkflowID(cluster),
			})
		}
		for _, p := range state.Pending {
			s.Pending = append(s.Pending, doctor.Slot{
				ID: p.ID, Node: p.Node, Requestor: p.Requestor, RunID: p.RunID, Created: p.Created, Kind: string(p.Kind), WorkflowID: p.WorkflowID(cluster),
			})
		}
		if state.NextOffset <= offset {
			return s, nil
		}
		offset = state.NextOffset
	}
}

// ask queries a run, and returns why there is no answer. An error says nothing about the run.
func (r runs) ask(ctx context.Context, workflowID, runID, query string, answer any, args ...any) (unanswered string, err error) {
	asking, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	value, err := r.temporal.QueryWorkflow(asking, workflowID, runID, query, args...)
	var notFound *serviceerror.NotFound
	var late *serviceerror.DeadlineExceeded
	switch {
	case err == nil:
		if err := value.Get(answer); err != nil {
			return "it answers what cannot be read: " + err.Error(), nil
		}
		return "", nil
	case errors.As(err, &notFound):
		return "there is no such run", nil
	case execution.CannotAnswer(err):
		return err.Error(), nil
	case ctx.Err() == nil && (asking.Err() != nil || errors.As(err, &late)):
		return fmt.Sprintf("no answer within %s", answersWithin), nil
	default:
		return "", fmt.Errorf("querying %s of workflow %s: %w", query, workflowID, err)
	}
}

// askMaintenance asks a run of a maintenance, or the present one, for its slot and, where it holds one, its phase.
func (r runs) askMaintenance(ctx context.Context, names Names, runID string, m *doctor.Maintenance) (err error) {
	var slot api.SlotWanted
	m.Asked = true
	if m.Unanswered, err = r.ask(ctx, m.WorkflowID, runID, names.QuerySlot, &slot); err != nil || m.Unanswered != "" {
		return err
	}
	if slot.RunID != "" {
		m.RunID = slot.RunID
	}
	m.Ended, m.Wants, m.RequestID, m.Granted = slot.Ended, slot.Wants, slot.ID, slot.GrantedAt
	if m.Granted == nil {
		return nil
	}
	var status api.Status
	if m.Unanswered, err = r.ask(ctx, m.WorkflowID, runID, names.QueryStatus, &status); err != nil || m.Unanswered != "" {
		return err
	}
	m.Phase, m.Since = string(status.Phase), status.Since
	m.AwaitsNode = status.Phase == api.Ready && status.Spec.OnNodeReplaced != spec.EndOnReplacement && status.ReadyDeadline != nil
	return nil
}
