// Package nodework runs commands on nodes, each taken out of service for it and put back.
package nodework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/views"
)

// Stops are the ways to stop a session.
type Stops struct {
	// Abandon gives the node up if it is not Ready yet.
	Abandon context.Context
	// Abort stops the command.
	Abort context.Context
	// GiveUp ends the attempts to reach Temporal.
	GiveUp context.Context
	// Leave is asked for when the maintenance is only waited for any more, and ends that wait.
	Leave func() context.Context
	// Interrupts say with which signal the command is stopped.
	Interrupts *Interrupts
}

// Session is the work on one node: take it out of service, run a command, put it back.
type Session struct {
	Maintenances maintenanceClient
	Program      string
	Order        input.Order
	// Command is run on the node, in the environment of this process with what it is to know of the node.
	Command Command
	Env     invocation.Environment
	// Shared: others may want to work on the node too, and one of them does.
	Shared bool
	// Leaves: a node that is not Ready when there is nothing more to be done is left to whoever took it out of service.
	Leaves bool
	// ReadyWithin bounds the wait for Ready; 0 is no bound.
	ReadyWithin time.Duration
	// retryEvery is the pause between two attempts to reach Temporal; 0 is the usual one.
	retryEvery time.Duration
	Now        func() time.Time
}

// Work does it all. It always returns with the maintenance in somebody's hands: ended, or RequestorFailed, or said
// in the note to be neither.
func (s *Session) Work(st Stops) api.NodeOutcome {
	began := s.Now()
	o := s.steps(st)
	o.Node = s.Order.Spec.Node
	o.Duration = period.Duration(max(0, s.Now().Sub(began)))
	return o
}

func (s *Session) steps(st Stops) api.NodeOutcome {
	v, adopted, err := s.begin(st)
	if err != nil {
		return notBegun(st, err)
	}
	ctx, cancel := exit.WithTimeout(st.Abandon, s.ReadyWithin)
	defer cancel()
	ready, err := s.Maintenances.awaitReady(ctx, v.Maintenance)
	if err == nil && ctx.Err() != nil {
		// Nothing was done to the node yet, and nothing is to be done any more.
		err = exit.StopCause(ctx)
	}
	switch {
	case errors.Is(err, exit.ErrInterrupted) && s.Leaves:
		return api.NodeOutcome{Result: api.OutcomeNotStarted, Note: whyAbandoned(st.Abandon) + "; its maintenance goes on", Code: exit.Cancelled}
	case errors.Is(err, exit.ErrInterrupted):
		return s.cancelled(st, v.Maintenance, adopted, api.NodeOutcome{Result: api.OutcomeCancelled, Note: whyAbandoned(st.Abandon) + " before the node was ready", Code: exit.Cancelled})
	case errors.Is(err, exit.ErrTimedOut):
		note := fmt.Sprintf("not ready within %s", s.ReadyWithin)
		if ready.Status != nil {
			note += " (" + views.Progress(ready.Known()) + ")"
		}
		return s.cancelled(st, v.Maintenance, adopted, api.NodeOutcome{Result: api.OutcomeFailed, Note: note + ", cancelled", Code: exit.OwnError})
	case err != nil && s.Shared && givenUp(err):
		return api.NodeOutcome{Result: api.OutcomeSkipped, Note: err.Error(), Code: exit.OwnError}
	case err != nil:
		return api.NodeOutcome{Result: api.OutcomeFailed, Note: err.Error(), Code: exit.OwnError}
	case !ready.Running():
		return api.NodeOutcome{Result: api.OutcomeFailed, Note: "somebody else was done with it first", Code: exit.OwnError}
	}
	if err := s.claim(st, ready.Maintenance); err != nil {
		return notClaimed(err)
	}
	status, err := s.runCommand(st, ready)
	return s.report(st, ready.Maintenance, status, err)
}

// givenUp reports whether somebody gave the node up before it was Ready, which the plan does where it is to skip the node: nothing was done
// to it, and nothing failed.
func givenUp(err error) bool {
	var ended *client.EndError
	return errors.As(err, &ended) && !ended.View.WasReady() && (ended.View.Phase() == api.Cancelled || ended.View.Phase() == api.NodeGone)
}

// claim says that the work begins. If that does not matter to anybody else, it begins whether it was recorded or not.
func (s *Session) claim(st Stops, t client.Maintenance) error {
	if !s.Shared {
		if err := s.Maintenances.started(st.GiveUp, t); err != nil {
			s.Maintenances.note("%s: the beginning of the work was not recorded: %s", t.Node, firstLine(err))
		}
		return nil
	}
	return s.persist(st.Abandon, "beginning the work on "+t.Node, func() error { return s.Maintenances.started(st.GiveUp, t) })
}

// notClaimed is the outcome of a node that was Ready and is not worked on here.
func notClaimed(err error) api.NodeOutcome {
	var taken *client.RefusedError
	if errors.As(err, &taken) {
		return api.NodeOutcome{Result: api.OutcomeSkipped, Note: taken.Reason, Code: exit.OwnError}
	}
	return api.NodeOutcome{Result: api.OutcomeCancelled, Note: fmt.Sprintf("the node is Ready, and no command was run: %v", err), Code: exit.OwnError}
}

// begin starts the maintenance, trying again while Temporal is away: a rollout must not fail for that.
func (s *Session) begin(st Stops) (v client.View, adopted bool, err error) {
	var last error
	err = s.persist(st.Abandon, "starting the maintenance of "+s.Order.Spec.Node, func() error {
		// An interrupt does not cut the call short: afterwards it must be known whether there is something to cancel.
		v, adopted, last = s.Maintenances.begin(st.GiveUp, s.Order)
		return last
	})
	if errors.Is(err, exit.ErrInterrupted) && errors.Is(last, client.ErrUnreachable) {
		err = fmt.Errorf("interrupted while Temporal did not answer, so it may have been started: see \"%s status %s\"", s.Program, s.Order.Spec.Node)
	}
	if err == nil && adopted {
		s.Maintenances.note("%s: the same maintenance is running already; going on with it", v.Node)
	}
	return v, adopted, err
}

func notBegun(st Stops, err error) api.NodeOutcome {
	if errors.Is(err, exit.ErrInterrupted) {
		return api.NodeOutcome{Result: api.OutcomeCancelled, Note: whyAbandoned(st.Abandon) + " before the maintenance was started", Code: exit.Cancelled}
	}
	return api.NodeOutcome{Result: api.OutcomeFailed, Note: err.Error(), Code: exit.OwnError}
}

// errSiblingFailed is why a rollout gives up nodes after another one has failed.
var errSiblingFailed = errors.New("another node failed")

func whyAbandoned(abandon context.Context) string {
	if errors.Is(context.Cause(abandon), errSiblingFailed) {
		return errSiblingFailed.Error()
	}
	return exit.ErrInterrupted.Error()
}

// cancelWithin bounds how long an interrupted command waits for its maintenance to be undone.
const cancelWithin = 2 * time.Minute

// cancelled undoes a maintenance of a node to which nothing was done.
func (s *Session) cancelled(st Stops, t client.Maintenance, adopted bool, o api.NodeOutcome) api.NodeOutcome {
	s.Maintenances.note("%s: cancelling the maintenance", t.Node)
	ctx, cancel := exit.WithTimeout(st.GiveUp, cancelWithin)
	defer cancel()
	// The node may just have become Ready. One that we have only adopted may be worked on by somebody else.
	message := api.Cancel{Message: api.Message{ID: uuid.NewString()}, Release: !adopted}
	var sent client.Sent
	err := s.persist(ctx, "cancelling", func() (err error) {
		sent, err = s.Maintenances.send(ctx, t, api.MsgCancel, message)
		return err
	})
	var noWorker *client.NoWorkerError
	if err == nil && errors.As(sent.Unanswered, &noWorker) {
		o.Note = fmt.Sprintf("%s; it is undone when a worker runs: %s", o.Note, noWorker)
		return o
	}
	var v client.View
	if err == nil || errors.Is(err, client.ErrEnded) { // whose plan it is may have cancelled it already
		v, err = s.Maintenances.awaitEnd(ctx, t)
	}
	switch {
	case v.WorkflowID != "" && !v.Running():
		if v.Phase() != api.Cancelled {
			o.Note += "; the maintenance ended " + string(v.Phase())
		}
	case err != nil:
		o.Note = fmt.Sprintf("cancelling it has not ended yet (%s): see \"%s status %s\"", firstLine(err), s.Program, t.Node)
	}
	return o
}

func (s *Session) runCommand(st Stops, ready client.View) (status int, err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(st.GiveUp))
	defer cancel()
	if ready.Status != nil {
		go s.hold(ctx, ready.Maintenance, ready.Status.Spec.ReadyTimeout.Std())
	}
	go func() {
		if v, err := s.Maintenances.awaitLeft(ctx, ready.Maintenance); err == nil {
			s.Maintenances.note("%s: while the command runs, the maintenance has become %s", v.Node, views.Progress(v.Known()))
		}
	}()
	command := s.Command
	command.Environ = NodeEnvironment(s.Env, ready.Maintenance)
	return command.run(st.Abort, st.Interrupts.Last, s.Maintenances.note)
}

// extendEvery leaves room for two lost messages before the ready timeout.
func extendEvery(readyTimeout time.Duration) time.Duration {
	return min(5*time.Minute, max(time.Second, readyTimeout/3))
}

// hold extends the ready timeout for as long as ctx lives.
func (s *Session) hold(ctx context.Context, t client.Maintenance, readyTimeout time.Duration) {
	if readyTimeout == 0 {
		return
	}
	every := extendEvery(readyTimeout)
	wait := every
	for sleep(ctx, wait) {
		wait = every
		if err := s.Maintenances.extend(ctx, t); err != nil && ctx.Err() == nil {
			s.Maintenances.note("%s: could not extend the ready timeout, trying again: %s", t.Node, firstLine(err))
			wait = min(every, 5*time.Second)
		}
	}
}

// report says done or failed, whichever the command's end means.
func (s *Session) report(st Stops, t client.Maintenance, status int, startErr error) api.NodeOutcome {
	o := api.NodeOutcome{Result: api.OutcomeDone, ExitStatus: &status, Code: status}
	name, said := api.MsgDone, api.Message{ID: uuid.NewString()}
	var message any = api.Done{Message: said, Requestor: t.Requestor}
	if status != 0 {
		o.Result, o.Note = api.OutcomeFailed, fmt.Sprintf("exit status %d", status)
		if startErr != nil {
			o.Note = startErr.Error()
		}
		name, message = api.MsgFailed, api.FailedMessage{Message: said, Requestor: t.Requestor, Reason: o.Note}
	}
	err := s.persist(st.GiveUp, "saying "+name, func() error {
		_, err := s.Maintenances.send(st.GiveUp, t, name, message)
		return err
	})
	// If the command has said done by itself, the maintenance may have ended before us.
	if err != nil && (o.Result != api.OutcomeDone || !errors.Is(err, client.ErrEnded)) {
		return s.unreported(o, name, err)
	}
	if o.Result == api.OutcomeFailed {
		o.Note += "; stays out of service, RequestorFailed"
		return o
	}
	_, err = s.Maintenances.awaitEnd(st.Leave(), t)
	switch {
	case errors.Is(err, exit.ErrInterrupted):
		o.Note, o.Code = "done; no longer waiting for the end of the maintenance, which goes on", exit.Interrupted
	case err != nil:
		o.Result, o.Note, o.Code = api.OutcomeFailed, "the command succeeded, but "+err.Error(), exit.OwnError
	}
	return o
}

// unreported is the outcome when the command ended and the maintenance does not know.
func (s *Session) unreported(o api.NodeOutcome, name string, err error) api.NodeOutcome {
	text := fmt.Sprintf("the command's exit status was %d, but %s was NOT said: %v", *o.ExitStatus, name, err)
	o.Result, o.Note = api.OutcomeFailed, text
	if o.Code == 0 {
		o.Code = exit.OwnError
	}
	return o
}

// persist tries until it works, fails for good, or ctx ends, and says what it is about.
func (s *Session) persist(ctx context.Context, what string, try func() error) error {
	pause := cmp.Or(s.retryEvery, 3*time.Second)
	for said := false; ; said = true {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return exit.StopCause(ctx)
		}
		if !errors.Is(err, client.ErrUnreachable) && !errors.Is(err, client.ErrUnanswered) && !exit.Has[*client.ReleasingError](err) && exit.CodeOf(err) != exit.TimedOut {
			return err
		}
		if !said {
			s.Maintenances.note("%s: %s; trying again", what, firstLine(err))
		}
		if !sleep(ctx, pause) {
			return exit.StopCause(ctx)
		}
	}
}

// firstLine leaves out the hints, which repeat themselves where something is tried again and again.
func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
