package schedule_test

import (
	"fmt"
	"slices"
	"testing"

	"drydock.dev/drydock/rules/schedule"
)

func TestLimitsThatAreSmallerThanAPlanAreNamedBeforehand(t *testing.T) {
	labels := map[string]map[string]string{}
	for i := range 20 {
		labels[fmt.Sprint("n", i)] = map[string]string{"zone": string(rune('a' + i%2))}
	}
	one := 1
	two := [][]string{{"n0", "n2"}}
	for name, c := range map[string]struct {
		limits schedule.Limits
		waves  [][]string
		want   []string
		rounds int
	}{
		"the default":   {schedule.Limits{}, two, []string{"needs 2 slots at once; maxParallel is 1: drydock limits set --max-parallel 2"}, 2},
		"one at a time": {schedule.Limits{}, [][]string{{"n0"}, {"n1"}}, nil, 1},
		"enough":        {schedule.Limits{MaxParallel: schedule.Count(2)}, two, nil, 1},
		"unlimited":     {schedule.Limits{MaxParallel: schedule.Unlimited()}, two, nil, 1},
		"a percentage": {
			schedule.Limits{MaxParallel: schedule.Percent(5)}, two,
			[]string{"needs 2 slots at once; maxParallel is 5%, 1 of 20 nodes: drydock limits set --max-parallel 6%"}, 2,
		},
		"each limit once": {
			schedule.Limits{MaxParallel: schedule.Count(2)}, [][]string{{"n0", "n1", "n2"}, {"n3", "n4", "n5", "n6", "n7"}, {"n8", "n9", "n10"}},
			[]string{"needs 5 slots at once; maxParallel is 2: drydock limits set --max-parallel 5"}, 2,
		},
		"unavailable nodes": {
			schedule.Limits{MaxParallel: schedule.Unlimited(), MaxUnavailable: schedule.Count(0)}, two,
			[]string{"makes 2 nodes unavailable at once; maxUnavailable is 0: drydock limits set --max-unavailable 2"}, 0,
		},
		"a group": {
			schedule.Limits{MaxParallel: schedule.Count(9), Groups: []schedule.Group{{Name: "zones", GroupBy: []string{"zone"}, MaxParallel: schedule.Percent(10)}}}, two,
			[]string{"needs 2 slots at once; group zones[zone=a] maxParallel is 10%, 1 of 10 nodes: drydock limits set --group zones --max-parallel 11%"}, 2,
		},
		"a group of which one goes": {
			schedule.Limits{MaxParallel: schedule.Count(9), Groups: []schedule.Group{{Name: "zones", GroupBy: []string{"zone"}, MaxParallel: schedule.Count(1)}}},
			[][]string{{"n0", "n1"}}, nil, 1,
		},
		"a quota": {
			schedule.Limits{MaxParallel: schedule.Count(9), Quotas: schedule.Quotas{HeldPerRequestor: &one}}, two,
			[]string{"needs 2 slots at once; the quota of plan-p is 1: drydock limits set --held plan-p=2"}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ahead, err := schedule.LookAhead(c.limits, len(labels), labels)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range ahead.Short("plan-p", c.waves) {
				got = append(got, s.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%q, want\n%q", got, c.want)
			}
			if rounds := ahead.Rounds("plan-p", c.waves[0]); rounds != c.rounds {
				t.Errorf("%d rounds, want %d", rounds, c.rounds)
			}
		})
	}
	if _, err := schedule.LookAhead(schedule.Limits{Groups: []schedule.Group{{Name: "g", NodeSelector: "=="}}}, 1, nil); err == nil {
		t.Error("a selector that cannot be read was taken")
	}
}
