package show

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
)

func planView(change ...func(*api.PlanStatus)) client.PlanView {
	until := startertest.Noon.Add(40 * time.Minute)
	s := &api.PlanStatus{
		Name: "kernel-6.12", WorkflowID: "maintenance-plan/kernel-6.12", RunID: "run-1", Phase: api.PlanRunning,
		Since: startertest.Before(2 * time.Hour), CreatedAt: startertest.Before(3 * time.Hour), Starter: &api.Sender{Identity: "jane@laptop"},
		WaitingFor: "the canary's soak", Until: &until,
		Plan: plan.Plan{
			Selection: plan.Selection{Selector: "pool=gpu"}, Requestor: "plan-kernel-6.12", Reason: "kernel 6.12", Ticket: "OPS-7", Owner: "infra",
			Strategy: plan.Strategy{
				MaxParallel: schedule.Percent(5), MaxFailures: schedule.Count(2), Order: plan.ByZone, PauseBetween: spec.Duration(time.Minute),
				Canary:    &plan.Canary{Nodes: 3, Soak: spec.Duration(time.Hour), Approval: true},
				OnBlocked: plan.SkipBlocked, BlockedAfter: spec.Duration(30 * time.Minute), ComeBackAfter: spec.Duration(10 * time.Minute), Tries: 3,
			},
		},
		Counts:   plan.Counts{Total: 500, Waiting: 493, Running: 2, Held: 1, Done: 3, Failed: 1},
		Warnings: []string{"every control-plane node is among them (3)"},
		Nodes: []api.PlanNode{
			{Node: "worker-004", State: "held", Since: startertest.Before(9 * time.Minute), Zone: "eu-1a", Tries: 1, RunID: "r4", Note: "the disk\nis broken"},
			{Node: "worker-005", State: "running", Since: startertest.Before(50 * time.Minute), Zone: "eu-1a", Tries: 2, RunID: "r5"},
			{Node: "worker-006", State: "failed", Since: startertest.Before(time.Hour), Zone: "eu-1a", Tries: 3, Note: "it did not empty within 30m0s: pod default/db-0 is protected by a budget that allows no disruptions"},
			{Node: "worker-007", State: "waiting", NotBefore: startertest.Noon.Add(4 * time.Minute), Zone: "eu-1b", Tries: 1, Note: "blocked"},
			{Node: "worker-008", State: "waiting", Zone: "eu-1b"},
			{Node: "worker-001", State: "done", Since: startertest.Before(2 * time.Hour), Zone: "eu-1a", Tries: 1},
		},
		Messages: []api.Received{{At: startertest.Before(time.Minute), Name: "resume", By: "jane@laptop", Comment: "the disk, not the kernel", Effect: "the plan goes on"}},
		Events:   []api.PlanEvent{{Sequence: 1, State: notices.PlanBegun, At: startertest.Before(3 * time.Hour), Message: "kernel 6.12"}},
	}
	for _, c := range change {
		c(s)
	}
	return client.PlanView{Status: s, Run: client.Run{
		Name: s.Name, RunID: "run-2", Started: startertest.Before(time.Hour), Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}
}

const planID = "maintenance-plan/kernel-6.12"

func endedPlan() client.PlanView {
	v := planView(func(s *api.PlanStatus) {
		s.Phase, s.Since, s.WaitingFor, s.Until, s.Failure = api.PlanIncomplete, startertest.Before(time.Minute), "", nil, "2 of 500 nodes failed"
		s.Counts = plan.Counts{Total: 500, Held: 1, Done: 498, Failed: 1}
	})
	v.Execution, v.Run.Ended = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, startertest.Before(time.Minute)
	v.Failure = "498 of 500 nodes are done, 2 failed"
	v.Result = &api.PlanResult{Phase: api.PlanIncomplete, RunID: "run-1", CreatedAt: startertest.Before(3 * time.Hour), EndedAt: startertest.Before(time.Minute), Counts: v.Status.Counts}
	return v
}

func terminatedPlan() client.PlanView {
	v := planView()
	v.Execution, v.Run.Ended = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, startertest.Before(time.Minute)
	v.Failure, v.Status, v.Unanswered = "the workflow was terminated by hand", nil, errors.New("nobody answers")
	return v
}

func slowNodes() []SlowNode {
	return []SlowNode{SlowNodeOf(startertest.Draining()), SlowNodeOf(startertest.View(api.Ready, startertest.WaitingFor(`"done" or "failed" from ops`)))}
}

func TestPlanStatusTables(t *testing.T) {
	startertest.GoldenInWidths(t, "plan_status", func(w io.Writer) {
		v := planView()
		PlanStatus(w, PlanOf(v, planID, Notable(v.Status.Nodes), 17, slowNodes()), startertest.Noon)
	})
	startertest.Golden(t, "plan_status_ended", func(w io.Writer) {
		PlanStatus(w, PlanOf(endedPlan(), planID, nil, 0, nil), startertest.Noon)
	})
	startertest.Golden(t, "plan_status_unanswered", func(w io.Writer) {
		v := planView()
		v.Status, v.Unanswered = nil, errors.New("nobody answers")
		PlanStatus(w, PlanOf(v, planID, nil, 0, nil), startertest.Noon)
	})
}

func TestPlanListTables(t *testing.T) {
	silent := planView()
	silent.Status, silent.Unanswered, silent.Name = nil, errors.New("nobody answers"), "bios"
	var plans Plans
	for _, v := range []client.PlanView{planView(), silent, endedPlan(), terminatedPlan()} {
		plans = append(plans, PlanSummaryOf(v, planID))
	}
	startertest.GoldenInWidths(t, "plan_list", func(w io.Writer) { PlanList(w, plans, false, startertest.Noon) })
	startertest.Golden(t, "plan_list_wide", func(w io.Writer) { PlanList(w, plans, true, startertest.Noon) })
	if names := plans.Names(); strings.Join(names, " ") != "kernel-6.12 bios" {
		t.Errorf("names %v", names)
	}
	if phase := plans[3].Phase; phase != api.PlanFailed {
		t.Errorf("one that was terminated is %s", phase)
	}
}

func TestPlansInALine(t *testing.T) {
	startertest.Golden(t, "plan_lines", func(w io.Writer) {
		for _, v := range []client.PlanView{planView(), endedPlan()} {
			l := PlanLine(v, startertest.Noon)
			fmt.Fprintln(w, l.Label, l.Age, l.Text)
		}
	})
}

func preview() PlanPreview {
	stopped := startertest.StoppedReport()
	stopped.Node = "worker-01"
	return PlanPreview{
		Name: "kernel-6.12", Spec: planView().Status.Plan, Total: 7,
		Waves: []PlanWave{
			{Nodes: []string{"worker-01", "worker-02"}, Shared: []preflight.Shared{{Budget: "default/db", Nodes: []string{"worker-01", "worker-02"}, Pods: 3, Allowed: 1}}},
			{Nodes: []string{"worker-03"}}, {Nodes: []string{"worker-04", "worker-05", "worker-06", "worker-07"}},
		},
		Preflights: []preflight.Report{stopped, {Node: "worker-02"}}, NotLookedAt: 5, Warnings: []string{"these are all 7 nodes of the cluster"},
		Estimate: &PlanEstimate{Duration: period.Duration(95 * time.Minute), Each: period.Duration(11 * time.Minute), Of: 40, Among: "on its nodes"},
	}
}

func TestDryRunsOfPlans(t *testing.T) {
	startertest.GoldenInWidths(t, "plan_dry_run", func(w io.Writer) { PlanDryRun(w, preview(), false) })
	startertest.Golden(t, "plan_dry_run_unknown", func(w io.Writer) {
		PlanDryRun(w, PlanPreview{Name: "bios", NotLookedAt: 0, Spec: plan.Plan{Strategy: plan.Strategy{MaxParallel: schedule.Count(1), MaxFailures: schedule.Count(0), Order: "name", OnBlocked: "wait"}}}, false)
	})
}

func TestPicturesOfPlans(t *testing.T) {
	const height = 20
	letters := strings.Repeat("d", 100) + "rrh" + strings.Repeat("f", 2) + strings.Repeat("w", 300) + "ssg"
	v := planView()
	draw := func(w io.Writer) {
		PlanPicture(w, PlanOf(v, planID, nil, 0, slowNodes()), letters, height, startertest.Noon)
	}
	startertest.GoldenInWidths(t, "plan_fleet", draw)
	startertest.Golden(t, "plan_fleet_colours", func(w io.Writer) { draw(&terminal.Page{Writer: w, Width: 80, Colour: true}) })
}

func TestThePictureOfAPlanInLockstepHasItsStage(t *testing.T) {
	v := planView()
	v.Status.Stages = &api.PlanStages{
		Stage: api.StageDrain, Tier: 1, Nodes: api.DrainCounts{Held: 12, Cordoned: 12, Drained: 3, Pending: 5, Evacuating: 2},
		Tiers: []drainplan.Entry{{PodType: drainplan.Default, PodPriority: 1000}, {PodType: drainplan.Default, PodPriority: 2000, PodSelector: "app=db"}},
	}
	draw := func(w io.Writer, height int) {
		PlanPicture(w, PlanOf(v, planID, nil, 0, slowNodes()), strings.Repeat("r", 12), height, startertest.Noon)
	}
	startertest.GoldenInWidths(t, "plan_fleet_stages", func(w io.Writer) { draw(w, 12) })
	var page strings.Builder
	draw(&terminal.Page{Writer: &page, Width: 80}, 8)
	if n := strings.Count(page.String(), "\n"); n > 8 {
		t.Errorf("it takes %d lines of 8:\n%s", n, page.String())
	}
}

func TestACellStandsForTheWorstOfItsNodes(t *testing.T) {
	page := &terminal.Page{Width: 10}
	for letters, want := range map[string]string{
		"":                        "",
		"wrdhfsg":                 ".>#!x-_",
		strings.Repeat("d", 25):   "##########|###|(a cell is up to 2 nodes and shows the worst)",
		"ddddddddddddddddddddwfd": "##########|x#|(a cell is up to 2 nodes and shows the worst)",
	} {
		rows := drawCells(page, letters, 2)
		if got := strings.Join(rows, "|"); got != want && !(len(letters) < 21 && strings.ReplaceAll(got, "|", "") == want) {
			t.Errorf("%s is drawn as %s, want %s", letters, got, want)
		}
	}
	var many strings.Builder
	PlanPicture(&terminal.Page{Writer: &many, Width: 80}, PlanOf(planView(), planID, nil, 0, slowNodes()), strings.Repeat("wd", 7500), 24, startertest.Noon)
	if n := strings.Count(many.String(), "\n"); n > 24 {
		t.Errorf("15000 nodes take %d lines of 24", n)
	}
	for line := range strings.Lines(many.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line has %d columns of 80: %s", n, line)
		}
	}
}

func TestAPlansSchedule(t *testing.T) {
	v := client.RecurringView{
		Name: "patches", When: plan.Recurrence{Cron: "0 22 * * 1", Timezone: "Europe/Berlin"}, Plan: &plan.Plan{Reason: "patches"},
		Next:       []time.Time{startertest.Noon.Add(8 * time.Hour), startertest.Noon.Add(176 * time.Hour)},
		Overlapped: 1, Missed: 2, Created: startertest.Before(999 * time.Hour),
		Runs: []client.RecurringRun{
			{Began: startertest.Before(500 * time.Hour), Result: &api.PlanRunResult{Phase: api.PlanCompleted, Message: "5 of 5 nodes are done"}},
			{Began: startertest.Before(400 * time.Hour), Failure: "it was terminated by hand"},
			{Began: startertest.Before(300 * time.Hour), Result: &api.PlanRunResult{Skipped: true, Message: "plan patches runs already"}},
			{Began: startertest.Before(200 * time.Hour), Result: &api.PlanRunResult{}, Failure: "1 of 5 nodes\nfailed"},
			{Began: startertest.Before(time.Hour), Running: true},
		},
	}
	all := PlanSchedules{PlanScheduleSummaryOf(v, "maintenance-plan/patches"), PlanScheduleSummaryOf(client.RecurringView{
		Name: "reboots", When: plan.Recurrence{Every: spec.Duration(7 * 24 * time.Hour)}, Paused: true, Note: "paused by amy: holidays",
		Next: v.Next,
	}, "maintenance-plan/reboots")}
	startertest.Golden(t, "plan_schedule_list", func(w io.Writer) { PlanScheduleList(w, all, startertest.Noon) })
	if all[1].NextAt != nil || all[0].LastStartedAt == nil {
		t.Errorf("%+v", all)
	}
	s := PlanScheduleOf(v, "maintenance-plan/patches")
	startertest.GoldenInWidths(t, "plan_schedule", func(w io.Writer) { PlanScheduleStatus(w, s, startertest.Noon) })
	v.Paused, v.Note, v.Runs, v.When = true, "paused by amy: holidays", nil, plan.Recurrence{Every: spec.Duration(36 * time.Hour)}
	if s = PlanScheduleOf(v, "x"); len(s.Next) != 0 || s.Runs == nil {
		t.Errorf("%+v", s)
	}
	startertest.Golden(t, "plan_schedule_paused", func(w io.Writer) { PlanScheduleStatus(w, s, startertest.Noon) })
}
