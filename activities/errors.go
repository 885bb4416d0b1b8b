package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock/k8s"
)

// Types of the errors that workflows tell apart.
const (
	// ErrorNodeGone: the node does not exist (any more).
	ErrorNodeGone = "NodeGone"
	// ErrorNodeReplaced: another node has the name of the one that was held.
	ErrorNodeReplaced = "NodeReplaced"
	// ErrorNotHolder: the node does not carry the maintenance's mark, so the activity must not touch it.
	ErrorNotHolder = "NotHolder"
	// ErrorMissingPermission: the worker's Kubernetes account may not do this; no retry heals that.
	ErrorMissingPermission = "MissingPermission"
	// ErrorNoScheduler: the scheduler does not run, and nobody starts it.
	ErrorNoScheduler = "NoScheduler"
	// ErrorWorkerStopping: the activity gave up its worker, and goes on elsewhere at once.
	ErrorWorkerStopping = "WorkerStopping"
)

// translate tells Temporal which errors are worth a retry: all but those that only a person, or another step of the
// workflow, can heal. A token that is not accepted heals by itself: it is renewed.
func translate(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), temporal.IsApplicationError(err):
		return err
	case errors.Is(err, k8s.ErrNodeGone):
		return temporal.NewNonRetryableApplicationError(err.Error(), ErrorNodeGone, nil)
	case errors.Is(err, k8s.ErrNodeReplaced):
		return temporal.NewNonRetryableApplicationError(err.Error(), ErrorNodeReplaced, nil)
	case errors.Is(err, k8s.ErrNotHolder):
		return temporal.NewNonRetryableApplicationError(err.Error(), ErrorNotHolder, nil)
	case apierrors.IsForbidden(err):
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("%v (grant it to the worker's account)", err), ErrorMissingPermission, nil)
	default:
		return err
	}
}

// workerStopping makes Temporal start the activity again on another worker without delay.
func workerStopping() error {
	return temporal.NewApplicationErrorWithOptions("the worker is stopping", ErrorWorkerStopping,
		temporal.ApplicationErrorOptions{NextRetryDelay: 50 * time.Millisecond})
}
