package main

import (
	"context"
	"time"

	"drydock.dev/drydock/api"
)

const (
	// sayAgainAfter is how long a requestor waits for the effect of what it said.
	sayAgainAfter = 5 * time.Second
	// overdueAfter is how long a maintenance may take before it is cancelled.
	overdueAfter = 100 * time.Second
)

// requestors are those who asked: they see on the node what became of it, and do their part.
type requestors struct {
	fleet   *fleet
	watcher *watcher
}

// turn lets each requestor do what is due.
func (q *requestors) turn(ctx context.Context) {
	for _, m := range q.fleet.active() {
		if ctx.Err() != nil {
			return
		}
		if q.fleet.identify(ctx, m) {
			q.serve(ctx, m)
		}
	}
}

func (q *requestors) serve(ctx context.Context, m *maintenance) {
	phase := q.watcher.phase(m.node, m.id, m.run)
	if time.Since(m.started) > overdueAfter {
		q.say(ctx, m, api.MsgCancel, map[string]any{"by": "soak", "release": true, "comment": "overdue"})
		return
	}
	switch phase {
	case api.Ready:
		q.whileReady(ctx, m)
	case api.RequestorFailed:
		q.whileFailed(ctx, m)
	default:
		m.readySince = time.Time{}
		q.helpOn(ctx, m, phase)
	}
}

// approvals is how often a maintenance is approved: the word may be lost with a reset.
const approvals = 3

// helpOn sends what the maintenance may wait for. A hook before the cordon is left to its deadline.
func (q *requestors) helpOn(ctx context.Context, m *maintenance, phase api.Phase) {
	if time.Since(m.started) < 2*time.Second {
		return
	}
	for _, name := range m.extras {
		payload := map[string]any{"by": "reviewer", "run": m.run}
		approval := name == api.MsgApprove
		switch {
		case approval && m.answered >= approvals, !approval && phase == "":
			continue
		case approval && m.deny:
			name = api.MsgDeny
		case name == api.MsgHookDone:
			payload["hook"] = "sign-off"
		}
		if q.say(ctx, m, name, payload) && approval {
			m.answered++
		}
	}
}

func (q *requestors) whileReady(ctx context.Context, m *maintenance) {
	if m.readySince.IsZero() {
		m.readySince = time.Now()
	}
	if time.Since(m.readySince) < m.work {
		return
	}
	switch {
	case m.ending == endOverrun && time.Since(m.readySince) < 20*time.Second:
	case m.ending == endCancelled:
		q.say(ctx, m, api.MsgCancel, map[string]any{"by": m.requestor, "release": true, "run": m.run})
	case !m.failed && (m.ending == endFailedDone || m.ending == endRetried || m.ending == endGivenUp):
		q.say(ctx, m, api.MsgFailed, map[string]any{"by": m.requestor, "reason": "soak", "run": m.run})
	default:
		q.done(ctx, m)
	}
}

func (q *requestors) whileFailed(ctx context.Context, m *maintenance) {
	m.failed = true
	switch {
	case m.ending == endRetried && !m.retried:
		m.retried = q.say(ctx, m, api.MsgRetry, map[string]any{"by": m.requestor, "run": m.run})
	case m.ending == endGivenUp:
		q.say(ctx, m, api.MsgCancel, map[string]any{"by": m.requestor, "release": true, "run": m.run})
	default:
		q.done(ctx, m)
	}
}

// done is the word of all who share the maintenance.
func (q *requestors) done(ctx context.Context, m *maintenance) {
	if !q.say(ctx, m, api.MsgDone, map[string]any{"by": m.requestor, "run": m.run}) {
		return
	}
	for _, also := range []string{"second.example.com", "third.example.com"} {
		q.fleet.signal(ctx, m.id, api.MsgDone, map[string]any{"by": also, "requestor": also, "run": m.run}, "requestor")
	}
}

// say sends a message unless it was sent a moment ago, and reports whether it did.
func (q *requestors) say(ctx context.Context, m *maintenance, name string, payload map[string]any) bool {
	if time.Since(m.saidAt[name]) < sayAgainAfter {
		return false
	}
	m.saidAt[name] = time.Now()
	q.fleet.signal(ctx, m.id, name, payload, "requestor")
	return true
}
