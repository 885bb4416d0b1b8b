package views

import (
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/startertest"
)

func took(do, by string) func(*api.Status) {
	return func(s *api.Status) {
		s.Escalation = append(s.Escalation, api.RungTaken{At: startertest.Noon, Do: do, By: by, Planned: by == ""})
	}
}

// tookNext is the plan's next rung, before its time.
func tookNext(do, by string) func(*api.Status) {
	return func(s *api.Status) {
		s.Escalation = append(s.Escalation, api.RungTaken{At: startertest.Noon, Do: do, By: by, Planned: true})
	}
}

func TestTheSLAsRungIsNotTakenByHand(t *testing.T) {
	s := startertest.View(api.Draining, func(s *api.Status) {
		s.Spec.SLA = &spec.SLA{After: spec.Duration(30 * time.Minute)}
		s.Spec.Drain.Escalation = []spec.Rung{{After: spec.Duration(time.Hour), Do: spec.GiveBack}}
	}).Status
	if next, _ := nextRung(s); next.Do != spec.ExpireSLA {
		t.Errorf("next is %+v", next)
	}
	if rung, left := RungToTake(s); !left || rung.Do != spec.GiveBack {
		t.Errorf("escalate takes %+v", rung)
	}
}

func TestNextRung(t *testing.T) {
	plan := func(taken ...func(*api.Status)) *api.Status {
		return startertest.View(api.Draining, append(taken, func(s *api.Status) {
			s.CordonedAt = startertest.Ago(48 * time.Minute)
			for i, do := range []string{spec.Notify, spec.BypassBudget, spec.GiveBack} {
				s.Spec.Drain.Escalation = append(s.Spec.Drain.Escalation, spec.Rung{After: spec.Duration(time.Duration(i+2) * 20 * time.Minute), Do: do})
			}
		})...).Status
	}
	afterPods := plan()
	afterPods.Spec.WaitForPodCompletion, afterPods.Since = &spec.WaitForPods{}, startertest.Before(time.Minute)
	pending := plan()
	pending.Phase = api.Pending
	for name, c := range map[string]struct {
		status *api.Status
		want   string
	}{
		"the first, overdue":        {plan(), "due now: notify"},
		"after one whose time came": {plan(took(spec.Notify, "")), "in 12m: bypassBudget"},
		"after one by hand":         {plan(tookNext(spec.Notify, "me")), "in 12m: bypassBudget"},
		"after one out of order":    {plan(took(spec.Notify, ""), took(spec.GiveBack, "me")), "in 12m: bypassBudget"},
		"after an unplanned one":    {plan(took(spec.Kill, "me"), took(spec.Notify, "")), "in 12m: bypassBudget"},
		"after a named one":         {plan(took(spec.Notify, "me")), "due now: notify"},
		"none left":                 {plan(took(spec.Notify, ""), took(spec.BypassBudget, ""), took(spec.GiveBack, "")), ""},
		"counted from the drain":    {afterPods, "in 39m: notify"},
		"no drain":                  {pending, ""},
		"no plan":                   {startertest.View(api.Draining).Status, ""},
	} {
		if got := nextRungText(c.status, At(startertest.Noon)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
