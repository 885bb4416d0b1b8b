package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock/activities/execution"
	"drydock/api"
	"drydock/k8s"
)

// knows refuses to go on where a node tells of a release that Temporal should know and does not: it was restored to an earlier
// state, and the node would be taken out of service a second time. Whoever may annotate nodes can bring this about on his own node,
// and nothing more. Errors: Restored.
func knows(ctx context.Context, server client.Client, home execution.Namespace, given *k8s.GivenBackError) error {
	if time.Since(given.At) > home.Retention {
		return nil // its history need not be kept any more
	}
	recorded, err := recorded(ctx, server, given.GivenBack)
	if err != nil || recorded {
		return err
	}
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(
		"%v, and Temporal does not know of that: it seems to be restored to an earlier state. Where the node is not to be maintained "+
			"again: drydock cancel %s; where it is: kubectl annotate node %s %s-", given, given.Node, given.Node, api.GivenBackAnnotation),
		api.ErrorRestored, nil)
}

// recorded reports whether a history has the activity that released a node. A history of which more than is read here comes before
// it counts as one.
func recorded(ctx context.Context, server client.Client, given k8s.GivenBack) (bool, error) {
	events := server.GetWorkflowHistory(ctx, given.By, given.Run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for range maxEvents {
		if !events.HasNext() {
			return false, nil
		}
		event, err := events.Next()
		var unknown *serviceerror.NotFound
		var malformed *serviceerror.InvalidArgument
		switch {
		case errors.As(err, &unknown), errors.As(err, &malformed):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("reading the history of workflow %.300q: %w", given.By, err)
		case event.GetActivityTaskScheduledEventAttributes().GetActivityId() == given.Activity:
			return true, nil
		}
	}
	return true, nil
}
