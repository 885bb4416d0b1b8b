package maintenance

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	checkactivity "drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/workflows/call"
)

type workState struct {
	// Due is set while the work is to be begun, for the first time or after a retry.
	Due      bool `json:"due,omitempty"`
	Attempts int  `json:"attempts,omitempty"`
	// Open is set until the latest attempt ends, Since is when that began, Begun is set once its Job or request exists.
	Open  bool                    `json:"open,omitempty"`
	Since time.Time               `json:"since,omitzero"`
	Begun bool                    `json:"begun,omitempty"`
	As    checkactivity.WorkBegun `json:"as,omitzero"`
	// Succeeded is set where the latest attempt did, by its own account.
	Succeeded bool `json:"succeeded,omitempty"`
}

// work is what the worker does for the requestor while the node is Ready, if the input names any. Each attempt begins once,
// whatever happens to workers and runs of the workflow, and ends with the phase Ready at the latest.
type work struct {
	*core
	*workState
	// running is set while a coroutine follows the attempt, which cancel ends. While calling is set, a new run would lose something.
	running, calling bool
	cancel           workflow.CancelFunc
	// settled is how the attempt ended, until that is taken.
	settled *checkactivity.WorkEnded
	// word is what somebody said of work of kind signal.
	word *checkactivity.WorkEnded
}

const (
	// keptAttempts is how many attempts the status shows.
	keptAttempts = 20
	// beginWithin is far below the time for which an ended Job is kept: a try after that would run the work again.
	beginWithin = 30 * time.Minute
	// endGrace is how much longer than the deadline the activity may take to report where the work stands.
	endGrace = time.Minute
)

// ask makes the work due: the node is Ready, for the first time or again.
func (w *work) ask() { w.Due, w.Succeeded = w.prepared.Work != nil, false }

// idle reports whether a new run would lose nothing. The wait for a Job begins again there.
func (w *work) idle() bool { return !w.calling && w.settled == nil && w.word == nil }

// start begins an attempt that is due, or continues the one of the run before this one.
func (w *work) start() {
	if w.running || w.settled != nil || !w.Due && !w.Open {
		return
	}
	if !w.Open {
		now := workflow.Now(w.control.life)
		*w.workState = workState{Attempts: w.Attempts + 1, Open: true, Since: now}
		one := api.WorkRun{Name: w.prepared.Work.Name, Kind: w.prepared.Work.Kind, Attempt: w.Attempts, StartedAt: now}
		w.journal.change(func(s *api.Status) {
			s.StartedAt = &now
			s.Work = append(s.Work, one)
			s.Work = s.Work[max(0, len(s.Work)-keptAttempts):]
		})
		w.journal.note(fmt.Sprintf("work %s began (attempt %d)", one.Name, one.Attempt))
	}
	ctx, cancel := workflow.WithCancel(w.control.life)
	w.running, w.cancel, w.word = true, cancel, nil
	w.calling = w.prepared.Work.Kind == validation.KindHTTP || w.prepared.Work.IsBegun() && !w.Begun
	workflow.GoNamed(ctx, "work "+w.prepared.Work.Name, func(ctx workflow.Context) {
		defer func() { w.running, w.calling = false, false }()
		if result := w.attempt(ctx); ctx.Err() == nil { // otherwise end records the outcome
			w.settled = &result
		}
	})
}

// take records and returns how the attempt ended by itself.
func (w *work) take() checkactivity.WorkEnded {
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

// end ends a running attempt, and waits until nothing of it runs, as far as that is known.
func (w *work) end(why string) {
	w.Due = false
	if !w.Open {
		return
	}
	w.journal.waiting("the end of work " + w.prepared.Work.Name)
	if w.running {
		w.cancel()
		w.control.awaitAlways(func() bool { return !w.running })
	}
	if w.settled != nil {
		w.take()
		return
	}
	outcome := "ended: " + why
	if w.prepared.Work.Kind == validation.KindJob {
		ctx := call.Within(call.Quick(w.control.life, "end work "+w.prepared.Work.Name), call.TidyWithin)
		if err := workflow.ExecuteActivity(ctx, call.Checks.EndWork, w.input()).Get(w.control.life, nil); err != nil {
			outcome += "; its Job may still run: " + call.Cause(err)
		} else {
			outcome += "; its Job is deleted"
		}
	}
	w.close(outcome, "")
}

func (w *work) close(outcome, output string) {
	*w.workState, w.word = workState{Due: w.Due, Attempts: w.Attempts}, nil
	w.last(func(one *api.WorkRun) { one.EndedAt, one.Outcome, one.Output = new(w.control.now()), outcome, output })
	w.journal.note(fmt.Sprintf("work %s %s", w.prepared.Work.Name, outcome))
}

func (w *work) last(write func(*api.WorkRun)) {
	w.journal.change(func(s *api.Status) { write(&s.Work[len(s.Work)-1]) })
}

func (w *work) attempt(ctx workflow.Context) checkactivity.WorkEnded {
	if w.prepared.Work.IsBegun() && !w.Begun {
		if err := w.begin(ctx); err != nil {
			return checkactivity.WorkEnded{Message: "it could not be begun: " + call.Cause(err)}
		}
	}
	left := w.Since.Add(w.prepared.Work.Deadline.Std()).Sub(workflow.Now(ctx))
	if w.prepared.Work.Kind == validation.KindSignal {
		return w.awaitWord(ctx, left)
	}
	ended, err := w.awaitEnd(ctx, left)
	if call.IsOverdue(err) && w.prepared.Work.Kind == validation.KindJob && ctx.Err() == nil {
		// The Job may have ended while no worker ran, and must not run when the next attempt begins.
		ended, err = w.awaitEnd(ctx, 0)
	}
	switch {
	case call.IsOverdue(err):
		ended = checkactivity.WorkEnded{Message: overdue(w.prepared.Work.Deadline, err)}
	case err != nil:
		ended = checkactivity.WorkEnded{Message: call.Cause(err)}
	default:
		return ended
	}
	if w.prepared.Work.Kind == validation.KindJob {
		ended.Message += "; its Job may still run"
	}
	return ended
}

// awaitEnd waits for the end of what was begun, at most this long. It checks at least once: the end may be there.
func (w *work) awaitEnd(ctx workflow.Context, left time.Duration) (checkactivity.WorkEnded, error) {
	in := w.input()
	in.For = period.Duration(max(left, time.Second))
	within := in.For.Std()
	if w.prepared.Work.IsBegun() {
		within += endGrace
	}
	ctx = call.Within(call.Stoppable(ctx, "work "+w.prepared.Work.Name), within)
	return run[checkactivity.WorkEnded](ctx, call.Checks.AwaitWork, in)
}

func (w *work) begin(ctx workflow.Context) error {
	begun, err := w.beginning(ctx, "begin", w.input(), min(w.prepared.Work.Deadline.Std(), beginWithin))
	if err != nil && w.prepared.Work.Kind == validation.KindJob && ctx.Err() == nil {
		// The Job may have been created although the activity failed.
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
	w.calling = w.prepared.Work.Kind == validation.KindHTTP
	w.last(func(one *api.WorkRun) { one.Job, one.BootIDBefore = begun.Job, begun.BootID })
	return nil
}

func (w *work) beginning(ctx workflow.Context, what string, in checkactivity.WorkInput, within time.Duration) (checkactivity.WorkBegun, error) {
	ctx = call.Within(call.Quick(ctx, what+" work "+w.prepared.Work.Name), within)
	return run[checkactivity.WorkBegun](ctx, call.Checks.BeginWork, in)
}

// input has a key of the maintenance and the attempt, by which a later run finds the attempt.
func (w *work) input() checkactivity.WorkInput {
	subject := w.subject()
	return checkactivity.WorkInput{
		Work: w.prepared.Work.Name, Subject: subject, Key: fmt.Sprintf("%s/work/%s/%d", subject.RunID, w.prepared.Work.Name, w.Attempts),
		Kind: w.prepared.Work.Kind, Job: w.As.Job, NewBootID: w.prepared.Work.NewBootID, BootIDBefore: w.As.BootID,
	}
}

func (w *work) awaitWord(ctx workflow.Context, left time.Duration) checkactivity.WorkEnded {
	if !w.control.awaitAlwaysUpTo(ctx, max(left, 0), "deadline of work "+w.prepared.Work.Name, func() bool { return w.word != nil }) {
		return checkactivity.WorkEnded{Message: fmt.Sprintf("no %s within %s", api.MsgHookDone, w.prepared.Work.Deadline)}
	}
	return *w.word
}

func (w *work) awaitsWord(name string) bool {
	plan := w.prepared.Work
	return w.running && w.word == nil && plan.Kind == validation.KindSignal && plan.Name == name
}

func (w *work) speak(ok bool, message string) {
	w.word = &checkactivity.WorkEnded{OK: ok, Message: message}
}

// waits returns what the maintenance waits for while an attempt runs, empty if none does.
func (w *work) waits() string {
	if !w.Open {
		return ""
	}
	text := fmt.Sprintf("work %s, which runs since %s", w.prepared.Work.Name, w.Since.UTC().Format(time.RFC3339))
	if w.prepared.Work.Kind == validation.KindSignal {
		text = fmt.Sprintf("%q for %s", api.MsgHookDone, text)
	}
	return text
}
