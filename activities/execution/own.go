package execution

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/api"
)

// Self is whom the server takes this worker for, which is found out once in its life. Its zero value knows nothing yet.
type Self struct {
	mu        sync.Mutex
	principal string
}

// Principal is the verified principal of this worker, empty if the server verifies nobody. What is known is looked for again where
// it is none of those who answered the tasks in question: the worker may have other credentials than before. A failure, and a server that
// verified nobody, are not remembered.
func (s *Self) Principal(ctx context.Context, temporal client.Client, answered func(principal string) bool) (string, error) {
	s.mu.Lock()
	known := s.principal
	s.mu.Unlock()
	if known != "" && answered(known) {
		return known, nil
	}
	found, err := own(ctx, temporal)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.principal = found
	return found, nil
}

// own finds out the worker's principal. The activity signals its own workflow and reads from the event whom the server takes it for: the
// events of that workflow's tasks may be another worker's. The signal's name is one that nobody can know before.
func own(ctx context.Context, temporal client.Client) (string, error) {
	run, name := activity.GetInfo(ctx).WorkflowExecution, api.SignalOwn+"/"+rand.Text()
	if err := caller.Signal(ctx, temporal, run.ID, run.RunID, name, nil); err != nil {
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
