package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"drydock/k8s"
)

// Executions looks at workflows: which run, and what they answer to a query.
type Executions struct {
	Temporal  client.Client
	Namespace string
	Nodes     *k8s.Nodes
}

// Execution is one run of a workflow.
type Execution struct {
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId,omitempty"`
}

// QueryInput is one query for each of some runs, closed ones included.
type QueryInput struct {
	Executions []Execution     `json:"executions"`
	Query      string          `json:"query"`
	Args       json.RawMessage `json:"args,omitempty"`
}

// Answered is an answer to a query; Gone says that there is nobody to ask any more.
type Answered struct {
	Gone   bool            `json:"gone,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

// queriesAtOnce bounds the queries under way, each of which may make a worker replay a history.
const queriesAtOnce = 8

// Query asks each run and returns the answers as they are, in the order of the runs.
func (e *Executions) Query(ctx context.Context, in QueryInput) ([]Answered, error) {
	answers := make([]Answered, len(in.Executions))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(queriesAtOnce)
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

func (e *Executions) query(ctx context.Context, run Execution, query string, args json.RawMessage) (Answered, error) {
	var all []any
	if len(args) > 0 {
		all = append(all, args)
	}
	value, err := e.Temporal.QueryWorkflow(ctx, run.WorkflowID, run.RunID, query, all...)
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return Answered{Gone: true}, nil
	}
	if err != nil {
		return Answered{}, fmt.Errorf("querying %s of workflow %s: %w", query, run.WorkflowID, err)
	}
	var answer Answered
	err = value.Get(&answer.Answer)
	return answer, err
}

// Inventory is what can be found out about maintenances without the scheduler.
type Inventory struct {
	// Marked are the holders written on nodes that still run, Ended those that do not.
	Marked []MarkedHolder `json:"marked,omitempty"`
	Ended  []MarkedHolder `json:"ended,omitempty"`
	// Running are all maintenances that run, marked or not.
	Running []Execution `json:"running,omitempty"`
}

// MarkedHolder is a holder as its node's mark names it.
type MarkedHolder struct {
	Execution
	Node      string    `json:"node"`
	Requestor string    `json:"requestor"`
	Since     time.Time `json:"since"`
}

// InventoryInput names the workflow type and the task queue of maintenances.
type InventoryInput struct {
	WorkflowType string `json:"workflowType"`
	TaskQueue    string `json:"taskQueue"`
}

// TakeInventory finds the holders by their marks on nodes, and the running maintenances by visibility. The marks are
// the truth; visibility lags, and only adds those that hold or want a slot but have no mark yet.
func (e *Executions) TakeInventory(ctx context.Context, in InventoryInput) (Inventory, error) {
	var found Inventory
	view, err := e.Nodes.View(ctx)
	if err != nil {
		return found, translate(err)
	}
	defer view.Close()
	for _, name := range namesOf(view.List()) {
		node, ok := view.Get(name)
		if !ok {
			continue
		}
		mark, err := k8s.MarkOf(node)
		if err != nil {
			activity.GetLogger(ctx).Error("node skipped", "error", err)
			continue
		}
		for _, h := range mark.Holders {
			holder := MarkedHolder{
				Execution: Execution{WorkflowID: h.WorkflowID, RunID: h.RunID}, Node: name, Requestor: h.Requestor, Since: h.Since,
			}
			status, err := describe(ctx, e.Temporal, holder.Execution)
			switch {
			case err != nil:
				return found, err
			case status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
				found.Marked = append(found.Marked, holder)
			default:
				found.Ended = append(found.Ended, holder)
			}
			activity.RecordHeartbeat(ctx)
		}
	}
	found.Running, err = e.running(ctx, in)
	return found, err
}

func (e *Executions) running(ctx context.Context, in InventoryInput) ([]Execution, error) {
	var found []Execution
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: e.Namespace,
		Query: fmt.Sprintf("WorkflowType = '%s' AND TaskQueue = '%s' AND ExecutionStatus = 'Running'",
			in.WorkflowType, in.TaskQueue),
	}
	for {
		page, err := e.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("listing running maintenances: %w", err)
		}
		for _, info := range page.Executions {
			found = append(found, execution(info))
		}
		activity.RecordHeartbeat(ctx)
		if request.NextPageToken = page.NextPageToken; len(request.NextPageToken) == 0 {
			return found, nil
		}
	}
}

func execution(info *workflowpb.WorkflowExecutionInfo) Execution {
	return Execution{WorkflowID: info.Execution.WorkflowId, RunID: info.Execution.RunId}
}

// describe tells the status of a run; one that is not in the history any more counts as unspecified, which is not
// running either.
func describe(ctx context.Context, temporal client.Client, e Execution) (enums.WorkflowExecutionStatus, error) {
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

// ended finds the holders that do not run any more.
func (c *Cluster) ended(ctx context.Context, holders []WatchedHolder) ([]EndedHolder, error) {
	var ended []EndedHolder
	for _, h := range holders {
		status, err := describe(ctx, c.Temporal, Execution{WorkflowID: h.WorkflowID, RunID: h.RunID})
		if err != nil {
			return nil, err
		}
		if status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			ended = append(ended, EndedHolder{WatchedHolder: h, Status: status.String()})
		}
	}
	return ended, nil
}
