package execution

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// Running is the first run of the chain that runs under a workflow ID, empty if none does.
func Running(ctx context.Context, temporal client.Client, id string) (first string, err error) {
	d, err := temporal.DescribeWorkflowExecution(ctx, id, "")
	var nobody *serviceerror.NotFound
	switch info := d.GetWorkflowExecutionInfo(); {
	case errors.As(err, &nobody):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("describing workflow %s: %w", id, err)
	case info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return "", nil
	default:
		return info.GetFirstRunId(), nil
	}
}
