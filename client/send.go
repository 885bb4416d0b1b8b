package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
)

const sendTimeout = 30 * time.Second

// Sent is what a workflow has answered to a message.
type Sent struct {
	// Effect says in words what the message has done, or with Already why it had nothing left to do.
	Effect  string
	Already bool
	// Unanswered says why nobody has acted upon the message yet: it is recorded, and takes effect when a worker runs. Only the cancellation
	// of a maintenance is sent without an answer.
	Unanswered error
}

// Send sends a maintenance a message of package api, such as api.MsgDone with the payload api.Done, and returns what the maintenance
// answers. What the payload lacks of ID, By, Comment and Run is filled in. A message with an ID has its effect once: where it is not
// known what became of it, send it again with the same ID. Errors are ErrInvalid, ErrUnanswered, ErrEnded, RefusedError, UnsettledError and
// CallError.
func (c *Client) Send(ctx context.Context, to Maintenance, name string, payload any, comment string) (Sent, error) {
	r := recipientOf(to, c.options.By)
	m, err := r.message(name, payload, comment)
	if err != nil {
		return Sent{}, err
	}
	err = c.server.answers(ctx, r, m)
	switch {
	case errors.Is(err, ErrUnanswered) && name == api.MsgCancel:
		// Ending a maintenance must not wait for a worker. A signal is durable.
		return Sent{Unanswered: err}, c.server.signal(ctx, r, m)
	case err != nil:
		return Sent{}, err
	case !m.declared.BySignal():
		return c.server.send(ctx, r, m)
	}
	if err := c.server.signal(ctx, r, m); err != nil {
		return Sent{}, err
	}
	return c.server.outcome(ctx, r, m)
}

// tell sends a message to a workflow that takes all of them as updates.
func (s *server) tell(ctx context.Context, to recipient, name string, payload any, comment string) (Sent, error) {
	m, err := to.message(name, payload, comment)
	if err == nil {
		err = s.answers(ctx, to, m)
	}
	if err != nil {
		return Sent{}, err
	}
	return s.send(ctx, to, m)
}

// Signal sends a maintenance a message without waiting for an answer. It is durable, and is ignored where it does not fit.
func (c *Client) Signal(ctx context.Context, to Maintenance, name string, payload any, comment string) error {
	r := recipientOf(to, c.options.By)
	m, err := r.message(name, payload, comment)
	if err != nil {
		return err
	}
	return c.server.signal(ctx, r, m)
}

type recipient struct {
	// kind is the type of the workflow, who is what people call it, and by who speaks.
	kind, who, by string
	id            string
	// run is the workflow's first run; empty is that of whichever runs.
	run string
	// question is a query that costs little, with its arguments: nothing matters but that it is answered.
	question string
	asked    []any
	// none is the error where there was no such workflow.
	none error
}

func recipientOf(m Maintenance, by string) recipient {
	return recipient{
		kind: api.NodeMaintenanceType, who: "the maintenance of " + m.Node, by: by, id: m.WorkflowID, run: m.FirstRunID, question: api.QuerySlot,
		none: fmt.Errorf("the maintenance of %s %w", m.Node, ErrEnded),
	}
}

type message struct {
	name, id string
	payload  any
	declared api.MessageType
}

// message completes a payload. It is ErrInvalid where the recipient takes no such message.
func (r recipient) message(name string, payload any, comment string) (message, error) {
	declared, found := api.MessageOf(r.kind, name)
	if !found {
		return message{}, marked{fmt.Errorf("%s takes no message %q", r.who, name), ErrInvalid}
	}
	complete, id, err := declared.Complete(payload, api.Message{ID: uuid.NewString(), By: r.by, Comment: comment}, r.run)
	if err != nil {
		return message{}, marked{err, ErrInvalid}
	}
	return message{name: name, id: id, payload: complete, declared: declared}, nil
}

func (r recipient) failed(m message, err error) error {
	switch {
	case isA[*serviceerror.NotFound](err):
		return fmt.Errorf("%s %w", r.who, ErrEnded)
	case isA[*serviceerror.PermissionDenied](err):
		return failedCall("sending "+m.name+" needs the permission to signal and update workflows", err)
	}
	return failedCall("sending "+m.name, err)
}

// answers makes sure that a worker answers for a workflow before anything is sent: the server keeps an update that no worker takes, and
// gives it to one that starts long after the caller got an error. A query leaves nothing behind.
func (s *server) answers(ctx context.Context, to recipient, m message) error {
	var answer any
	err := s.query(ctx, to.id, "", to.question, &answer, to.asked...)
	switch {
	case isA[*NoWorkerError](err), isA[*BusyError](err):
		return marked{fmt.Errorf("nothing was changed: %w", err), ErrUnanswered}
	case isA[*serviceerror.NotFound](err):
		return to.none
	case err == nil, isA[*serviceerror.QueryFailed](err):
		return nil // a worker has answered
	}
	return failedCall("asking "+to.who+" whether it can take "+m.name, err)
}

// send sends a message as an update, and waits for the answer. The message's ID is the update's: a run takes it once.
func (s *server) send(ctx context.Context, to recipient, m message) (Sent, error) {
	var answer any // words, but for the scheduler's
	err := s.update(ctx, to, m, &answer)
	var refused *RefusedError
	switch {
	case !errors.As(err, &refused):
		effect, _ := answer.(string)
		return Sent{Effect: effect}, err
	case refused.Type == api.ErrorNothingToDo:
		return Sent{Effect: refused.Reason, Already: true}, nil
	case refused.Type != api.ErrorReceived:
		return Sent{}, err
	case to.kind == api.NodeMaintenanceType:
		return s.outcome(ctx, to, m) // an earlier run has taken it
	}
	return Sent{Effect: refused.Reason, Already: true}, nil
}

// endedFirst is the server's type of the failure of an update whose run ended, or continued as new, before it answered.
const endedFirst = "AcceptedUpdateCompletedWorkflow"

// update waits until a worker has taken an update, and then for its answer.
func (s *server) update(ctx context.Context, to recipient, m message, answer any) error {
	seen, _ := s.polled(ctx)
	waiting, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	taken, err := s.ask(waiting, to, m, answer)
	for tries := 1; tries <= sendAgain && isLost(err, tries) && sleep(waiting, againAfter(tries)); tries++ {
		taken, err = s.ask(waiting, to, m, answer)
	}
	refused, isRefused := errors.AsType[*temporal.ApplicationError](err)
	isLate := isA[*temporalclient.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	switch {
	case err == nil:
		return nil
	case isRefused:
		return &RefusedError{By: to.who, Message: m.name, Type: refused.Type(), Reason: refused.Message(), err: refused}
	case ctx.Err() != nil:
		return &UnsettledError{To: to.who, Message: m.name, Taken: taken, err: context.Cause(ctx)}
	case !isA[*serviceerror.ResourceExhausted](err) && (isLate || unreachable(err)):
		return &UnsettledError{To: to.who, Message: m.name, Taken: taken, err: s.whyUnsettled(ctx, to, m, err, seen)}
	}
	return to.failed(m, err)
}

const sendAgain = 3

// againAfter is the pause before an update is sent again: Temporal tries a failed workflow task again after seconds.
func againAfter(tries int) time.Duration { return time.Duration(tries*tries) * 400 * time.Millisecond }

// isLost reports whether an update was lost in Temporal, so that it has to be sent again.
func isLost(err error, tries int) bool {
	switch {
	case isA[*serviceerror.NotFound](err):
		// A workflow continues as new now and then, and an update can fall between two of its runs.
		return tries == 1
	case isA[*serviceerror.WorkflowNotReady](err):
		// The workflow task that had taken it failed. The server fails one that ends the workflow while an event comes in.
		return true
	}
	return false
}

// ask reports whether a worker has taken the update.
func (s *server) ask(ctx context.Context, to recipient, m message, answer any) (taken bool, err error) {
	handle, err := s.temporal.UpdateWorkflow(ctx, temporalclient.UpdateWorkflowOptions{
		WorkflowID: to.id, FirstExecutionRunID: to.run, UpdateID: m.id, UpdateName: m.name, Args: []any{m.payload},
		WaitForStage: temporalclient.WorkflowUpdateStageAccepted,
	})
	if err != nil {
		return false, err
	}
	err = handle.Get(ctx, answer)
	if failed, is := errors.AsType[*temporal.ApplicationError](err); is && failed.Type() == endedFirst {
		err = serviceerror.NewNotFound(failed.Message())
	}
	return true, err
}

// whyUnsettled says who has not answered an update. A worker has answered just before it was sent.
func (s *server) whyUnsettled(ctx context.Context, to recipient, m message, err error, seen time.Time) error {
	why := s.silent(ctx, err, seen, sendTimeout)
	noWorker, isNoWorker := errors.AsType[*NoWorkerError](why)
	switch {
	case isNoWorker && noWorker.Silent, isA[*BusyError](why):
		return fmt.Errorf("%s has not answered within %s", to.who, sendTimeout)
	case isNoWorker:
		return why
	}
	return failedCall("sending "+m.name, why)
}

func (s *server) signal(ctx context.Context, to recipient, m message) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	// Without a run ID: the message says which workflow it is meant for, and that may go on in a new run any time.
	if err := s.temporal.SignalWorkflow(ctx, to.id, "", m.name, m.payload); err != nil {
		return to.failed(m, err)
	}
	return nil
}

// outcome waits for what became of a message that a maintenance was sent as a signal, or in an earlier run: its status has that.
func (s *server) outcome(ctx context.Context, to recipient, m message) (Sent, error) {
	waiting, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	var (
		pause  time.Duration
		failed error // of the last query that was not cut off
	)
	for {
		var status api.Status // it has no messages where nobody answers
		err := s.query(waiting, to.id, "", api.QueryStatus, &status)
		if waiting.Err() == nil {
			failed = err
		}
		entry, received := outcomeOf(&status, m.id)
		switch {
		case isA[*serviceerror.NotFound](err), isA[*serviceerror.PermissionDenied](err):
			return Sent{}, &UnsettledError{To: to.who, Message: m.name, Taken: true, err: failedCall("asking "+to.who, err)}
		case received && entry.Outcome == api.Applied:
			return Sent{Effect: entry.Effect}, nil
		case received && entry.Outcome != api.Judged && m.hasDecided(status.Approval):
			return Sent{Effect: "is " + status.Approval.Verb() + " already", Already: true}, nil
		case received && entry.Outcome != api.Judged:
			return Sent{}, &RefusedError{By: to.who, Message: m.name, Reason: strings.TrimPrefix(entry.Effect, "ignored: ")}
		}
		if pause = nextPause(pause); !sleep(waiting, pause) {
			why := cmp.Or(context.Cause(ctx), failedCall("asking "+to.who, failed), fmt.Errorf("%s has not answered within %s", to.who, sendTimeout))
			return Sent{}, &UnsettledError{To: to.who, Message: m.name, Taken: true, err: why}
		}
	}
}

// hasDecided reports whether what an approve or a deny asks for has been decided, by this message or another.
func (m message) hasDecided(word *api.ApprovalStatus) bool {
	return word != nil && m.declared.BySignal() && word.Denied == (m.name == api.MsgDeny)
}

func outcomeOf(now *api.Status, id string) (entry api.Received, found bool) {
	i := slices.IndexFunc(now.Messages, func(r api.Received) bool { return r.ID == id })
	if i < 0 {
		return entry, false
	}
	return now.Messages[i], true
}
