package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/docs/schemas/schematest"
	"drydock.dev/drydock/lab/e2e/site"
)

// scheduled is a schedule as the command line shows it to programs.
func scheduled(s *site.Site, name string, args ...string) (p api.PlanSchedule) {
	s.Helper()
	out := s.MustDrydock(append([]string{"plan", "schedule", name, "-o", "json"}, args...)...)
	schematest.Holds(s.T, "plan-schedule", []byte(out))
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		s.Fatal(err)
	}
	return p
}

// untilScheduled waits until a schedule is as wanted.
func untilScheduled(s *site.Site, name, what string, is func(api.PlanSchedule) bool) (p api.PlanSchedule) {
	s.Helper()
	s.Eventually("the schedule "+what, func() error {
		if p = scheduled(s, name); !is(p) {
			return fmt.Errorf("it is %+v", p)
		}
		return nil
	})
	return p
}

func TestAPlanThatRunsAgainAndAgain(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 5}")
	s.Exits(s.Drydock("plan", "schedule", "patches"), 1, "plan patches has no schedule", "--cron")
	file := s.File("plan.yaml", "nodes: [worker-01]\nreason: patches\n")
	s.Exits(s.Drydock("plan", "schedule", "patches", "-f", file, "--yes"), 2, "cron: is missing")
	s.Exits(s.Drydock("plan", "schedule", "patches", "-f", file, "--cron", "0 22 1-7 * 1", "--yes"), 2, "write * for one of them")
	s.Exits(s.Drydock("plan", "schedule", "patches", "-f", file, "--cron", "0 22 * * 1", "--pause"), 2, "leave out")
	s.Exits(s.Drydock("plan", "schedule", "patches", "-f", file, "--cron", "0 22 * * 1", "--timezone", "Europe/Berlin"), 2, "--yes")
	s.Exits(s.Drydock("plan", "schedule", "patches", "-f", file, "--cron", "0 22 * * 1", "--timezone", "Europe/Berlin", "--yes"), 0,
		"It runs 0 22 * * 1 in Europe/Berlin", "patches: schedule made")
	s.Exits(s.Drydock("plan", "schedule", "patches"), 0, "0 22 * * 1 in Europe/Berlin", "It has not run yet")
	s.Eventually("it is in the list", func() error {
		out := s.MustDrydock("plan", "schedule", "list", "-o", "json")
		schematest.Holds(t, "plan-schedules", []byte(out))
		var all api.PlanSchedules
		if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 || all[0].Name != "patches" || all[0].NextAt == nil || all[0].Recurrence.Cron != "0 22 * * 1" {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	s.Exits(s.Drydock("plan", "schedule", "list"), 0, "patches", "0 22 * * 1 in Europe/Berlin")
	if p := scheduled(s, "patches"); len(p.Next) != 10 || p.Next[0].Weekday().String() != "Monday" || p.Plan == nil || p.Plan.Reason != "patches" {
		t.Errorf("it is %+v", p)
	}

	s.Exits(s.Drydock("plan", "schedule", "patches", "--now"), 0, "a run is begun")
	readyInPlan(s, "patches", "worker-01")
	untilScheduled(s, "patches", "tells of a run", func(p api.PlanSchedule) bool { return len(p.Runs) == 1 && p.Runs[0].Running })
	s.Exits(s.Drydock("plan", "schedule", "patches", "--now"), 1, "a run of plan patches goes on")
	if err := s.Temporal.ScheduleClient().GetHandle(s.Ctx, api.ScheduleID(s.Cluster, "patches")).Trigger(s.Ctx, client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	untilScheduled(s, "patches", "tells of an overlap", func(p api.PlanSchedule) bool { return p.Overlapped == 1 && len(p.Runs) == 1 })
	s.MustDrydock("done", "worker-01", "--requestor", "plan-patches", "--yes")
	untilScheduled(s, "patches", "tells of the run's end", func(p api.PlanSchedule) bool {
		return len(p.Runs) == 1 && p.Runs[0].Phase == api.PlanCompleted && !p.Runs[0].Running
	})
	s.Exits(s.Drydock("plan", "schedule", "patches"), 0, "Completed", "1 of 1 nodes are done")

	s.Exits(s.Drydock("plan", "schedule", "patches", "--pause", "--comment", "freeze over Christmas", "--by", "amy"), 0, "begins no more runs")
	if p := scheduled(s, "patches"); !p.Paused || len(p.Next) != 0 || p.Note != "paused by amy: freeze over Christmas" {
		t.Errorf("it is %+v", p)
	}
	s.Exits(s.Drydock("plan", "schedule", "patches", "-f", file, "--every", "1d", "--yes"), 0, "schedule changed")
	s.Exits(s.Drydock("plan", "schedule", "patches"), 0, "every 1d", "paused by amy: freeze over Christmas")
	s.Exits(s.Drydock("plan", "schedule", "patches", "--resume"), 0, "begins runs again")

	// A plan of that name that was started otherwise.
	newPlan(s, "patches", `{"nodes":["worker-02"],"requestor":"ops"}`)
	readyInPlan(s, "patches", "worker-02")
	s.Exits(s.Drydock("plan", "schedule", "patches", "--now"), 0)
	untilScheduled(s, "patches", "tells of a run that was skipped", func(p api.PlanSchedule) bool { return len(p.Runs) == 2 && p.Runs[1].Skipped })
	s.Exits(s.Drydock("plan", "schedule", "patches"), 0, "plan patches runs already")
	s.MustDrydock("done", "worker-02", "--requestor", "ops", "--yes")

	s.Exits(s.Drydock("plan", "schedule", "patches", "--delete", "--yes"), 0, "schedule deleted")
	s.Eventually("the schedule is gone", func() error {
		if r := s.Drydock("plan", "schedule", "patches"); !strings.Contains(r.Out(), "has no schedule") {
			return errors.New(r.Out())
		}
		return nil
	})

	// A schedule as the Temporal CLI makes it from the reference's command.
	if _, err := s.Temporal.ScheduleClient().Create(s.Ctx, client.ScheduleOptions{
		ID: api.ScheduleID(s.Cluster, "elsewhere"), Spec: client.ScheduleSpec{CronExpressions: []string{"30 6 * * 1-5"}, TimeZoneName: "Europe/Berlin"},
		Action: &client.ScheduleWorkflowAction{
			ID: api.PlanRunID(s.Cluster, "elsewhere"), Workflow: api.PlanRunType, TaskQueue: api.TaskQueue(s.Cluster, api.DefaultTaskQueue),
			Args: []any{api.PlanRunInput{Name: "elsewhere", Plan: json.RawMessage(`{"nodes":["worker-01"],"reason":"patches"}`)}},
		},
	}); err != nil {
		t.Fatal(err)
	}
	s.Exits(s.Drydock("plan", "schedule", "elsewhere"), 0, "30 6 * * 1-5 in Europe/Berlin", "patches")
	s.Exits(s.Drydock("plan", "schedule", "elsewhere", "--delete", "--yes"), 0, "schedule deleted")
}
