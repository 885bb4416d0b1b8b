package rollout_test

import (
	"slices"
	"strings"
	"testing"

	"drydock/rules/rollout"
)

// TestSupportedStageTransitions has all pairs of stages: KEP-4212, "Supported Stage Transitions".
func TestSupportedStageTransitions(t *testing.T) {
	supported := map[rollout.Stage][]rollout.Stage{
		// Planning a maintenance in the future, then any way of beginning it, or of making nodes schedulable.
		rollout.Idle: {rollout.Cordon, rollout.Drain, rollout.Complete},
		// Make a set of nodes unschedulable, and then schedulable again or drain them.
		rollout.Cordon: {rollout.Drain, rollout.Complete},
		rollout.Drain:  {rollout.Complete},
	}
	for _, from := range rollout.Stages {
		for _, to := range rollout.Stages {
			err := from.To(to)
			if want := slices.Contains(supported[from], to); (err == nil) != want {
				t.Errorf("%s to %s: %v, want %t", from, to, err, want)
			}
		}
		if got := from.Next(); !slices.Equal(got, supported[from]) {
			t.Errorf("%s is followed by %v, want %v", from, got, supported[from])
		}
	}
}

func TestATransitionThatIsRefusedSaysWhy(t *testing.T) {
	for _, c := range []struct {
		from, to rollout.Stage
		want     string
	}{
		{rollout.Drain, rollout.Cordon, "stage: Cordon comes before Drain: the order is Idle, Cordon, Drain, Complete, and no plan goes back"},
		{rollout.Complete, rollout.Idle, "stage: Idle comes before Complete"},
		{rollout.Cordon, rollout.Cordon, "stage: it is Cordon already"},
		{rollout.Idle, "drain", `stage: "drain" is not one of Idle, Cordon, Drain, Complete`},
		{rollout.Idle, "", `stage: "" is not one of`},
	} {
		if err := c.from.To(c.to); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s to %s: %v, want %s", c.from, c.to, err, c.want)
		}
	}
}

// TestStagesThatBegin: "Cordon and Complete stages will always be run, even without specifying them".
func TestStagesThatBegin(t *testing.T) {
	for _, c := range []struct {
		from, to rollout.Stage
		want     string
	}{
		{rollout.Idle, rollout.Cordon, "Cordon"}, {rollout.Idle, rollout.Drain, "Cordon Drain"}, {rollout.Cordon, rollout.Drain, "Drain"},
		{rollout.Idle, rollout.Complete, "Complete"}, {rollout.Cordon, rollout.Complete, "Complete"}, {rollout.Drain, rollout.Complete, "Complete"},
	} {
		var names []string
		for _, s := range rollout.Started(c.from, c.to) {
			names = append(names, string(s))
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s to %s begins %s, want %s", c.from, c.to, got, c.want)
		}
	}
}
