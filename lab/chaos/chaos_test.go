package main

import (
	"context"
	"regexp"
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
