// Package failure marks the errors of activities for Temporal: which of them are worth a retry.
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

// OrCause is the error, or why the context ended where it did: the error then only says that it ended.
func OrCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// Translate marks the errors that are not worth a retry: those that only a person, or another step of the workflow,
// can resolve. A token that is not accepted is renewed without them. The client asks the API server whether a refusal
// is a missing permission; without a client that is not known.
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

// granting says what grants the permission that a request lacked; it is empty if the error does not name the request.
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
