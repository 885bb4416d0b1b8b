package client

import (
	"testing"
	"time"
)

func TestWhatNobodyPollsForIsUnattended(t *testing.T) {
	const end = 10 // looks, one a second
	for name, c := range map[string]struct {
		// task and polled are what the look after so many seconds finds, as seconds of noon.
		task, polled func(second int) int
		want         int // the second at which it is unattended, end where it never is
	}{
		"the worker has stopped":                 {func(int) int { return 0 }, func(int) int { return -30 }, 5},
		"no worker was ever there":               {func(int) int { return 0 }, func(int) int { return -86400 }, 5},
		"the worker has its hands full":          {func(int) int { return 0 }, func(s int) int { return s - s%3 }, end},
		"one task after the other is fetched":    {func(s int) int { return s - s%4 }, func(int) int { return -30 }, end},
		"it stops after it had its hands full":   {func(int) int { return 0 }, func(s int) int { return min(s, 2) }, 7},
		"the task leaves the worker's own queue": {func(s int) int { return s / 4 * 4 % 8 }, func(int) int { return -30 }, end},
	} {
		var w waiting
		got := end
		for second := 0; second < end && got == end; second++ {
			at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
			if w.unattended(at(c.task(second)), at(c.polled(second)), at(second)) {
				got = second
			}
		}
		if got != c.want {
			t.Errorf("%s: unattended after %d s, want %d", name, got, c.want)
		}
	}
}
