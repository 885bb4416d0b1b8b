package remediation

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/health"
	"drydock/rules/bounds"
	"drydock/rules/health"
	"drydock/workflows/call"
	"drydock/workflows/loop"
)

// eye has the objects and the node's lease be watched while they are there.
type eye struct {
	*core
	// at is what is looked at, stop ends that; nil is none.
	at   string
	stop func()
	// known is what was seen last.
	known    *activity.RemediationSeen
	failures int
	next     time.Time
}

// wanted is what there is to look at.
func (e *eye) wanted() activity.RemediationWatch {
	in := activity.RemediationWatch{Check: e.check, Node: e.node, UID: e.in.UID}
	for _, s := range e.state.Progress.Steps {
		if s.Resource != nil && !s.Gone {
			in.Objects = append(in.Objects, activity.WatchedObject{Index: s.Index, Resource: *s.Resource})
		}
	}
	if e.state.Leased {
		want := e.want()
		in.Lease = &want
	}
	if e.alone() {
		in.Conditions = e.in.Conditions
	}
	return in
}

// open has everything watched that is there, and nothing else.
func (e *eye) open() {
	in := e.wanted()
	text, _ := json.Marshal(in) // of texts and numbers
	if e.stop != nil && e.at == string(text) {
		return
	}
	if e.shut(); len(in.Objects) == 0 && in.Lease == nil && len(in.Conditions) == 0 {
		return
	}
	if e.Now().Before(e.next) {
		e.WakeAt(e.next, "watch again")
		return
	}
	e.at = string(text)
	in.Known = e.known
	e.stop = e.Watches("watch", func(ctx workflow.Context) workflow.Future {
		return workflow.ExecuteActivity(call.Beating(ctx, "watch what remediates "+e.node, activity.RemediationHeartbeatTimeout),
			call.Health.WatchRemediation, in)
	}, func(f workflow.Future) {
		e.stop = nil
		var seen activity.RemediationSeen
		if err := f.Get(e.Ctx, &seen); err != nil {
			e.note("what remediates the node could not be watched", call.Cause(err))
			e.next = e.Now().Add(loop.Backoff(e.failures))
			e.failures++
			return
		}
		e.failures, e.known = 0, &seen
		e.saw(seen)
	})
}

// shut ends the watch: the next one sees what it has seen.
func (e *eye) shut() {
	if e.stop != nil {
		e.stop()
		e.stop = nil
	}
}

// sawObject takes what was seen of the object of a step.
func (e *eye) sawObject(s *health.StepState, o activity.ObjectSeen) {
	if s.Gone = s.Gone || o.Gone; !o.Gone {
		s.Succeeded = o.Succeeded
	}
	if s.Failure = ""; s.Succeeded != nil && !*s.Succeeded {
		s.Failure = bounds.Cut(o.Message, bounds.Text)
	}
	if o.TimedOut && s.TimedOut == nil {
		now := e.Now()
		s.TimedOut = &now
	}
}

// saw takes what was seen.
func (e *eye) saw(seen activity.RemediationSeen) {
	p := &e.state.Progress
	p.PermanentNodeDeletionExpected = false
	for _, o := range seen.Objects {
		if o.PermanentNodeDeletionExpected != nil && *o.PermanentNodeDeletionExpected && !o.Gone {
			p.PermanentNodeDeletionExpected = true
		}
		if s := e.stepState(o.Index); s != nil {
			e.sawObject(s, o)
		}
	}
	if e.state.Leased && !seen.Lease.Held {
		e.state.Leased = false // held for too long, or somebody else's: it goes on without
		if seen.Lease.HeldBy != "" {
			e.note("the node's lease is not held any more", "it is "+seen.Lease.HeldBy+"'s")
		}
	}
	if !e.alone() {
		return
	}
	switch {
	case seen.NodeGone && p.PermanentNodeDeletionExpected, len(e.in.Conditions) == 0:
	case seen.NodeGone || seen.NodeReplaced:
		e.state.Ending, e.state.Recovered = "the node is gone, and so is the check", true
	case !seen.Ill:
		e.state.Ending, e.state.Recovered = "the node is healthy, and its check is gone", true
	}
}
