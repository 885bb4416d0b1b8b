package profiles

import (
	"time"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/profile"
	"drydock/api"
	"drydock/workflows/call"
	"drydock/workflows/loop"
)

const (
	// pace is the shortest time between two starts of the evaluation. It doubles, up to slowest, with each that is ended before it had
	// something to tell: where its facts take their time nothing would be decided otherwise.
	pace    = time.Second
	slowest = 32 * time.Second
	// absentAgain is the pause after a worker had no profiles, absentTimes after how many of them in a row none has any.
	absentAgain = 20 * time.Second
	absentTimes = 4
	// evaluates is what fails where the nodes cannot be evaluated.
	evaluates = "the nodes cannot be evaluated by their profiles"
	// problemAgain is the pause after a worker said nothing but that its file is another.
	problemAgain = 10 * time.Second
)

// lookout has one activity evaluate the nodes. It is begun anew when something has ended, with all that is under way: what one
// decides that does not know that is not taken.
type lookout struct {
	*core
	ledger *ledger
	post   *post
	// began is since when, and stop ends it; nil is none.
	began time.Time
	stop  func()
	// stale: it is to be begun anew.
	stale    bool
	failures int
	next     time.Time
	// absences count the workers in a row that had no profiles, absent: there are none that have.
	absences int
	absent   bool
	// hasty counts the evaluations in a row that were ended before they had something to tell.
	hasty int
}

// anew has the nodes be evaluated with what has changed.
func (l *lookout) anew() { l.stale, l.Dirty = true, true }

// keep has an evaluation running that knows all that is under way.
func (l *lookout) keep() {
	if l.absent || l.stop != nil && !l.stale {
		return
	}
	if l.Now().Before(l.next) {
		l.WakeAt(l.next, "evaluate again")
		return
	}
	if due := l.began.Add(min(pace<<min(l.hasty, 5), slowest)); l.Now().Before(due) {
		l.WakeAt(due, "evaluate with what has ended")
		return
	}
	if l.stop != nil {
		l.hasty++
	}
	l.rest()
	all, forward := l.ledger.room()
	in := activity.EvaluateInput{
		UnderWay: l.state.UnderWay, Sending: l.state.Sending, Leaving: l.state.Leaving, Problem: l.state.Problem,
		Room: all, Forward: forward, Notices: l.post.room(),
	}
	for _, f := range l.state.Failed {
		if l.Now().Before(f.Until) {
			in.Failed = append(in.Failed, f.Failed)
		}
	}
	l.began, l.stale = l.Now(), false
	l.stop = l.Watches("evaluate", func(ctx workflow.Context) workflow.Future {
		return workflow.ExecuteActivity(call.Beating(ctx, "evaluate the nodes by their profiles", activity.HeartbeatTimeout),
			call.Profiles.EvaluateProfiles, in)
	}, func(f workflow.Future) {
		l.stop = nil
		var seen activity.Evaluated
		if err := f.Get(l.Ctx, &seen); err != nil {
			l.next = l.Now().Add(loop.Backoff(l.failures))
			l.Fails(&l.state.Carried, evaluates, call.Cause(err), l.next)
			l.failures++
			return
		}
		l.failures, l.hasty = 0, 0
		l.Works(evaluates)
		l.take(seen)
	})
}

// rest ends the evaluation: what it decides is not taken.
func (l *lookout) rest() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

// take takes what is to be done.
func (l *lookout) take(seen activity.Evaluated) {
	if seen.Absent {
		l.absences++
		l.absent, l.next = l.absences >= absentTimes, l.Now().Add(absentAgain)
		if l.absent {
			l.note("ends", "workers have no profiles: one that has starts it again")
		}
		return
	}
	l.absences = 0
	if seen.Problem != nil && len(seen.Begin)+len(seen.Notices)+len(seen.Ended) == 0 {
		l.next = l.Now().Add(problemAgain)
	}
	if seen.Problem != nil && *seen.Problem != l.state.Problem {
		l.state.Problem = *seen.Problem
		if *seen.Problem == "" {
			l.note("the file is in force", "it is right again")
		} else {
			l.warn("the file is not in force: the last good one is", *seen.Problem)
		}
	}
	l.ledger.settle(seen.Settled)
	for _, u := range seen.Ended {
		ended := api.ProfileTransitionEnded{Moved: u.Moved}
		if u.Moved.IsZero() {
			ended.Error = "its workflow has ended without carrying it out"
		}
		l.ledger.ended(u.Ref, ended, u.Lost)
	}
	for _, ref := range seen.Stop {
		l.ledger.stop(ref)
	}
	l.post.gone(seen.Gone)
	for _, left := range seen.Leave {
		l.post.leave(left)
	}
	for _, n := range seen.Notices {
		l.post.send(n)
	}
	for _, in := range seen.Begin {
		l.ledger.begin(in)
	}
	l.anew()
}
