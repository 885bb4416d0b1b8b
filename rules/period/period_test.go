package period_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/period"
)

func TestDurationsAreStrings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`"-1s"`, "is negative"},
		{`90`, "write it as a string"},
		{`"90"`, "is not a duration"},
		{`{}`, "write it as a string"},
	} {
		var d period.Duration
		if err := json.Unmarshal([]byte(c.text), &d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.text, err, c.want)
		}
	}
}

func TestDurationsMayHaveDays(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"2d": 2 * day, "1d12h": day + 12*time.Hour, "0d": 0, "0d5s": 5 * time.Second, "99999d": 99999 * day, "90m": 90 * time.Minute, "0s": 0,
	} {
		if got, err := period.ParseDuration(text); err != nil || got.Std() != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "1d-5h", "100000d", "99999d9999999h", "1w", "d12h", "1dd", "1.5d", "12h1d"} {
		if got, err := period.ParseDuration(text); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
	for text, want := range map[string]bool{"2d": true, "1d12h": true, "48h": false, "d": false, "": false} {
		if period.HasDays(text) != want {
			t.Errorf("%q has days: %v", text, !want)
		}
	}
}

func TestDurationsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := period.Duration(rapid.Int64Min(0).Draw(t, "duration"))
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got period.Duration
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Fatalf("%s: got %v, %v", text, got, err)
		}
		if got.Std() != time.Duration(want) || got.String() != time.Duration(want).String() {
			t.Fatalf("%v differs from the standard library's", got)
		}
	})
}

func TestATextHasNoEmptyUnitsAtItsEnd(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", time.Minute: "1m", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", 100 * time.Hour: "100h",
		time.Hour + time.Second: "1h0m1s", 20*time.Hour + 10*time.Second: "20h0m10s", 1500 * time.Millisecond: "1.5s",
	} {
		if got := period.Text(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 90 * time.Minute: "1h30m", 24 * time.Hour: "1d", 36 * time.Hour: "36h", 366 * 24 * time.Hour: "366d",
	} {
		if got := period.InDays(d); got != want {
			t.Errorf("%s in days: %q, want %q", d, got, want)
		}
	}
}
