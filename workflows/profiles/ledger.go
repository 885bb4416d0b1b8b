package profiles

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/profile"
	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/profile"
	"drydock/workflows/call"
	"drydock/workflows/loop"
)

const (
	// maxUnderWay bounds the transitions under way, each a child of this workflow, and maxForward those of them that do not lead back
	// to operational.
	maxUnderWay = 400
	maxForward  = 300
	// beginAtOnce bounds those that one evaluation begins.
	beginAtOnce = 100
	// maxFailed bounds what is remembered of those that were not carried out.
	maxFailed = 300
	// maxWhy bounds why, in bytes.
	maxWhy = 300
	// failedFirst is the pause after a transition was not carried out, failedMost the longest.
	failedFirst = 30 * time.Second
	failedMost  = 10 * time.Minute
)

// ledger has the transitions: those under way, and those that were not carried out.
type ledger struct {
	*core
	looking  bool
	next     time.Time
	failures int
	children int
}

// know finds the transitions that run, before anything is decided in a workflow that does not know them.
func (l *ledger) know() bool {
	if l.state.Known || l.looking {
		return l.state.Known
	}
	if l.Now().Before(l.next) {
		l.WakeAt(l.next, "look for transitions again")
		return false
	}
	l.looking = true
	ctx := call.Times(call.Quick(l.Ctx, "find the transitions that run"), 3)
	l.Does("find transitions", workflow.ExecuteActivity(ctx, call.Profiles.FindTransitions), func(f workflow.Future) {
		l.looking = false
		var found api.List[activity.UnderWay]
		if err := f.Get(l.Ctx, &found); err != nil {
			l.warn("the transitions that run could not be found", call.Cause(err))
			l.next = l.Now().Add(loop.Backoff(l.failures))
			l.failures++
			return
		}
		l.failures = 0
		for _, u := range found {
			switch known := l.find(u.Ref); {
			case known == nil:
				l.state.UnderWay = append(l.state.UnderWay, u)
			case known.RunID != u.RunID: // it is of another run, whose end says nothing of this one
				*known = u
			}
		}
		l.state.Known = true
	})
	return false
}

func (l *ledger) find(r activity.Ref) *activity.UnderWay {
	i := slices.IndexFunc(l.state.UnderWay, func(u activity.UnderWay) bool { return u.Ref == r })
	if i < 0 {
		return nil
	}
	return &l.state.UnderWay[i]
}

func (l *ledger) findFailed(r activity.Ref) *failed {
	i := slices.IndexFunc(l.state.Failed, func(f failed) bool { return f.Ref == r })
	if i < 0 {
		return nil
	}
	return &l.state.Failed[i]
}

// room is how many transitions may be begun, and how many of them that do not lead back to operational: none while very many are put
// off because they failed.
func (l *ledger) room() (all, forward int) {
	running := l.running()
	all, forward = maxUnderWay-len(running), maxForward
	for _, u := range running {
		if activity.IsForward(u.To) {
			forward--
		}
	}
	if len(l.state.Failed) >= maxFailed && !slices.ContainsFunc(l.state.Failed, func(f failed) bool { return !l.Now().Before(f.Until) }) {
		forward = 0
	}
	return min(max(all, 0), beginAtOnce), max(forward, 0)
}

// begin begins a transition.
func (l *ledger) begin(in api.ProfileTransitionInput) {
	ref := activity.Ref{Profile: in.Profile, Node: in.Node}
	l.state.UnderWay = slices.DeleteFunc(l.state.UnderWay, func(u activity.UnderWay) bool { return u.Ref == ref && u.Ended })
	if l.find(ref) != nil || len(l.running()) >= maxUnderWay {
		return // it is decided anew
	}
	if err := in.Validate(); err != nil {
		l.failed(activity.UnderWay{Ref: ref, To: in.To, Enter: in.Enter}, err.Error())
		return
	}
	l.state.UnderWay = append(l.state.UnderWay, activity.UnderWay{
		Ref: ref, UID: in.UID, To: in.To, Enter: in.Enter, Began: l.Now(), Claims: in.Claims,
	})
	what := "profile " + in.Profile + ": " + in.Node + " goes to " + string(in.To)
	if in.Enter {
		what = "profile " + in.Profile + ": " + in.Node + " has entered " + string(in.To)
	}
	options := call.Child(api.ProfileTransitionID(l.cluster, in.Profile, in.Node), what)
	options.Memo = map[string]any{activity.MemoTransition: activity.TransitionMemo{UID: in.UID, To: in.To, Enter: in.Enter}}
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(l.Ctx, options), api.ProfileTransitionType, in)
	l.Does("begin a transition of "+in.Node, child.GetChildWorkflowExecution(), func(started workflow.Future) {
		var run workflow.Execution
		err := started.Get(l.Ctx, &run)
		u := l.find(ref)
		switch {
		case u == nil:
		case err == nil:
			u.RunID = run.RunID
			l.follow(ref, child, run.RunID)
		case temporal.IsWorkflowExecutionAlreadyStartedError(err):
			u.Doubted = true
			l.note("waits for another workflow of "+in.Node+" to end", "it has the ID of the transition that is due")
		default:
			l.ended(ref, api.ProfileTransitionEnded{Error: "it could not be begun: " + call.Cause(err)}, false)
		}
	})
}

// follow hears of the end of a transition. Those of earlier runs are looked at by the evaluation.
func (l *ledger) follow(ref activity.Ref, child workflow.Future, run string) {
	l.children++
	workflow.GoNamed(l.Ctx, "transition of "+ref.Node, func(ctx workflow.Context) {
		var ended api.ProfileTransitionEnded
		var terminated *temporal.TerminatedError
		err := child.Get(ctx, &ended)
		l.children--
		switch u := l.find(ref); {
		case u == nil || u.RunID != run:
		case errors.As(err, &terminated): // one that was reset goes on under its ID
			u.Doubted = true
			l.changed()
		case err != nil:
			l.ended(ref, api.ProfileTransitionEnded{Error: call.Cause(err)}, true)
		default:
			l.ended(ref, ended, false)
		}
	})
}

// ended takes the end of a transition. It counts as under way until the node shows it.
func (l *ledger) ended(ref activity.Ref, ended api.ProfileTransitionEnded, lost bool) {
	u := l.find(ref)
	if u == nil || u.Ended {
		return
	}
	u.Ended, u.EndedAt, u.Moved, u.Lost = true, l.Now(), ended.Moved, lost
	l.state.Failed = slices.DeleteFunc(l.state.Failed, func(f failed) bool { return f.Ref == ref && !ended.Moved.IsZero() })
	if ended.Moved.IsZero() && !u.Stopped {
		l.failed(*u, ended.Error)
	}
	l.changed()
}

// stop has a transition end whose profile the node does not have any more. What it holds it gives back.
func (l *ledger) stop(ref activity.Ref) {
	u := l.find(ref)
	if u == nil || u.Ended || u.Stopped || u.RunID == "" {
		return
	}
	u.Stopped = true
	run := u.RunID
	told := workflow.RequestCancelExternalWorkflow(l.Ctx, api.ProfileTransitionID(l.cluster, ref.Profile, ref.Node), run)
	l.Does("stop a transition of "+ref.Node, told, func(f workflow.Future) {
		err := f.Get(l.Ctx, nil)
		if u := l.find(ref); err != nil && u != nil && u.RunID == run && !u.Ended {
			u.Stopped = false // it is told again, or found to have ended
			l.warn("the transition of "+ref.Node+" could not be stopped", call.Cause(err))
		}
	})
}

// failed remembers that a transition was not carried out, for as long as it is not decided on again.
func (l *ledger) failed(u activity.UnderWay, why string) {
	if why == "" {
		why = "its workflow ended without a word"
	}
	f := l.findFailed(u.Ref)
	if f == nil {
		slices.SortStableFunc(l.state.Failed, func(a, b failed) int { return a.Until.Compare(b.Until) })
		l.state.Failed = append(l.state.Failed[max(len(l.state.Failed)-maxFailed+1, 0):], failed{Failed: activity.Failed{Ref: u.Ref}})
		f = &l.state.Failed[len(l.state.Failed)-1]
	}
	pause := failedFirst
	for range min(f.InARow, 10) {
		pause = min(2*pause, failedMost)
	}
	f.InARow++
	f.To, f.Enter, f.Why, f.Until = u.To, u.Enter, bounds.Cut(why, maxWhy), l.Now().Add(pause)
	l.warn("profile "+u.Profile+" of "+u.Node+" did not go to "+string(u.To), f.Why)
}

// settle forgets transitions whose end the nodes show.
func (l *ledger) settle(refs []activity.Ref) {
	seen := map[activity.Ref]bool{}
	for _, r := range refs {
		seen[r] = true
	}
	l.state.UnderWay = slices.DeleteFunc(l.state.UnderWay, func(u activity.UnderWay) bool { return u.Ended && seen[u.Ref] })
	old := l.Now().Add(-2 * failedMost)
	l.state.Failed = slices.DeleteFunc(l.state.Failed, func(f failed) bool { return f.Until.Before(old) })
}

// running are the transitions that have not ended: of those that have, some are kept until a word of the nodes about them is due.
func (l *ledger) running() []activity.UnderWay {
	return slices.DeleteFunc(slices.Clone(l.state.UnderWay), func(u activity.UnderWay) bool { return u.Ended })
}

// shown are the transitions as people see them.
func (l *ledger) shown() (underWay, notCarriedOut []api.ProfileUnderWay) {
	for _, u := range l.running() {
		underWay = append(underWay, api.ProfileUnderWay{
			Profile: u.Profile, Node: u.Node, UID: u.UID, Busy: profile.Busy{To: u.To, Enter: u.Enter, Since: u.Began},
		})
	}
	for _, f := range l.state.Failed {
		notCarriedOut = append(notCarriedOut, api.ProfileUnderWay{
			Profile: f.Profile, Node: f.Node, Busy: profile.Busy{To: f.To, Enter: f.Enter, Until: f.Until, Failed: f.Why},
		})
	}
	return underWay, notCarriedOut
}
