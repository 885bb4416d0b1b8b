// Package failure tells Temporal which errors of activities are worth a retry.
package failure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/preflight"
)

// OrCause is the error, or why the context ended where it did: an error then only tells of that.
func OrCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// Translate tells Temporal which errors are worth a retry: all but those that only a person, or another step of the
// workflow, can heal. A token that is not accepted heals by itself: it is renewed. Whether a refusal is a missing
// permission the API server is asked by the client; without one it is not known to be.
func Translate(ctx context.Context, client kube.Interface, err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), temporal.IsApplicationError(err):
		return err
	case errors.Is(err, k8s.ErrNodeGone):
		return temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorNodeGone, nil)
	case errors.Is(err, k8s.ErrNodeReplaced):
		return temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorNodeReplaced, nil)
	case errors.Is(err, k8s.ErrNotHolder):
		return temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorNotHolder, nil)
	case k8s.Denied(ctx, client, err):
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("%v (grant it to the worker's account%s)", err, granting(err)), api.ErrorMissingPermission, nil)
	default:
		return err
	}
}

// granting says what grants the permission that a request lacked; it is empty where the error does not name the request.
func granting(err error) string {
	request, known := k8s.RefusedRequest(err)
	if !known {
		return ""
	}
	return " with " + preflight.Need{ResourceAttributes: request}.Granting()
}

// WorkerStopping makes Temporal start the activity again on another worker without delay.
func WorkerStopping() error {
	return temporal.NewApplicationErrorWithOptions("the worker is stopping", api.ErrorWorkerStopping,
		temporal.ApplicationErrorOptions{NextRetryDelay: 50 * time.Millisecond})
}
