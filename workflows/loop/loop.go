// Package loop is what the workflows of health checks have in common: they decide whenever something happened, wake up by one
// timer, count what is under way, and go on in a new run before their history is too long.
package loop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/markdown"
)

const (
	// maxSignals continues a workflow as new well before the server's limit of signals a run.
	maxSignals = 5000
	// tryAgain is the pause after something failed or was not answered for the first time. It doubles up to tryAgainMost.
	tryAgain     = 10 * time.Second
	tryAgainMost = 10 * time.Minute
	// maxNotes bounds what is remembered for people, maxWords each note, in bytes.
	maxNotes = 40
	maxWords = 500
	// maxHeard bounds the IDs of messages that are kept, maxMessages the messages.
	maxHeard    = 200
	maxMessages = 30
)

// Loop is the turn of one run.
type Loop struct {
	Ctx workflow.Context
	// Dirty: something happened that the next decision may depend on.
	Dirty bool
	// Unread tells of messages that were not looked at yet.
	Unread func() bool
	// Crowded tells that the run has about as many children as a server takes, Telling that what is told to others would be lost
	// with the run; nil is never.
	Crowded, Telling func() bool
	// ContinueAfter is after how many signals a run continues as new; 0 is the usual number.
	ContinueAfter int

	signals, inFlight int
	// troubles are what fails and is tried again, in the order in which it began.
	troubles []api.Trouble
	// alarm is when the timer goes off, zero where there is none; cancel ends it.
	alarm  time.Time
	cancel workflow.CancelFunc
}

// Carried is what of a loop the next run has to know, and what people are shown.
type Carried struct {
	Notes    []api.RecordedDecision `json:"notes,omitempty"`
	Messages []api.Received         `json:"messages,omitempty"`
	Heard    []string               `json:"heard,omitempty"`
	// ContinueAfter is the Loop's.
	ContinueAfter int `json:"continueAfter,omitempty"`
}

// Now is the time of the workflow task.
func (l *Loop) Now() time.Time { return workflow.Now(l.Ctx) }

// Arrived counts a signal.
func (l *Loop) Arrived() { l.signals++; l.Dirty = true }

// maxHistory is how many events there may be before nothing is waited for any more.
const maxHistory = 20000

// Leaving tells whether to continue as new; from then on nothing new is begun.
func (l *Loop) Leaving() bool {
	info, most := workflow.GetInfo(l.Ctx), cmp.Or(l.ContinueAfter, maxSignals)
	if !info.GetContinueAsNewSuggested() && l.signals < most && (l.Crowded == nil || !l.Crowded()) {
		return false
	}
	// Somebody who does not listen is no reason to begin nothing, while there is room.
	return l.Telling == nil || !l.Telling() || info.GetCurrentHistoryLength() > maxHistory || l.signals >= most+most/2
}

// IsIdle tells that nothing would be lost with this run.
func (l *Loop) IsIdle() bool {
	return l.inFlight == 0 && !l.Unread() && workflow.AllHandlersFinished(l.Ctx)
}

// Does has something carried out that this run waits for, and takes what it came to.
func (l *Loop) Does(what string, future workflow.Future, then func(workflow.Future)) {
	l.inFlight++
	workflow.GoNamed(l.Ctx, what, func(ctx workflow.Context) {
		ready(ctx, future)
		l.inFlight--
		l.Dirty = true
		then(future)
	})
}

// ready waits for a future, also in a workflow that is cancelled: whoever reads it then must not have to wait, for that is another
// coroutine's context.
func ready(ctx workflow.Context, future workflow.Future) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	_ = workflow.Await(ctx, future.IsReady) // nothing cancels this context
}

// Watches has something carried out that a next run begins anew, and takes what it came to unless stop was called before.
func (l *Loop) Watches(what string, begin func(workflow.Context) workflow.Future, then func(workflow.Future)) (stop func()) {
	ctx, cancel := workflow.WithCancel(l.Ctx)
	future := begin(ctx)
	stopped := false
	workflow.GoNamed(l.Ctx, what, func(inner workflow.Context) {
		ready(inner, future)
		if stopped {
			return
		}
		l.Dirty = true
		then(future)
	})
	return func() { stopped = true; cancel() }
}

// WakeAt has everything looked at again at a time at the latest, for the reason that the timer's summary says. There is one
// timer: one that goes off earlier serves too, and whoever wakes asks again.
func (l *Loop) WakeAt(at time.Time, what string) {
	if at.IsZero() || !l.alarm.IsZero() && !l.alarm.After(at) {
		return
	}
	if l.cancel != nil {
		l.cancel()
	}
	ctx, cancel := workflow.WithCancel(l.Ctx)
	l.alarm, l.cancel = at, cancel
	timer := workflow.NewTimerWithOptions(ctx, max(at.Sub(l.Now()), time.Millisecond), workflow.TimerOptions{Summary: what})
	workflow.GoNamed(l.Ctx, "alarm", func(inner workflow.Context) {
		if timer.Get(inner, nil) != nil {
			return // another has taken its place, or the workflow is cancelled
		}
		if l.alarm.Equal(at) {
			l.alarm, l.cancel = time.Time{}, nil
		}
		l.Dirty = true
	})
}

// WakeIn is WakeAt for a time from now.
func (l *Loop) WakeIn(d time.Duration, what string) { l.WakeAt(l.Now().Add(d), what) }

// Await waits until something happened.
func (l *Loop) Await() error {
	err := workflow.Await(l.Ctx, func() bool { return l.Dirty })
	return err
}

// Rest lets the other coroutines run: one that runs for a second is taken for one that hangs.
func (l *Loop) Rest() {
	rested := false
	_ = workflow.Await(l.Ctx, func() bool {
		defer func() { rested = true }()
		return rested
	})
}

// Note keeps for people what was refused, ignored or is worth to know; what recurs is kept once.
func (l *Loop) Note(c *Carried, what, why string) {
	e := l.keep(c, what, why)
	workflow.GetLogger(l.Ctx).Info(e.What, "why", e.Why)
}

// Warn is Note for what somebody has to see to.
func (l *Loop) Warn(c *Carried, what, why string) {
	e := l.keep(c, what, why)
	workflow.GetLogger(l.Ctx).Warn(e.What, "why", e.Why)
}

func (l *Loop) keep(c *Carried, what, why string) api.RecordedDecision {
	what, why = bounds.Cut(what, maxWords), bounds.Cut(why, maxWords)
	c.Notes = slices.DeleteFunc(c.Notes, func(e api.RecordedDecision) bool { return e.What == what && e.Why == why })
	c.Notes = append(c.Notes, api.RecordedDecision{At: l.Now(), What: what, Why: why})
	c.Notes = c.Notes[max(len(c.Notes)-maxNotes, 0):]
	return c.Notes[len(c.Notes)-1]
}

// Fails keeps for people that something fails, and when it is tried again, until Works is called for it.
func (l *Loop) Fails(c *Carried, what, why string, next time.Time) {
	l.Warn(c, what, why)
	why = bounds.Cut(why, maxWords)
	for i := range l.troubles {
		if l.troubles[i].What == what {
			l.troubles[i].Why, l.troubles[i].NextTry = why, next
			return
		}
	}
	l.troubles = append(l.troubles, api.Trouble{What: what, Why: why, Since: l.Now(), NextTry: next})
}

// Works forgets what Fails kept.
func (l *Loop) Works(what string) {
	l.troubles = slices.DeleteFunc(l.troubles, func(t api.Trouble) bool { return t.What == what })
}

// Troubles are what fails now and is tried again. It is never nil: that nothing fails is worth saying.
func (l *Loop) Troubles() []api.Trouble { return append([]api.Trouble{}, l.troubles...) }

// ShowTroubles shows what fails as a paragraph each in Markdown; empty where nothing does.
func ShowTroubles(troubles []api.Trouble) string {
	var text strings.Builder
	for _, t := range troubles {
		fmt.Fprintf(&text, "\n\n**%s**: %s", markdown.Text(t.What), markdown.Text(t.Why))
	}
	return text.String()
}

// shownNotes bounds what Latest shows.
const shownNotes = 5

// Latest shows the latest of the notes as a list in Markdown, newest first; empty where there are none.
func Latest(notes []api.RecordedDecision) string {
	var text strings.Builder
	if len(notes) > 0 {
		text.WriteString("\n")
	}
	for i := len(notes) - 1; i >= max(0, len(notes)-shownNotes); i-- {
		fmt.Fprintf(&text, "\n- %s: %s", markdown.Text(notes[i].What), markdown.Text(notes[i].Why))
	}
	return text.String()
}

// Knows tells that a message with this ID was received before.
func (c *Carried) Knows(id string) bool { return slices.Contains(c.Heard, id) }

// Received records a message of people and what became of it.
func (l *Loop) Received(c *Carried, name string, who api.Message, outcome api.Outcome, effect string) {
	entry := api.Received{At: l.Now(), ID: who.ID, Name: name, By: who.By, Comment: who.Comment, Outcome: outcome, Effect: effect}
	bounds.Fit(&entry)
	c.Messages = append(c.Messages, entry)
	c.Messages = c.Messages[max(len(c.Messages)-maxMessages, 0):]
	if who.ID != "" {
		c.Heard = append(c.Heard, who.ID)
		c.Heard = c.Heard[max(len(c.Heard)-maxHeard, 0):]
	}
	l.Dirty = true
}

// Backoff is the pause after so many failures in a row.
func Backoff(failures int) time.Duration {
	wait := tryAgain
	for range min(failures, 10) {
		wait = min(2*wait, tryAgainMost)
	}
	return wait
}
