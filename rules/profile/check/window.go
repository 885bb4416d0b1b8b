package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/window"
)

// timeWindow holds between two times of day in UTC on some days, both ends outside; one that ends before it starts goes on
// after midnight. Windows in place of them are Drydock's own.
type timeWindow struct {
	start, end time.Duration
	days       [7]bool
	// exclude are days of the year, such as Dec 24.
	exclude []date
	windows []window.Schedule
	// ofOwn: it has windows, right or not, in place of times of day.
	ofOwn bool
}

type date struct {
	month time.Month
	day   int
}

func readTimeWindow(o *conf.Object, _ Environment) Check {
	var w timeWindow
	if w.ofOwn = o.Has("windows"); w.ofOwn {
		for _, each := range o.Objects("windows", "") {
			w.add(each)
		}
		return w
	}
	w.start = timeOfDay(o, "start")
	w.end = timeOfDay(o, "end")
	w.days = weekdaysOf(o, "weekdays", o.RequiredTexts("weekdays", "days of the week on which it begins"))
	for i, text := range o.Texts("exclude") {
		d, err := parseDate(text)
		if err != nil {
			o.Refuse(fmt.Sprintf("exclude[%d]", i), "write a month by three letters and a day, such as Dec 24", "%s", err)
			continue
		}
		w.exclude = append(w.exclude, d)
	}
	return w
}

// add reads one of Drydock's own windows.
func (w *timeWindow) add(o *conf.Object) {
	own := window.Window{
		Days: o.Texts("days"), From: o.Text("from"), To: o.Text("to"), Cron: o.Text("cron"),
		For: period.Duration(o.Duration("for", 0)), Timezone: o.Text("timezone"), Except: o.Texts("except"),
	}
	compiled, err := own.Compile()
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			field, text, _ := strings.Cut(line, ": ")
			o.Refuse(field, "", "%s", text)
		}
		return
	}
	w.windows = append(w.windows, compiled)
}

// timeOfDay is how long after midnight a time such as 9:00 is.
func timeOfDay(o *conf.Object, key string) time.Duration {
	text := o.Required(key, `a time of day such as "22:00", in UTC`)
	if text == "" {
		return 0
	}
	clock, err := time.Parse("15:04", text)
	if err != nil {
		o.Refuse(key, `write it like "22:00"`, "%.40q is not a time of day", text)
	}
	return time.Duration(clock.Hour())*time.Hour + time.Duration(clock.Minute())*time.Minute
}

// parseDate reads a day of a year, as Dec 24, in any case; Feb 29 is one.
func parseDate(text string) (date, error) {
	month, number, _ := strings.Cut(strings.TrimSpace(text), " ")
	if month != "" {
		month = strings.ToUpper(month[:1]) + strings.ToLower(month[1:])
	}
	d, err := time.Parse("2006 Jan 2", "2000 "+month+" "+strings.TrimSpace(number))
	if err != nil {
		return date{}, fmt.Errorf("%.40q is not a day of a year", text)
	}
	return date{d.Month(), d.Day()}, nil
}

// Never reports that a window is never open, as one that ends where it starts.
func Never(c Check) bool {
	w, ok := c.(timeWindow)
	return ok && !w.ofOwn && w.start == w.end
}

// BeyondMidnight reports whether a window uses what maintenance-controller does not read: windows of its own, or an end before its start.
func BeyondMidnight(c Check) bool {
	w, ok := c.(timeWindow)
	return ok && (w.ofOwn || w.end < w.start)
}

// Hold is part of Check.
func (w timeWindow) Hold(c Case) Result {
	if len(w.windows) > 0 {
		return w.own(c.Now)
	}
	now := c.Now.UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	today := w.on(midnight, now)
	if today.Holds || w.end >= w.start {
		return today
	}
	// What began yesterday goes by yesterday's day.
	if yesterday := w.on(midnight.Add(-day), now); yesterday.Holds {
		return yesterday
	}
	return today
}

// on looks at the opening that begins on a day.
func (w timeWindow) on(midnight, now time.Time) Result {
	start, end := midnight.Add(w.start), midnight.Add(w.end)
	if w.end < w.start {
		end = end.Add(day)
	}
	switch {
	case !w.days[midnight.Weekday()]:
		return Result{Reason: "current day of week forbidden"}
	case slices.Contains(w.exclude, date{midnight.Month(), midnight.Day()}):
		return Result{Reason: "current day/month forbidden"}
	case !now.After(start):
		return Result{Reason: "opens at " + start.Format("15:04 MST"), Until: start}
	case !now.Before(end):
		return Result{Reason: "closed at " + end.Format("15:04 MST"), Since: end}
	}
	return Result{Holds: true, Since: start, Until: end}
}

func (w timeWindow) own(now time.Time) Result {
	var next time.Time
	for _, s := range w.windows {
		openings, _ := s.Openings(now, now.Add(horizon), 1)
		opening, found := window.At(openings, now)
		switch {
		case found && opening.Has(now):
			return Result{Holds: true, Since: opening.From, Until: opening.Until}
		case found && (next.IsZero() || opening.From.Before(next)):
			next = opening.From
		}
	}
	return Result{Reason: "no window is open", Until: next}
}

// horizon is how far ahead the next opening is looked for.
const horizon = 14 * day
