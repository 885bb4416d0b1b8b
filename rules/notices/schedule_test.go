package notices_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func everyDay(instant, zone string) notices.Schedule {
	return notices.Schedule{Scheduled: &notices.Scheduled{
		Instant: instant, Timezone: zone, Weekdays: []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"},
	}}
}

func TestNext(t *testing.T) {
	entered := at(t, "2026-03-10T10:00:00Z") // a Tuesday
	workdays := notices.Schedule{Scheduled: &notices.Scheduled{Instant: "09:00", Timezone: "Europe/Berlin", Weekdays: []string{"Monday", "friday"}}}
	oneshot := notices.Schedule{OneShot: &notices.OneShot{Delay: spec.Duration(time.Hour)}}
	periodic := notices.Schedule{Periodic: &notices.Periodic{Interval: spec.Duration(6 * time.Hour)}}
	for name, c := range map[string]struct {
		schedule  notices.Schedule
		last, now string
		want      string // empty for never
	}{
		"none is at once":                  {notices.Schedule{}, "", "2026-03-10T10:00:00Z", "2026-03-10T10:00:00Z"},
		"none is once":                     {notices.Schedule{}, "2026-03-10T10:00:00Z", "2026-03-10T10:00:00Z", ""},
		"what is late is told now":         {notices.Schedule{}, "", "2026-03-12T10:00:00Z", "2026-03-12T10:00:00Z"},
		"a oneshot waits":                  {oneshot, "", "2026-03-10T10:05:00Z", "2026-03-10T11:00:00Z"},
		"a oneshot is once":                {oneshot, "2026-03-10T11:00:00Z", "2026-03-10T11:00:00Z", ""},
		"a period begins at once":          {periodic, "", "2026-03-10T10:00:00Z", "2026-03-10T10:00:00Z"},
		"a period goes on":                 {periodic, "2026-03-10T10:01:00Z", "2026-03-10T10:01:00Z", "2026-03-10T16:01:00Z"},
		"missed periods are one":           {periodic, "2026-03-10T10:00:00Z", "2026-03-15T10:00:00Z", "2026-03-15T10:00:00Z"},
		"the first instant that is due":    {workdays, "", "2026-03-10T10:00:00Z", "2026-03-13T08:00:00Z"},
		"the instant after the last":       {workdays, "2026-03-13T08:00:00Z", "2026-03-13T08:00:00Z", "2026-03-16T08:00:00Z"},
		"missed instants are one":          {workdays, "2026-03-13T08:00:00Z", "2026-03-30T20:00:00Z", "2026-03-30T20:00:00Z"},
		"at an instant of the day itself":  {everyDay("10:00", ""), "", "2026-03-10T10:00:00Z", "2026-03-10T10:00:00Z"},
		"after an instant, the next day's": {everyDay("09:59", "UTC"), "", "2026-03-10T10:00:00Z", "2026-03-11T09:59:00Z"},
	} {
		var last time.Time
		if c.last != "" {
			last = at(t, c.last)
		}
		got, ok := c.schedule.Next(entered, last, at(t, c.now))
		if ok != (c.want != "") || ok && !got.Equal(at(t, c.want)) {
			t.Errorf("%s: %v, %v, want %q", name, got, ok, c.want)
		}
	}
}

func TestClocksThatChange(t *testing.T) {
	for name, c := range map[string]struct {
		instant, zone, entered string
		want                   []string
	}{
		"Berlin skips 02:30 in spring": {"02:30", "Europe/Berlin", "2026-03-27T12:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"}},
		"Berlin has 02:30 twice in autumn": {"02:30", "Europe/Berlin", "2026-10-23T12:00:00Z",
			[]string{"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"New York skips 02:30 in spring": {"02:30", "America/New_York", "2026-03-06T12:00:00Z",
			[]string{"2026-03-07T07:30:00Z", "2026-03-08T07:30:00Z", "2026-03-09T06:30:00Z"}},
		"New York has 01:30 twice in autumn": {"01:30", "America/New_York", "2026-10-30T12:00:00Z",
			[]string{"2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		"the day of a change keeps its other hours": {"09:00", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"}},
		"half an hour on Lord Howe": {"02:15", "Australia/Lord_Howe", "2026-10-02T18:00:00Z",
			[]string{"2026-10-03T15:45:00Z", "2026-10-04T15:15:00Z"}},
		"a day that Samoa did not have": {"12:00", "Pacific/Apia", "2011-12-29T00:00:00Z",
			[]string{"2011-12-29T22:00:00Z", "2011-12-30T22:00:00Z", "2011-12-31T22:00:00Z"}},
	} {
		schedule := everyDay(c.instant, c.zone)
		entered, last := at(t, c.entered), time.Time{}
		for i, want := range c.want {
			got, ok := schedule.Next(entered, last, entered)
			if !ok || !got.Equal(at(t, want)) {
				t.Errorf("%s: %d: %v, %v, want %s", name, i, got, ok, want)
			}
			last = got
		}
	}
}

// Every allowed day has its instant once, in the zone's own time where the clocks show it, over years of changes.
func TestScheduledOncePerDay(t *testing.T) {
	zones := []string{"", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland", "Pacific/Kiritimati", "America/St_Johns", "Pacific/Pago_Pago"}
	names := []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		days := rapid.SliceOfNDistinct(rapid.IntRange(0, 6), 1, 7, rapid.ID[int]).Draw(t, "days")
		minute := rapid.IntRange(0, 24*60-1).Draw(t, "minute")
		clock := time.Date(2000, 1, 1, minute/60, minute%60, 0, 0, time.UTC)
		s := notices.Scheduled{Instant: clock.Format("15:04"), Timezone: zone.String()}
		allowed := map[time.Weekday]bool{}
		for _, day := range days {
			s.Weekdays = append(s.Weekdays, names[day])
			allowed[time.Weekday(day)] = true
		}
		schedule := notices.Schedule{Scheduled: &s}
		if err := schedule.Validate(); err != nil {
			t.Fatal(err)
		}
		entered := time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "entered"), 0)
		last, told := time.Time{}, map[string]bool{}
		for range 30 {
			next, ok := schedule.Next(entered, last, entered)
			if !ok || next.Before(entered) || !next.After(last) {
				t.Fatalf("after %v: %v, %v", last, next, ok)
			}
			local := next.In(zone)
			day := local.Format(time.DateOnly)
			if told[day] || !allowed[local.Weekday()] {
				t.Fatalf("%v is told again, or on a day that is not allowed", local)
			}
			told[day] = true
			// Where the clocks skip the instant it comes later by what they skip.
			if shown := local.Hour()*60 + local.Minute(); shown != minute && shown != minute+60 {
				t.Fatalf("%v is not at %s", local, s.Instant)
			}
			if !last.IsZero() && next.Sub(last) > time.Duration(8-len(days))*24*time.Hour+2*time.Hour {
				t.Fatalf("nothing between %v and %v", last, next)
			}
			last = next
		}
	})
}

func TestNextIsNeverBeforeNow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Unix(1_800_000_000, 0)
		offset := func(name string) time.Time {
			return base.Add(time.Duration(rapid.Int64Range(0, int64(240*time.Hour)).Draw(t, name)))
		}
		schedule := rapid.SampledFrom([]notices.Schedule{
			{}, {OneShot: &notices.OneShot{Delay: spec.Duration(time.Hour)}},
			{Periodic: &notices.Periodic{Interval: spec.Duration(time.Hour)}}, everyDay("12:00", "Europe/Berlin"),
		}).Draw(t, "schedule")
		entered, now := offset("entered"), offset("now")
		var last time.Time
		if rapid.Bool().Draw(t, "told") {
			last = offset("last")
		}
		next, ok := schedule.Next(entered, last, now)
		if ok && next.Before(now) {
			t.Fatalf("%v is before %v", next, now)
		}
		if again, okAgain := schedule.Next(entered, last, next); ok && (!okAgain || !again.Equal(next)) {
			t.Fatalf("asked at %v, it is at %v", next, again)
		}
	})
}

func TestWhatDoesNotLastIsToldOnce(t *testing.T) {
	plan := notices.Channel{Name: "ops", Schedule: notices.Schedule{Periodic: &notices.Periodic{Interval: spec.Duration(time.Hour)}}}
	entered := at(t, "2026-03-10T10:00:00Z")
	for state, again := range map[notices.State]bool{
		notices.MaintenanceStarted: true, notices.MaintenanceIncomplete: true, notices.MaintenanceEnded: true,
		notices.MaintenanceComplete: false, notices.MaintenanceCancelled: false,
		notices.AwaitingApproval: false, notices.ApprovalReminder: false, notices.Escalated: false,
	} {
		event := notices.Event{State: state, At: entered}
		if when, ok := plan.Next(event, time.Time{}, entered); !ok || !when.Equal(entered) {
			t.Errorf("%s is told first at %v, %v", state, when, ok)
		}
		if _, ok := plan.Next(event, entered, entered); ok != again {
			t.Errorf("%s is told again: %v", state, ok)
		}
	}
}

func TestValidate(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "",
		`{"filter":{"events":["SLAExpired"],"requestors":["*.example.com"],"groups":["gpu"]}}`: "",
		`{"filter":{"events":["Started"]}}`:                                                    `filter.events[0]: "Started" is not one of MaintenanceUnknown, MaintenanceScheduled`,
		`{"filter":{"requestors":["ops","["]}}`:                                                "filter.requestors[1]: ",
		`{"filter":{"requestors":[""]}}`:                                                       "filter.requestors[0]: ",
		`{"filter":{"groups":[""]}}`:                                                           "filter.groups[0]: ",
		`{"schedule":{"oneshot":{"delay":"5m"}}}`:                                              "",
		`{"schedule":{"periodic":{"interval":"30s"}}}`:                                         "schedule.periodic.interval: 30s: want at least 1m0s",
		`{"schedule":{"periodic":{"interval":"1h"},"oneshot":{}}}`:                             "schedule.periodic: has no meaning beside oneshot",
		`{"schedule":{"scheduled":{"instant":"9am","weekdays":["monday"]}}}`:                   "schedule.scheduled.instant: ",
		`{"schedule":{"scheduled":{"instant":"09:00","weekdays":[]}}}`:                         "schedule.scheduled.weekdays: ",
		`{"schedule":{"scheduled":{"instant":"09:00","weekdays":["mon","payday"]}}}`:           `schedule.scheduled.weekdays[1]: "payday"`,
		`{"schedule":{"scheduled":{"instant":"09:00","weekdays":["mon"],"timezone":"Mars"}}}`:  `schedule.scheduled.timezone: "Mars"`,
		`{"schedule":{"scheduled":{"instant":"09:00","weekdays":["mon"],"timezone":"Local"}}}`: "schedule.scheduled.timezone: ",
		`{"thread":"day"}`: `thread: "day" is not one of maintenance, period`,
		`{"thread":"period","threadPeriod":"24h","digest":"5m"}`: "",
		`{"thread":"period"}`:                      "threadPeriod: is missing",
		`{"threadPeriod":"24h"}`:                   "threadPeriod: 24h0m0s has no meaning",
		`{"thread":"maintenance","digest":"5m"}`:   "thread: a digest is of many maintenances",
		`{"thread":"maintenance","digest":"0s"}`:   "",
		`{"channel":"a","retryFor":"48h"}`:         "",
		`{"thread":"x","schedule":{"oneshot":{}}}`: "thread: ",
	} {
		var plan notices.Channel
		if err := json.Unmarshal([]byte(text), &plan); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		err := plan.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestWants(t *testing.T) {
	event := notices.Event{State: notices.SLAExpired, Requestor: "ops.example.com", Groups: []string{"gpu", "eu-1"}}
	for name, c := range map[string]struct {
		filter notices.Filter
		want   bool
	}{
		"nothing asked":            {notices.Filter{}, true},
		"the state":                {notices.Filter{Events: []notices.State{notices.MaintenanceStarted, notices.SLAExpired}}, true},
		"another state":            {notices.Filter{Events: []notices.State{notices.MaintenanceStarted}}, false},
		"the name":                 {notices.Filter{Requestors: []string{"ops.example.com"}}, true},
		"a glob":                   {notices.Filter{Requestors: []string{"*.example.com"}}, true},
		"another domain":           {notices.Filter{Requestors: []string{"*.example.org"}}, false},
		"a part of the name":       {notices.Filter{Requestors: []string{"ops"}}, false},
		"a glob that is none":      {notices.Filter{Requestors: []string{"["}}, false},
		"one of the groups":        {notices.Filter{Groups: []string{"cpu", "eu-1"}}, true},
		"another group":            {notices.Filter{Groups: []string{"eu"}}, false},
		"one field of two differs": {notices.Filter{Events: []notices.State{notices.SLAExpired}, Groups: []string{"cpu"}}, false},
	} {
		if got := c.filter.Wants(event); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestEveryStateHasAPhrase(t *testing.T) {
	if len(notices.States()) != 30 {
		t.Errorf("%d states", len(notices.States()))
	}
	for _, state := range notices.States() {
		if phrase := state.Phrase(); phrase == string(state) || phrase == "" {
			t.Errorf("%s has no phrase", state)
		}
		if notices.Ends(state) && notices.Lasts(state) {
			t.Errorf("%s ends and lasts", state)
		}
	}
	if got := notices.State("New").Phrase(); got != "New" {
		t.Errorf("an unknown state reads %q", got)
	}
}
