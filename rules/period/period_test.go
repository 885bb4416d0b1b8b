package period_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drydock/rules/period"
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
