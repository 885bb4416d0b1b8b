package client

import (
	"testing"

	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/rules/plan"
)

func TestRecurrenceOfASchedule(t *testing.T) {
	at := func(values ...int) (ranges []temporalclient.ScheduleRange) {
		for _, v := range values {
			ranges = append(ranges, temporalclient.ScheduleRange{Start: v, End: v, Step: 1})
		}
		return ranges
	}
	from := func(start, end, step int) []temporalclient.ScheduleRange {
		return []temporalclient.ScheduleRange{{Start: start, End: end, Step: step}}
	}
	always := func(c temporalclient.ScheduleCalendarSpec) temporalclient.ScheduleCalendarSpec {
		c.Second = at(0)
		if c.DayOfMonth == nil {
			c.DayOfMonth = from(1, 31, 1)
		}
		c.Month = from(1, 12, 1)
		if c.DayOfWeek == nil {
			c.DayOfWeek = from(0, 6, 1)
		}
		return c
	}
	for want, calendar := range map[string]temporalclient.ScheduleCalendarSpec{
		"0 22 * * 1":       always(temporalclient.ScheduleCalendarSpec{Minute: at(0), Hour: at(22), DayOfWeek: at(1)}),
		"*/15 8-17 * * *":  always(temporalclient.ScheduleCalendarSpec{Minute: from(0, 59, 15), Hour: from(8, 17, 1)}),
		"0,30 3 1-7/2 * *": always(temporalclient.ScheduleCalendarSpec{Minute: at(0, 30), Hour: at(3), DayOfMonth: from(1, 7, 2)}),
		"0 0 * * *":        {},
		"5 4 * * 2-4":      {Minute: at(5), Hour: at(4), DayOfWeek: from(2, 4, 1), Comment: "patches"},
		"0 1 * * mon":      {Minute: at(0), Hour: at(1), DayOfWeek: at(1), Comment: "0 1 * * mon"},
		"":                 {Minute: at(5), DayOfMonth: at(1), DayOfWeek: at(1)},
	} {
		got := recurrenceOf(&temporalclient.ScheduleSpec{Calendars: []temporalclient.ScheduleCalendarSpec{calendar}, TimeZoneName: "Europe/Berlin"})
		if got != (plan.Recurrence{Cron: want, Timezone: "Europe/Berlin"}) {
			t.Errorf("%+v: want %q", got, want)
		}
		if err := got.Check(); want != "" && err != nil {
			t.Errorf("%q: %v", want, err)
		}
	}
	if got := cronOf(temporalclient.ScheduleCalendarSpec{Second: at(7)}); got != "" {
		t.Errorf("%q has no seconds", got)
	}
	if got := cronOf(temporalclient.ScheduleCalendarSpec{Year: at(2030)}); got != "" {
		t.Errorf("%q has no year", got)
	}
}
