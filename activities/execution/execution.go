// Package execution looks at runs of workflows: which there are, and what they answer to a query.
package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/nodelease"
)

// Activities look at workflows: which run, and what they answer to a query.
type Activities struct {
	Temporal  client.Client
	Namespace string
	// Home is the namespace of that name.
	Home  Namespace
	Nodes *k8s.Nodes
	// Leases are those of the nodes that health checks remediate; nil are none.
	Leases *nodelease.Leases
}

// Run is one run of a workflow.
type Run struct {
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId,omitempty"`
}

// QueryInput is one query for each of some runs, closed ones included.
type QueryInput struct {
	Executions []Run           `json:"executions"`
	Query      string          `json:"query"`
	Args       json.RawMessage `json:"args,omitempty"`
}

// Answered is an answer to a query; Gone says that there is nobody to ask any more, Unanswered why one that exists
// cannot answer.
type Answered struct {
	Gone       bool   `json:"gone,omitempty"`
	Unanswered string `json:"unanswered,omitempty"`
	// FirstRunID is the first run of the chain of one that does not answer, as far as the server knows it.
	FirstRunID string          `json:"firstRunId,omitempty"`
	Answer     json.RawMessage `json:"answer,omitempty"`
}

// QueriesAtOnce bounds the queries under way, each of which may make a worker replay a history.
const QueriesAtOnce = 8

// ThisRun returns the run that the server names as the caller. After a reset it is not the run whose history was
// copied.
func (e *Activities) ThisRun(ctx context.Context) (string, error) {
	return activity.GetInfo(ctx).WorkflowExecution.RunID, nil
}

// Query asks each run and returns the answers as they are, in the order of the runs.
func (e *Activities) Query(ctx context.Context, in QueryInput) ([]Answered, error) {
	answers := make([]Answered, len(in.Executions))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(QueriesAtOnce)
	for i, execution := range in.Executions {
		group.Go(func() error {
			var err error
			answers[i], err = e.query(groupCtx, execution, in.Query, in.Args)
			activity.RecordHeartbeat(ctx)
			return err
		})
	}
	return answers, group.Wait()
}

func (e *Activities) query(ctx context.Context, run Run, query string, args json.RawMessage) (Answered, error) {
	var all []any
	if len(args) > 0 {
		all = append(all, args)
	}
	value, err := e.Temporal.QueryWorkflow(ctx, run.WorkflowID, run.RunID, query, all...)
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return Answered{Gone: true}, nil
	}
	if CannotAnswer(err) && activity.GetInfo(ctx).Attempt >= believeAfter {
		return e.unanswered(ctx, run, err)
	}
	if err != nil {
		return Answered{}, fmt.Errorf("querying %s of workflow %s: %w", query, run.WorkflowID, err)
	}
	var answer Answered
	err = value.Get(&answer.Answer)
	return answer, err
}

// unanswered is that a run cannot answer.
func (e *Activities) unanswered(ctx context.Context, run Run, why error) (Answered, error) {
	d, err := e.Temporal.DescribeWorkflowExecution(ctx, run.WorkflowID, run.RunID)
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return Answered{Gone: true}, nil
	}
	if err != nil {
		return Answered{}, fmt.Errorf("describing workflow %s: %w", run.WorkflowID, err)
	}
	return Answered{Unanswered: why.Error(), FirstRunID: d.GetWorkflowExecutionInfo().GetFirstRunId()}, nil
}

// believeAfter is the attempt from which on a run that says that it cannot answer is believed: a worker of an older
// build may have been the one asked.
const believeAfter = 4

// CannotAnswer reports whether a run is the one in trouble: its workflow task fails, or it does not know the query. One wedged
// run must not keep the others from answering.
func CannotAnswer(err error) bool {
	var notReady *serviceerror.WorkflowNotReady
	var failed *serviceerror.QueryFailed
	return errors.As(err, &notReady) || errors.As(err, &failed)
}

// StatusOf returns the status of a run; one that is no longer in Temporal counts as unspecified, which is not running
// either.
func StatusOf(ctx context.Context, temporal client.Client, e Run) (enums.WorkflowExecutionStatus, error) {
	d, err := temporal.DescribeWorkflowExecution(ctx, e.WorkflowID, e.RunID)
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return enums.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED, nil
	}
	if err != nil {
		return 0, fmt.Errorf("describing workflow %s: %w", e.WorkflowID, err)
	}
	return d.WorkflowExecutionInfo.Status, nil
}
