package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drydock/rules/plan"
	"drydock/rules/schedule"
)

// A dry run counts with the limits in force: it says which the plan is larger than, and how long it takes under them.
func TestAPlanThatIsLargerThanTheLimitsSaysSo(t *testing.T) {
	nodes := []string{"a", "b", "c", "d", "e"}
	for name, c := range map[string]struct {
		input, limit string
		want         string
		turns        int // 0 is that there is no estimate
	}{
		"waves of two, one at a time": {
			`{"nodes":["a","b","c","d","e"],"strategy":{"maxParallel":2}}`, "1",
			"the plan goes slower than it may: needs 2 slots at once; maxParallel is 1: drydock limits set --max-parallel 2", 5,
		},
		"waves of two, two at a time": {`{"nodes":["a","b","c","d","e"],"strategy":{"maxParallel":2}}`, "2", "", 3},
		"waves of five, two at a time": {
			`{"nodes":["a","b","c","d","e"],"strategy":{"maxParallel":5}}`, "2",
			"the plan goes slower than it may: needs 5 slots at once; maxParallel is 2: drydock limits set --max-parallel 5", 3,
		},
		"a gang that can never begin": {
			`{"nodes":["a","b","c","d","e"],"strategy":{"type":"allAtOnce"}}`, "1",
			"the plan does not begin: needs 5 slots at once; maxParallel is 1: drydock limits set --max-parallel 5", 0,
		},
		"a gang that can": {`{"nodes":["a","b","c","d","e"],"strategy":{"type":"allAtOnce"}}`, "5", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Decode("firmware", []byte(c.input))
			if err != nil {
				t.Fatal(err)
			}
			limit, err := schedule.ParseAmount(c.limit)
			if err != nil {
				t.Fatal(err)
			}
			ahead, err := schedule.LookAhead(schedule.Limits{MaxParallel: limit}, len(nodes), nil)
			if err != nil {
				t.Fatal(err)
			}
			var chosen choice
			for _, name := range nodes {
				chosen.nodes = append(chosen.nodes, plan.Facts{Name: name})
			}
			groups := waves(p, chosen, time.Unix(0, 0))
			if got := strings.Join(short(p, ahead, groups), "\n"); got != c.want {
				t.Errorf("it says\n%s, want\n%s", got, c.want)
			}
			turns, known := allowed(p, ahead, groups)
			if known != (c.turns > 0) {
				t.Fatalf("known: %t", known)
			}
			if !known {
				return
			}
			if got := slices.Sorted(slices.Values(slices.Concat(turns...))); !slices.Equal(got, nodes) {
				t.Errorf("the turns are %v", turns)
			}
			if got, want := plan.Estimate(p.Strategy, turns, time.Hour), time.Duration(c.turns)*time.Hour; got != want {
				t.Errorf("it takes %s in the turns %s, want %s", got, fmt.Sprint(turns), want)
			}
		})
	}
}
