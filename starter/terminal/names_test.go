package terminal

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNamesSortAsPeopleCount(t *testing.T) {
	names := []string{"worker-10", "worker-2", "worker-1", "gpu-1", "worker-02", "worker", "worker-1a"}
	slices.SortFunc(names, CompareNames)
	want := []string{"gpu-1", "worker", "worker-1", "worker-1a", "worker-02", "worker-2", "worker-10"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestCompareNamesIsATotalOrder(t *testing.T) {
	name := rapid.StringMatching(`[ab0-2-]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if CompareNames(a, b) != -CompareNames(b, a) {
			t.Fatalf("%q and %q are not compared alike both ways", a, b)
		}
		if (CompareNames(a, b) == 0) != (a == b) {
			t.Fatalf("%q and %q are different and equal", a, b)
		}
		if CompareNames(a, b) <= 0 && CompareNames(b, c) <= 0 && CompareNames(a, c) > 0 {
			t.Fatalf("%q, %q, %q are not ordered", a, b, c)
		}
	})
}

func TestLists(t *testing.T) {
	if got, want := OrList([]string{"a", "b", "c"}), `"a", "b" or "c"`; got != want {
		t.Errorf("orList = %s, want %s", got, want)
	}
	if got, want := OrList([]string{"a"}), `"a"`; got != want {
		t.Errorf("orList = %s, want %s", got, want)
	}
	if got, want := SomeOf([]string{"a", "b", "c"}, 2), "a, b and 1 more"; got != want {
		t.Errorf("someOf = %s, want %s", got, want)
	}
	if got, want := SomeOf([]string{"a", "b"}, 2), "a, b"; got != want {
		t.Errorf("someOf = %s, want %s", got, want)
	}
}
