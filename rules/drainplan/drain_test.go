package drainplan

import (
	"math"
	"testing"
)

// stays is the tier of a pod that no tier selects.
const stays = -1

func TestTierOf(t *testing.T) {
	postgres := map[string]string{"app": "postgres", "zone": "a"}
	kep := mustNew(t, kepEntries())
	defaults := mustNew(t, []Entry{{PodType: Default, PodPriority: 10, PodSelector: "app=postgres"}}, Default)
	for _, test := range []struct {
		name string
		plan Plan
		pod  Pod
		want int
	}{
		{"a lesser priority", kep, Pod{Type: Default, Priority: -3}, 0},
		{"an equal priority", kep, Pod{Type: Default, Priority: 1000}, 0},
		{"a higher priority", kep, Pod{Type: Default, Priority: 1001}, 2},
		{"the highest priority", kep, Pod{Type: Default, Priority: math.MaxInt32}, 2},
		{"labels do not hold a pod back", kep, Pod{Type: Default, Priority: 1000, Labels: postgres}, 0},
		{"labels take a pod out of a later tier", kep, Pod{Type: Default, Priority: 1001, Labels: postgres}, 1},
		{"labels with an equal priority", kep, Pod{Type: Default, Priority: 2000, Labels: postgres}, 1},
		{"labels with a higher priority", kep, Pod{Type: Default, Priority: 2001, Labels: postgres}, 2},
		{"other labels", kep, Pod{Type: Default, Priority: 1001, Labels: map[string]string{"app": "web"}}, 2},
		{"a selector of another type", kep, Pod{Type: DaemonSet, Priority: 1001, Labels: postgres}, 4},
		{"a DaemonSet pod", kep, Pod{Type: DaemonSet, Priority: 1000}, 3},
		{"a static pod", kep, Pod{Type: Static, Priority: 0}, 5},
		{"a standard entry", defaults, Pod{Type: Default, Priority: 2000000000}, 2},
		{"above the last given entry", defaults, Pod{Type: Default, Priority: 11, Labels: postgres}, 1},
		{"a type not included", defaults, Pod{Type: DaemonSet, Priority: 0}, stays},
		{"a priority above all entries", mustNew(t, []Entry{{PodType: Static, PodPriority: 5}}), Pod{Type: Static, Priority: 6}, stays},
		{"an unknown type", kep, Pod{Type: "Job"}, stays},
		{"a plan without tiers", Plan{}, Pod{Type: Default}, stays},
		{"the simple plan", Simple(), Pod{Type: Default, Priority: math.MaxInt32, Labels: postgres}, 0},
		{"a DaemonSet pod in the simple plan", Simple(), Pod{Type: DaemonSet}, stays},
		{"a static pod in the simple plan", Simple(), Pod{Type: Static}, stays},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := test.plan.TierOf(test.pod)
			if ok != (test.want != stays) || ok && got != test.want {
				t.Errorf("tier %d, %t, want %d", got, ok, test.want)
			}
		})
	}
}

func TestSimple(t *testing.T) {
	all := []Entry{{PodType: Default, PodPriority: math.MaxInt32}}
	equal(t, "entries", Simple().Entries(), all)
	equal(t, "targets", Simple().Targets(0), all)
}

func TestNext(t *testing.T) {
	p := mustNew(t, []Entry{
		{PodType: Default, PodPriority: 0}, {PodType: Default, PodPriority: 1},
		{PodType: DaemonSet, PodPriority: 0}, {PodType: Static, PodPriority: 0},
	})
	for _, test := range []struct {
		name      string
		plan      Plan
		reached   int
		remaining []int
		want      int
	}{
		{"pods in the first tier", p, 0, []int{2, 1, 1, 1}, 0},
		{"the first tier is empty", p, 0, []int{0, 1, 1, 1}, 1},
		{"several tiers are empty", p, 0, []int{0, 0, 0, 1}, 3},
		{"all are empty", p, 0, []int{0, 0, 0, 0}, 4},
		{"the last is empty", p, 3, []int{0, 0, 0, 0}, 4},
		{"pods in the reached tier", p, 2, []int{0, 0, 1, 0}, 2},
		{"a late pod of an earlier tier holds the drain", p, 2, []int{1, 0, 0, 1}, 2},
		{"a late pod of an earlier tier beside others", p, 2, []int{0, 3, 1, 1}, 2},
		{"the late pod has left", p, 2, []int{0, 0, 0, 1}, 3},
		{"a late pod holds the last tier", p, 3, []int{1, 0, 0, 0}, 3},
		{"a late pod after the drain", p, 4, []int{1, 0, 0, 0}, 4},
		{"counts that were not given are zero", p, 0, []int{0, 0}, 4},
		{"no counts", p, 1, nil, 4},
		{"more counts than tiers", p, 1, []int{0, 0, 0, 0, 9}, 4},
		{"before the first tier", p, -1, []int{1, 0, 0, 0}, 0},
		{"beyond the plan", p, 9, []int{1, 0, 0, 0}, 4},
		{"a plan without tiers", Plan{}, 0, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.plan.Next(test.reached, test.remaining); got != test.want {
				t.Errorf("tier %d, want %d", got, test.want)
			}
		})
	}
}
