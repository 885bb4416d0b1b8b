package plan_test

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
)

func TestRecurrences(t *testing.T) {
	hour := spec.Duration(time.Hour)
	for name, c := range map[string]struct {
		of   plan.Recurrence
		want string
	}{
		"weekly":            {plan.Recurrence{Cron: "0 22 * * 1", Timezone: "Europe/Berlin"}, ""},
		"monthly":           {plan.Recurrence{Cron: "0 22 1 * *"}, ""},
		"every":             {plan.Recurrence{Every: 24 * hour}, ""},
		"nothing":           {plan.Recurrence{}, "cron: is missing"},
		"both":              {plan.Recurrence{Cron: "0 22 * * 1", Every: hour}, "every: stands in place of cron"},
		"six fields":        {plan.Recurrence{Cron: "0 0 22 * * 1"}, "want five fields"},
		"no such day":       {plan.Recurrence{Cron: "0 0 30 2 *"}, "that is on no day"},
		"two sorts of days": {plan.Recurrence{Cron: "0 22 1-7 * 1"}, "of which a schedule wants both"},
		"a zone in it":      {plan.Recurrence{Cron: "TZ=UTC 0 22 * * 1"}, "write the time zone as timezone"},
		"no such zone":      {plan.Recurrence{Cron: "0 22 * * 1", Timezone: "Europe/Nowhere"}, "timezone: "},
		"this machine's":    {plan.Recurrence{Cron: "0 22 * * 1", Timezone: "Local"}, "timezone: "},
		"every and a zone":  {plan.Recurrence{Every: hour, Timezone: "UTC"}, "timezone: goes with cron"},
		"too often":         {plan.Recurrence{Every: spec.Duration(time.Second)}, "every: 1s: want 1m"},
		"too seldom":        {plan.Recurrence{Every: 9000 * hour}, "every: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.of.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
