package plan_test

import (
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/plan"
)

// TestSupportedStageTransitions has all pairs of stages: KEP-4212, "Supported Stage Transitions".
func TestSupportedStageTransitions(t *testing.T) {
	supported := map[plan.Stage][]plan.Stage{
		// Planning a maintenance in the future, then any way of beginning it, or of making nodes schedulable.
		plan.Idle: {plan.Cordon, plan.Drain, plan.Complete},
		// Make a set of nodes unschedulable, and then schedulable again or drain them.
		plan.Cordon: {plan.Drain, plan.Complete},
		plan.Drain:  {plan.Complete},
	}
	for _, from := range plan.Stages {
		for _, to := range plan.Stages {
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
		from, to plan.Stage
		want     string
	}{
		{plan.Drain, plan.Cordon, "stage: Cordon comes before Drain: the order is Idle, Cordon, Drain, Complete, and no plan goes back"},
		{plan.Complete, plan.Idle, "stage: Idle comes before Complete"},
		{plan.Cordon, plan.Cordon, "stage: it is Cordon already"},
		{plan.Idle, "drain", `stage: "drain" is not one of Idle, Cordon, Drain, Complete`},
		{plan.Idle, "", `stage: "" is not one of`},
	} {
		if err := c.from.To(c.to); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s to %s: %v, want %s", c.from, c.to, err, c.want)
		}
	}
}

// TestStagesThatBegin: "Cordon and Complete stages will always be run, even without specifying them".
func TestStagesThatBegin(t *testing.T) {
	for _, c := range []struct {
		from, to plan.Stage
		want     string
	}{
		{plan.Idle, plan.Cordon, "Cordon"}, {plan.Idle, plan.Drain, "Cordon Drain"}, {plan.Cordon, plan.Drain, "Drain"},
		{plan.Idle, plan.Complete, "Complete"}, {plan.Cordon, plan.Complete, "Complete"}, {plan.Drain, plan.Complete, "Complete"},
	} {
		var names []string
		for _, s := range plan.Started(c.from, c.to) {
			names = append(names, string(s))
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s to %s begins %s, want %s", c.from, c.to, got, c.want)
		}
	}
}
