package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"drydock.dev/drydock/rules/bounds"
)

// How much of a record's lists and texts is kept: it is written at once and has to stay small, whatever was said and
// however large the cluster is.
const (
	MaxPods          = 300
	MaxBlockers      = 50
	MaxNotifications = 200
	MaxPhases        = 200
	MaxStates        = 200
	MaxMessages      = 100
	MaxHooks         = 100
	MaxWork          = 20
	MaxEscalations   = 100
	MaxChecks        = 100
	MaxRequestors    = 64
	MaxSkippedPods   = 200
	MaxOccupied      = 50
	// MaxText bounds a text and MaxSpecification the specification, in bytes of JSON.
	MaxText          = bounds.Text
	MaxSpecification = 64 << 10
)

// Bounded is the record with its texts and long lists cut, and what was cut of a list counted. Of the messages, the work and
// the notifications the latest are kept, of the other lists the first.
func (r Record) Bounded() Record {
	left := maps.Clone(r.LeftOut)
	count := func(list string, n int) {
		if n > 0 && left == nil {
			left = map[string]int{}
		}
		if n > 0 {
			left[list] += n
		}
	}
	var n int
	r.Phases, n = firstOf(r.Phases, MaxPhases)
	r.MorePhases += n
	r.Blockers, n = firstOf(r.Blockers, MaxBlockers)
	r.MoreBlockers += n
	if r.Drain != nil {
		drain := *r.Drain
		drain.Pods, n = firstOf(drain.Pods, MaxPods)
		drain.MorePods += n
		drain.SkippedPods, n = firstOf(drain.SkippedPods, MaxSkippedPods)
		count("drain.skippedPods", n)
		r.Drain = &drain
	}
	r.AdditionalRequestors, n = firstOf(r.AdditionalRequestors, MaxRequestors)
	count("additionalRequestors", n)
	r.States, n = firstOf(r.States, MaxStates)
	count("states", n)
	r.Escalations, n = firstOf(r.Escalations, MaxEscalations)
	count("escalations", n)
	r.Messages, n = lastOf(r.Messages, MaxMessages)
	count("messages", n)
	r.Hooks, n = firstOf(r.Hooks, MaxHooks)
	count("hooks", n)
	r.Work, n = lastOf(r.Work, MaxWork)
	count("work", n)
	r.Validation, n = firstOf(r.Validation, MaxChecks)
	count("validation", n)
	r.Notifications, n = lastOf(r.Notifications, MaxNotifications)
	count("notifications", n)
	r.Occupied, n = firstOf(r.Occupied, MaxOccupied)
	count("occupied", n)
	r.LeftOut = left
	return r.withShortTexts()
}

// firstOf and lastOf are copies, which can be changed, of so many entries, and how many are left out.
func firstOf[T any](list []T, most int) ([]T, int) {
	kept := min(len(list), most)
	return slices.Clone(list[:kept]), len(list) - kept
}

func lastOf[T any](list []T, most int) ([]T, int) {
	left := max(0, len(list)-most)
	return slices.Clone(list[left:]), left
}

// withShortTexts cuts every text that somebody has written or that an error says. Its lists are its own already.
func (r Record) withShortTexts() Record {
	shorten(&r.Owner, &r.Reason, &r.Ticket, &r.Failure)
	r.shortenPeople()
	for i := range r.AdditionalRequestors {
		shorten(&r.AdditionalRequestors[i])
	}
	for i := range r.Phases {
		shorten(&r.Phases[i].Message)
	}
	for i := range r.States {
		shorten(&r.States[i].Message)
	}
	for i := range r.Blockers {
		shorten(&r.Blockers[i].Owner, &r.Blockers[i].Reason, &r.Blockers[i].Message)
	}
	for i := range r.Escalations {
		shorten(&r.Escalations[i].By, &r.Escalations[i].Why)
	}
	for i := range r.Messages {
		shorten(&r.Messages[i].Name, &r.Messages[i].By, &r.Messages[i].Identity, &r.Messages[i].Comment, &r.Messages[i].Effect)
	}
	for i := range r.Hooks {
		shorten(&r.Hooks[i].Outcome, &r.Hooks[i].By)
	}
	for i := range r.Work {
		shorten(&r.Work[i].Outcome, &r.Work[i].Output)
	}
	for i := range r.Validation {
		shorten(&r.Validation[i].Name, &r.Validation[i].Message)
	}
	for i := range r.Notifications {
		shorten(&r.Notifications[i].Outcome)
	}
	for i := range r.Occupied {
		shorten(&r.Occupied[i])
	}
	if r.Drain != nil {
		for i := range r.Drain.SkippedPods {
			shorten(&r.Drain.SkippedPods[i])
		}
	}
	if n := len(r.Specification); n > MaxSpecification {
		r.Specification = json.RawMessage(fmt.Sprintf("%q", fmt.Sprintf("left out: it has %d bytes", n)))
	}
	return r
}

// shortenPeople cuts what is said of who approved, started and ended the maintenance, and of who vouches for that.
func (r *Record) shortenPeople() {
	if r.Approval != nil {
		approval := *r.Approval
		shorten(&approval.By, &approval.Identity, &approval.Comment)
		r.Approval = &approval
	}
	if r.Starter != nil {
		starter := *r.Starter
		shorten(&starter.Identity)
		r.Starter = &starter
	}
	if r.TerminatedBy != nil {
		by := *r.TerminatedBy
		shorten(&by.Identity)
		r.TerminatedBy = &by
	}
	if r.Provenance != nil {
		proven := *r.Provenance
		proven.Claimed = slices.Clone(proven.Claimed)
		for i := range proven.Claimed {
			shorten(&proven.Claimed[i])
		}
		r.Provenance = &proven
	}
}

func shorten(texts ...*string) {
	for _, text := range texts {
		*text = bounds.Cut(*text, MaxText)
	}
}
