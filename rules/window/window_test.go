package window_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/window"
)

// openings shows the openings of a week from a day on, as instants with their offsets in the window's zone.
func openings(t *testing.T, w window.Window, from string, days int) string {
	t.Helper()
	s, err := w.Compile()
	if err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation(w.Timezone)
	if err != nil {
		t.Fatal(err)
	}
	begin, err := time.ParseInLocation("2006-01-02", from, zone)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := s.Openings(begin, begin.AddDate(0, 0, days), 1000)
	var lines []string
	for _, o := range all {
		lines = append(lines, o.From.In(zone).Format("Mon 01-02 15:04Z07:00")+" > "+o.Until.In(zone).Format("01-02 15:04Z07:00"))
	}
	return strings.Join(lines, "; ")
}

const hour = period.Duration(time.Hour)

func TestOpenings(t *testing.T) {
	nights := window.Window{Days: []string{"mon", "tue"}, From: "22:00", To: "04:00", Timezone: "Europe/Berlin"}
	for name, c := range map[string]struct {
		window window.Window
		from   string
		days   int
		want   string
	}{
		"over midnight": {nights, "2026-11-23", 7,
			"Mon 11-23 22:00+01:00 > 11-24 04:00+01:00; Tue 11-24 22:00+01:00 > 11-25 04:00+01:00"},
		"begun the day before": {nights, "2026-11-24", 1,
			"Mon 11-23 22:00+01:00 > 11-24 04:00+01:00; Tue 11-24 22:00+01:00 > 11-25 04:00+01:00"},
		"every day, in UTC": {window.Window{From: "10:00", To: "11:30"}, "2026-11-23", 2,
			"Mon 11-23 10:00Z > 11-23 11:30Z; Tue 11-24 10:00Z > 11-24 11:30Z"},
		"whole days are one opening": {window.Window{Days: []string{"Saturday", "sun"}, From: "00:00", To: "24:00"}, "2026-11-23", 7,
			"Sat 11-28 00:00Z > 11-30 00:00Z"},
		"the night that is an hour shorter": {window.Window{Days: []string{"sat"}, From: "22:00", To: "04:00", Timezone: "Europe/Berlin"}, "2026-03-28", 1,
			"Sat 03-28 22:00+01:00 > 03-29 04:00+02:00"},
		"the night that is an hour longer": {window.Window{Days: []string{"sat"}, From: "22:00", To: "04:00", Timezone: "Europe/Berlin"}, "2026-10-24", 1,
			"Sat 10-24 22:00+02:00 > 10-25 04:00+01:00"},
		"the hour that does not exist": {window.Window{From: "02:00", To: "03:00", Timezone: "Europe/Berlin"}, "2026-03-28", 3,
			"Sat 03-28 02:00+01:00 > 03-28 03:00+01:00; Mon 03-30 02:00+02:00 > 03-30 03:00+02:00"},
		"begins in the hour that does not exist": {window.Window{From: "02:30", To: "03:30", Timezone: "Europe/Berlin"}, "2026-03-29", 1,
			"Sun 03-29 03:00+02:00 > 03-29 03:30+02:00"},
		"ends in the hour that does not exist": {window.Window{From: "01:30", To: "02:30", Timezone: "Europe/Berlin"}, "2026-03-29", 1,
			"Sun 03-29 01:30+01:00 > 03-29 03:00+02:00"},
		"the hour that exists twice": {window.Window{From: "02:00", To: "03:00", Timezone: "Europe/Berlin"}, "2026-10-25", 1,
			"Sun 10-25 02:00+02:00 > 10-25 03:00+01:00"},
		"a part of the hour that exists twice": {window.Window{From: "02:15", To: "02:45", Timezone: "Europe/Berlin"}, "2026-10-25", 1,
			"Sun 10-25 02:15+02:00 > 10-25 02:45+02:00"},
		"ends in the hour that exists twice": {window.Window{From: "01:30", To: "02:30", Timezone: "Europe/Berlin"}, "2026-10-25", 1,
			"Sun 10-25 01:30+02:00 > 10-25 02:30+02:00"},
		"the other way round in America": {window.Window{From: "01:00", To: "03:00", Timezone: "America/New_York"}, "2026-11-01", 1,
			"Sun 11-01 01:00-04:00 > 11-01 03:00-05:00"},
		"the south begins its summer in October": {window.Window{From: "02:00", To: "04:00", Timezone: "Australia/Sydney"}, "2026-10-04", 1,
			"Sun 10-04 03:00+11:00 > 10-04 04:00+11:00"},
		"clocks that change by half an hour": {window.Window{From: "01:45", To: "02:45", Timezone: "Australia/Lord_Howe"}, "2026-10-04", 1,
			"Sun 10-04 01:45+10:30 > 10-04 02:45+11:00"},
		"a zone of 45 minutes": {window.Window{From: "23:50", To: "00:10", Timezone: "Asia/Kathmandu"}, "2026-11-23", 1,
			"Sun 11-22 23:50+05:45 > 11-23 00:10+05:45; Mon 11-23 23:50+05:45 > 11-24 00:10+05:45"},
		"midnight that does not exist": {window.Window{From: "00:00", To: "00:30", Timezone: "Africa/Cairo"}, "2026-04-23", 3,
			"Thu 04-23 00:00+02:00 > 04-23 00:30+02:00; Sat 04-25 00:00+03:00 > 04-25 00:30+03:00"},
		"a date, and the one before closes with it": {window.Window{From: "22:00", To: "04:00", Except: []string{"2026-12-24"}}, "2026-12-23", 4,
			"Tue 12-22 22:00Z > 12-23 04:00Z; Wed 12-23 22:00Z > 12-24 00:00Z; Fri 12-25 22:00Z > 12-26 04:00Z; Sat 12-26 22:00Z > 12-27 04:00Z"},
		"a range": {window.Window{From: "10:00", To: "11:00", Except: []string{"2026-12-24..2026-12-26"}}, "2026-12-23", 5,
			"Wed 12-23 10:00Z > 12-23 11:00Z; Sun 12-27 10:00Z > 12-27 11:00Z"},
		"a date in the midst of an opening": {window.Window{Cron: "0 12 * * 3", For: 48 * hour, Except: []string{"2026-11-26", "2026-11-26..2026-11-26"}}, "2026-11-25", 7,
			"Wed 11-25 12:00Z > 11-26 00:00Z; Fri 11-27 00:00Z > 11-27 12:00Z"},
		"cron": {window.Window{Cron: "0 22 * * 1-5", For: 6 * hour, Timezone: "Europe/Berlin"}, "2026-11-27", 4,
			"Thu 11-26 22:00+01:00 > 11-27 04:00+01:00; Fri 11-27 22:00+01:00 > 11-28 04:00+01:00; Mon 11-30 22:00+01:00 > 12-01 04:00+01:00"},
		"cron in the hour that does not exist": {window.Window{Cron: "30 2 * * *", For: hour, Timezone: "Europe/Berlin"}, "2026-03-29", 2,
			"Mon 03-30 02:30+02:00 > 03-30 03:30+02:00"},
		"cron in the hour that exists twice": {window.Window{Cron: "30 2 * * *", For: hour / 4, Timezone: "Europe/Berlin"}, "2026-10-25", 1,
			"Sun 10-25 02:30+02:00 > 10-25 02:45+02:00"},
		"cron on some days, the first Sunday": {window.Window{Cron: "0 6 1-7 * *", Days: []string{"sun"}, For: 8 * hour, Timezone: "Europe/Berlin"}, "2026-11-28", 45,
			"Sun 12-06 06:00+01:00 > 12-06 14:00+01:00; Sun 01-03 06:00+01:00 > 01-03 14:00+01:00"},
		"cron that overlaps itself": {window.Window{Cron: "0 8-10 * * *", For: 2 * hour}, "2026-11-23", 1, "Mon 11-23 08:00Z > 11-23 12:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := openings(t, c.window, c.from, c.days); got != c.want {
				t.Errorf("openings\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func TestOpeningsAreBoundedAndSayUpToWhenTheyAreKnown(t *testing.T) {
	s, err := window.Window{Cron: "0 * * * *", For: hour / 6}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 11, 23, 0, 5, 0, 0, time.UTC)
	all, known := s.Openings(from, from.AddDate(1, 0, 0), 3)
	if len(all) != 3 || !all[0].Has(from) || !known.Equal(from.Add(175*time.Minute)) {
		t.Errorf("%v, known until %s", all, known)
	}
	if all, known = s.Openings(from, from.Add(time.Hour), 3); len(all) != 2 || !known.Equal(from.Add(time.Hour)) {
		t.Errorf("%v, known until %s", all, known)
	}
	always, err := window.Window{From: "00:00", To: "24:00", Timezone: "Europe/Berlin"}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if all, _ = always.Openings(from, from.AddDate(1, 0, 0), 3); len(all) != 1 || !all[0].Until.After(from.AddDate(1, 0, 0)) {
		t.Errorf("%v", all)
	}
}

func TestIntersect(t *testing.T) {
	at := func(from, until int) window.Opening {
		return window.Opening{From: time.Unix(int64(from), 0).UTC(), Until: time.Unix(int64(until), 0).UTC()}
	}
	a := []window.Opening{at(0, 10), at(20, 30), at(40, 50)}
	b := []window.Opening{at(5, 25), at(28, 29), at(45, 60)}
	want := []window.Opening{at(5, 10), at(20, 25), at(28, 29), at(45, 50)}
	if got := window.Intersect(a, b); !equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := window.Intersect(a, b, []window.Opening{at(9, 21)}); !equal(got, []window.Opening{at(9, 10), at(20, 21)}) {
		t.Errorf("%v", got)
	}
	if got := window.Intersect(a, nil); len(got) != 0 {
		t.Errorf("%v with a window that never opens", got)
	}
}

func equal(a, b []window.Opening) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].From.Equal(b[i].From) || !a[i].Until.Equal(b[i].Until) {
			return false
		}
	}
	return true
}

func TestWrongWindowsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		window window.Window
		want   []string
	}{
		"empty":              {window.Window{}, []string{"from: required", "to: required"}},
		"days":               {window.Window{Days: []string{"mon", "Funday", "MON"}, From: "1:00", To: "25:00"}, []string{"days[1]: \"Funday\"", "days[2]: \"MON\" is named twice", "from: \"1:00\"", "to: \"25:00\""}},
		"same":               {window.Window{From: "10:00", To: "10:00"}, []string{"to: 10:00 is from too"}},
		"24:00":              {window.Window{From: "24:00", To: "10:00"}, []string{"from: 24:00 ends a day"}},
		"zone":               {window.Window{From: "10:00", To: "11:00", Timezone: "Europe/Belrin"}, []string{"timezone: \"Europe/Belrin\""}},
		"this machine":       {window.Window{From: "10:00", To: "11:00", Timezone: "Local"}, []string{"timezone: \"Local\""}},
		"a path":             {window.Window{From: "10:00", To: "11:00", Timezone: "../../etc/passwd"}, []string{"timezone:"}},
		"except":             {window.Window{From: "10:00", To: "11:00", Except: []string{"24.12.2026", "2026-02-30", "2026-12-24..2026-12-23", "2026-01-01..2100-01-01"}}, []string{"except[0]:", "except[1]:", "except[2]: 2026-12-24..2026-12-23 ends before", "except[3]:"}},
		"many":               {window.Window{From: "10:00", To: "11:00", Except: make([]string, 101)}, []string{"except: has 101 entries"}},
		"cron":               {window.Window{Cron: "99 * * * *", For: hour}, []string{"cron: \"99 * * * *\": want five fields"}},
		"cron, seconds":      {window.Window{Cron: "0 0 22 * * *", For: hour}, []string{"cron:"}},
		"cron, every":        {window.Window{Cron: "@every 1h", For: hour}, []string{"cron:"}},
		"cron, zone":         {window.Window{Cron: "TZ=0", For: hour}, []string{"cron: \"TZ=0\": write the time zone as timezone"}},
		"cron, never":        {window.Window{Cron: "0 0 30 2 *", For: hour}, []string{"cron: \"0 0 30 2 *\": that is on no day"}},
		"cron, long":         {window.Window{Cron: strings.Repeat("*", 300), For: hour}, []string{"cron:", "300 bytes"}},
		"cron, days of both": {window.Window{Cron: "0 6 1-7 * 0", For: hour}, []string{"cron: \"0 6 1-7 * 0\": names days of the month and of the week", "in days"}},
		"cron, days twice":   {window.Window{Cron: "0 6 * * 0", For: hour, Days: []string{"sun"}}, []string{"days: the cron expression"}},
		"cron, unknown day":  {window.Window{Cron: "0 6 * * *", For: hour, Days: []string{"sunny"}}, []string{"days[0]: \"sunny\""}},
		"for alone":          {window.Window{For: hour}, []string{"cron: \"\": required"}},
		"cron alone":         {window.Window{Cron: "0 22 * * *"}, []string{"for: 0s"}},
		"for, long":          {window.Window{Cron: "0 22 * * *", For: 169 * hour}, []string{"for: 169h0m0s: want 168h0m0s at most"}},
		"both":               {window.Window{Cron: "0 22 * * *", For: hour, From: "10:00"}, []string{"cron: stands in place of"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.window.Compile()
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			}
		})
	}
	if _, err := (window.Window{Cron: "0 0 29 2 *", For: hour}).Compile(); err != nil {
		t.Errorf("the 29th of February: %v", err)
	}
}
