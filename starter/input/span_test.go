package input

import (
	"testing"
	"time"
)

func TestSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 30 * 24 * time.Hour, "12h": 12 * time.Hour, "1d12h": 36 * time.Hour, "90m": 90 * time.Minute, "0d5s": 5 * time.Second, "99999d": 99999 * 24 * time.Hour,
	} {
		var s, again Span
		if err := s.Set(text); err != nil || time.Duration(s) != want {
			t.Errorf("%s is %s, %v", text, time.Duration(s), err)
		}
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%s is shown as %s", text, s.String())
		}
	}
	for _, text := range []string{"", "0d", "d", "-1d", "1d-5h", "1d-48h", "100000d", "30", "1w", "d12h", "1dd", "1.5d"} {
		var s Span
		if err := s.Set(text); err == nil {
			t.Errorf("%q is read as %s", text, time.Duration(s))
		}
	}
}
