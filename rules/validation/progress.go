package validation

import (
	"time"

	"drydock.dev/drydock/rules/period"
)

// State is where a validation stands.
type State string

// The states. Passed and Failed are ends: nothing is checked any more.
const (
	// Waiting: something does not hold. Soaking: all holds, and has to keep holding.
	Waiting State = "waiting"
	Soaking State = "soaking"
	Passed  State = "passed"
	Failed  State = "failed"
)

// Progress is what is remembered from one look to the next.
type Progress struct {
	Started  time.Time       `json:"started"`
	Soak     period.Duration `json:"soak"`
	Deadline period.Duration `json:"deadline"`
	// GoodSince is the first of the looks in a row that found all well; zero if the last one did not.
	GoodSince time.Time `json:"goodSince,omitzero"`
	// Restarts counts how often a soak was begun anew because something stopped holding.
	Restarts int `json:"restarts,omitempty"`
}

// Begin starts a validation.
func Begin(v Validation, now time.Time) Progress {
	return Progress{Started: now, Soak: v.Soak, Deadline: v.Deadline}
}

// Observe takes a look's report into account. A soak that would end after the deadline does not pass, however late the
// look is; one that ended before it passes at the next good look.
func (p Progress) Observe(r Report, now time.Time) (Progress, State) {
	if !r.AllGood {
		if !p.GoodSince.IsZero() {
			p.Restarts++
		}
		p.GoodSince = time.Time{}
		if r.Refused != "" || !now.Before(p.fails()) {
			return p, Failed
		}
		return p, Waiting
	}
	if p.GoodSince.IsZero() {
		p.GoodSince = now
	}
	passes := p.GoodSince.Add(p.Soak.Std())
	switch {
	case !now.Before(passes) && passes.Before(p.fails()):
		return p, Passed
	case !now.Before(p.fails()):
		return p, Failed
	default:
		return p, Soaking
	}
}

// Next is when to look again: after the usual pause, and not later than the soak or the deadline ends.
func (p Progress) Next(every period.Duration, now time.Time) time.Time {
	next := now.Add(every.Std())
	ends := []time.Time{p.fails()}
	if !p.GoodSince.IsZero() {
		ends = append(ends, p.GoodSince.Add(p.Soak.Std()))
	}
	for _, end := range ends {
		if end.After(now) && end.Before(next) {
			next = end
		}
	}
	return next
}

// fails is the moment from which the validation has failed.
func (p Progress) fails() time.Time { return p.Started.Add(p.Deadline.Std()) }
