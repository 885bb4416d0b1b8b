package api

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/rules/schedule"
)

func TestLimitDifferences(t *testing.T) {
	inForce := schedule.Limits{MaxParallel: schedule.Count(2), MaxUnavailable: schedule.Percent(20), Groups: []schedule.Group{
		{Name: "b", NodeSelector: "b", MaxParallel: schedule.Count(1)}, {Name: "a", NodeSelector: "a", MaxParallel: schedule.Count(1)},
	}}
	file := schedule.Limits{MaxUnavailable: schedule.Percent(20), Groups: []schedule.Group{
		{Name: "a", NodeSelector: "a", MaxParallel: schedule.Count(1)}, {Name: "c", GroupBy: []string{"zone"}, MaxUnavailable: schedule.Count(1)},
	}}
	want := []LimitDifference{
		{"groups.b.maxParallel", "1", ""}, {"groups.b.nodes", "b", ""},
		{"groups.c.maxUnavailable", "", "1"}, {"groups.c.nodes", "", "each zone"}, {"maxParallel", "2", "1"},
	}
	if diff := cmp.Diff(want, LimitDifferences(inForce, file)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	two, three := 2, 3
	inForce.Quotas = schedule.Quotas{HeldPerRequestor: &two}
	file.Quotas = schedule.Quotas{HeldPerRequestor: &three, Requestors: map[string]schedule.RequestorQuota{"ci": {Pending: &two}}}
	want = append(want, LimitDifference{"quotas.heldPerRequestor", "2", "3"}, LimitDifference{"quotas.requestors.ci.pending", "", "2"})
	if diff := cmp.Diff(want, LimitDifferences(inForce, file)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	inForce.Windows, file.Groups[0].Windows = []string{"nights", "weekends"}, []string{"nights"}
	want = append(want, LimitDifference{"windows", "nights, weekends", ""})
	want = slices.Insert(want, 0, LimitDifference{"groups.a.windows", "", "nights"})
	if diff := cmp.Diff(want, LimitDifferences(inForce, file)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if same := LimitDifferences(file, file.WithDefaults()); same == nil || len(same) != 0 {
		t.Errorf("equal limits differ: %v", same)
	}
}

// What is refused says the flag.
