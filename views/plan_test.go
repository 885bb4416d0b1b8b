package views_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func terminatedPlan() client.PlanView {
	v := startertest.Plan()
	v.Execution, v.Run.Ended = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, startertest.Before(time.Minute)
	v.Failure, v.Status, v.Unanswered = "the workflow was terminated by hand", nil, errors.New("nobody answers")
	return v
}

func slowNodes() []api.SlowNode {
	return []api.SlowNode{
		views.SlowNode(startertest.Draining().Known()),
		views.SlowNode(startertest.View(api.Ready, startertest.WaitingFor(`"done" or "failed" from ops`)).Known()),
	}
}

func TestPlanStatusTables(t *testing.T) {
	startertest.GoldenInWidths(t, "plan_status", func(w io.Writer) {
		p := startertest.Plan().Known()
		p.MoreNodes, p.Slowest = 17, slowNodes()
		terminal.Show(w, views.Plan(p, noon))
	})
	startertest.Golden(t, "plan_status_ended", func(w io.Writer) {
		p := startertest.EndedPlan().Known()
		p.Nodes = nil
		terminal.Show(w, views.Plan(p, noon))
	})
	startertest.Golden(t, "plan_status_unanswered", func(w io.Writer) {
		v := startertest.Plan()
		v.Status, v.Unanswered = nil, errors.New("nobody answers")
		terminal.Show(w, views.Plan(v.Known(), noon))
	})
}

func TestPlanListTables(t *testing.T) {
	silent := startertest.Plan()
	silent.Status, silent.Unanswered, silent.Name = nil, errors.New("nobody answers"), "bios"
	var plans api.Plans
	for _, v := range []client.PlanView{startertest.Plan(), silent, startertest.EndedPlan(), terminatedPlan()} {
		plans = append(plans, v.Summary())
	}
	startertest.GoldenInWidths(t, "plan_list", func(w io.Writer) { terminal.Show(w, views.Plans(plans, false, noon)) })
	startertest.Golden(t, "plan_list_wide", func(w io.Writer) { terminal.Show(w, views.Plans(plans, true, noon)) })
	if names := plans.Names(); strings.Join(names, " ") != "kernel-6.12 bios" {
		t.Errorf("names %v", names)
	}
	if phase := plans[3].Phase; phase != api.PlanFailed {
		t.Errorf("one that was terminated is %s", phase)
	}
}

// TestAPausedPlanSaysOnceThatItIs: by whom, and why.
func TestAPausedPlanSaysOnceThatItIs(t *testing.T) {
	const message = "paused by root@vm: incident"
	for why, want := range map[string]bool{message: false, "": true} {
		p := startertest.Plan(func(s *api.PlanStatus) {
			s.Phase, s.WaitingFor, s.Until, s.Failure = api.PlanPaused, plan.PausedWaits, nil, why
		}).Known()
		var out strings.Builder
		terminal.Show(&out, views.Plan(p, noon))
		if got := out.String(); strings.Contains(got, "Waiting for:") != want || !strings.Contains(got, why) {
			t.Errorf("with the message %q:\n%s", why, got)
		}
	}
}

// TestTheLastColumnOfAListIsNamedByWhatItHolds: what runs waits, and what has ended has an outcome.
func TestTheLastColumnOfAListIsNamedByWhatItHolds(t *testing.T) {
	running, ended := startertest.Plan().Summary(), startertest.EndedPlan().Summary()
	for want, all := range map[string]api.Plans{"WAITING FOR": {running}, "MESSAGE": {running, ended}} {
		var out strings.Builder
		terminal.Show(&out, views.Plans(all, false, noon))
		if head, _, _ := strings.Cut(out.String(), "\n"); !strings.HasSuffix(head, "  "+want) {
			t.Errorf("its head is %q, want %s", head, want)
		}
	}
}

func preview() api.PlanPreview {
	stopped := startertest.StoppedReport()
	stopped.Node = "worker-01"
	return api.PlanPreview{
		Name: "kernel-6.12", Spec: startertest.Plan().Status.Plan, Total: 7,
		Waves: []api.PlanWave{
			{Nodes: []string{"worker-01", "worker-02"}, Shared: []preflight.Shared{{Budget: "default/db", Nodes: []string{"worker-01", "worker-02"}, Pods: 3, Allowed: 1}}},
			{Nodes: []string{"worker-03"}}, {Nodes: []string{"worker-04", "worker-05", "worker-06", "worker-07"}},
		},
		Preflights: []preflight.Report{stopped, {Node: "worker-02"}}, NotLookedAt: 5, Warnings: []string{"these are all 7 nodes of the cluster"},
		Estimate: &api.PlanEstimate{Duration: period.Duration(95 * time.Minute), Each: period.Duration(11 * time.Minute), Of: 40, Among: "on its nodes"},
	}
}

func TestDryRunsOfPlans(t *testing.T) {
	startertest.GoldenInWidths(t, "plan_dry_run", func(w io.Writer) { terminal.Show(w, views.PlanPreview(preview(), false, noon)) })
	startertest.Golden(t, "plan_dry_run_unknown", func(w io.Writer) {
		terminal.Show(w, views.PlanPreview(api.PlanPreview{Name: "bios", NotLookedAt: 0, NoEstimate: "no maintenance completed in the last 30 days", Spec: plan.Plan{Strategy: plan.Strategy{MaxParallel: schedule.Count(1), MaxFailures: schedule.Count(0), Order: "name", OnBlocked: "wait"}}}, false, noon))
	})
}

func TestPlansInStages(t *testing.T) {
	startertest.GoldenInWidths(t, "plan_stages", func(w io.Writer) { terminal.Show(w, views.Plan(startertest.StagedPlan(), noon)) })
}

func TestWhatAllNodesWaitForIsSaidOnce(t *testing.T) {
	const gang = "gang firmware needs 2 slots at once"
	p := startertest.StagedPlan()
	p.WaitingFor = "its nodes to be cordoned: 0 of 2 are; " + gang
	for i := range p.Nodes {
		p.Nodes[i].Note = gang
	}
	var out strings.Builder
	terminal.Show(&out, views.Plan(p, noon))
	if n := strings.Count(out.String(), gang); len(p.Nodes) < 2 || n != 1 {
		t.Errorf("%d nodes, and %d times in\n%s", len(p.Nodes), n, out.String())
	}
}

// TestANoteIsLeftOutOnlyWhereTheWholeOfItIsSaid: a brief view cuts what the plan waits for, and a word of that is not all of it.
func TestANoteIsLeftOutOnlyWhereTheWholeOfItIsSaid(t *testing.T) {
	const gang = "gang storage-controllers-in-the-second-room of 300 nodes goes once limits are raised that it is larger than by itself: " +
		"drydock limits set --max-parallel 300 --max-unavailable 300 (maxParallel 2)"
	p := startertest.StagedPlan()
	p.WaitingFor, p.Nodes = "its nodes to be cordoned: 0 of 300 are; "+gang, p.Nodes[:1]
	p.Nodes[0].Note = gang
	if got := document.Details(views.Plan(p, views.Brief())); strings.Count(got, "--max-unavailable 300") != 1 {
		t.Errorf("the command is not whole, or is there twice:\n%s", got)
	}
	p = startertest.Plan(func(s *api.PlanStatus) { s.WaitingFor, s.Until = "blocked nodes, which come back later", nil }).Known()
	if got := document.Details(views.Plan(p, views.Brief())); !strings.Contains(got, "Z: blocked\n") {
		t.Errorf("why a node comes back later is not said:\n%s", got)
	}
}

func TestTheDryRunOfStages(t *testing.T) {
	p := plan.Plan{Strategy: plan.Strategy{Type: plan.AllAtOnce}, DrainPlan: &spec.Plan{Include: drainplan.Types(), Static: spec.SkipStatic}}
	pods := []preflight.Pod{{Pod: "default/web-1", Tier: 1, Action: preflight.Evict}, {Pod: "kube-system/net", Tier: 7, Action: preflight.Delete}, {Pod: "kube-system/api", Tier: 11, Action: preflight.Skip}}
	startertest.GoldenInWidths(t, "plan_dry_run_stages", func(w io.Writer) {
		terminal.Show(w, views.PlanPreview(api.PlanPreview{
			Name: "firmware", Spec: p, Total: 2, NoEstimate: "as long as a limit keeps nodes from being begun (see the warnings)", Preflights: []preflight.Report{{Node: "one", Pods: pods}, {Node: "two", Pods: pods[:1]}},
			Waves: []api.PlanWave{{Nodes: []string{"one", "two"}, Shared: []preflight.Shared{{Budget: "default/web", Nodes: []string{"one", "two"}, Pods: 2, Allowed: 1}}}},
		}, false, noon))
	})
}

// TestTiersAreEmptyAsFarAsPodsAreKnown: of nodes that were not looked at nothing is, and a preflight lists the first pods only.
func TestTiersAreEmptyAsFarAsPodsAreKnown(t *testing.T) {
	p := plan.Plan{Strategy: plan.Strategy{Type: plan.AllAtOnce}, DrainPlan: &spec.Plan{Include: drainplan.Types(), Static: spec.SkipStatic}}
	pods := []preflight.Pod{{Pod: "default/web-1", Tier: 1, Action: preflight.Evict}}
	for want, c := range map[string]struct{ notLookedAt, morePods int }{
		"no pod would leave now in the other":                          {0, 0},
		"no pod of the nodes looked at would leave now in the other":   {280, 0},
		"no pod that the preflights list would leave now in the other": {280, 7},
	} {
		var out strings.Builder
		terminal.Show(&out, views.PlanPreview(api.PlanPreview{
			Name: "firmware", Spec: p, Preflights: []preflight.Report{{Node: "one", Pods: pods, MorePods: c.morePods}}, NotLookedAt: c.notLookedAt,
		}, false, noon))
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}

func TestDetailsOfAPlan(t *testing.T) {
	v := startertest.Plan(func(s *api.PlanStatus) {
		s.Plan.Strategy.Canary, s.Plan.Strategy.OnBlocked = nil, plan.WaitBlocked
		s.Troubles = []api.Trouble{{What: "begin worker-9", Why: "no *permission*"}}
		s.Nodes = append(s.Nodes[:1:1], s.Nodes[3:]...)
	})
	const want = "**Plan kernel-6.12**\n\n- **Requestor:** plan-kernel-6.12\n- **Started by:** jane@laptop\n- **Reason:** kernel 6.12\n- **Ticket:** OPS-7\n" +
		"- **Owner:** infra\n- **Strategy:** 5% at a time by zone; 1m00s between nodes; pauses after more than 2 failed\n" +
		"- **Phase:** Running (since 2026-07-01 08:00:00Z)\n- **Nodes:** 3 of 500 done, 2 running, 2 failed (1 still held), 493 waiting\n" +
		"- **Waiting for:** the canary's soak, until 2026-07-01 10:40:00Z\n\nWarning: every control-plane node is among them (3)\n\n" +
		"Warning: begin worker-9: no \\*permission\\*\n\nWith something to say:\n\n- worker-004; state: held; since: 2026-07-01 09:51:00Z; tries: 1; zone: eu-1a; note: the disk is broken\n" +
		"- worker-007; state: waiting; tries: 1; zone: eu-1b; note: back at 2026-07-01 10:04:00Z: blocked\n\nMessages, the latest first:\n\n" +
		"- 2026-07-01 09:59:00Z; message: resume; by: jane@laptop; effect: the plan goes on; comment: the disk, not the kernel"
	if got := document.Details(views.Plan(v.Known(), views.Brief())); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAPlansSchedule(t *testing.T) {
	runs := []api.PlanScheduleRun{
		{StartedAt: startertest.Before(500 * time.Hour), Phase: api.PlanCompleted, Message: "5 of 5 nodes are done"},
		{StartedAt: startertest.Before(400 * time.Hour), Phase: api.PlanFailed, Message: "it was terminated by hand"},
		{StartedAt: startertest.Before(300 * time.Hour), Skipped: true, Message: "plan patches runs already"},
		{StartedAt: startertest.Before(200 * time.Hour), Phase: api.PlanFailed, Message: "1 of 5 nodes\nfailed"},
		{StartedAt: startertest.Before(time.Hour), Running: true},
	}
	s := api.PlanSchedule{
		Name: "patches", Recurrence: plan.Recurrence{Cron: "0 22 * * 1", Timezone: "Europe/Berlin"}, Plan: &plan.Plan{Reason: "patches"},
		Next:       []time.Time{startertest.Noon.Add(8 * time.Hour), startertest.Noon.Add(176 * time.Hour)},
		Overlapped: 1, Missed: 2, Runs: runs, ScheduleID: "maintenance-plan/patches",
	}
	all := api.PlanSchedules{
		{Name: s.Name, Recurrence: s.Recurrence, NextAt: &s.Next[0], LastStartedAt: &runs[4].StartedAt},
		{Name: "reboots", Recurrence: plan.Recurrence{Every: spec.Duration(7 * 24 * time.Hour)}, Paused: true, Note: "paused by amy: holidays"},
	}
	startertest.Golden(t, "plan_schedule_list", func(w io.Writer) { terminal.Show(w, views.PlanSchedules(all, noon)) })
	startertest.GoldenInWidths(t, "plan_schedule", func(w io.Writer) { terminal.Show(w, views.PlanSchedule(s, noon)) })
	s.Paused, s.Note, s.Next, s.Runs, s.Recurrence = true, "paused by amy: holidays", nil, nil, plan.Recurrence{Every: spec.Duration(36 * time.Hour)}
	startertest.Golden(t, "plan_schedule_paused", func(w io.Writer) { terminal.Show(w, views.PlanSchedule(s, noon)) })
}
