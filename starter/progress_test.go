package starter

import (
	"errors"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock/api"
	"drydock/client"
	"drydock/rules/period"
	"drydock/rules/spec"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.Local)

// viewOf is a running maintenance of worker-01 for ops in a phase for five minutes.
func viewOf(phase api.Phase, change ...func(*api.Status)) client.View {
	s := &api.Status{
		WorkflowID: "node-maintenance/worker-01/ops", RunID: "run-1", Phase: phase, Since: noon.Add(-5 * time.Minute), Attempt: 1,
		Spec:       spec.Maintenance{Node: "worker-01", Requestor: "ops", Type: spec.Planned, OnReadyTimeout: spec.FailOnTimeout, Drain: spec.Drain{Mode: spec.ModeEvict}},
		Requestors: []api.RequestorStatus{{Name: "ops"}},
	}
	for _, c := range change {
		c(s)
	}
	return client.View{Status: s, Maintenance: client.Maintenance{
		Node: "worker-01", Requestor: "ops", WorkflowID: s.WorkflowID, RunID: s.RunID, Started: noon.Add(-10 * time.Minute),
		Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}
}

func endedView(phase api.Phase, execution enumspb.WorkflowExecutionStatus, message string) client.View {
	v := viewOf(phase)
	v.Status, v.Execution, v.Closed = nil, execution, noon.Add(-time.Minute)
	v.Result = &api.Result{Phase: phase, Message: message}
	return v
}

func waitingFor(what string) func(*api.Status) {
	return func(s *api.Status) { s.WaitingFor = what }
}

func TestProgressLines(t *testing.T) {
	drain := func(d api.DrainProgress) func(*api.Status) {
		return func(s *api.Status) { s.Drain = &d }
	}
	blocked := api.Blocker{Pod: "default/db-0", Reason: "DisruptionBudget", Message: "budget db allows 0 disruptions"}
	unknown := viewOf("")
	unknown.Status = nil
	terminated := endedView("", enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, "")
	terminated.Result, terminated.Failure = nil, "the workflow was terminated by hand"
	for name, c := range map[string]struct {
		view client.View
		want string
	}{
		"nobody answered yet": {unknown, "Starting"},
		"waits for a slot":    {viewOf(api.Pending, waitingFor("maxParallel 1: the slot is taken (worker-02)")), "Pending: maxParallel 1: the slot is taken (worker-02)"},
		"second attempt": {
			viewOf(api.Pending, func(s *api.Status) { s.Attempt = 2 }), "Pending (attempt 2)",
		},
		"at work":      {viewOf(api.Cordoning), "Cordoning"},
		"drains":       {viewOf(api.Draining, drain(api.DrainProgress{Total: 8, Evicted: 4, Remaining: 5, Terminating: 1})), "Draining: 3 of 8 pods gone, 5 left (1 terminating)"},
		"empty anyway": {viewOf(api.Draining, drain(api.DrainProgress{})), "Draining: no pods to drain"},
		"drain is blocked": {
			viewOf(api.Draining, drain(api.DrainProgress{Total: 2, Remaining: 2, Blockers: []api.Blocker{blocked, blocked}, MoreBlockers: 3})),
			"Draining: 0 of 2 pods gone, 2 left; default/db-0: budget db allows 0 disruptions; 4 more blocked",
		},
		"drains in tiers": {viewOf(api.Draining, drain(api.DrainProgress{Total: 8, Remaining: 5, Tier: 2, Tiers: 4})), "Draining: tier 2 of 4, 3 of 8 pods gone, 5 left"},
		"drains by force": {
			viewOf(api.Draining, drain(api.DrainProgress{Total: 8, Remaining: 5}), func(s *api.Status) { s.Force = "kill" }),
			"Draining: 3 of 8 pods gone, 5 left (kill)",
		},
		"ready":            {viewOf(api.Ready, waitingFor(`"done" or "failed" from ops`)), `Ready: waiting for "done" or "failed" from ops`},
		"requestor failed": {viewOf(api.RequestorFailed, waitingFor("a decision"), func(s *api.Status) { s.Failure = "exit status 1" }), "RequestorFailed: exit status 1"},
		"completed":        {endedView(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, ""), "Completed"},
		"cancelled":        {endedView(api.Cancelled, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, "cancelled by ops@host"), "Cancelled: cancelled by ops@host"},
		"terminated":       {terminated, "Failed: the workflow was terminated by hand"},
	} {
		if got := progress(c.view); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestLineNamesAnotherRequestor(t *testing.T) {
	v := viewOf(api.Ready)
	if l := lineOf(v, "ops", noon); l.Label != "worker-01" || l.Age != 5*time.Minute {
		t.Errorf("line = %+v", l)
	}
	if l := lineOf(v, "jane", noon); l.Label != "worker-01 (ops)" {
		t.Errorf("line = %+v", l)
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

func TestOneLineKeepsTheTerminalSafe(t *testing.T) {
	if got, want := oneLine("a\nb\tc\x1b[2Jd\u009be\u00fc"), "a b c[2Jde\u00fc"; got != want {
		t.Errorf("oneLine = %q, want %q", got, want)
	}
}

func TestGoalReady(t *testing.T) {
	finished := endedView(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "")
	finished.Result.Transitions = []api.Transition{{Phase: api.Ready}}
	for name, c := range map[string]struct {
		view    client.View
		reached bool
		code    int
	}{
		"draining":            {viewOf(api.Draining), false, 0},
		"ready":               {viewOf(api.Ready), true, 0},
		"requestor failed":    {viewOf(api.RequestorFailed), false, 1},
		"over already":        {finished, true, 0},
		"completed unready":   {endedView(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, ""), false, 1},
		"cancelled before it": {endedView(api.Cancelled, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, ""), false, 3},
		"node gone before it": {endedView(api.NodeGone, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, ""), false, 1},
	} {
		reached, err := client.Ready(c.view)
		err = goalMissed(err)
		if reached != c.reached || codeOf(err) != c.code {
			t.Errorf("%s: reached %v with code %d (%v), want %v with %d", name, reached, codeOf(err), err, c.reached, c.code)
		}
	}
}

func TestGoalEnd(t *testing.T) {
	completed := endedView(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "")
	cancelled := endedView(api.Cancelled, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, "")
	for name, c := range map[string]struct {
		goal client.Goal
		view client.View
		code int
	}{
		"completes":                {client.Completed, completed, 0},
		"cancelled, not completed": {client.Completed, cancelled, 3},
		"cancelled, as wanted":     {client.Ends(api.Cancelled), cancelled, 0},
		"completed, not cancelled": {client.Ends(api.Cancelled), completed, 1},
	} {
		if reached, err := c.goal(c.view); !reached || codeOf(goalMissed(err)) != c.code {
			t.Errorf("%s: reached %v with code %d (%v), want %d", name, reached, codeOf(err), err, c.code)
		}
	}
	if reached, err := client.Completed(viewOf(api.Releasing)); reached || err != nil {
		t.Errorf("a running one: %v, %v", reached, err)
	}
}

func TestStoppedWaitSaysHowToGoOn(t *testing.T) {
	c := &connection{program: "drydock"}
	for cause, code := range map[error]int{errTimedOut: exitTimedOut, errInterrupted: exitInterrupted, errors.New("x"): exitFailed} {
		if err := c.stopped(cause, "worker-01", "it"); codeOf(err) != code {
			t.Errorf("%v: code %d, want %d", err, codeOf(err), code)
		}
	}
	if c.stopped(nil, "worker-01", "it") != nil {
		t.Error("no error became one")
	}
}

func TestHintsComeTwiceSoonAndThenRarely(t *testing.T) {
	var h hints
	var given []int
	for second := range 200 {
		if h.due(noon.Add(time.Duration(second) * time.Second)) {
			given = append(given, second)
		}
	}
	want := []int{0, 10, 70, 130, 190}
	if len(given) != len(want) {
		t.Fatalf("hints at %v, want %v", given, want)
	}
	for i := range want {
		if given[i] != want[i] {
			t.Fatalf("hints at %v, want %v", given, want)
		}
	}
}
