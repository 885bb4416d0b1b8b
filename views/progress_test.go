package views

import (
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/startertest"
)

func TestProgressLines(t *testing.T) {
	drain := func(d api.DrainProgress) func(*api.Status) {
		return func(s *api.Status) { s.Drain = &d }
	}
	blocked := api.Blocker{Pod: "default/db-0", Reason: "DisruptionBudget", Message: "budget db allows 0 disruptions"}
	unknown := startertest.View("")
	unknown.Status = nil
	terminated := startertest.Ended("", enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, "")
	terminated.Result, terminated.Failure = nil, "the workflow was terminated by hand"
	for name, c := range map[string]struct {
		view client.View
		want string
	}{
		"nobody answered yet": {unknown, "Starting"},
		"waits for a slot":    {startertest.View(api.Pending, startertest.WaitingFor("maxParallel 1: the slot is taken (worker-02)")), "Pending: waiting for maxParallel 1: the slot is taken (worker-02)"},
		"second attempt": {
			startertest.View(api.Pending, func(s *api.Status) { s.Attempt = 2 }), "Pending (attempt 2)",
		},
		"at work":        {startertest.View(api.Cordoning), "Cordoning"},
		"drains":         {startertest.View(api.Draining, drain(api.DrainProgress{Total: 8, Evicted: 4, Remaining: 5, Terminating: 1})), "Draining: 3 of 8 pods gone (1 terminating)"},
		"empty anyway":   {startertest.View(api.Draining, drain(api.DrainProgress{At: startertest.Noon})), "Draining: no pods to drain"},
		"not looked yet": {startertest.View(api.Draining), "Draining: looking at the node's pods"},
		"drain is blocked": {
			startertest.View(api.Draining, drain(api.DrainProgress{Total: 2, Remaining: 2, Blockers: []api.Blocker{blocked, blocked}, MoreBlockers: 3})),
			"Draining: 0 of 2 pods gone; default/db-0: budget db allows 0 disruptions; 4 more blocked",
		},
		"drains in tiers": {startertest.View(api.Draining, drain(api.DrainProgress{Total: 8, Remaining: 5, Tier: 2, Tiers: 4})), "Draining: tier 2 of 4, 3 of 8 pods gone"},
		"drains by force": {
			startertest.View(api.Draining, drain(api.DrainProgress{Total: 8, Remaining: 5}), func(s *api.Status) { s.Force = "kill" }),
			"Draining: 3 of 8 pods gone (kill)",
		},
		"ready":            {startertest.View(api.Ready, startertest.WaitingFor(`"done" or "failed" from ops`)), `Ready: waiting for "done" or "failed" from ops`},
		"requestor failed": {startertest.View(api.RequestorFailed, startertest.WaitingFor("a decision"), func(s *api.Status) { s.Failure = "exit status 1" }), "RequestorFailed: exit status 1"},
		"completed":        {startertest.Ended(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, ""), "Completed"},
		"cancelled":        {startertest.Ended(api.Cancelled, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, "cancelled by ops@host"), "Cancelled: cancelled by ops@host"},
		"terminated":       {terminated, "Failed: the workflow was terminated by hand"},
	} {
		if got := Progress(c.view.Known()); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                  "0s",
		999 * time.Millisecond:        "0s",
		59 * time.Second:              "59s",
		61 * time.Second:              "1m01s",
		10*time.Minute + time.Second:  "10m",
		time.Hour + 2*time.Minute:     "1h02m",
		47*time.Hour + 59*time.Minute: "47h59m",
		75 * time.Hour:                "3d3h",
	} {
		if got := period.Age(d); got != want {
			t.Errorf("period.Age(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestTheNextRungOfASharedDrainIsDueByTheTimeItDrained(t *testing.T) {
	at := func(phase api.Phase, minutes int) api.Transition {
		return api.Transition{Phase: phase, At: startertest.Noon.Add(time.Duration(minutes-100) * time.Minute)}
	}
	v := startertest.View(api.Draining, func(s *api.Status) {
		s.Spec.Lockstep = true
		s.Spec.Drain.Escalation = []spec.Rung{{After: spec.Duration(time.Hour), Do: spec.Fail}}
		s.CordonedAt = startertest.Ago(10 * time.Hour)
		s.Transitions = []api.Transition{
			at(api.Cordoned, 0), at(api.Draining, 10), at(api.Draining, 15), at(api.Ready, 20), at(api.Draining, 95), at(api.Draining, 97),
		}
		s.Since = s.Transitions[4].At
	})
	if got := nextRungText(v.Status, At(startertest.Noon)); got != "in 45m: fail" {
		t.Errorf("the next rung is %q", got)
	}
}
