package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/plan"
)

func TestNamesAreOrderedAsPeopleCount(t *testing.T) {
	want := []string{"a", "a01", "a1", "a2", "a10", "a10-2", "a10-11", "b", "ip-10-0-2-3", "ip-10-0-12-1", "worker-2", "worker-10"}
	got := slices.SortedFunc(slices.Values(slices.Concat(want[6:], want[:6])), plan.CompareNames)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTheOrderOfNamesIsTotal: a plan is decided about by several workers, one after the other.
func TestTheOrderOfNamesIsTotal(t *testing.T) {
	name := rapid.StringMatching("[a0-]{0,3}[0-9]{0,3}[b1]{0,2}")
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if x, y := plan.CompareNames(a, b), plan.CompareNames(b, a); x != -y || (x == 0) != (a == b) {
			t.Errorf("%q to %q is %d, and back %d", a, b, x, y)
		}
		if plan.CompareNames(a, b) <= 0 && plan.CompareNames(b, c) <= 0 && plan.CompareNames(a, c) > 0 {
			t.Errorf("%q, %q, %q have no order", a, b, c)
		}
	})
}
