// Package planrun is the workflow that the schedule of a recurring plan starts: one run of the plan.
package planrun

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/inbox"
	"drydock.dev/drydock/workflows/reset"
)

// run is one run of MaintenancePlanRun.
type run struct {
	// ctx is a context that no cancellation reaches: the run ends with its plan and not before.
	ctx workflow.Context
	in  api.PlanRunInput
	// plan is the workflow ID of the plan, begun its first run once this run has begun it.
	plan, begun string
	// wasReset: this run is a copy of another, to which the server reports the end of the plan.
	wasReset bool
}

// MaintenancePlanRun starts a plan and lives as long as it, so that its schedule sees that a run overlaps the next. Its
// input is an api.PlanRunInput in JSON. Cancelling it cancels the plan.
func MaintenancePlanRun(ctx workflow.Context, input converter.RawValue) (api.PlanRunResult, error) {
	in, err := decode(inbox.Payload(input))
	if err != nil {
		return api.PlanRunResult{}, inbox.InvalidSpec(err)
	}
	r := &run{in: in, plan: api.PlanID(api.ClusterOf(workflow.GetInfo(ctx).TaskQueueName), in.Name)}
	var result api.PlanRunResult
	err = reset.Run(ctx, r.noticeReset, func(root workflow.Context) (err error) {
		r.ctx, _ = workflow.NewDisconnectedContext(root)
		ended, err := r.run(root)
		if err == nil {
			result, err = r.result(ended)
		}
		return err
	})
	return result, err
}

func decode(input []byte) (api.PlanRunInput, error) {
	in, err := inbox.Decode[api.PlanRunInput](input)
	if err != nil {
		return in, err
	}
	if err := plan.CheckName(in.Name); err != nil {
		return in, fmt.Errorf("name: %w", err)
	}
	if len(in.Plan) == 0 {
		return in, errors.New("plan: is missing: give the input of the plan")
	}
	if _, err := plan.Decode(in.Name, in.Plan); err != nil {
		return in, fmt.Errorf("plan: %w", err)
	}
	return in, nil
}

// run starts the plan and waits for its end.
func (r *run) run(root workflow.Context) (planactivity.Ended, error) {
	ctx := workflow.WithChildOptions(r.ctx, call.Child(r.plan, "plan "+r.in.Name+", recurring"))
	child := workflow.ExecuteChildWorkflow(ctx, api.MaintenancePlanType, r.in.Plan)
	var execution workflow.Execution
	if err := child.GetChildWorkflowExecution().Get(r.ctx, &execution); err != nil {
		if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			return r.follow(root) // it may be this run's own, if that was reset
		}
		return planactivity.Ended{Phase: api.Failed, Message: "it could not be started: " + call.Cause(err)}, nil
	}
	r.owns(root, execution.RunID)
	if err := workflow.Await(r.ctx, func() bool { return child.IsReady() || r.wasReset }); err != nil {
		return planactivity.Ended{}, err
	}
	if !child.IsReady() {
		return r.follow(root)
	}
	var result api.PlanResult
	err := child.Get(r.ctx, &result)
	var terminated *temporal.TerminatedError
	if errors.As(err, &terminated) {
		return r.follow(root) // a reset terminates too, and goes on
	}
	return planactivity.EndOf(planactivity.Execution{RunID: r.begun}, api.Result{Phase: api.Phase(result.Phase), Message: result.Message}, err), nil
}

// owns has the run's cancellation cancel the plan that it has begun.
func (r *run) owns(root workflow.Context, begun string) {
	r.begun = begun
	workflow.GoNamed(r.ctx, "cancellation", func(ctx workflow.Context) {
		root.Done().Receive(ctx, nil)
		if err := workflow.RequestCancelExternalWorkflow(ctx, r.plan, "").Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("the plan could not be cancelled", "error", err)
		}
	})
}

// follow waits by an activity for the end of a plan that the server does not report to this run. Where the plan's run is not
// known, the activity first returns that.
func (r *run) follow(root workflow.Context) (planactivity.Ended, error) {
	for {
		var ended []planactivity.Ended
		ctx := call.Long(r.ctx, "wait for the end of plan "+r.in.Name)
		err := workflow.ExecuteActivity(ctx, call.Plans.AwaitEnds, api.List[planactivity.Execution]{{WorkflowID: r.plan, RunID: r.begun}}).Get(ctx, &ended)
		switch {
		case err != nil:
			return planactivity.Ended{}, err
		case len(ended) != 1:
			return planactivity.Ended{}, fmt.Errorf("waiting for the end of 1 plan told of %d", len(ended))
		case !ended[0].Going:
			return ended[0], nil
		case r.begun != "":
			return planactivity.Ended{}, fmt.Errorf("waiting for the end of plan %s told that it goes on", r.in.Name)
		}
		r.owns(root, ended[0].RunID)
	}
}

// noticeReset finds out that the run is a copy of another.
func (r *run) noticeReset(ctx workflow.Context) (runID string, err error) {
	r.wasReset = true
	err = workflow.ExecuteActivity(call.Quick(ctx, "see which run this is"), call.Executions.ThisRun).Get(ctx, &runID)
	return runID, err
}

// result closes the run as its plan ended.
func (r *run) result(ended planactivity.Ended) (api.PlanRunResult, error) {
	result := api.PlanRunResult{Name: r.in.Name, WorkflowID: r.plan, RunID: ended.RunID, Message: bounds.Cut(ended.Message, bounds.Text)}
	kind := api.ErrorPlanIncomplete
	switch {
	case ended.Foreign:
		result.Skipped, result.RunID = true, ""
		result.Message = "plan " + r.in.Name + " runs already, and no run of the schedule has begun it: this run is skipped"
	case ended.Unknown:
		result.Message = "nothing is known of plan " + r.in.Name
	case ended.Phase == api.Completed:
		result.Phase = api.PlanCompleted
	case ended.Phase == api.Cancelled:
		result.Phase = api.PlanCancelled
	case ended.Kind != "":
		kind = ended.Kind
	}
	workflow.SetCurrentDetails(r.ctx, markdown.Text(result.Message))
	switch {
	case result.Skipped, result.Phase == api.PlanCompleted:
		return result, nil
	case result.Phase == api.PlanCancelled:
		return result, temporal.NewCanceledError(result)
	}
	return result, temporal.NewNonRetryableApplicationError(result.Message, kind, nil, result)
}
