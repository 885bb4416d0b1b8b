package profile

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	activity "drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

// The kinds of effects on transitions.
const (
	findTransitions  = "find"
	startTransition  = "start"
	cancelTransition = "cancel"
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
	// slotFirst is the pause after one had no slot, which doubles up to failedMost. Where it waits for windows the pause is until they
	// are open, but at most closedMost: they may be changed.
	slotFirst  = 10 * time.Second
	closedMost = time.Hour
)

func keyOf(kind string, r activity.Ref) controller.Key {
	return controller.Key{Kind: kind, Of: r.Node + "/" + r.Profile}
}

func (p *profiles) find(r activity.Ref) *transition {
	i := slices.IndexFunc(p.Transitions, func(u transition) bool { return u.Ref == r })
	if i < 0 {
		return nil
	}
	return &p.Transitions[i]
}

// running are the transitions that have not ended: of those that have, some are kept until the nodes show it.
func (p *profiles) running() []transition {
	return slices.DeleteFunc(slices.Clone(p.Transitions), func(u transition) bool { return u.Ended })
}

// room is how many transitions may begin, and how many of them that do not lead back to operational: none while very many are put
// off because they failed.
func (p *profiles) room(now time.Time) (all, forward int) {
	running := p.running()
	all, forward = maxUnderWay-len(running), maxForward
	for _, u := range running {
		if activity.IsForward(u.To) {
			forward--
		}
	}
	failures := slices.DeleteFunc(slices.Clone(p.Failed), func(f failed) bool { return f.Waits > 0 })
	if len(failures) >= maxFailed && !slices.ContainsFunc(failures, func(f failed) bool { return !now.Before(f.Until) }) {
		forward = 0
	}
	return min(max(all, 0), beginAtOnce), max(forward, 0)
}

// findTransitions finds the transitions that run, before anything is decided.
func (p *profiles) findTransitions() controller.Effect {
	return controller.Activity{
		Meta: controller.Meta{Key: controller.Key{Kind: findTransitions}, Summary: "find the transitions that run"},
		Call: controller.Call{Func: call.Profiles.FindTransitions, Attempts: 3},
	}
}

func (p *profiles) found(o controller.Outcome, now time.Time) {
	var found api.List[activity.UnderWay]
	err := o.Get(&found)
	switch {
	case err != nil:
		p.fails(o.Key, "the transitions that run could not be found", err, now)
		return
	case o.Stale:
		return
	}
	for _, u := range found {
		switch known := p.find(u.Ref); {
		case known == nil:
			p.Transitions = append(p.Transitions, transition{UnderWay: u})
		case known.RunID != u.RunID: // it is of another run, whose end says nothing of this one
			*known = transition{UnderWay: u}
		}
	}
	p.Known = true
}

// fails notes in words for people what has failed, and has it tried again.
func (p *profiles) fails(k controller.Key, what string, err error, now time.Time) {
	p.Fails(k, what, call.Cause(err), now)
	p.Warn(now, what, call.Cause(err))
}

func (p *profiles) begin(in api.ProfileTransitionInput, now time.Time) {
	ref := activity.Ref{Profile: in.Profile, Node: in.Node}
	p.Transitions = slices.DeleteFunc(p.Transitions, func(u transition) bool { return u.Ref == ref && u.Ended })
	if p.find(ref) != nil || len(p.running()) >= maxUnderWay {
		return // it is decided anew
	}
	u := activity.UnderWay{Ref: ref, UID: in.UID, To: in.To, Enter: in.Enter, Began: now, Claims: in.Claims}
	if err := in.Validate(); err != nil {
		p.fail(u, err.Error(), now)
		return
	}
	p.Transitions = append(p.Transitions, transition{UnderWay: u, Input: &in})
}

func (p *profiles) starts() (all []controller.Effect) {
	for _, u := range p.Transitions {
		if u.Input == nil {
			continue
		}
		what := "profile " + u.Profile + ": " + u.Node + " goes to " + string(u.To)
		if u.Enter {
			what = "profile " + u.Profile + ": " + u.Node + " has entered " + string(u.To)
		}
		all = append(all, controller.Start{
			Meta: controller.Meta{Key: keyOf(startTransition, u.Ref), Summary: what},
			Type: api.ProfileTransitionType, ID: api.ProfileTransitionID(p.Info.Cluster, u.Profile, u.Node), Input: *u.Input,
			Memo: map[string]any{activity.MemoTransition: activity.TransitionMemo{UID: u.UID, To: u.To, Enter: u.Enter}},
		})
	}
	return all
}

// dropUnstarted forgets transitions that were to start at the point that the run was reset to, and have not.
func (p *profiles) dropUnstarted(t controller.Turn) {
	p.Transitions = slices.DeleteFunc(p.Transitions, func(u transition) bool {
		return u.RunID == "" && u.Input == nil && !u.IDTaken && !u.Ended && !t.UnderWay(keyOf(startTransition, u.Ref))
	})
}

// followed takes whether a transition has started, and the end of one that this run has started. What came of those of earlier runs, and of
// those that were terminated, the evaluation finds: one that was reset goes on under its ID.
func (p *profiles) followed(o controller.Outcome, now time.Time) {
	in := o.Begun.(controller.Start).Input.(api.ProfileTransitionInput)
	u := p.find(activity.Ref{Profile: in.Profile, Node: in.Node})
	switch {
	case o.What == controller.Done:
		p.started(u, o, now)
	case u == nil || u.RunID != o.Run: // it was another
	case o.What == controller.Terminated:
		u.Cancelled = false // one that was reset may not know that it is to end
	default:
		var ended api.ProfileTransitionEnded
		err := o.Get(&ended)
		if err != nil {
			ended = api.ProfileTransitionEnded{Error: call.Cause(err)}
		}
		p.end(u, ended, err != nil, now)
	}
}

func (p *profiles) started(u *transition, o controller.Outcome, now time.Time) {
	p.ClearBackoff(o.Key) // whether and when it is tried again the evaluation decides
	if u == nil || u.RunID != "" {
		return
	}
	u.Input = nil
	switch {
	case o.Err == nil:
		u.RunID = o.Run
	case temporal.IsWorkflowExecutionAlreadyStartedError(o.Err):
		u.IDTaken = true
		p.Note(now, "waits for another workflow of "+u.Ref.Node+" to end", "it has the ID of the transition that is due")
	default:
		p.end(u, api.ProfileTransitionEnded{Error: "it could not be begun: " + call.Cause(o.Err)}, false, now)
	}
}

// end takes the end of a transition. It counts as under way until the node shows it.
func (p *profiles) end(u *transition, ended api.ProfileTransitionEnded, lost bool, now time.Time) {
	if u.Ended {
		return
	}
	u.Ended, u.EndedAt, u.Moved, u.Lost = true, now, ended.Moved, lost
	p.Failed = slices.DeleteFunc(p.Failed, func(f failed) bool { return f.Ref == u.Ref && !ended.Moved.IsZero() })
	switch {
	case !ended.Moved.IsZero() || u.Stopped:
	case ended.Waits:
		p.putOff(u.UnderWay, ended, now)
	default:
		p.fail(u.UnderWay, ended.Error, now)
	}
	p.Changes++
}

// stop has a transition end whose profile the node does not have any more. What it holds it gives back.
func (p *profiles) stop(ref activity.Ref) {
	if u := p.find(ref); u != nil && !u.Ended && u.RunID != "" {
		u.Stopped = true
	}
}

// cancels cancels the transitions that are to end, whichever run of them is the latest: one may have been reset.
func (p *profiles) cancels() (all []controller.Effect) {
	for _, u := range p.Transitions {
		if u.Stopped && !u.Cancelled && !u.Ended {
			all = append(all, controller.Cancel{
				Meta: controller.Meta{Key: keyOf(cancelTransition, u.Ref), Summary: "stop a transition of " + u.Node},
				To:   api.ProfileTransitionID(p.Info.Cluster, u.Profile, u.Node),
			})
		}
	}
	return all
}

// cancelled takes whether a transition will end. One that cannot be cancelled is tried again, or is found to have ended.
func (p *profiles) cancelled(o controller.Outcome, now time.Time) {
	i := slices.IndexFunc(p.Transitions, func(u transition) bool { return keyOf(cancelTransition, u.Ref) == o.Key && !u.Ended })
	switch {
	case i < 0:
	case o.Err != nil:
		p.fails(o.Key, "the transition of "+p.Transitions[i].Node+" could not be stopped", o.Err, now)
	default:
		p.Transitions[i].Cancelled = true
	}
}

// fail remembers that a transition was not carried out, for as long as it is not decided on again.
func (p *profiles) fail(u activity.UnderWay, why string, now time.Time) {
	if why == "" {
		why = "its workflow ended without a word"
	}
	f := p.failedOf(u, why)
	f.Until = now.Add(period.Doubled(failedFirst, failedMost, f.InARow))
	f.InARow++
	f.Waits = 0
	p.Warn(now, "profile "+u.Profile+" of "+u.Node+" did not go to "+string(u.To), f.Why)
}

// failedOf is what is remembered of a transition that was not carried out, and why.
func (p *profiles) failedOf(u activity.UnderWay, why string) *failed {
	i := slices.IndexFunc(p.Failed, func(f failed) bool { return f.Ref == u.Ref })
	if i < 0 {
		slices.SortStableFunc(p.Failed, func(a, b failed) int { return a.Until.Compare(b.Until) })
		p.Failed = append(p.Failed[max(len(p.Failed)-maxFailed+1, 0):], failed{Failed: activity.Failed{Ref: u.Ref}})
		i = len(p.Failed) - 1
	}
	f := &p.Failed[i]
	f.To, f.Enter, f.Why = u.To, u.Enter, bounds.Cut(why, maxWhy)
	return f
}

// putOff remembers that a transition has no slot yet, and when it is decided anew. Meanwhile it counts as nothing.
func (p *profiles) putOff(u activity.UnderWay, ended api.ProfileTransitionEnded, now time.Time) {
	f := p.failedOf(u, ended.Error)
	pause := period.Doubled(slotFirst, failedMost, f.Waits)
	if opens := ended.OpensAt.Sub(now); opens > 0 {
		pause = min(opens, closedMost)
	}
	f.Until = now.Add(pause)
	f.InARow = 0
	f.Waits++
}

// settle forgets transitions whose end the nodes show.
func (p *profiles) settle(refs []activity.Ref, now time.Time) {
	p.Transitions = slices.DeleteFunc(p.Transitions, func(u transition) bool { return u.Ended && slices.Contains(refs, u.Ref) })
	old := now.Add(-2 * failedMost)
	p.Failed = slices.DeleteFunc(p.Failed, func(f failed) bool { return f.Until.Before(old) })
}
