package window

import (
	"iter"
	"slices"
	"time"
)

// Openings are those that are not over at from and begin before until, in order, the first most of them; openings that
// touch or overlap are one. They are known up to an instant: until, or where there are more the beginning of the next.
func (s Schedule) Openings(from, until time.Time, most int) (openings []Opening, known time.Time) {
	for o := range s.open(from, until) {
		if !o.Until.After(from) {
			continue
		}
		if len(openings) == most {
			return openings, o.From
		}
		openings = append(openings, o)
	}
	return openings, until
}

// open are the openings without the excepted dates, from before an instant on.
func (s Schedule) open(from, until time.Time) iter.Seq[Opening] {
	return func(yield func(Opening) bool) {
		for o := range joined(s.occurrences(from, until)) {
			for _, part := range without(o, s.closed) {
				if part.From.Before(until) && !yield(utc(part)) {
					return
				}
			}
		}
	}
}

func utc(o Opening) Opening { return Opening{From: o.From.UTC(), Until: o.Until.UTC()} }

// joined makes one of those that touch or overlap. They come in the order of their beginnings.
func joined(all iter.Seq[Opening]) iter.Seq[Opening] {
	return func(yield func(Opening) bool) {
		var last Opening
		for o := range all {
			switch {
			case last.From.IsZero():
				last = o
			case o.From.After(last.Until):
				if !yield(last) {
					return
				}
				last = o
			case o.Until.After(last.Until):
				last.Until = o.Until
			}
		}
		if !last.From.IsZero() {
			yield(last)
		}
	}
}

// without is what is left of an opening without what is closed.
func without(o Opening, closed []Opening) (left []Opening) {
	for _, c := range closed {
		if !c.Until.After(o.From) {
			continue
		}
		if !c.From.Before(o.Until) {
			break
		}
		if c.From.After(o.From) {
			left = append(left, Opening{From: o.From, Until: c.From})
		}
		o.From = c.Until
	}
	if o.From.Before(o.Until) {
		left = append(left, o)
	}
	return left
}

// occurrences are the openings as they are written, from those that may still last at from on, to those that begin before
// until. Times on the clock are kept as if they were UTC's: wall times.
func (s Schedule) occurrences(from, until time.Time) iter.Seq[Opening] {
	if s.starts != nil {
		return s.onCron(from, until)
	}
	return s.onDays(from, until)
}

func (s Schedule) onDays(from, until time.Time) iter.Seq[Opening] {
	return func(yield func(Opening) bool) {
		year, month, date := from.In(s.zone).Date()
		// An opening that lasts may have begun the day before, and what begins on a day may be moved by changes of the clock.
		for today := time.Date(year, month, date-2, 0, 0, 0, 0, time.UTC); today.Before(until.Add(2 * day)); today = today.Add(day) {
			if !s.days[today.Weekday()] || s.excepts(today) {
				continue
			}
			runs := s.runs(today.Add(s.from), today.Add(s.to))
			if len(runs) == 0 {
				continue // the clocks skip all of it
			}
			// What the clocks show for a second time is no second opening.
			if !runs[0].From.Before(until) || !yield(runs[0]) {
				return
			}
		}
	}
}

func (s Schedule) onCron(from, until time.Time) iter.Seq[Opening] {
	return func(yield func(Opening) bool) {
		// The last minute before the first that may still last.
		wall := from.In(s.zone).Add(-s.length - day)
		wall = time.Date(wall.Year(), wall.Month(), wall.Day(), 0, 0, 0, 0, time.UTC).Add(-time.Minute)
		for wall = s.starts.Next(wall); !wall.IsZero() && wall.Before(until.Add(2*day)); wall = s.starts.Next(wall) {
			if !s.days[wall.Weekday()] || s.excepts(wall.Truncate(day)) {
				continue
			}
			runs := s.runs(wall, wall.Add(time.Minute))
			if len(runs) == 0 {
				continue
			}
			at := runs[0].From
			if !at.Before(until) || !yield(Opening{From: at, Until: at.Add(s.length)}) {
				return
			}
		}
	}
}

func (s Schedule) excepts(date time.Time) bool {
	return slices.ContainsFunc(s.dates, func(d dates) bool { return d.has(date) })
}

// furthest is more than any zone is off UTC.
const furthest = 26 * time.Hour

// runs are the times in which the clocks of the zone show something from one wall time to another: none where they skip
// it, two where they show the end of it again.
func (s Schedule) runs(from, to time.Time) (runs []Opening) {
	for at := from.Add(-furthest); ; {
		local := at.In(s.zone)
		begins, ends := local.ZoneBounds()
		_, seconds := local.Zone()
		offset := time.Duration(seconds) * time.Second
		run := Opening{From: from.Add(-offset), Until: to.Add(-offset)}
		if !begins.IsZero() && begins.After(run.From) {
			run.From = begins
		}
		if !ends.IsZero() && ends.Before(run.Until) {
			run.Until = ends
		}
		if run.From.Before(run.Until) {
			if last := len(runs) - 1; last >= 0 && runs[last].Until.Equal(run.From) {
				runs[last].Until = run.Until
			} else {
				runs = append(runs, run)
			}
		}
		if ends.IsZero() || ends.After(to.Add(furthest)) {
			return runs
		}
		at = ends
	}
}

// Intersect are the times in which all windows are open, each given by its openings in order. Of no window there are none.
func Intersect(all ...[]Opening) []Opening {
	if len(all) == 0 {
		return nil
	}
	both := all[0]
	for _, next := range all[1:] {
		both = intersect(both, next)
	}
	return both
}

func intersect(a, b []Opening) (both []Opening) {
	for len(a) > 0 && len(b) > 0 {
		o := a[0]
		if b[0].From.After(o.From) {
			o.From = b[0].From
		}
		if b[0].Until.Before(o.Until) {
			o.Until = b[0].Until
		}
		if o.From.Before(o.Until) {
			both = append(both, o)
		}
		if a[0].Until.Before(b[0].Until) {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}
