package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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
type Plan struct{ Named }

// PlanOf is the plan of that name, whether there is one or not.
func PlanOf(c *Client, name string) *Plan {
	return &Plan{Named{
		Name: name, server: c.server, options: c.options,
		kind: api.MaintenancePlanType, what: "plan " + name, id: api.PlanID(c.options.Cluster, name), asked: api.PlanStatusRequest{Limit: 1},
	}}
}

// Start starts the plan. An input that would be refused is ErrInvalid, and the error names the fields; a plan of that name
// that runs is a RunsError. It returns once Temporal has it, before anything is done to a node.
func (p *Plan) Start(ctx context.Context, input json.RawMessage) (runID string, err error) {
	decoded, err := plan.Decode(p.Name, input)
	if err = errors.Join(err, decoded.Reserved(), api.CheckReportToOf(decoded.ReportTo)); err != nil {
		return "", marked{err, ErrInvalid}
	}
	run, err := p.server.start(ctx, temporalclient.StartWorkflowOptions{
		ID:                                       p.WorkflowID(),
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            PlanSummary(p.Name, decoded),
		StaticDetails:                            "Started by " + markdown.Text(p.options.By) + ".",
	}, api.MaintenancePlanType, input)
	if err != nil {
		return "", p.failed("starting "+p.what, err)
	}
	return run.GetRunID(), nil
}

// PlanSummary is what Temporal's lists show of a plan.
func PlanSummary(name string, p plan.Plan) string {
	text := markdown.Text("plan " + name + colon(p.Reason))
	return strings.ToValidUTF8(text[:min(len(text), maxSummary)], "")
}

// Status asks the plan, running or ended, for its status. Errors: NoneError, NoWorkerError, ErrInvalid where a worker
// refused its input.
func (p *Plan) Status(ctx context.Context, asked api.PlanStatusRequest) (api.PlanStatus, error) {
	var status api.PlanStatus
	err := p.query(ctx, api.QueryStatus, &status, asked)
	if isA[*serviceerror.QueryFailed](err) {
		if refused := p.refusal(ctx); refused != nil {
			return status, refused
		}
	}
	return status, err
}

// AllNodes asks for the status with all nodes of the plan.
func (p *Plan) AllNodes(ctx context.Context) (api.PlanStatus, error) { return p.AllNodesIn(ctx, nil) }

// AllNodesIn asks for the status with all nodes that are in some states, or in any.
func (p *Plan) AllNodesIn(ctx context.Context, states []string) (api.PlanStatus, error) {
	asked := api.PlanStatusRequest{Limit: 1000, States: states}
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

// refusal is why the plan ended without ever being one, such as for a channel that the configuration lacks; nil if it
// did not. It is ErrInvalid.
func (p *Plan) refusal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	info, err := p.describe(ctx)
	if err != nil || info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_FAILED {
		return nil
	}
	var refused *temporal.ApplicationError
	if errors.As(p.server.temporal.GetWorkflow(ctx, p.WorkflowID(), "").Get(ctx, nil), &refused) && refused.Type() == api.ErrorInvalidSpec {
		return marked{fmt.Errorf("%s: %s", p.what, refused.Message()), ErrInvalid}
	}
	return nil
}

// ListPlans finds plans, newest first; those that ended as long as the namespace keeps them.
func ListPlans(ctx context.Context, c *Client, running bool) ([]Run, error) {
	found, err := listRuns(ctx, c.server, api.MaintenancePlanType, api.PlanID(c.options.Cluster, ""), running, planOf)
	return found, failedCall("listing plans", err)
}

func planOf(info *workflowpb.WorkflowExecutionInfo) (Run, bool) {
	_, name, err := api.ParsePlanID(info.GetExecution().GetWorkflowId())
	return runOf(name, info), err == nil
}
