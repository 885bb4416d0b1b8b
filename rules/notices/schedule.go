package notices

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/spec"
)

// minInterval is the least time between two notices of one state.
const minInterval = time.Minute

// Schedule says when a state is sent while it lasts: the schedules of SAP's maintenance-controller, at most one of
// them. None is a OneShot without delay.
type Schedule struct {
	// OneShot delivers an event once, when its state has lasted for a while. A state that is over sooner is not told.
	OneShot *OneShot `json:"oneshot,omitempty"`
	// Periodic delivers an event at once, and then at intervals while its state lasts.
	Periodic *Periodic `json:"periodic,omitempty"`
	// Scheduled delivers an event at a time of day on some days of the week, while its state lasts.
	Scheduled *Scheduled `json:"scheduled,omitempty"`
}

// OneShot sends a state once, when it has lasted for Delay. A state that ends sooner is never sent.
type OneShot struct {
	// Delay is how long the state has to last.
	Delay spec.Duration `json:"delay,omitempty"`
}

// Periodic sends a state at once and then at intervals.
type Periodic struct {
	// Interval is the time between two messages, at least 1m.
	Interval spec.Duration `json:"interval" jsonschema:"required"`
}

// Scheduled sends a state at a time of day on some days of the week, the first time at the first such instant after
// the state began.
type Scheduled struct {
	// Instant is the time of day, such as `09:00`.
	Instant string `json:"instant" jsonschema:"required"`
	// Weekdays are names such as `monday` or `mon`.
	Weekdays []string `json:"weekdays" jsonschema:"required"`
	// Timezone is whose clocks count, such as `Europe/Berlin`.
	Timezone string `json:"timezone,omitempty" jsonschema:"default=UTC"`
}

// Next returns when a state is sent next, never before now; ok is false if it is not sent again. The state began
// at entered and was last sent at last, which is zero if it never was.
func (s Schedule) Next(entered, last, now time.Time) (at time.Time, ok bool) {
	sent := !last.IsZero()
	switch {
	case s.Periodic != nil && sent:
		at = last.Add(s.Periodic.Interval.Std())
	case s.Periodic != nil:
		at = entered
	case s.Scheduled != nil && sent:
		at, ok = s.Scheduled.after(last)
	case s.Scheduled != nil:
		at, ok = s.Scheduled.after(entered.Add(-time.Nanosecond))
	case sent:
		return time.Time{}, false
	case s.OneShot != nil:
		at = entered.Add(s.OneShot.Delay.Std())
	default:
		at = entered
	}
	if s.Scheduled != nil && !ok {
		return time.Time{}, false
	}
	if at.Before(now) {
		at = now
	}
	return at.UTC(), true
}

// after is the first instant after t. There is none only in a schedule that Validate refuses.
func (s Scheduled) after(t time.Time) (time.Time, bool) {
	clock, err := time.Parse("15:04", s.Instant)
	if err != nil {
		return time.Time{}, false
	}
	zone := s.zone()
	// The day before counts too: an instant that a change of the clocks has moved may belong to it.
	year, month, day := t.In(zone).Date()
	for ahead := -1; ahead <= 8; ahead++ {
		wall := time.Date(year, month, day+ahead, clock.Hour(), clock.Minute(), 0, 0, time.UTC)
		if !s.on(wall.Weekday()) {
			continue
		}
		if at := onClock(wall, zone); at.After(t) {
			return at, true
		}
	}
	return time.Time{}, false
}

func (s Scheduled) on(day time.Weekday) bool {
	return slices.ContainsFunc(s.Weekdays, func(name string) bool {
		allowed, ok := weekdays[strings.ToLower(name)]
		return ok && allowed == day
	})
}

// zone is UTC where the name is unknown, which Validate has refused: a notice at another hour is better than none.
func (s Scheduled) zone() *time.Location {
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// onClock is when the clocks of a zone show what wall shows in UTC. A time that they show twice is the first of the two;
// one that they skip is read with the offset before the change (RFC 5545, 3.3.5). time.Date promises neither.
func onClock(wall time.Time, zone *time.Location) time.Time {
	_, before := wall.Add(-24 * time.Hour).In(zone).Zone()
	_, after := wall.Add(24 * time.Hour).In(zone).Zone()
	offsets := []int{max(before, after), min(before, after)} // the larger offset is the earlier instant
	for _, offset := range offsets {
		at := wall.Add(-time.Duration(offset) * time.Second)
		if _, actual := at.In(zone).Zone(); actual == offset {
			return at
		}
	}
	return wall.Add(-time.Duration(before) * time.Second)
}

var weekdays = map[string]time.Weekday{
	"monday": time.Monday, "mon": time.Monday,
	"tuesday": time.Tuesday, "tue": time.Tuesday,
	"wednesday": time.Wednesday, "wed": time.Wednesday,
	"thursday": time.Thursday, "thu": time.Thursday,
	"friday": time.Friday, "fri": time.Friday,
	"saturday": time.Saturday, "sat": time.Saturday,
	"sunday": time.Sunday, "sun": time.Sunday,
}

// Validate joins one error per wrong field, which begins with the field.
func (s Schedule) Validate() error {
	var problems []error
	given := []string{}
	if s.OneShot != nil {
		given = append(given, "oneshot")
		if s.OneShot.Delay < 0 {
			problems = append(problems, fmt.Errorf("oneshot.delay: %s is negative", s.OneShot.Delay))
		}
	}
	if s.Periodic != nil {
		given = append(given, "periodic")
		if s.Periodic.Interval.Std() < minInterval {
			problems = append(problems, fmt.Errorf("periodic.interval: %s: want at least %s", s.Periodic.Interval, minInterval))
		}
	}
	if s.Scheduled != nil {
		given = append(given, "scheduled")
		problems = append(problems, s.Scheduled.problems()...)
	}
	if len(given) > 1 {
		problems = append(problems, fmt.Errorf("%s: has no meaning beside %s; keep one of them", given[1], given[0]))
	}
	return errors.Join(problems...)
}

func (s Scheduled) problems() []error {
	var problems []error
	if _, err := time.Parse("15:04", s.Instant); err != nil {
		problems = append(problems, fmt.Errorf("scheduled.instant: %q: want a time of day like \"09:00\"", s.Instant))
	}
	if len(s.Weekdays) == 0 {
		problems = append(problems, errors.New("scheduled.weekdays: is empty: want at least one day like \"monday\""))
	}
	for i, name := range s.Weekdays {
		if _, ok := weekdays[strings.ToLower(name)]; !ok {
			problems = append(problems, fmt.Errorf("scheduled.weekdays[%d]: %q is not a day like \"monday\" or \"mon\"", i, name))
		}
	}
	// "Local" would be another zone on another worker.
	if _, err := time.LoadLocation(s.Timezone); err != nil || s.Timezone == "Local" {
		problems = append(problems, fmt.Errorf("scheduled.timezone: %q: want a time zone like \"Europe/Berlin\"", s.Timezone))
	}
	return problems
}
