package check

import (
	"fmt"
	"math"
	"strings"
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/profile/conf"
)

func readWait(o *conf.Object, _ Environment) Check {
	return wait{duration: o.WrittenDuration("duration", "how long to wait")}
}

func readWaitExclude(o *conf.Object, _ Environment) Check {
	w := wait{duration: o.WrittenDuration("duration", "how long to wait")}
	w.exclude = weekdaysOf(o, "exclude", o.RequiredTexts("exclude", "days of the week that do not count"))
	w.excludes = true
	return w
}

// wait holds when a profile has been in its state for longer than a duration, days of the week left out.
type wait struct {
	duration time.Duration
	exclude  [7]bool
	excludes bool
}

// Hold is part of Check.
func (w wait) Hold(c Case) Result {
	waited := w.counted(c.Since, c.Now)
	r := Result{Holds: waited > w.duration}
	remaining := max(w.duration-waited, 0)
	switch {
	case !r.Holds && !w.excludes:
		r.Until = c.Since.Add(w.duration)
		fallthrough
	case !r.Holds:
		r.Reason = period.Age(remaining) + " to go"
	case !w.excludes:
		r.Since = c.Since.Add(w.duration)
	}
	return r.info("remaining_seconds", int(math.Ceil(remaining.Seconds())))
}

// counted is the time between two instants, without days that do not count; days are those of UTC.
func (w wait) counted(from, to time.Time) time.Duration {
	if since := to.Sub(from); !w.excludes || since <= 0 || since == math.MaxInt64 {
		return since
	}
	from, to = from.UTC(), to.UTC()
	var sum, week time.Duration
	for _, excluded := range w.exclude {
		if !excluded {
			week += day
		}
	}
	// A state may be years old.
	const sevenDays = 7 * day
	if whole := to.Sub(from) / sevenDays; whole > 0 {
		sum, from = whole*week, from.Add(whole*sevenDays)
	}
	for from.Before(to) {
		midnight := time.Date(from.Year(), from.Month(), from.Day()+1, 0, 0, 0, 0, time.UTC)
		end := to
		if midnight.Before(to) {
			end = midnight
		}
		if !w.exclude[from.Weekday()] {
			sum += end.Sub(from)
		}
		from = end
	}
	return sum
}

const day = 24 * time.Hour

// weekdaysOf reads days of the week, in full or by three letters.
func weekdaysOf(o *conf.Object, key string, names []string) [7]bool {
	var days [7]bool
	for i, name := range names {
		day, ok := Weekday(name)
		if !ok {
			o.Refuse(fmt.Sprintf("%s[%d]", key, i), "write mon, tue, wed, thu, fri, sat or sun, or the whole name", "%.40q is not a day of the week", name)
			continue
		}
		days[day] = true
	}
	return days
}

// Weekday reads a day of the week, in full or by three letters, in any case.
func Weekday(name string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(name, d.String()) || strings.EqualFold(name, d.String()[:3]) {
			return d, true
		}
	}
	return 0, false
}
