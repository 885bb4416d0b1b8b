package plan_test

import (
	"slices"
	"testing"
	"time"

	"drydock.dev/drydock/rules/plan"
)

func every(d time.Duration, n int, last time.Time) (ends []time.Time) {
	for i := range n {
		ends = append(ends, last.Add(-time.Duration(i)*d))
	}
	return ends
}

func TestNoEndIsExpectedOfWhatIsNotKnown(t *testing.T) {
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for name, one := range map[string]struct {
		done          []time.Time
		running, left int
	}{
		"two are done":             {every(time.Minute, 2, noon), 1, 5},
		"nothing is left":          {every(time.Minute, 9, noon), 0, 0},
		"all at once":              {every(0, 9, noon), 1, 5},
		"one batch is done":        {every(time.Second, 9, noon), 9, 50},
		"something is in the way":  {every(time.Minute, 9, noon.Add(-time.Hour)), 1, 5},
		"none has ever been begun": {nil, 1, 5},
	} {
		if p := plan.PaceOf(one.done, true, one.running, one.left, noon); !p.Expected.IsZero() || p.Nodes != len(one.done) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestPace(t *testing.T) {
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	uneven := append(every(time.Minute, 5, noon), every(5*time.Minute, 5, noon.Add(-10*time.Minute))...)
	p := plan.PaceOf(uneven, true, 1, 16, noon)
	if want := []time.Time{noon.Add(36 * time.Minute), noon.Add(54 * time.Minute), noon.Add(71 * time.Minute)}; !slices.Equal(want, []time.Time{p.Earliest, p.Expected, p.Latest}) {
		t.Errorf("%+v", p)
	}
	if p := plan.PaceOf(every(20*time.Minute, 10, noon), true, 1, 3, noon); !slices.Equal(p.Hours, []int{1, 3, 3, 3}) || !p.Expected.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v", p)
	}
	soon := noon.Add(20 * time.Second)
	if p := plan.PaceOf(every(4*time.Second, 10, soon), true, 1, 3, soon); p.Expected.Before(soon) || p.Expected.After(soon.Add(time.Minute)) {
		t.Errorf("the end of a fast plan: %+v", p)
	}
	if p := plan.PaceOf(every(time.Hour, 300, noon), false, 1, 3, noon); len(p.Hours) != 24 {
		t.Errorf("%d hours", len(p.Hours))
	}
	// Where the sample is not all, an hour of which only a part is known does not count.
	if p := plan.PaceOf(every(20*time.Minute, 10, noon), false, 1, 3, noon); !slices.Equal(p.Hours, []int{3, 3, 3}) {
		t.Errorf("%+v", p)
	}
	if p := plan.PaceOf(every(4*time.Second, 300, noon), false, 1, 3, noon); len(p.Hours) != 0 || p.Expected.IsZero() || !p.Since.Equal(noon.Add(-299*4*time.Second)) {
		t.Errorf("%+v", p)
	}
}
