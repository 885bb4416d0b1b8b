// Package work is the part of a maintenance that does what its requestor has named, while the node is Ready: each attempt is
// begun once, whatever becomes of workers and runs of the workflow, and ends with the phase Ready at the latest.
package work

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	checkactivity "drydock/activities/checks"
	"drydock/api"
	"drydock/checks"
	"drydock/rules/period"
	"drydock/rules/validation"
	"drydock/workflows/call"
)

// Host is the maintenance whose work is done. Plan is nil where it names none. Life is the context that no cancellation
// reaches, Subject what is told of the maintenance, Change writes its status.
type Host struct {
	Life    workflow.Context
	Plan    func() *validation.Work
	Subject func() checks.Subject
	Change  func(func(*api.Status))
	Note    func(string)
	Waiting func(string)
	// AwaitUpTo waits for a condition, at most for a time; ok tells that it came true.
	AwaitUpTo func(ctx workflow.Context, limit time.Duration, summary string, condition func() bool) (ok bool, err error)
}

// State is what the next run of the maintenance has to know.
type State struct {
	// Due: the work is to be begun, for the first time or after a retry. Attempts counts those that were: each has a
	// identity of its own.
	Due      bool `json:"due,omitempty"`
	Attempts int  `json:"attempts,omitempty"`
	// Open: the latest attempt has not ended. Since is when it was begun; Begun tells that its beginning is over.
	Open  bool                    `json:"open,omitempty"`
	Since time.Time               `json:"since,omitzero"`
	Begun bool                    `json:"begun,omitempty"`
	As    checkactivity.WorkBegun `json:"as,omitzero"`
	// Succeeded: the latest attempt has, by its own word.
	Succeeded bool `json:"succeeded,omitempty"`
}

// Work is the work of one maintenance.
type Work struct {
	Host
	State
	// running is set while a coroutine follows the attempt, which cancel ends; calling, while nothing of that may be lost.
	running, calling bool
	cancel           workflow.CancelFunc
	// settled is how the attempt ended, until somebody takes it.
	settled *Result
	// word is what somebody said of work of kind signal.
	word *Result
}

// Result is how an attempt ended: with OK the requestor is done, otherwise it has failed.
type Result struct {
	OK      bool
	Message string
	Output  string
}

const (
	// keptAttempts is how many attempts the status shows.
	keptAttempts = 20
	// beginWithin bounds the beginning, far below the time for which a Job is kept that has ended: another try after that
	// would run it again.
	beginWithin = 30 * time.Minute
	// endGrace is how much longer than the deadline an activity may take that says by itself where the work stands then.
	endGrace = time.Minute
)

// Ask has the work begun: the node is Ready, for the first time or again.
func (w *Work) Ask() { w.Due, w.Succeeded = w.Plan() != nil, false }

// Idle tells that nothing would be lost with this run of the workflow. Whoever only waits for a Job can be left.
func (w *Work) Idle() bool { return !w.calling && w.settled == nil && w.word == nil }

// Start begins an attempt that is due, or takes up the one that a run before this one began.
func (w *Work) Start() {
	if w.running || w.settled != nil || !w.Due && !w.Open {
		return
	}
	if !w.Open {
		now := workflow.Now(w.Life)
		w.State = State{Attempts: w.Attempts + 1, Open: true, Since: now}
		one := api.WorkRun{Name: w.Plan().Name, Kind: w.Plan().Kind, Attempt: w.Attempts, StartedAt: now}
		w.Change(func(s *api.Status) {
			s.StartedAt = &now
			s.Work = append(s.Work, one)
			s.Work = s.Work[max(0, len(s.Work)-keptAttempts):]
		})
		w.Note(fmt.Sprintf("work %s began (attempt %d)", one.Name, one.Attempt))
	}
	ctx, cancel := workflow.WithCancel(w.Life)
	w.running, w.cancel, w.word = true, cancel, nil
	w.calling = w.Plan().Kind == validation.KindHTTP || w.Plan().IsBegun() && !w.Begun
	workflow.GoNamed(ctx, "work "+w.Plan().Name, func(ctx workflow.Context) {
		defer func() { w.running, w.calling = false, false }()
		result, err := w.attempt(ctx)
		if ctx.Err() != nil {
			return // whoever ended it says so
		}
		if err != nil {
			result = Result{Message: call.Cause(err)}
		}
		w.settled = &result
	})
}

// Settled tells that the attempt has ended by itself.
func (w *Work) Settled() bool { return w.settled != nil }

// Take is how the attempt ended by itself, and records that.
func (w *Work) Take() Result {
	result := *w.settled
	w.settled = nil
	outcome := "done"
	if !result.OK {
		outcome = "failed"
	}
	w.close(outcome+": "+result.Message, result.Output)
	w.Succeeded = result.OK
	return result
}

// End ends an attempt that runs, and returns once nothing of it does, as far as that is known.
func (w *Work) End(why string) {
	w.Due = false
	if !w.Open {
		return
	}
	w.Waiting("the end of work " + w.Plan().Name)
	if w.running {
		w.cancel()
		w.await(func() bool { return !w.running })
	}
	if w.settled != nil {
		w.Take()
		return
	}
	outcome := "ended: " + why
	if w.Plan().Kind == validation.KindJob {
		ctx := call.Within(call.Quick(w.Life, "end work "+w.Plan().Name), call.TidyWithin)
		if err := workflow.ExecuteActivity(ctx, call.Checks.EndWork, w.input()).Get(w.Life, nil); err != nil {
			outcome += "; its Job may still run: " + call.Cause(err)
		} else {
			outcome += "; its Job is deleted"
		}
	}
	w.close(outcome, "")
}

// close records the end of the attempt.
func (w *Work) close(outcome, output string) {
	now := workflow.Now(w.Life)
	w.State, w.word = State{Due: w.Due, Attempts: w.Attempts}, nil
	w.last(func(one *api.WorkRun) { one.EndedAt, one.Outcome, one.Output = &now, outcome, output })
	w.Note(fmt.Sprintf("work %s %s", w.Plan().Name, outcome))
}

func (w *Work) last(write func(*api.WorkRun)) {
	w.Change(func(s *api.Status) {
		if n := len(s.Work); n > 0 {
			write(&s.Work[n-1])
		}
	})
}

func (w *Work) await(condition func() bool) {
	if err := workflow.Await(w.Life, condition); err != nil {
		workflow.GetLogger(w.Life).Error("wait interrupted", "error", err)
	}
}

// attempt is the latest attempt from where it is to its end.
func (w *Work) attempt(ctx workflow.Context) (Result, error) {
	if w.Plan().IsBegun() && !w.Begun {
		if err := w.begin(ctx); err != nil {
			return Result{Message: "it could not be begun: " + call.Cause(err)}, nil
		}
	}
	left := w.Since.Add(w.Plan().Deadline.Std()).Sub(workflow.Now(ctx))
	if w.Plan().Kind == validation.KindSignal {
		return w.awaitWord(ctx, left)
	}
	ended, err := w.look(ctx, left)
	if call.IsOverdue(err) && w.Plan().Kind == validation.KindJob && ctx.Err() == nil {
		// Nobody may have looked at it while it ended, and nothing may be left of it when the next attempt begins.
		ended, err = w.look(ctx, 0)
	}
	switch {
	case call.IsOverdue(err):
		ended = Result{Message: w.overdue(err)}
	case err != nil:
		ended = Result{Message: call.Cause(err)}
	default:
		return ended, nil
	}
	if w.Plan().Kind == validation.KindJob {
		ended.Message += "; its Job may still run"
	}
	return ended, nil
}

// look waits for the end of what was begun, for so long. One that takes the wait up late looks once more: the end may be
// there.
func (w *Work) look(ctx workflow.Context, left time.Duration) (Result, error) {
	in := w.input()
	in.For = period.Duration(max(left, time.Second))
	within := in.For.Std()
	if w.Plan().IsBegun() {
		within += endGrace
	}
	ctx = call.Within(call.Stoppable(ctx, "work "+w.Plan().Name), within)
	var ended checkactivity.WorkEnded
	err := workflow.ExecuteActivity(ctx, call.Checks.AwaitWork, in).Get(ctx, &ended)
	return Result{OK: ended.OK, Message: ended.Message, Output: ended.Output}, err
}

func (w *Work) begin(ctx workflow.Context) error {
	begun, err := w.beginning(ctx, "begin", w.input(), min(w.Plan().Deadline.Std(), beginWithin))
	if err != nil && w.Plan().Kind == validation.KindJob && ctx.Err() == nil {
		// The word that it was created may be lost.
		find := w.input()
		find.Find = true
		if found, missing := w.beginning(ctx, "find", find, call.TidyWithin); missing == nil {
			begun, err = found, nil
		} else if !call.IsError(missing, api.ErrorHookFailed) {
			err = fmt.Errorf("%s; whether its Job was created is not known: %s", call.Cause(err), call.Cause(missing))
		}
	}
	if err != nil {
		return err
	}
	w.Begun, w.As = true, begun
	w.calling = w.Plan().Kind == validation.KindHTTP
	w.last(func(one *api.WorkRun) { one.Job, one.BootIDBefore = begun.Job, begun.BootID })
	return nil
}

// beginning begins the attempt, or only finds it.
func (w *Work) beginning(ctx workflow.Context, what string, in checkactivity.WorkInput, within time.Duration) (begun checkactivity.WorkBegun, err error) {
	ctx = call.Within(call.Quick(ctx, what+" work "+w.Plan().Name), within)
	err = workflow.ExecuteActivity(ctx, call.Checks.BeginWork, in).Get(ctx, &begun)
	return begun, err
}

// input names the attempt by the maintenance and its number, so that it is found again wherever it goes on.
func (w *Work) input() checkactivity.WorkInput {
	subject := w.Subject()
	return checkactivity.WorkInput{
		Work: w.Plan().Name, Subject: subject, Key: fmt.Sprintf("%s/work/%s/%d", subject.RunID, w.Plan().Name, w.Attempts),
		Kind: w.Plan().Kind, Job: w.As.Job, NewBootID: w.Plan().NewBootID, BootIDBefore: w.As.BootID,
	}
}

// overdue says that the work did not succeed in its time, and what kept it from that as far as it said so.
func (w *Work) overdue(err error) string {
	text := fmt.Sprintf("no success within %s", w.Plan().Deadline)
	var cause *temporal.ApplicationError
	if errors.As(err, &cause) {
		text += ": " + cause.Message()
	}
	return text
}

func (w *Work) awaitWord(ctx workflow.Context, left time.Duration) (Result, error) {
	said, err := w.AwaitUpTo(ctx, max(left, 0), "deadline of work "+w.Plan().Name, func() bool { return w.word != nil })
	if err != nil {
		return Result{}, err
	}
	if !said {
		return Result{Message: fmt.Sprintf("no %s within %s", api.MsgHookDone, w.Plan().Deadline)}, nil
	}
	return *w.word, nil
}

// AwaitsWord tells that somebody's word is waited for on work of a name.
func (w *Work) AwaitsWord(name string) bool {
	plan := w.Plan()
	return w.running && w.word == nil && plan.Kind == validation.KindSignal && plan.Name == name
}

// Speak takes somebody's word on work of kind signal.
func (w *Work) Speak(ok bool, message string) { w.word = &Result{OK: ok, Message: message} }

// Waits says what is waited for while an attempt runs, empty where none does.
func (w *Work) Waits() string {
	if !w.Open {
		return ""
	}
	text := fmt.Sprintf("work %s, which runs since %s", w.Plan().Name, w.Since.UTC().Format(time.RFC3339))
	if w.Plan().Kind == validation.KindSignal {
		text = fmt.Sprintf("%q for %s", api.MsgHookDone, text)
	}
	return text
}
