package views

import (
	"testing"
	"time"

	"drydock.dev/drydock/rules/plan"
)

func TestPaceInWords(t *testing.T) {
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	r := At(noon)
	for _, one := range []struct {
		pace *plan.Pace
		want string
	}{
		{nil, ""},
		{&plan.Pace{}, ""},
		{&plan.Pace{Nodes: 300, Since: noon.Add(-20 * time.Minute)}, "300 nodes since 11:40:00 UTC, 20m ago"},
		{&plan.Pace{Nodes: 1, Hours: []int{1}}, "1 node in the last hour"},
		{&plan.Pace{Nodes: 12, Hours: []int{0, 4, 8}}, "▁▄█ nodes in each of the last 3 hours, 8 at most"},
		{&plan.Pace{Nodes: 1, Hours: []int{0, 0}}, "▁▁ nodes in each of the last 2 hours, 0 at most"},
		{
			&plan.Pace{Nodes: 4, Hours: []int{4}, Expected: noon.Add(time.Hour), Earliest: noon.Add(30 * time.Minute), Latest: noon.Add(90 * time.Minute)},
			"expected to end at 13:00:00 UTC (in 1h00m), between 12:30:00 UTC and 13:30:00 UTC; 4 nodes in the last hour",
		},
	} {
		if got := Pace(one.pace, r); got != one.want {
			t.Errorf("%q, want %q", got, one.want)
		}
	}
}
