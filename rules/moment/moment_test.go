package moment_test

import (
	"testing"
	"time"

	"drydock.dev/drydock/rules/moment"
)

var (
	cest = time.FixedZone("CEST", 2*60*60)
	now  = time.Date(2026, 7, 1, 12, 0, 0, 0, cest)
)

func TestTimesOfPeopleNameTheirZone(t *testing.T) {
	for name, c := range map[string]struct {
		t                      time.Time
		wantClock, wantedDated string
	}{
		"of today":               {time.Date(2026, 7, 1, 8, 30, 0, 0, time.UTC), "10:30:00 CEST", "2026-07-01 10:30:00 +02:00"},
		"of today here, not UTC": {time.Date(2026, 6, 30, 22, 30, 0, 0, time.UTC), "00:30:00 CEST", "2026-07-01 00:30:00 +02:00"},
		"of another day":         {time.Date(2026, 6, 30, 8, 0, 0, 0, time.UTC), "2026-06-30 10:00:00 CEST", "2026-06-30 10:00:00 +02:00"},
		"of another year":        {now.AddDate(-1, 0, 0), "2025-07-01 12:00:00 CEST", "2025-07-01 12:00:00 +02:00"},
		"none":                   {time.Time{}, "", ""},
	} {
		if got := moment.Clock(c.t, now); got != c.wantClock {
			t.Errorf("%s: Clock = %q, want %q", name, got, c.wantClock)
		}
		if got := moment.Dated(c.t, now); got != c.wantedDated {
			t.Errorf("%s: Dated = %q, want %q", name, got, c.wantedDated)
		}
	}
}

func TestTimesWithinAText(t *testing.T) {
	local := func(t time.Time) string { return moment.Clock(t, now) }
	for text, want := range map[string]string{
		"not before 2026-07-01T20:00:00Z":              "not before 22:00:00 CEST",
		"at 2026-07-02T00:00:00.25+02:00, and later":   "at 2026-07-02 00:00:00 CEST, and later",
		"2026-07-01T10:00:00Z to 2026-07-01T11:00:00Z": "12:00:00 CEST to 13:00:00 CEST",
		"ticket 2026-07-01T99:00:00Z":                  "ticket 2026-07-01T99:00:00Z",
		"no time at all":                               "no time at all",
		"a date alone 2026-07-01":                      "a date alone 2026-07-01",
	} {
		if got := moment.InText(text, local); got != want {
			t.Errorf("InText(%q) = %q, want %q", text, got, want)
		}
	}
}
