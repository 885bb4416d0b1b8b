package execution

import (
	"context"
	"crypto/rand"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"drydock/api"
)

// Own is the verified principal of this worker, empty where the server verifies nobody. The activity signals its own workflow and
// reads from the event whom the server takes it for: the events of that workflow's tasks may be another worker's. The signal's name
// is one that nobody can know before.
func Own(ctx context.Context, temporal client.Client) (string, error) {
	run, name := activity.GetInfo(ctx).WorkflowExecution, api.SignalOwn+"/"+rand.Text()
	if err := temporal.SignalWorkflow(ctx, run.ID, run.RunID, name, nil); err != nil {
		return "", fmt.Errorf("signalling workflow %s to find out the worker's principal: %w", run.ID, err)
	}
	events := temporal.GetWorkflowHistory(ctx, run.ID, run.RunID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return "", fmt.Errorf("reading the history of workflow %s: %w", run.ID, err)
		}
		if event.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == name {
			return SenderOf("", event.GetPrincipal()).Principal, nil
		}
	}
	return "", fmt.Errorf("workflow %s: the signal that the worker sent is not in the history", run.ID)
}
