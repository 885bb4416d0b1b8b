package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
)

var (
	// ErrUnreachable marks the errors of a Temporal server that does not answer: another try may not meet them.
	ErrUnreachable = errors.New("the Temporal server is not reachable")
	// ErrUnanswered marks the errors of a maintenance that no worker speaks for. It goes on once a worker runs.
	ErrUnanswered = errors.New("the maintenance does not answer")
	// ErrEnded marks the errors of what comes too late for a maintenance.
	ErrEnded = errors.New("has ended meanwhile")
	// ErrInvalid marks the errors of an input that is refused before anything is sent: the same call never succeeds.
	ErrInvalid = errors.New("invalid")
)

// CallError is a call to Temporal that failed. It is ErrUnreachable where another try may succeed.
type CallError struct {
	// Doing says what the call was for, such as "listing maintenances".
	Doing string
	// Err is Temporal's error.
	Err error
}

func (e *CallError) Error() string { return e.Doing + ": " + e.Err.Error() }

// Unwrap returns Temporal's error.
func (e *CallError) Unwrap() error { return e.Err }

// Is reports whether it is ErrUnreachable.
func (e *CallError) Is(target error) bool { return target == ErrUnreachable && unreachable(e.Err) }

// failedCall is nil for no error.
func failedCall(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &CallError{Doing: doing, Err: err}
}

// unreachable reports whether an error of Temporal's may not come again with another try.
func unreachable(err error) bool {
	var (
		unavailable *serviceerror.Unavailable
		deadline    *serviceerror.DeadlineExceeded
		exhausted   *serviceerror.ResourceExhausted
		canceled    *serviceerror.Canceled
	)
	return errors.As(err, &unavailable) || errors.As(err, &deadline) || errors.As(err, &exhausted) ||
		errors.As(err, &canceled) || errors.Is(err, context.DeadlineExceeded) ||
		strings.HasPrefix(err.Error(), "failed reaching server") || strings.Contains(err.Error(), "RST_STREAM")
}

// invalidError is ErrInvalid with the text of its cause alone.
type invalidError struct{ error }

func (e invalidError) Unwrap() error { return e.error }

func (e invalidError) Is(target error) bool { return target == ErrInvalid }

// NoWorkerError says that no worker polls the task queue, so that nobody answers and nothing goes on.
type NoWorkerError struct {
	TaskQueue, Namespace string
	// Silent: the server has seen one poll not long ago, and it does not answer: it has just stopped, or hangs.
	Silent bool
}

func (e *NoWorkerError) Error() string {
	if e.Silent {
		return fmt.Sprintf("no worker answers on task queue %q in namespace %q, though the Temporal server does: start drydock-worker, or see its log",
			e.TaskQueue, e.Namespace)
	}
	return fmt.Sprintf("no worker is polling task queue %q in namespace %q: start drydock-worker", e.TaskQueue, e.Namespace)
}

// BusyError says that a workflow has not answered though a worker is there: it has too much to do, or the workflow is stuck.
type BusyError struct {
	// Waited is how long the answer was waited for.
	Waited time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("a worker is polling and has not answered within %s: it has much to do, or the workflow is stuck (see its log)", e.Waited)
}

// NoSchedulerError says that no scheduler is running. Workers start it within half a minute.
type NoSchedulerError struct{ WorkflowID, Namespace string }

func (e *NoSchedulerError) Error() string {
	return fmt.Sprintf("no scheduler is running (workflow %s in namespace %q)", e.WorkflowID, e.Namespace)
}

// RefusedError is the scheduler's word that it does not do what it was asked.
type RefusedError struct {
	// Type is one of the error types of package api, such as api.ErrorLimitsChanged.
	Type   string
	Reason string
	err    error
}

func (e *RefusedError) Error() string { return "refused by the scheduler: " + e.Reason }

// Unwrap returns the workflow's error.
func (e *RefusedError) Unwrap() error { return e.err }

func refusalOf(err *temporal.ApplicationError) *RefusedError {
	return &RefusedError{Type: err.Type(), Reason: err.Message(), err: err}
}

// UnsettledError says that the scheduler was asked for a change and nobody has confirmed it: the server keeps it for the
// worker that comes next.
type UnsettledError struct {
	// Change is its name, such as api.UpdateFreeze.
	Change string
	err    error
}

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("%s was sent and is not confirmed, so it may take effect later: %s", e.Change, e.err)
}

// Unwrap returns why nobody has confirmed it.
func (e *UnsettledError) Unwrap() error { return e.err }

// LimitsChanged reports whether limits are refused because somebody else has set others meanwhile.
func LimitsChanged(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && refused.Type == api.ErrorLimitsChanged
}

// FailedError says that a workflow which was to report something has failed.
type FailedError struct {
	// What failed, such as "the doctor".
	What   string
	Reason string
}

func (e *FailedError) Error() string { return fmt.Sprintf("%s failed: %s", e.What, e.Reason) }

// NotNowError says that a maintenance would ignore a message as things are.
type NotNowError struct {
	// Message is the name of the message.
	Message string
	// Status is the one that was looked at.
	Status *api.Status
	// Reason is a sentence that names the node.
	Reason string
}

func (e *NotNowError) Error() string { return e.Reason }

// UnknownPodError says that the bare name of a pod is not that of exactly one pod that blocks a drain.
type UnknownPodError struct {
	Node, Pod string
	// Named are the pods of that name, with their namespaces; Known are all that the drain is known to wait for.
	Named, Known []string
}

func (e *UnknownPodError) Error() string {
	switch {
	case len(e.Named) > 1:
		return fmt.Sprintf("%s has several pods named %s that block its drain", e.Node, e.Pod)
	case len(e.Known) == 0:
		return fmt.Sprintf("no pod that blocks the drain of %s is known, so not the namespace of %s either", e.Node, e.Pod)
	default:
		return fmt.Sprintf("%s is not one of the pods that block the drain of %s", e.Pod, e.Node)
	}
}

// IgnoredError says that a maintenance has read a message and not acted upon it.
type IgnoredError struct{ Message, Node, Reason string }

func (e *IgnoredError) Error() string {
	return fmt.Sprintf("the maintenance of %s ignored %s: %s", e.Node, e.Message, e.Reason)
}

// NoEffectError says that a message was sent and what it is for has not come about.
type NoEffectError struct {
	Message, Node string
	// Received is what the maintenance says of the message; nil where it has not read it.
	Received *api.Received
	// Waited is how long the effect was waited for before giving up; 0 where the maintenance went on without it.
	Waited time.Duration
	// Unanswered says why the maintenance could not be asked last.
	Unanswered error
}

func (e *NoEffectError) Error() string {
	var text string
	switch {
	case e.Received == nil:
		text = fmt.Sprintf("%s was sent, without effect for %s; it takes effect when a worker reads it", e.Message, e.Waited)
	case e.Waited == 0:
		return fmt.Sprintf("%s was received by the maintenance of %s without effect: %s", e.Message, e.Node, e.Received.Effect)
	default:
		text = fmt.Sprintf("%s was received by the maintenance of %s (%s), without effect for %s", e.Message, e.Node, e.Received.Effect, e.Waited)
	}
	if e.Unanswered != nil {
		text += ": " + e.Unanswered.Error()
	}
	return text
}

// Unwrap returns why the maintenance could not be asked last.
func (e *NoEffectError) Unwrap() error { return e.Unanswered }

// EndError says that a maintenance has ended otherwise than its goal wants.
type EndError struct {
	View View
	// BeforeReady: the requestor never had the node.
	BeforeReady bool
}

func (e *EndError) Error() string {
	before := ""
	if e.BeforeReady {
		before = " before the node was ready"
	}
	return fmt.Sprintf("the maintenance of %s ended %s%s%s", e.View.Node, e.View.Phase(), before, colon(e.View.Message()))
}

// RefusedInputError says that the worker has refused the input of a maintenance, which has done nothing. It is ErrInvalid.
type RefusedInputError struct{ Node, Reason string }

func (e *RefusedInputError) Error() string {
	return fmt.Sprintf("the maintenance of %s is refused, nothing was done: %s", e.Node, e.Reason)
}

// Is reports whether it is ErrInvalid.
func (e *RefusedInputError) Is(target error) bool { return target == ErrInvalid }

// ReleasingError says that a maintenance of the same node and requestor is at its end: another one can be started once
// it has given the node back.
type ReleasingError struct{ View View }

func (e *ReleasingError) Error() string {
	return fmt.Sprintf("the last maintenance of %s for %s is giving the node back", e.View.Node, e.View.Requestor)
}

// UndecidedError says that a node stays out of service until somebody decides: the work on it or its validation failed.
type UndecidedError struct{ View View }

func (e *UndecidedError) Error() string {
	if e.View.Phase() == api.RequestorFailed {
		return fmt.Sprintf("%s is RequestorFailed%s", e.View.Node, colon(e.View.Message()))
	}
	return fmt.Sprintf("%s stays out of service: %s", e.View.Node, e.View.Status.Failure)
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
