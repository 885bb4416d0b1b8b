package client

import (
	"context"
	"errors"
	"time"

	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/rules/window"
)

// Windows asks a worker for the windows of its configuration and their next openings. It is given up, by the server too,
// after within. A window that there is not is a FailedError.
func Windows(ctx context.Context, c *Client, in api.WindowsInput, within time.Duration) (window.Horizon, error) {
	var horizon window.Horizon
	run, err := c.server.start(ctx, temporalclient.StartWorkflowOptions{
		ID: api.WindowsID(c.options.Cluster, occasion()), WorkflowExecutionTimeout: within,
		StaticSummary: "when windows are open", StaticDetails: "Started by " + markdown.Text(c.options.By) + ".",
	}, api.WindowsType, in)
	if err != nil {
		return horizon, failedCall("asking for the windows", err)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = c.server.resultOf(ctx, run, "asking for the windows", &horizon)
	var noWorker *NoWorkerError
	if ctx.Err() != nil || errors.As(err, &noWorker) {
		c.server.takeBack(ctx, run)
	}
	return horizon, err
}
