package controller

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/views"
	"drydock.dev/drydock/workflows/handover"
	"drydock.dev/drydock/workflows/meter"
)

// Bounds of what a state keeps.
const (
	maxNotes    = 40
	maxNote     = 500 // bytes
	maxReceived = 30
	maxSeen     = 200
	maxRetries  = 5000 // more than keys are wanted at once: a key whose entry is dropped would not back off
)

// An effect that failed begins again after firstRetry, after twice as long with each further failure, and after maxRetry at most. One that
// succeeded may begin again after firstRepeat.
const (
	firstRetry  = 10 * time.Second
	maxRetry    = 10 * time.Minute
	firstRepeat = time.Second
)

// Base is what every controller embeds: the part of its state that the frame keeps.
type Base struct {
	Info Info `json:"-"`
	// Notes are for people. Messages are those that people have sent, with their outcomes.
	Notes    []api.RecordedDecision `json:"notes,omitempty"`
	Messages []api.Received         `json:"messages,omitempty"`
	// Seen are the IDs of the latest messages.
	Seen []string `json:"messageIds,omitempty"`
	// Retries are the effects and watches that failed, and the effects that succeeded and may be wanted again. byKey finds one by its
	// key; nil until find builds it.
	Retries []*Retry `json:"retries,omitempty"`
	byKey   map[Key]*Retry
	// Shown are the search attributes that were set.
	Shown map[string]string `json:"shown,omitempty"`
	// ShownMemo is the digest of the memo that was set.
	ShownMemo uint64 `json:"shownMemo,omitempty"`
	// Mirrored is the digest of what the bridge was last called for.
	Mirrored uint64 `json:"mirrored,omitempty"`
	// ContinueAfter is the number of events after which a run continues as new, for tests; 0 is maxEvents.
	ContinueAfter int `json:"continueAfter,omitempty"`

	unknown handover.Unknown
	// ctx is the run's, nil in tests without Temporal.
	ctx workflow.Context
	// judging is the key whose outcome Outcome is taking. judged: Rest, ClearBackoff or Fails was called for that key.
	judging Key
	judged  bool
}

// Embedding Base makes a struct a Controller, but for the methods that decide.
var _ interface{ base() *Base } = (*Base)(nil)

func (b *Base) base() *Base { return b }

// Plain is embedded by a controller that has nothing to begin with, since it first finds what runs, and whose Decide sees to CancelRequested.
type Plain struct {
	// CancelRequested: somebody has cancelled the workflow.
	CancelRequested bool `json:"cancelRequested,omitempty"`
}

// Begin implements Controller.
func (*Plain) Begin(time.Time) {}

// Cancel implements Controller.
func (p *Plain) Cancel(time.Time) { p.CancelRequested = true }

// Retry keeps an effect, or a watch, from beginning before a time.
type Retry struct {
	Key Key `json:"key"`
	// Count is how often in a row it has failed, or was repeated.
	Count int       `json:"count,omitempty"`
	Until time.Time `json:"until"`
	// What, Why and Since say what fails, why, and since when; they are empty for an effect that succeeded.
	What  string    `json:"what,omitempty"`
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Same is the digest of the effect that succeeded: an effect with another digest begins at once.
	Same uint64 `json:"same,omitempty"`
}

// Note keeps what was refused or ignored, or what people should know. An entry that recurs is kept once.
func (b *Base) Note(now time.Time, what, why string) { b.keep(now, what, why, log.Logger.Info) }

// Warn is Note for what needs attention.
func (b *Base) Warn(now time.Time, what, why string) { b.keep(now, what, why, log.Logger.Warn) }

// Count adds one to a metric. It is silent in a replay.
func (b *Base) Count(m meter.Metric, label string) {
	if b.ctx != nil {
		m.Count(b.ctx, label)
	}
}

// Took observes a duration. It is silent in a replay.
func (b *Base) Took(m meter.Metric, label string, d time.Duration) {
	if b.ctx != nil {
		m.Took(b.ctx, label, d)
	}
}

func (b *Base) keep(now time.Time, what, why string, say func(l log.Logger, what string, pairs ...any)) {
	e := api.RecordedDecision{At: now, What: bounds.Cut(what, maxNote), Why: bounds.Cut(why, maxNote)}
	b.Notes = slices.DeleteFunc(b.Notes, func(other api.RecordedDecision) bool { return other.What == e.What && other.Why == e.Why })
	b.Notes = last(append(b.Notes, e), maxNotes)
	if b.ctx != nil {
		say(workflow.GetLogger(b.ctx), e.What, "why", e.Why)
	}
}

func last[T any](all []T, most int) []T { return all[max(len(all)-most, 0):] }

// Fails keeps the effects, or the watch, of a key from beginning, for longer with each failure. Outcome calls it for an effect that was
// carried out in vain, and to describe a failure in its own words.
func (b *Base) Fails(k Key, what, why string, now time.Time) {
	r := b.retry(k)
	if r.Since.IsZero() {
		*r = Retry{Key: k, Since: now}
	}
	r.Until = now.Add(period.Doubled(firstRetry, maxRetry, r.Count))
	r.What, r.Why = bounds.Cut(what, maxNote), bounds.Cut(why, bounds.Text) // it ends with the command that helps
	r.Count++
}

// Rest keeps the effects, or the watch, of a key from beginning for a while. Outcome calls it for one that has to wait for something.
func (b *Base) Rest(k Key, d time.Duration, now time.Time) {
	*b.retry(k) = Retry{Key: k, Until: now.Add(d)}
}

// ClearBackoff lets the effects, or the watch, of a key begin again at once. Outcome calls it where Decide alone says whether one is wanted
// again, whatever came of the last.
func (b *Base) ClearBackoff(k Key) { b.Rest(k, 0, time.Time{}) }

// repeats records that an effect succeeded, so that the same effect does not begin again at once.
func (b *Base) repeats(m Meta, same uint64, now time.Time) {
	r := b.retry(m.Key)
	if r.Same != same {
		*r = Retry{Key: m.Key, Same: same}
	}
	r.Until = now.Add(period.Doubled(cmp.Or(m.Repeat, firstRepeat), maxRetry, r.Count))
	r.Count++
}

// rests returns the time before which an effect must not begin; the zero time is none.
func (b *Base) rests(x Effect, now time.Time) time.Time {
	r := b.find(x.meta().Key)
	if r == nil || !now.Before(r.Until) {
		return time.Time{}
	}
	if r.Same != 0 {
		if sum, _ := digest(x.content()); sum != r.Same {
			return time.Time{}
		}
	}
	return r.Until
}

func (b *Base) find(k Key) *Retry {
	if b.byKey == nil {
		b.byKey = make(map[Key]*Retry, len(b.Retries))
		for _, r := range b.Retries {
			b.byKey[r.Key] = r
		}
	}
	return b.byKey[k]
}

// retry returns the entry of a key to change it, and adds one where there is none.
func (b *Base) retry(k Key) *Retry {
	b.judged = b.judged || k == b.judging
	r := b.find(k)
	if r == nil {
		if len(b.Retries) >= maxRetries {
			b.Retries, b.byKey = last(b.Retries, maxRetries/2), nil
			_ = b.find(k)
		}
		r = &Retry{Key: k}
		b.Retries = append(b.Retries, r)
		b.byKey[k] = r
	}
	return r
}

// works removes the entry of a key: its watch works, or is not wanted any more.
func (b *Base) works(k Key) {
	if b.find(k) != nil {
		b.Retries, b.byKey = slices.DeleteFunc(b.Retries, func(r *Retry) bool { return r.Key == k }), nil
	}
}

// forget removes the entries whose time is over and whose keys are not wanted any more. An effect that succeeded and was not wanted for a
// while does not count as repeated when it is wanted again.
func (b *Base) forget(wanted map[Key]bool, now time.Time) {
	b.Retries, b.byKey = slices.DeleteFunc(b.Retries, func(r *Retry) bool { return !wanted[r.Key] && !now.Before(r.Until) }), nil
	for _, r := range b.Retries {
		if r.Same != 0 && !wanted[r.Key] {
			r.Count = 0
		}
	}
}

// Troubles are what fails now and is tried again. The list is never nil, so that a status says that nothing fails.
func (b *Base) Troubles() []api.Trouble {
	all := []api.Trouble{}
	for _, r := range b.Retries {
		if r.Why != "" {
			all = append(all, api.Trouble{What: r.What, Why: r.Why, Since: r.Since, NextTry: r.Until})
		}
	}
	return all
}

// Details are a document with the latest of the notes below it, as the Temporal UI shows them.
func (b *Base) Details(d document.Document) string {
	d.Table(views.Notes(b.Notes, views.Brief()))
	return document.Details(d)
}

func (b *Base) record(now time.Time, name string, who api.Message, outcome api.Outcome, effect string) {
	entry := api.Received{At: now, ID: who.ID, Name: name, By: who.By, Comment: who.Comment, Outcome: outcome, Effect: effect}
	bounds.Fit(&entry)
	b.Messages = last(append(b.Messages, entry), maxReceived)
	b.see(who.ID)
}

func (b *Base) see(id string) {
	if id != "" {
		b.Seen = last(append(b.Seen, id), maxSeen)
	}
}
