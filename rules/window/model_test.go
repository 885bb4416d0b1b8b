package window_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/window"
)

// The model walks from minute to minute with the clock in its hand. It shares no code with the package.

// seen is one instant as the clocks show it.
type seen struct {
	at      time.Time
	date    string
	weekday time.Weekday
	hour    int
	minute  int
}

// modelDays reports each minute whether a window of the week is open.
func modelDays(minutes []seen, days []time.Weekday, from, to int, except []string) []bool {
	open := make([]bool, len(minutes))
	running, over := map[string]bool{}, map[string]bool{}
	for i, m := range minutes {
		today, err := time.Parse("2006-01-02", m.date)
		if err != nil {
			panic(err)
		}
		yesterday, now := today.AddDate(0, 0, -1), m.hour*60+m.minute
		for date, clock := range map[time.Time]int{today: now, yesterday: now + 24*60} {
			day, weekday := date.Format("2006-01-02"), date.Weekday()
			last := to
			if last <= from {
				last += 24 * 60
			}
			inside := slices.Contains(days, weekday) && !slices.Contains(except, day) && clock >= from && clock < last
			switch {
			case inside && !over[day]:
				running[day] = true
				open[i] = open[i] || !slices.Contains(except, m.date)
			case !inside && running[day]:
				over[day] = true
			}
		}
	}
	return open
}

// modelCron tells the same of a window that opens at a minute of some hours on some days.
func modelCron(minutes []seen, days []time.Weekday, hours []int, minute, length int, except []string) []bool {
	open := make([]bool, len(minutes))
	begun := map[string]bool{}
	for i, m := range minutes {
		shown := fmt.Sprint(m.date, m.hour, m.minute)
		if begun[shown] {
			continue
		}
		begun[shown] = true
		if slices.Contains(days, m.weekday) && slices.Contains(hours, m.hour) && m.minute == minute && !slices.Contains(except, m.date) {
			for j := i; j < min(i+length, len(minutes)); j++ {
				open[j] = open[j] || !slices.Contains(except, minutes[j].date)
			}
		}
	}
	return open
}

var modelZones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Australia/Sydney", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns",
	"Africa/Cairo", "America/Santiago", "Pacific/Chatham", "Africa/Casablanca", "Asia/Kolkata", "Pacific/Kiritimati",
}

// drawStart draws a day, most often one just before the clocks change.
func drawStart(t *rapid.T, zone *time.Location) time.Time {
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 365*6).Draw(t, "day"))
	if rapid.IntRange(0, 3).Draw(t, "any day") > 0 {
		if _, change := start.In(zone).ZoneBounds(); !change.IsZero() {
			start = change.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "days before")) * 24 * time.Hour)
		}
	}
	return start.Truncate(24 * time.Hour)
}

const modelDaysLong, modelDaysBefore = 5, 9

func TestOpeningsAgreeWithTheClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom(modelZones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		start := drawStart(t, zone)
		var minutes []seen
		before := modelDaysBefore * 24 * 60
		for i := -before; i < modelDaysLong*24*60; i++ {
			at := start.Add(time.Duration(i) * time.Minute)
			local := at.In(zone)
			minutes = append(minutes, seen{at: at, date: local.Format("2006-01-02"), weekday: local.Weekday(), hour: local.Hour(), minute: local.Minute()})
		}
		days := rapid.SliceOfNDistinct(rapid.SampledFrom([]time.Weekday{0, 1, 2, 3, 4, 5, 6}), 1, 7, rapid.ID).Draw(t, "days")
		var except []string
		for range rapid.IntRange(0, 2).Draw(t, "excepted dates") {
			except = append(except, start.AddDate(0, 0, rapid.IntRange(-2, 5).Draw(t, "excepted")).Format("2006-01-02"))
		}
		w := window.Window{Timezone: zone.String(), Except: except}
		var open []bool
		if rapid.Bool().Draw(t, "cron") {
			hours := rapid.SliceOfNDistinct(rapid.IntRange(0, 23), 1, 5, rapid.ID).Draw(t, "hours")
			minute, length := rapid.IntRange(0, 59).Draw(t, "minute"), rapid.IntRange(1, 3*24*60).Draw(t, "length")
			w.Cron = fmt.Sprintf("%d %s * * %s", minute, join(hours), join(days))
			w.For = period.Duration(time.Duration(length) * time.Minute)
			open = modelCron(minutes, days, hours, minute, length, except)
		} else {
			from := rapid.IntRange(0, 24*60-1).Draw(t, "from")
			to := rapid.IntRange(0, 24*60).Filter(func(to int) bool { return to != from }).Draw(t, "to")
			for _, day := range days {
				w.Days = append(w.Days, strings.ToLower(day.String()[:3]))
			}
			w.From, w.To = fmt.Sprintf("%02d:%02d", from/60, from%60), fmt.Sprintf("%02d:%02d", to/60, to%60)
			open = modelDays(minutes, days, from, to, except)
		}
		agree(t, w, minutes[before:], open[before:])
	})
}

func join[T ~int](numbers []T) string {
	var all []string
	for _, n := range numbers {
		all = append(all, fmt.Sprint(int(n)))
	}
	return strings.Join(all, ",")
}

// agree compares the openings with what the model says of each minute.
func agree(t *rapid.T, w window.Window, minutes []seen, open []bool) {
	s, err := w.Compile()
	if err != nil {
		t.Fatalf("%+v: %v", w, err)
	}
	from, until := minutes[0].at, minutes[len(minutes)-1].at.Add(time.Minute)
	all, known := s.Openings(from, until, 1<<20)
	if !known.Equal(until) {
		t.Fatalf("known until %s only", known)
	}
	for i := 1; i < len(all); i++ {
		if !all[i].From.After(all[i-1].Until) {
			t.Fatalf("%v and %v are one, or not in order", all[i-1], all[i])
		}
	}
	for i, m := range minutes {
		has := slices.ContainsFunc(all, func(o window.Opening) bool { return o.Has(m.at) })
		if has != open[i] {
			t.Fatalf("%+v at %s: open is %v, want %v; openings %v", w, m.at.In(minutesZone(w)), has, open[i], all)
		}
	}
}

func minutesZone(w window.Window) *time.Location {
	zone, err := time.LoadLocation(w.Timezone)
	if err != nil {
		panic(err)
	}
	return zone
}
