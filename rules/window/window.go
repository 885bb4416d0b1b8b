// Package window says when nodes may be taken out of service: from a window as people write it to instants.
package window

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"drydock.dev/drydock/rules/period"
)

const (
	// MaxWindows bounds the windows of a configuration.
	MaxWindows = 50
	// MaxNames bounds the names that one limit or one maintenance gives.
	MaxNames = 10
	// maxExcept bounds the dates and ranges that a window leaves out, longestFor how long one opening of a cron window is.
	maxExcept  = 100
	longestFor = 7 * 24 * time.Hour
	// longestRange bounds each range of dates.
	longestRange = 10 * 366 * 24 * time.Hour
	// MaxExpected bounds how long a maintenance may say that it takes: openings are known for longer ahead than that.
	MaxExpected = 7 * 24 * time.Hour
)

// Window says when nodes may be taken out of service: from a time of day to another on some days of the week, or for some
// time from the instants of a cron expression. Times are those on the clocks of its zone.
type Window struct {
	// Days are the days of the week on which it opens, `mon` to `sun`; if absent, every day.
	Days []string `json:"days,omitempty"`
	// From is the time of day at which it opens, such as `22:00`.
	From string `json:"from,omitempty"`
	// To is the time of day at which it closes. One that is not after `from` is the next day's; `24:00` ends a day.
	To string `json:"to,omitempty"`
	// Cron is when it opens, in place of `from` and `to`: five fields (minute, hour, day of the month, month, day of the week). Days of the
	// month and of the week in one expression are refused, because cron takes a day that is either; `days` beside days of the month wants
	// both.
	Cron string `json:"cron,omitempty"`
	// For is how long each opening of `cron` lasts, at most 7d.
	For period.Duration `json:"for,omitzero"`
	// Timezone is whose clocks count, such as `Europe/Berlin`.
	Timezone string `json:"timezone,omitempty" jsonschema:"default=UTC"`
	// Except are dates, `2026-12-24`, and ranges, `2026-12-24..2027-01-02`, at most 100: it does not open on them, and what is open when one
	// begins closes at midnight. Of an opening over midnight whose first day is excepted nothing is left, the hours of the next day neither.
	Except []string `json:"except,omitempty" jsonschema:"maxItems=100"`
}

// Opening is a time in which a window is open: from its first instant to the one at which it is closed.
type Opening struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Has reports whether the window is open at an instant.
func (o Opening) Has(at time.Time) bool { return !at.Before(o.From) && at.Before(o.Until) }

// Schedule is a window that was found to be right. It is safe for concurrent use.
type Schedule struct {
	zone *time.Location
	// days, from and to are those of a window of the week: to is after from, and counted from the same midnight.
	days     [7]bool
	from, to time.Duration
	// starts and length are those of a cron window, with the days; starts is nil for the other kind.
	starts cron.Schedule
	length time.Duration
	// dates are the excepted ones, closed the same as instants, in order.
	dates  []dates
	closed []Opening
}

// dates are those from a first to a last one, each as midnight in UTC.
type dates struct{ first, last time.Time }

func (d dates) has(date time.Time) bool { return !date.Before(d.first) && !date.After(d.last) }

// Compile checks a window. The error joins one line per wrong field, which begins with the field.
func (w Window) Compile() (Schedule, error) {
	var s Schedule
	var err error
	var problems []error
	if s.zone, err = time.LoadLocation(w.Timezone); err != nil || w.Timezone == "Local" {
		problems = append(problems, fmt.Errorf("timezone: %.80q is not a time zone that is known: want a name such as Europe/Berlin", w.Timezone))
		s.zone = time.UTC
	}
	problems = append(problems, s.compileWeek(w))
	if w.Cron != "" || w.For != 0 {
		problems = append(problems, s.compileCron(w))
	} else {
		problems = append(problems, s.compileTimes(w))
	}
	problems = append(problems, s.compileExcept(w.Except))
	if err := errors.Join(problems...); err != nil {
		return Schedule{}, err
	}
	return s, nil
}

// Zone is the name of the schedule's time zone.
func (s Schedule) Zone() string { return s.zone.String() }

// compileWeek reads the days of the week.
func (s *Schedule) compileWeek(w Window) error {
	var problems []error
	for i, name := range w.Days {
		day, known := weekdays[strings.ToLower(name)]
		switch {
		case !known:
			problems = append(problems, fmt.Errorf("days[%d]: %.40q is not a day of the week: want one of mon, tue, wed, thu, fri, sat, sun", i, name))
		case s.days[day]:
			problems = append(problems, fmt.Errorf("days[%d]: %q is named twice", i, name))
		default:
			s.days[day] = true
		}
	}
	if len(w.Days) == 0 {
		s.days = [7]bool{true, true, true, true, true, true, true}
	}
	return errors.Join(problems...)
}

func (s *Schedule) compileTimes(w Window) error {
	var problems []error
	var wrongFrom, wrongTo error
	s.from, wrongFrom = timeOfDay("from", w.From)
	s.to, wrongTo = timeOfDay("to", w.To)
	switch {
	case wrongFrom != nil || wrongTo != nil:
		problems = append(problems, wrongFrom, wrongTo)
	case s.from == day:
		problems = append(problems, errors.New(`from: 24:00 ends a day: write "00:00"`))
	case s.from == s.to:
		problems = append(problems, fmt.Errorf("to: %s is from too: for whole days write from \"00:00\" to \"24:00\"", w.To))
	case s.to < s.from:
		s.to += day
	}
	return errors.Join(problems...)
}

const day = 24 * time.Hour

// timeOfDay is how long after midnight a time such as 22:00 is.
func timeOfDay(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, fmt.Errorf(`%s: required: a time of day such as "22:00" (or cron and for in place of from and to)`, field)
	}
	if text == "24:00" {
		return day, nil
	}
	clock, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, fmt.Errorf(`%s: %.40q is not a time of day: write it like "22:00"`, field, text)
	}
	return time.Duration(clock.Hour())*time.Hour + time.Duration(clock.Minute())*time.Minute, nil
}

// maxCron is how long a cron expression may be, in bytes.
const maxCron = 200

func (s *Schedule) compileCron(w Window) error {
	var problems []error
	if w.From != "" || w.To != "" {
		problems = append(problems, errors.New("cron: stands in place of from and to: leave one of the two out"))
	}
	switch length := w.For.Std(); {
	case length < time.Minute:
		problems = append(problems, fmt.Errorf("for: %s: want how long each opening lasts, 1m or more", w.For))
	case length > longestFor:
		problems = append(problems, fmt.Errorf("for: %s: want %s at most", w.For, period.Duration(longestFor)))
	default:
		s.length = length
	}
	starts, err := parseCron(w.Cron)
	if err != nil {
		problems = append(problems, fmt.Errorf("cron: %.80q: %w", w.Cron, err))
	} else {
		problems = append(problems, checkCronDays(w))
	}
	s.starts = starts
	return errors.Join(problems...)
}

// checkCronDays refuses a cron expression that names days of the month and of the week: cron takes a day that is either, so
// that what looks like the first Sunday of a month would be every Sunday, and six days more.
func checkCronDays(w Window) error {
	fields := strings.Fields(w.Cron)
	ofMonth, ofWeek := !strings.ContainsAny(fields[2], "*?"), !strings.ContainsAny(fields[4], "*?")
	switch {
	case ofMonth && ofWeek:
		return fmt.Errorf("cron: %.80q: names days of the month and of the week, of which cron takes either: write * for those of the week and name them in days", w.Cron)
	case ofWeek && len(w.Days) > 0:
		return fmt.Errorf("days: the cron expression %.80q names days of the week already: leave one of the two out", w.Cron)
	}
	return nil
}

// parser takes the five fields and nothing else: no seconds, and no "@every".
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// CheckCron returns what is wrong with a cron expression of five fields, in words that follow the name of its field.
func CheckCron(text string) error {
	_, err := parseCron(text)
	return err
}

func parseCron(text string) (cron.Schedule, error) {
	switch {
	case text == "":
		return nil, errors.New("required where there is for")
	case len(text) > maxCron:
		return nil, fmt.Errorf("has %d bytes: at most %d are taken", len(text), maxCron)
	case strings.Contains(text, "="):
		return nil, errors.New("write the time zone as timezone")
	}
	starts, err := parser.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("want five fields, minute hour day month weekday, such as 0 22 * * 1-5: %w", err)
	}
	// A leap year is the first that is tried, so that its day counts.
	if starts.Next(time.Date(2023, 12, 31, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("that is on no day")
	}
	return starts, nil
}

const dateFormat = "2006-01-02"

func (s *Schedule) compileExcept(except []string) error {
	if len(except) > maxExcept {
		return fmt.Errorf("except: has %d entries: at most %d are taken", len(except), maxExcept)
	}
	var problems []error
	for i, text := range except {
		first, last, isRange := strings.Cut(text, "..")
		if !isRange {
			last = first
		}
		var d dates
		var wrongFirst, wrongLast error
		d.first, wrongFirst = time.Parse(dateFormat, first)
		d.last, wrongLast = time.Parse(dateFormat, last)
		switch {
		case wrongFirst != nil || wrongLast != nil:
			problems = append(problems, fmt.Errorf("except[%d]: %.40q is neither a date, 2026-12-24, nor a range, 2026-12-24..2027-01-02", i, text))
			continue
		case d.last.Before(d.first):
			problems = append(problems, fmt.Errorf("except[%d]: %s ends before it begins", i, text))
			continue
		case d.last.Sub(d.first) > longestRange:
			problems = append(problems, fmt.Errorf("except[%d]: %s is longer than ten years", i, text))
			continue
		}
		s.dates = append(s.dates, d)
		s.closed = append(s.closed, s.runs(d.first, d.last.Add(day))...)
	}
	slices.SortFunc(s.closed, func(a, b Opening) int { return a.From.Compare(b.From) })
	return errors.Join(problems...)
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
