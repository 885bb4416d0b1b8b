package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"
)

// TestAFewFaultsAreSurvived lets the short subset happen; `make chaos` lets all.
func TestAFewFaultsAreSurvived(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cells := choose(regexp.MustCompile(""), true)
	if len(cells) != len(short) {
		t.Fatalf("%d faults, want the %d of the short subset: a name is wrong", len(cells), len(short))
	}
	outcomes, err := explore(ctx, cells, shortLanes, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != len(cells) {
		t.Errorf("%d of %d faults happened", len(outcomes), len(cells))
	}
	for _, o := range outcomes {
		if o.Outcome != survived {
			t.Errorf("%s %s/%s/%s after %.0f s: %s", o.Outcome, o.Step, o.When, o.Kind, o.Seconds, o.Detail)
		}
	}
}

func TestEveryStepIsNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range choose(regexp.MustCompile(""), false) {
		if seen[c.String()] {
			t.Errorf("%s is there twice", c)
		}
		seen[c.String()] = true
	}
	if least := 600; len(seen) < least {
		t.Errorf("%d faults, want %d at least", len(seen), least)
	}
}

func TestPartsMakeTheWhole(t *testing.T) {
	all := choose(regexp.MustCompile(""), false)
	var parts []cell
	for n := range 7 {
		part, err := partOf(all, fmt.Sprintf("%d/7", n+1))
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part...)
	}
	if !slices.EqualFunc(parts, all, func(a, b cell) bool { return a.String() == b.String() }) {
		t.Errorf("seven parts have %d faults, the whole has %d", len(parts), len(all))
	}
	for _, wrong := range []string{"", "1", "0/2", "3/2", "1/2/3", "a/b", "-1/2"} {
		if _, err := partOf(all, wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
