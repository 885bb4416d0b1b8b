package rollout_test

import (
	"testing"
	"time"

	"drydock/rules/rollout"
	"drydock/rules/spec"
)

func TestEstimates(t *testing.T) {
	waves := [][]string{{"a"}, {"b", "c"}, {"d"}}
	soaks := &rollout.Canary{Nodes: 1, Soak: spec.Duration(time.Hour)}
	for name, c := range map[string]struct {
		s     rollout.Strategy
		waves [][]string
		want  time.Duration
	}{
		"nothing to do":        {rollout.Strategy{Canary: soaks}, nil, 0},
		"one after the other":  {rollout.Strategy{}, waves, 30 * time.Minute},
		"pauses":               {rollout.Strategy{PauseBetween: spec.Duration(time.Minute)}, waves, 32 * time.Minute},
		"a canary that soaks":  {rollout.Strategy{Canary: soaks}, waves, 90 * time.Minute},
		"a canary of them all": {rollout.Strategy{Canary: &rollout.Canary{Nodes: 4, Soak: spec.Duration(time.Hour)}}, waves, 30 * time.Minute},
	} {
		if got := rollout.Estimate(c.s, c.waves, 10*time.Minute); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestMedians(t *testing.T) {
	for want, all := range map[time.Duration][]time.Duration{0: nil, 3: {3}, 2: {9, 1, 2}, 5: {9, 1, 8, 2}} {
		if got := rollout.Median(all); got != want {
			t.Errorf("the median of %v is %d, want %d", all, got, want)
		}
	}
}
