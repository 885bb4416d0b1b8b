package health

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/health"
	"drydock/workflows/call"
	"drydock/workflows/loop"
)

// lookout tells the HealthWatch what the check wants to be told of, until that answers, and takes what it tells.
type lookout struct {
	*core
	intent health.Intent
	// sending: an intent is under way. next is when it is due again, tries how often it was not answered.
	sending bool
	next    time.Time
	tries   int
	// ended hears of nodes whose remediation does not run.
	ended func(nodes []string)
	// left: the watch knows that the check has ended.
	left bool
}

// revisionsOfACopy is far more than an earlier run that this one is a copy of can have told since.
const revisionsOfACopy = 1 << 20

// tellsWatch is what fails where the watch cannot be told what the check wants to know.
const tellsWatch = "the health watch cannot be told what to look for"

// maxAhead is how far the clock of whoever looks at nodes may be ahead of Temporal's.
const maxAhead = time.Hour

// intend takes what the present decision wants to be told of.
func (l *lookout) intend(d health.Decision) {
	l.intent = d.Intent
	if d.Ask {
		l.state.Ask = true
	}
	if d.Changed || d.Ask {
		l.owe()
	}
}

// owe has the present intent be sent now.
func (l *lookout) owe() { l.state.Owed, l.next, l.tries = true, l.Now(), 0 }

// anew has everything be told again: the watch may know later revisions, of the run that this one is a copy of.
func (l *lookout) anew() {
	h := &l.state.Health
	h.Revision += revisionsOfACopy
	l.state.Ask = true
	l.owe()
}

// tell sends the intent where it is due.
func (l *lookout) tell() {
	if l.sending || !l.state.Owed {
		return
	}
	if l.Now().Before(l.next) {
		l.WakeAt(l.next, "tell again what the check wants to know")
		return
	}
	asked := l.state.Ask
	l.send(api.HealthIntent{Ask: asked, Intent: l.intent, Revision: l.state.Health.Revision}, func(err error) {
		if err == nil && asked {
			l.state.Ask = false
		}
	})
}

// leave tells the watch that the check ends. A watch that does not hear of it finds out by itself.
func (l *lookout) leave() {
	if l.sending || l.left {
		return
	}
	intent := l.intent
	intent.Conditions = l.state.Spec.UnhealthyConditions // null is no value
	l.send(api.HealthIntent{Gone: true, Intent: intent, Revision: l.state.Health.Revision + 1}, func(error) { l.left = true })
}

func (l *lookout) send(intent api.HealthIntent, sent func(error)) {
	intent.Name, intent.RunID, intent.CreatedAt = l.name, l.runID, l.state.CreatedAt
	l.sending = true
	what := "tell the health watch what check " + l.name + " wants to know"
	l.Does("intent", workflow.ExecuteActivity(l.within(what), call.Health.SendHealthIntent, intent), func(f workflow.Future) {
		err := f.Get(l.Ctx, nil)
		l.sending, l.next = false, l.Now().Add(loop.Backoff(l.tries))
		l.tries++
		if err != nil {
			l.fails(tellsWatch, err, l.next)
		} else {
			l.Works(tellsWatch)
		}
		sent(err)
	})
}

// heard takes what the watch says.
func (l *lookout) heard(news api.HealthNews) {
	h := &l.state.Health
	switch {
	case news.RunID != l.runID:
		return // it is meant for an earlier check of this name
	case news.Repeat:
		l.state.Ask = true
		l.owe()
		return
	}
	err := news.Validate()
	if err == nil && news.At.After(l.Now().Add(maxAhead)) {
		err = fmt.Errorf("at: %s is in the future", news.At.UTC().Format(time.RFC3339))
	}
	if err != nil {
		l.note("ignored what the health watch says", err.Error())
		return
	}
	if len(news.Ended) > 0 {
		l.ended(news.Ended)
		return
	}
	if news.Troubles != nil {
		l.state.Watch = *news.Troubles
		bounds.Fit(&l.state.Watch)
		return
	}
	if news.Revision == h.Revision {
		l.state.Owed = false
	}
	if outcome := h.Observe(news.Observation); outcome == health.Gap {
		l.note("asked the health watch for everything", fmt.Sprintf("news before %d are missing", news.Sequence))
	}
}
