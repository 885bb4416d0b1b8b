package notice

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/state"
)

// Schedule decides when a notification is due.
type Schedule interface {
	// Due reports whether something is to be sent, and why.
	Due(c Case) (why string, due bool)
}

// Case is what a schedule is asked about.
type Case struct {
	Now time.Time
	// Profile is that of the annotation; Previous is what it was in at the last evaluation.
	Profile state.Profile
	// Last is when the instance last sent something on the node, by any profile; zero is never.
	Last time.Time
	// Before is the same without what was found to be due in this evaluation.
	Before time.Time
}

// changed reports whether the state is new, and no notification was sent since.
func (c Case) changed() bool {
	return c.Profile.Current != c.Profile.Previous && !c.Before.After(c.Profile.Transition)
}

// Schedules are the kinds of schedules, in any case.
var Schedules = []string{"oneshot", "periodic", "scheduled"}

// ReadSchedule makes a schedule; known reports that there is such a kind.
func ReadSchedule(kind string, o *conf.Object) (s Schedule, known bool) {
	switch strings.ToLower(kind) {
	case "periodic":
		return periodic{o.Duration("interval", time.Hour)}, true
	case "oneshot":
		return oneshot{o.Duration("delay", time.Minute)}, true
	case "scheduled":
		return readScheduled(o), true
	}
	return nil, false
}

// periodic is due at every change of state, and out of operational once in an interval.
type periodic struct{ interval time.Duration }

// Due is part of Schedule.
func (p periodic) Due(c Case) (string, bool) {
	switch {
	case c.changed():
		return "the state has changed", true
	case c.Profile.Current == state.Operational:
		return "", false
	}
	return fmt.Sprintf("%s since the last", p.interval), c.Now.Sub(c.Last) >= p.interval
}

// oneshot is due once a state, a delay after the state began.
type oneshot struct{ delay time.Duration }

// Due is part of Schedule.
func (o oneshot) Due(c Case) (string, bool) {
	at := c.Profile.Transition
	return fmt.Sprintf("%s in the state", o.delay), !at.IsZero() && !c.Last.After(at) && c.Now.Sub(at) >= o.delay
}

// scheduled is due once a day, on some days of the week, from a time of day on, in UTC.
type scheduled struct {
	instant time.Duration
	days    [7]bool
	written string
}

func readScheduled(o *conf.Object) Schedule {
	var s scheduled
	s.written = o.Required("instant", `a time of day such as "09:00", in UTC`)
	if clock, err := time.Parse("15:04", s.written); err == nil {
		s.instant = time.Duration(clock.Hour())*time.Hour + time.Duration(clock.Minute())*time.Minute
	} else if s.written != "" {
		o.Refuse("instant", `write it like "09:00"`, "%.40q is not a time of day", s.written)
	}
	for i, name := range o.RequiredTexts("weekdays", "days of the week on which it is sent") {
		day, ok := check.Weekday(name)
		if !ok {
			o.Refuse(fmt.Sprintf("weekdays[%d]", i), "write mon, tue, wed, thu, fri, sat or sun, or the whole name", "%.40q is not a day of the week", name)
			continue
		}
		s.days[day] = true
	}
	return s
}

// Due is part of Schedule.
func (s scheduled) Due(c Case) (string, bool) {
	now, last := c.Now.UTC(), c.Last.UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	due := s.days[now.Weekday()] && now.Sub(midnight) >= s.instant && last.Before(midnight)
	return "it is " + s.written + " UTC or later", due
}
