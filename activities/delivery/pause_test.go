package delivery

import (
	"testing"
	"time"
)

// A receiver that wants to be left alone for longer than a message is tried does not have it dropped at once.
func TestRetryAfterIsBoundedByTheTimeThatIsLeft(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ asked, left, want time.Duration }{
		{0, time.Hour, 0},
		{time.Minute, time.Hour, time.Minute},
		{24 * time.Hour, time.Hour, 59 * time.Minute},
		{time.Hour, time.Hour, 59 * time.Minute},
		{time.Hour, 2 * time.Minute, 90 * time.Second},
		{time.Hour, -time.Minute, 0},
	} {
		if got := (DeliverInput{Until: now.Add(c.left)}).pause(c.asked, now); got != c.want {
			t.Errorf("asked for %s with %s left: %s, want %s", c.asked, c.left, got, c.want)
		}
	}
	if got := (DeliverInput{}).pause(time.Hour, now); got != time.Hour {
		t.Errorf("without a limit: %s", got)
	}
}
