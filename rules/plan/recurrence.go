package plan

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/window"
)

// Recurrence says when a recurring plan runs: at the times of Cron, or every so often.
type Recurrence struct {
	// Cron has five fields: minute, hour, day, month and weekday.
	Cron string `json:"cron,omitempty"`
	// Every counts from the beginning of 1970 in UTC, so that 24h is each midnight there.
	Every spec.Duration `json:"every,omitzero"`
	// Timezone is that of Cron, an IANA name; empty is UTC.
	Timezone string `json:"timezone,omitempty"`
}

const (
	shortestEvery = time.Minute
	longestEvery  = 366 * 24 * time.Hour
)

// Check returns what is wrong with the recurrence.
func (r Recurrence) Check() error {
	switch {
	case r.Cron == "" && r.Every == 0:
		return errors.New("cron: is missing: say when the plan runs by cron or by every")
	case r.Cron != "" && r.Every != 0:
		return errors.New("every: stands in place of cron: leave one of the two out")
	case r.Cron != "":
		return errors.Join(checkCron(r.Cron), checkZone(r.Timezone))
	case r.Timezone != "":
		return errors.New("timezone: goes with cron: leave it out beside every")
	case r.Every.Std() < shortestEvery || r.Every.Std() > longestEvery:
		return fmt.Errorf("every: %s: want %s to %s", period.InDays(r.Every.Std()), period.InDays(shortestEvery), period.InDays(longestEvery))
	}
	return nil
}

func checkCron(text string) error {
	if err := window.CheckCron(text); err != nil {
		return fmt.Errorf("cron: %.80q: %w", text, err)
	}
	// A schedule wants both to match where cron wants one of them.
	if fields := strings.Fields(text); !strings.HasPrefix(fields[2], "*") && !strings.HasPrefix(fields[4], "*") {
		return fmt.Errorf("cron: %.80q: names days of the month and of the week, of which a schedule wants both: write * for one of them", text)
	}
	return nil
}

func checkZone(name string) error {
	if name == "Local" {
		return errors.New(`timezone: "Local": want the name of a zone, such as Europe/Berlin`)
	}
	if _, err := time.LoadLocation(name); err != nil {
		return fmt.Errorf("timezone: %.80q is not known: want the name of a zone, such as Europe/Berlin", name)
	}
	return nil
}
