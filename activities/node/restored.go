package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// checkReleases refuses to hold a node that records a release which Temporal should know and does not: Temporal was restored to an
// earlier state, and the node would be taken out of service a second time. Whether a person requested that, or a plan that was
// restored itself, cannot be known. Everybody who may annotate a node can cause a refusal. Errors: Restored.
func checkReleases(ctx context.Context, server client.Client, home execution.Namespace, events nodeevent.Recorder, given *k8s.GivenBackError) error {
	within, cancel := context.WithTimeout(ctx, confirmWithin)
	defer cancel()
	for _, release := range given.Releases {
		if !home.MustKnow(release) {
			continue
		}
		found, err := recorded(within, server, given.Node, release)
		if err != nil {
			return err
		}
		if !found {
			return refuseRestored(ctx, events, given, release)
		}
	}
	return nil
}

// CheckReleases checks a node for such a release before it is held. Errors: Restored, MissingPermission.
func (n *Activities) CheckReleases(ctx context.Context, in HoldInput) error {
	caller := heldnode.CallerOf(ctx, in.RunID)
	err := k8s.CheckReleases(ctx, n.Client, k8s.HoldInput{
		Node: in.Node, ChecksReleases: true,
		Holder: k8s.Holder{WorkflowID: caller.WorkflowID, RunID: caller.RunID, Namespace: n.Home.ID},
	})
	var given *k8s.GivenBackError
	if errors.As(err, &given) {
		err = checkReleases(ctx, n.Temporal, n.Home, n.Events, given)
	}
	return failure.Translate(ctx, n.Client, err)
}

func refuseRestored(ctx context.Context, events nodeevent.Recorder, given *k8s.GivenBackError, release k8s.GivenBack) error {
	text := fmt.Sprintf("node %s says that %s gave it back on %s (%s), and Temporal does not know of that: it seems to be restored to an "+
		"earlier state. Where this is not to be done again: drydock cancel %s. Where it is, and for later maintenances: "+
		"kubectl annotate node %s %s-", given.Node, release.WorkflowID, release.At.UTC().Format(time.RFC3339), release.Reason,
		given.Node, given.Node, api.GivenBackAnnotation)
	events.Record(ctx, given.Node, given.UID, nodeevent.Event{Reason: api.EventRestored, Warning: true, Message: text, Key: release.Run})
	return temporal.NewNonRetryableApplicationError(text, api.ErrorRestored, nil)
}

// recorded reports whether a history has the activity that released a node. One that is longer than what is read counts as having it.
func recorded(ctx context.Context, server client.Client, node string, given k8s.GivenBack) (bool, error) {
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
		case releases(event.GetActivityTaskScheduledEventAttributes(), node, given.Activity):
			return true, nil
		}
	}
	return true, nil
}

// releases reports whether an activity of that ID is one that releases a node. A run that goes on from an earlier state gives the same
// IDs to other activities.
func releases(a *historypb.ActivityTaskScheduledEventAttributes, node, id string) bool {
	if id == "" || a.GetActivityId() != id {
		return false
	}
	var about struct {
		Node    string `json:"node"`
		Finding struct {
			Node string `json:"node"`
		} `json:"finding"`
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &about); err != nil {
		return false // it is about nothing
	}
	switch a.GetActivityType().GetName() {
	case "ReleaseNode":
		return about.Node == node
	case "Heal":
		return about.Finding.Node == node
	default:
		return false
	}
}
