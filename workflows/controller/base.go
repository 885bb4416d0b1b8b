package controller

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/workflows/details"
	"drydock/workflows/handover"
	"drydock/workflows/meter"
)

// Bounds of what a state keeps.
const (
	maxNotes    = 40
	maxNote     = 500 // bytes
	maxReceived = 30
	maxSeen     = 200
	maxRetries  = 5000 // more than are wanted at once: of what is not kept, nothing would rest
)

// An effect that failed rests for firstRetry, twice as long after each further failure, and maxRetry at most.
const (
	firstRetry  = 10 * time.Second
	maxRetry    = 10 * time.Minute
	firstRepeat = time.Second
)

// Base is what every controller embeds: the part of its state that the frame keeps.
type Base struct {
	Info Info `json:"-"`
	// Notes are for people, and Messages what people have sent, with what came of it.
	Notes    []api.RecordedDecision `json:"notes,omitempty"`
	Messages []api.Received         `json:"messages,omitempty"`
	// Seen are the IDs of messages.
	Seen []string `json:"messageIds,omitempty"`
	// Retries are the effects and watches that failed, and effects that have succeeded and may be wanted again. places is where each is, nil
	// where that is to be found anew.
	Retries []Retry `json:"retries,omitempty"`
	places  map[Key]int
	// Shown are the search attributes that were set.
	Shown map[string]string `json:"shown,omitempty"`
	// ShownMemo is the digest of the memo that was set.
	ShownMemo uint64 `json:"shownMemo,omitempty"`
	// ContinueAfter is after how many events a run continues as new, for tests; 0 is the usual number.
	ContinueAfter int `json:"continueAfter,omitempty"`

	unknown handover.Unknown
	// ctx is the run's, nil in tests without Temporal.
	ctx workflow.Context
	// judging is the key of the effect or watch whose outcome is being taken. judged: Rest, ClearBackoff or Fails was called for it.
	judging Key
	judged  bool
}

// Embedding Base makes a struct a Controller, but for the methods that decide.
var _ interface{ base() *Base } = (*Base)(nil)

func (b *Base) base() *Base { return b }

// Retry is until when an effect rests.
type Retry struct {
	Key Key `json:"key"`
	// Count is how often in a row it has failed, or was done again.
	Count int       `json:"count,omitempty"`
	Until time.Time `json:"until"`
	// What fails, why, and since when; empty of an effect that has succeeded.
	What  string    `json:"what,omitempty"`
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Same is the digest of the effect that has succeeded: another begins at once.
	Same uint64 `json:"same,omitempty"`
}

// Note keeps for people what was refused, ignored or is worth to know; what recurs is kept once.
func (b *Base) Note(now time.Time, what, why string) {
	e := b.keep(now, what, why)
	if b.ctx != nil {
		workflow.GetLogger(b.ctx).Info(e.What, "why", e.Why)
	}
}

// Warn is Note for what somebody has to see to.
func (b *Base) Warn(now time.Time, what, why string) {
	e := b.keep(now, what, why)
	if b.ctx != nil {
		workflow.GetLogger(b.ctx).Warn(e.What, "why", e.Why)
	}
}

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

func (b *Base) keep(now time.Time, what, why string) api.RecordedDecision {
	e := api.RecordedDecision{At: now, What: bounds.Cut(what, maxNote), Why: bounds.Cut(why, maxNote)}
	b.Notes = slices.DeleteFunc(b.Notes, func(other api.RecordedDecision) bool { return other.What == e.What && other.Why == e.Why })
	b.Notes = last(append(b.Notes, e), maxNotes)
	return e
}

// last returns the last entries of a list, most at most.
func last[T any](all []T, most int) []T { return all[max(len(all)-most, 0):] }

// Fails has the effects, or the watch, of a key rest, for longer each time. Outcome calls it for an effect that was carried out and came to
// nothing, and where it says in its own words what has failed.
func (b *Base) Fails(k Key, what, why string, now time.Time) {
	r := b.retry(k)
	if r.Since.IsZero() {
		*r = Retry{Key: k, Since: now}
	}
	r.Until = now.Add(doubled(firstRetry, r.Count, maxRetry))
	r.What, r.Why = bounds.Cut(what, maxNote), bounds.Cut(why, maxNote)
	r.Count++
	b.judged = b.judged || k == b.judging
}

// Rest keeps the effects, or the watch, of a key from beginning for a while. Outcome calls it for one that has to wait for something.
func (b *Base) Rest(k Key, d time.Duration, now time.Time) {
	*b.retry(k) = Retry{Key: k, Until: now.Add(d)}
	b.judged = b.judged || k == b.judging
}

// ClearBackoff lets the effects, or the watch, of a key begin again at once. Outcome calls it where Decide alone says whether one is wanted
// again, whatever came of the last.
func (b *Base) ClearBackoff(k Key) {
	*b.retry(k) = Retry{Key: k}
	b.judged = b.judged || k == b.judging
}

// repeats notes that an effect has succeeded: the same is not done again at once.
func (b *Base) repeats(m Meta, same uint64, now time.Time) {
	r := b.retry(m.Key)
	if r.Same != same {
		*r = Retry{Key: m.Key, Same: same}
	}
	pause := m.Repeat
	if pause == 0 {
		pause = firstRepeat
	}
	r.Until = now.Add(doubled(pause, r.Count, maxRetry))
	r.Count++
}

// rests returns until when an effect rests; the zero time is that it does not.
func (b *Base) rests(x Effect, now time.Time) time.Time {
	i := b.find(x.meta().Key)
	if i < 0 || !now.Before(b.Retries[i].Until) {
		return time.Time{}
	}
	if same := b.Retries[i].Same; same != 0 {
		if sum, _ := digest(x.content()); sum != same {
			return time.Time{}
		}
	}
	return b.Retries[i].Until
}

// find returns the place of a key's entry, -1 where there is none.
func (b *Base) find(k Key) int {
	if b.places == nil {
		b.places = make(map[Key]int, len(b.Retries))
		for i := range b.Retries {
			b.places[b.Retries[i].Key] = i
		}
	}
	if i, there := b.places[k]; there {
		return i
	}
	return -1
}

// drop drops entries.
func (b *Base) drop(unwanted func(r Retry) bool) {
	b.Retries, b.places = slices.DeleteFunc(b.Retries, unwanted), nil
}

// retry returns the entry of a key, which it makes where there is none.
func (b *Base) retry(k Key) *Retry {
	i := b.find(k)
	if i < 0 {
		if len(b.Retries) >= maxRetries {
			b.Retries, b.places = last(b.Retries, maxRetries/2), nil
			_ = b.find(k)
		}
		i = len(b.Retries)
		b.Retries = append(b.Retries, Retry{Key: k})
		b.places[k] = i
	}
	return &b.Retries[i]
}

// works forgets that what has this key failed.
func (b *Base) works(k Key) {
	if b.find(k) >= 0 {
		b.drop(func(r Retry) bool { return r.Key == k })
	}
}

// forget drops the entries that are over and of which nothing is wanted any more. What has succeeded and was not wanted for a while is not
// repeated when it is wanted again.
func (b *Base) forget(wanted map[Key]bool, now time.Time) {
	b.drop(func(r Retry) bool { return !wanted[r.Key] && !now.Before(r.Until) })
	for i := range b.Retries {
		if r := &b.Retries[i]; r.Same != 0 && !wanted[r.Key] {
			r.Count = 0
		}
	}
}

// doubled returns first, doubled count times, most at most.
func doubled(first time.Duration, count int, most time.Duration) time.Duration {
	for range min(count, 20) {
		first = min(2*first, most)
	}
	return min(first, most)
}

// Troubles are what fails now and is tried again. It is never nil: that nothing fails is worth saying.
func (b *Base) Troubles() []api.Trouble {
	all := []api.Trouble{}
	for _, r := range b.Retries {
		if r.Why != "" {
			all = append(all, api.Trouble{What: r.What, Why: r.Why, Since: r.Since, NextTry: r.Until})
		}
	}
	return all
}

// ShowTroubles shows what fails as a paragraph each in Markdown; empty where nothing does.
func (b *Base) ShowTroubles() string { return details.Troubles(b.Troubles()) }

// ShowNotes shows the latest of the notes as a list in Markdown, newest first; empty where there are none.
func (b *Base) ShowNotes() string { return details.Notes(b.Notes) }

// seen reports whether a message of this ID was received before.
func (b *Base) seen(id string) bool { return id != "" && slices.Contains(b.Seen, id) }

// Record keeps what somebody has requested by other means than a message, and what came of that.
func (b *Base) Record(now time.Time, name string, outcome api.Outcome, effect string) {
	b.record(now, name, api.Message{}, outcome, effect)
}

// record keeps a message of people and what came of it.
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
