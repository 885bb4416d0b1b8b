package client

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"drydock.dev/drydock/api"
)

// RunsProfiles reports whether nodes are evaluated by profiles: whether the workflow that does so runs. It takes no worker.
func (c *Client) RunsProfiles(ctx context.Context) (bool, error) {
	described, err := c.server.describe(ctx, api.ProfilesID(c.options.Cluster), "")
	switch {
	case isA[*serviceerror.NotFound](err):
		return false, nil
	case err != nil:
		return false, failedCall("looking for the evaluation of profiles", err)
	}
	return described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}
