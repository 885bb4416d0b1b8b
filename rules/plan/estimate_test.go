package plan_test

import (
	"testing"
	"time"

	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
)

func TestEstimates(t *testing.T) {
	waves := [][]string{{"a"}, {"b", "c"}, {"d"}}
	soaks := &plan.Canary{Nodes: 1, Soak: spec.Duration(time.Hour)}
	for name, c := range map[string]struct {
		s     plan.Strategy
		waves [][]string
		want  time.Duration
	}{
		"nothing to do":        {plan.Strategy{Canary: soaks}, nil, 0},
		"one after the other":  {plan.Strategy{}, waves, 30 * time.Minute},
		"pauses":               {plan.Strategy{PauseBetween: spec.Duration(time.Minute)}, waves, 32 * time.Minute},
		"a canary that soaks":  {plan.Strategy{Canary: soaks}, waves, 90 * time.Minute},
		"a canary of them all": {plan.Strategy{Canary: &plan.Canary{Nodes: 4, Soak: spec.Duration(time.Hour)}}, waves, 30 * time.Minute},
	} {
		if got := plan.Estimate(c.s, c.waves, 10*time.Minute); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestMedians(t *testing.T) {
	for want, all := range map[time.Duration][]time.Duration{0: nil, 3: {3}, 2: {9, 1, 2}, 5: {9, 1, 8, 2}} {
		if got := plan.Median(all); got != want {
			t.Errorf("the median of %v is %d, want %d", all, got, want)
		}
	}
}
