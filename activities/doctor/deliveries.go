package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"drydock.dev/drydock/rules/doctor"
)

const (
	// deliveriesLooked bounds how many running deliveries are asked after.
	deliveriesLooked = 200
	// givenUpFor is how long a delivery that was given up is reported.
	givenUpFor = 24 * time.Hour
)

// deliveries looks for messages to channels, and audit records, that do not arrive.
func (d *Activities) deliveries(ctx context.Context, in EvaluateInput, facts *doctor.Facts) error {
	if len(in.Deliveries) == 0 {
		return nil
	}
	types := "'" + strings.Join(in.Deliveries, "', '") + "'"
	since := facts.At.Add(-givenUpFor).Format(time.RFC3339)
	page, err := d.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: d.Namespace, PageSize: deliveriesLooked,
		Query: fmt.Sprintf("WorkflowType IN (%s) AND TaskQueue = '%s' AND (ExecutionStatus = 'Running' OR ExecutionStatus = 'Failed' AND CloseTime > '%s')",
			types, in.Listed.TaskQueue, since),
	})
	if err != nil {
		return fmt.Errorf("listing deliveries: %w", err)
	}
	if len(page.NextPageToken) > 0 {
		facts.Unchecked = append(facts.Unchecked, fmt.Sprintf("only the first %d deliveries to channels were looked at", deliveriesLooked))
	}
	for _, info := range page.Executions {
		delivery, err := d.delivery(ctx, info)
		if err != nil {
			return err
		}
		facts.Deliveries = append(facts.Deliveries, delivery)
	}
	return nil
}

func (d *Activities) delivery(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (doctor.Delivery, error) {
	delivery := doctor.Delivery{WorkflowID: info.Execution.WorkflowId, RunID: info.Execution.RunId, Since: info.GetStartTime().AsTime()}
	if info.Status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		delivery.GivenUp, delivery.Since = true, info.GetCloseTime().AsTime()
		return delivery, nil
	}
	described, err := d.Temporal.DescribeWorkflowExecution(ctx, info.Execution.WorkflowId, info.Execution.RunId)
	if err != nil {
		return delivery, fmt.Errorf("describing workflow %s: %w", info.Execution.WorkflowId, err)
	}
	for _, activity := range described.PendingActivities {
		delivery.Attempts = max(delivery.Attempts, int(activity.Attempt))
		if failure := activity.GetLastFailure(); failure != nil {
			delivery.Error = failure.Message
		}
	}
	return delivery, nil
}
