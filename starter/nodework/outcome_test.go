package nodework

import (
	"testing"

	"drydock.dev/drydock/api"
)

func TestRolloutCodes(t *testing.T) {
	of := func(results ...api.NodeResult) []api.NodeOutcome {
		outcomes := make([]api.NodeOutcome, len(results))
		for i, r := range results {
			outcomes[i].Result = r
		}
		return outcomes
	}
	for name, c := range map[string]struct {
		outcomes []api.NodeOutcome
		want     int
	}{
		"all done":             {of(api.OutcomeDone, api.OutcomeDone, api.OutcomeSkipped), 0},
		"one failed":           {of(api.OutcomeDone, api.OutcomeFailed, api.OutcomeNotStarted), 1},
		"cancelled":            {of(api.OutcomeDone, api.OutcomeCancelled), 3},
		"not started":          {of(api.OutcomeDone, api.OutcomeNotStarted), 3},
		"cancelled and failed": {of(api.OutcomeCancelled, api.OutcomeFailed), 1},
	} {
		if got := RolloutCode(c.outcomes); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
