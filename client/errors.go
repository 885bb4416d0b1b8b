package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"

	"drydock.dev/drydock/api"
)

var (
	// ErrUnreachable marks the errors of a Temporal server that does not answer: another try may not meet them.
	ErrUnreachable = errors.New("the Temporal server is not reachable")
	// ErrUnanswered marks the errors of messages that were not sent because no worker answers for the workflow. It goes on once one does.
	ErrUnanswered = errors.New("nobody answers")
	// ErrSuperseded marks the error of a look at a maintenance whose last run is not known any more, because another began since.
	ErrSuperseded = errors.New("was continued in a run that has ended, and another maintenance has begun since")
	// ErrEnded marks the errors of messages that come too late.
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

// isA reports whether an error is of a type, or wraps one that is.
func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// unreachable reports whether an error of Temporal's may not come again with another try.
func unreachable(err error) bool {
	return isA[*serviceerror.Unavailable](err) || isA[*serviceerror.DeadlineExceeded](err) ||
		isA[*serviceerror.ResourceExhausted](err) || isA[*serviceerror.Canceled](err) || errors.Is(err, context.DeadlineExceeded) ||
		strings.HasPrefix(err.Error(), "failed reaching server") || strings.Contains(err.Error(), "RST_STREAM")
}

// marked is an error that is ErrInvalid or ErrUnanswered too, with the text of its cause alone.
type marked struct {
	error
	as error
}

func (e marked) Unwrap() error { return e.error }

func (e marked) Is(target error) bool { return target == e.as }

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

// RefusedError is a workflow's word that it does not do what a message asks for.
type RefusedError struct {
	// By is who refuses, such as "the maintenance of worker-01", and Message the name of the message.
	By, Message, Reason string
	// Type is that of the workflow's error, such as api.ErrorLimitsChanged.
	Type string
	err  error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s refuses %s: %s", e.By, e.Message, e.Reason)
}

// Unwrap returns the workflow's error.
func (e *RefusedError) Unwrap() error { return e.err }

// UnsettledError says that a message was sent, and that it is not known what became of it. The same message with the same ID can be sent
// again: it has its effect once.
type UnsettledError struct {
	// To is who it was sent to, and Message its name.
	To, Message string
	// Taken: the workflow has it, and its effect follows. Otherwise the server may keep it for the worker that comes next.
	Taken bool
	err   error
}

func (e *UnsettledError) Error() string { return e.What() + ": " + e.err.Error() }

// What says what is known, without why it is no more than that.
func (e *UnsettledError) What() string {
	if e.Taken {
		return fmt.Sprintf("%s has taken %s and not answered it yet", e.To, e.Message)
	}
	return e.Message + " was sent and is not confirmed, so it may take effect later"
}

// Unwrap returns why nobody has confirmed it.
func (e *UnsettledError) Unwrap() error { return e.err }

// LimitsChanged reports whether limits are refused because somebody else has set others meanwhile.
func LimitsChanged(err error) bool {
	refused, is := errors.AsType[*RefusedError](err)
	return is && refused.Type == api.ErrorLimitsChanged
}

// FailedError says that a workflow which was to report something has failed.
type FailedError struct {
	// What failed, such as "the doctor".
	What   string
	Reason string
	// Kind is the type of the failure, such as api.ErrorNodeNotFound.
	Kind string
}

func (e *FailedError) Error() string { return fmt.Sprintf("%s failed: %s", e.What, e.Reason) }

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
