package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"drydock/api"
	"drydock/client"
)

// desk is what a session does with a maintenance.
type desk interface {
	// begin starts the maintenance or adopts the same one that runs.
	begin(ctx context.Context, o order) (v client.View, adopted bool, err error)
	awaitReady(ctx context.Context, t client.Maintenance) (client.View, error)
	// tell sends a message and waits for its effect.
	tell(ctx context.Context, t client.Maintenance, m message) error
	// started and extend only send: the work does not wait for the record of it.
	started(ctx context.Context, t client.Maintenance) error
	extend(ctx context.Context, t client.Maintenance) error
	// awaitLeft waits until the node is no longer Ready.
	awaitLeft(ctx context.Context, t client.Maintenance) (client.View, error)
	// awaitEnd waits for the end, and any other than Completed is an error.
	awaitEnd(ctx context.Context, t client.Maintenance) (client.View, error)
	note(format string, args ...any)
}

// stops are the ways in which a session can be told to stop.
type stops struct {
	// abandon gives the node up if it is not Ready yet.
	abandon context.Context
	// abort stops the command.
	abort context.Context
	// giveUp ends the attempts to reach Temporal.
	giveUp context.Context
	// leave is asked for when the maintenance is only waited for any more, and ends that wait.
	leave func() context.Context
	// signal is what the command is stopped with.
	signal func() syscall.Signal
}

// session is the work on one node: take it out of service, run a command, put it back.
type session struct {
	desk    desk
	program string
	order   order
	command func(t client.Maintenance) command
	// readyWithin bounds the wait for Ready; 0 is no bound.
	readyWithin time.Duration
	// retryEvery is the pause between two attempts to reach Temporal; 0 is the usual one.
	retryEvery time.Duration
	now        func() time.Time
}

// result is how the work on a node came out.
type result string

const (
	resultDone       result = "done"
	resultFailed     result = "failed"
	resultCancelled  result = "cancelled"
	resultNotStarted result = "not started"
	resultSkipped    result = "skipped"
)

// outcome is the result of a session.
type outcome struct {
	Node   string `json:"node"`
	Result result `json:"result"`
	// ExitStatus is the command's; absent where it did not run.
	ExitStatus *int          `json:"exitStatus,omitempty"`
	Seconds    float64       `json:"seconds,omitempty"`
	Note       string        `json:"note,omitempty"`
	duration   time.Duration // Seconds, exactly
	// code is what exec exits with.
	code int
}

// work does it all. It always returns with the maintenance in somebody's hands: ended, or RequestorFailed, or said
// in the note to be neither.
func (s *session) work(st stops) outcome {
	began := s.now()
	o := s.steps(st)
	o.Node = s.order.spec.Node
	o.duration = s.now().Sub(began)
	o.Seconds = o.duration.Seconds()
	return o
}

func (s *session) steps(st stops) outcome {
	v, adopted, err := s.begin(st)
	if err != nil {
		return notBegun(st, err)
	}
	ctx, cancel := withTimeout(st.abandon, s.readyWithin)
	defer cancel()
	ready, err := s.desk.awaitReady(ctx, v.Maintenance)
	if err == nil && ctx.Err() != nil {
		// Nothing was done to the node yet, and nothing is to be done any more.
		err = stopCause(ctx)
	}
	switch {
	case errors.Is(err, errInterrupted):
		return s.cancelled(st, v.Maintenance, adopted, outcome{Result: resultCancelled, Note: whyAbandoned(st.abandon) + " before the node was ready", code: exitCancelled})
	case errors.Is(err, errTimedOut):
		return s.cancelled(st, v.Maintenance, adopted, outcome{Result: resultFailed, Note: fmt.Sprintf("not ready within %s, cancelled", s.readyWithin), code: exitOwnError})
	case err != nil:
		return outcome{Result: resultFailed, Note: err.Error(), code: exitOwnError}
	case !ready.Running():
		return outcome{Result: resultFailed, Note: "somebody else was done with it first", code: exitOwnError}
	}
	if err := s.desk.started(st.giveUp, ready.Maintenance); err != nil {
		s.desk.note("%s: that the work begins was not recorded: %s", ready.Node, firstLine(err))
	}
	status, err := s.runCommand(st, ready)
	return s.report(st, ready.Maintenance, status, err)
}

// begin starts the maintenance, trying again while Temporal is away: a rollout must not fail for that.
func (s *session) begin(st stops) (v client.View, adopted bool, err error) {
	var last error
	err = s.persist(st.abandon, "starting the maintenance of "+s.order.spec.Node, func() error {
		// An interrupt does not cut the call short: afterwards it must be known whether there is something to cancel.
		v, adopted, last = s.desk.begin(st.giveUp, s.order)
		return last
	})
	if errors.Is(err, errInterrupted) && errors.Is(last, client.ErrUnreachable) {
		err = fmt.Errorf("interrupted while Temporal did not answer, so it may have been started: see \"%s status %s\"", s.program, s.order.spec.Node)
	}
	if err == nil && adopted {
		s.desk.note("%s: the same maintenance is running already; going on with it", v.Node)
	}
	return v, adopted, err
}

func notBegun(st stops, err error) outcome {
	if errors.Is(err, errInterrupted) {
		return outcome{Result: resultCancelled, Note: whyAbandoned(st.abandon) + " before the maintenance was started", code: exitCancelled}
	}
	return outcome{Result: resultFailed, Note: err.Error(), code: exitOwnError}
}

// errSiblingFailed is why a rollout gives up nodes after another one has failed.
var errSiblingFailed = errors.New("another node failed")

func whyAbandoned(abandon context.Context) string {
	if errors.Is(context.Cause(abandon), errSiblingFailed) {
		return errSiblingFailed.Error()
	}
	return errInterrupted.Error()
}

// cancelWithin bounds how long an interrupted command waits for its maintenance to be undone.
const cancelWithin = 2 * time.Minute

// cancelled undoes a maintenance of a node to which nothing was done.
func (s *session) cancelled(st stops, t client.Maintenance, adopted bool, o outcome) outcome {
	s.desk.note("%s: cancelling the maintenance", t.Node)
	ctx, cancel := withTimeout(st.giveUp, cancelWithin)
	defer cancel()
	// The node may just have become Ready. One that we have only adopted may be worked on by somebody else.
	m := cancelMessage(s.program, !adopted, false)
	err := s.persist(ctx, "cancelling", func() error { return s.desk.tell(ctx, t, m) })
	var v client.View
	if err == nil {
		v, err = s.desk.awaitEnd(ctx, t)
	}
	switch {
	case v.WorkflowID != "" && !v.Running():
		if v.Phase() != api.Cancelled {
			o.Note += "; the maintenance ended " + string(v.Phase())
		}
	case err != nil:
		o.Note = fmt.Sprintf("cancelling it has not ended yet (%s): see \"%s status %s\"", firstLine(err), s.program, t.Node)
	}
	return o
}

// runCommand runs the command, holding the node while it lives.
func (s *session) runCommand(st stops, ready client.View) (status int, err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(st.giveUp))
	defer cancel()
	if ready.Status != nil {
		go s.hold(ctx, ready.Maintenance, ready.Status.Spec.ReadyTimeout.Std())
	}
	go func() {
		if v, err := s.desk.awaitLeft(ctx, ready.Maintenance); err == nil {
			s.desk.note("%s: while the command runs, the maintenance has become %s", v.Node, progress(v))
		}
	}()
	return s.command(ready.Maintenance).run(st.abort, st.signal, s.desk.note)
}

// extendEvery leaves room for two lost messages before the ready timeout.
func extendEvery(readyTimeout time.Duration) time.Duration {
	return min(5*time.Minute, max(time.Second, readyTimeout/3))
}

// hold extends the ready timeout for as long as ctx lives.
func (s *session) hold(ctx context.Context, t client.Maintenance, readyTimeout time.Duration) {
	if readyTimeout == 0 {
		return
	}
	every := extendEvery(readyTimeout)
	wait := every
	for sleep(ctx, wait) {
		wait = every
		if err := s.desk.extend(ctx, t); err != nil && ctx.Err() == nil {
			s.desk.note("%s: could not extend the ready timeout, trying again: %s", t.Node, firstLine(err))
			wait = min(every, 5*time.Second)
		}
	}
}

// report says done or failed, whichever the command's end means.
func (s *session) report(st stops, t client.Maintenance, status int, startErr error) outcome {
	o := outcome{Result: resultDone, ExitStatus: &status, code: status}
	m := doneMessage(s.program, t.Requestor)
	if status != 0 {
		o.Result, o.Note = resultFailed, fmt.Sprintf("exit status %d", status)
		if startErr != nil {
			o.Note = startErr.Error()
		}
		m = failedMessage(s.program, t.Requestor, o.Note)
	}
	err := s.persist(st.giveUp, "saying "+m.Name(), func() error { return s.desk.tell(st.giveUp, t, m) })
	// Where the command has said done by itself, the maintenance may have ended before us.
	if err != nil && (o.Result != resultDone || !errors.Is(err, client.ErrEnded)) {
		return s.unreported(o, m.Name(), err)
	}
	if o.Result == resultFailed {
		o.Note += "; stays out of service, RequestorFailed"
		return o
	}
	_, err = s.desk.awaitEnd(st.leave(), t)
	switch {
	case errors.Is(err, errInterrupted):
		o.Note, o.code = "done; no longer waiting for the end of the maintenance, which goes on", exitInterrupted
	case err != nil:
		o.Result, o.Note, o.code = resultFailed, "the command succeeded, but "+err.Error(), exitOwnError
	}
	return o
}

// unreported is the outcome when the command ended and the maintenance does not know.
func (s *session) unreported(o outcome, name string, err error) outcome {
	text := fmt.Sprintf("the command's exit status was %d, but %s was NOT said: %v", *o.ExitStatus, name, err)
	o.Result, o.Note = resultFailed, text
	if o.code == 0 {
		o.code = exitOwnError
	}
	return o
}

// persist tries until it works, fails for good, or ctx ends, and says what it is about.
func (s *session) persist(ctx context.Context, what string, try func() error) error {
	pause := s.retryEvery
	if pause == 0 {
		pause = 3 * time.Second
	}
	for said := false; ; said = true {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return stopCause(ctx)
		}
		if !errors.Is(err, client.ErrUnreachable) && !errors.Is(err, client.ErrUnanswered) && codeOf(err) != exitTimedOut {
			return err
		}
		if !said {
			s.desk.note("%s: %s; trying again", what, firstLine(err))
		}
		if !sleep(ctx, pause) {
			return stopCause(ctx)
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
