package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/rules/plan"
)

// Plan is a maintenance plan by its name.
type Plan struct {
	Name string

	server  *server
	options Options
}

// PlanOf is the plan of that name, whether there is one or not.
func PlanOf(c *Client, name string) *Plan {
	return &Plan{Name: name, server: c.server, options: c.options}
}

// WorkflowID is the workflow's.
func (p *Plan) WorkflowID() string { return api.PlanID(p.options.Cluster, p.Name) }

// NoPlanError says that there is no plan of that name.
type NoPlanError struct{ Name string }

func (e *NoPlanError) Error() string { return fmt.Sprintf("there is no plan %s", e.Name) }

// PlanRunsError says that a plan of that name runs already.
type PlanRunsError struct{ Name string }

func (e *PlanRunsError) Error() string { return fmt.Sprintf("plan %s runs already", e.Name) }

// Start starts the plan. An input that would be refused is ErrInvalid, and the error names the fields; a plan of that name
// that runs is a PlanRunsError. It returns once Temporal has it, before anything is done to a node.
func (p *Plan) Start(ctx context.Context, input json.RawMessage) (runID string, err error) {
	decoded, err := plan.Decode(p.Name, input)
	if err = errors.Join(err, decoded.Reserved()); err != nil {
		return "", invalidError{err}
	}
	run, err := p.server.start(ctx, temporalclient.StartWorkflowOptions{
		ID:                                       p.WorkflowID(),
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            PlanSummary(p.Name, decoded),
		StaticDetails:                            "Started by " + markdown.Text(p.options.By) + ".",
	}, api.MaintenancePlanType, input)
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &running) {
		return "", &PlanRunsError{p.Name}
	}
	if err != nil {
		return "", failedCall("starting plan "+p.Name, err)
	}
	return run.GetRunID(), nil
}

// PlanSummary is what Temporal's lists show of a plan.
func PlanSummary(name string, p plan.Plan) string {
	text := markdown.Text("plan " + name + colon(p.Reason))
	return strings.ToValidUTF8(text[:min(len(text), maxSummary)], "")
}

// Status asks the plan, running or ended, for its status. Errors: NoPlanError, NoWorkerError, ErrInvalid where a worker
// refused its input.
func (p *Plan) Status(ctx context.Context, asked api.PlanStatusRequest) (api.PlanStatus, error) {
	var status api.PlanStatus
	err := p.server.query(ctx, p.WorkflowID(), "", api.QueryStatus, &status, asked)
	var unanswered *serviceerror.QueryFailed
	if errors.As(err, &unanswered) {
		if refused := p.refusal(ctx); refused != nil {
			return status, refused
		}
	}
	return status, p.failed("asking plan "+p.Name, err)
}

// AllNodes asks for the status with all nodes of the plan.
func (p *Plan) AllNodes(ctx context.Context) (api.PlanStatus, error) {
	asked := api.PlanStatusRequest{Limit: 1000}
	var all []api.PlanNode
	for {
		status, err := p.Status(ctx, asked)
		if err != nil {
			return status, err
		}
		all = append(all, status.Nodes...)
		if asked.Offset = status.NextOffset; asked.Offset == 0 {
			status.Nodes, status.NextOffset = all, 0
			return status, nil
		}
	}
}

// refusal is why the plan ended without ever being one, such as for a channel that the configuration lacks; nil where it
// did not. It is ErrInvalid.
func (p *Plan) refusal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	described, err := p.server.describe(ctx, p.WorkflowID(), "")
	if err != nil || described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_FAILED {
		return nil
	}
	var refused *temporal.ApplicationError
	if errors.As(p.server.temporal.GetWorkflow(ctx, p.WorkflowID(), "").Get(ctx, nil), &refused) && refused.Type() == api.ErrorInvalidSpec {
		return invalidError{fmt.Errorf("plan %s: %s", p.Name, refused.Message())}
	}
	return nil
}

func (p *Plan) failed(doing string, err error) error {
	var missing *serviceerror.NotFound
	var noWorker *NoWorkerError
	switch {
	case errors.As(err, &missing):
		return &NoPlanError{p.Name}
	case errors.As(err, &noWorker):
		return err
	}
	return failedCall(doing, err)
}

// Send sends the plan a message of package api, such as api.MsgPause with the payload api.Simple, and returns what the plan answers. ID,
// By and Comment are filled in where the payload lacks them. Errors: NoPlanError, ErrEnded, ErrUnanswered, RefusedError, UnsettledError.
func (p *Plan) Send(ctx context.Context, name string, payload any, comment string) (Sent, error) {
	return p.server.tell(ctx, recipient{
		kind: api.MaintenancePlanType, who: "plan " + p.Name, by: p.options.By, id: p.WorkflowID(),
		question: api.QueryStatus, asked: api.PlanStatusRequest{Limit: 1}, none: &NoPlanError{p.Name},
	}, name, payload, comment)
}

// PlanRun is one run of a plan as Temporal's lists know it.
type PlanRun struct {
	Name      string
	RunID     string
	Started   time.Time
	Ended     time.Time
	Execution enumspb.WorkflowExecutionStatus
}

// Running reports whether it runs.
func (r PlanRun) Running() bool { return r.Execution == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING }

// ListPlans finds plans, newest first; those that ended as long as the namespace keeps them.
func ListPlans(ctx context.Context, c *Client, running bool) ([]PlanRun, error) {
	found, err := listRuns(ctx, c.server, api.MaintenancePlanType, api.PlanID(c.options.Cluster, ""), running, planOf)
	if err != nil {
		return nil, failedCall("listing plans", err)
	}
	return found, nil
}

func planOf(info *workflowpb.WorkflowExecutionInfo) (PlanRun, bool) {
	_, name, err := api.ParsePlanID(info.GetExecution().GetWorkflowId())
	run := PlanRun{Name: name, RunID: info.GetExecution().GetRunId(), Started: info.GetStartTime().AsTime(), Execution: info.GetStatus()}
	if info.GetCloseTime() != nil {
		run.Ended = info.GetCloseTime().AsTime()
	}
	return run, err == nil
}
