package profile

import (
	"time"

	activity "drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

const evaluateNodes = "evaluate"

const (
	// absentAgain is the pause after a worker had no profiles, absentTimes after how many of them in a row none has any.
	absentAgain = 20 * time.Second
	absentTimes = 4
	// problemAgain is the pause after a worker said nothing but that its file, or what it may do, is another.
	problemAgain = 10 * time.Second
)

// evaluate has the nodes evaluated with all that is under way. It is begun anew with what has ended since: what one decides that does not
// know that begins nothing for the same node.
func (p *profiles) evaluate(now time.Time) controller.Watch {
	all, forward := p.room(now)
	in := activity.EvaluateInput{Sending: p.Sending, Problem: p.Problem, Denied: p.Denied, Room: all, Forward: forward, Notices: p.noticeRoom()}
	for _, u := range p.Transitions {
		in.UnderWay = append(in.UnderWay, u.UnderWay)
	}
	for _, f := range p.Failed {
		if now.Before(f.Until) {
			in.Failed = append(in.Failed, f.Failed)
		}
	}
	for _, l := range p.Leaving {
		in.Leaving = append(in.Leaving, l.Left)
	}
	return controller.Watch{
		Key: controller.Key{Kind: evaluateNodes}, Summary: "evaluate the nodes by their profiles", Input: in, Want: p.Changes, Lasts: true,
		Call: controller.Call{Func: call.Profiles.EvaluateProfiles, Heartbeat: activity.HeartbeatTimeout},
	}
}

func (p *profiles) evaluated(o controller.Outcome, now time.Time) {
	var seen activity.Evaluated
	if err := o.Get(&seen); err != nil {
		p.fails(o.Key, "the nodes cannot be evaluated by their profiles", err, now)
		return
	}
	if seen.Absent {
		p.Absences++
		p.Rest(o.Key, absentAgain, now)
		if p.Absences == absentTimes {
			p.Note(now, "ends", "workers have no profiles: one that has starts it again")
		}
		return
	}
	p.Absences = 0
	if (seen.Problem != nil || seen.Denied != nil) && len(seen.Begin)+len(seen.Notices)+len(seen.Ended) == 0 {
		p.Rest(o.Key, problemAgain, now)
	}
	if seen.Problem != nil {
		p.takeProblem(*seen.Problem, now)
	}
	if seen.Denied != nil {
		p.Denied, p.DeniedAt = *seen.Denied, now
	}
	p.settle(seen.Settled, now)
	for _, u := range seen.Ended {
		ended := api.ProfileTransitionEnded{Moved: u.Moved}
		if u.Moved.IsZero() {
			ended.Error = "its workflow has ended without carrying it out"
		}
		if known := p.find(u.Ref); known != nil {
			p.end(known, ended, u.Lost, now)
		}
	}
	for _, ref := range seen.Stop {
		p.stop(ref)
	}
	p.forgetMaintenances(seen.Gone)
	for _, left := range seen.Leave {
		p.leave(left)
	}
	for _, n := range seen.Notices {
		p.send(n)
	}
	for _, in := range seen.Begin {
		p.begin(in, now)
	}
}

// troubles are what fails, and what will once it is needed.
func (p *profiles) troubles(now time.Time) []api.Trouble {
	all := p.Troubles()
	for _, u := range p.Denied {
		all = append(all, api.Trouble{
			What: "profiles need permissions that are missing: " + u.Permissions, Why: "grant them with " + u.By,
			Since: p.DeniedAt, NextTry: now.Add(activity.AskAgain),
		})
	}
	return all
}

// takeProblem takes why the file is not in force as it stands.
func (p *profiles) takeProblem(problem string, now time.Time) {
	if problem == p.Problem {
		return
	}
	p.Problem = problem
	if problem == "" {
		p.Note(now, "the file is in force", "it is right again")
	} else {
		p.Warn(now, "the file is not in force: the last good one is", problem)
	}
}
