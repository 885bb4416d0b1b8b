package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/docs/schemas/schematest"
	"drydock.dev/drydock/starter/show"
)

// scheduled is a schedule as the command line shows it to programs.
func (s *site) scheduled(name string, args ...string) (p show.PlanSchedule) {
	s.Helper()
	out := s.mustDrydock(append([]string{"plan", "schedule", name, "-o", "json"}, args...)...)
	schematest.Holds(s.T, "plan-schedule", []byte(out))
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		s.Fatal(err)
	}
	return p
}

// untilScheduled waits until a schedule is as wanted.
func (s *site) untilScheduled(name, what string, is func(show.PlanSchedule) bool) (p show.PlanSchedule) {
	s.Helper()
	s.eventually("the schedule "+what, func() error {
		if p = s.scheduled(name); !is(p) {
			return fmt.Errorf("it is %+v", p)
		}
		return nil
	})
	return p
}

func TestAPlanThatRunsAgainAndAgain(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 5}")
	s.exits(s.drydock("plan", "schedule", "patches"), 1, "plan patches has no schedule", "--cron")
	file := s.file("plan.yaml", "nodes: [worker-01]\nreason: patches\n")
	s.exits(s.drydock("plan", "schedule", "patches", "-f", file, "--yes"), 2, "cron: is missing")
	s.exits(s.drydock("plan", "schedule", "patches", "-f", file, "--cron", "0 22 1-7 * 1", "--yes"), 2, "write * for one of them")
	s.exits(s.drydock("plan", "schedule", "patches", "-f", file, "--cron", "0 22 * * 1", "--pause"), 2, "leave out")
	s.exits(s.drydock("plan", "schedule", "patches", "-f", file, "--cron", "0 22 * * 1", "--timezone", "Europe/Berlin"), 2, "--yes")
	s.exits(s.drydock("plan", "schedule", "patches", "-f", file, "--cron", "0 22 * * 1", "--timezone", "Europe/Berlin", "--yes"), 0,
		"It runs 0 22 * * 1 in Europe/Berlin", "patches: schedule made")
	s.exits(s.drydock("plan", "schedule", "patches"), 0, "0 22 * * 1 in Europe/Berlin", "It has not run yet")
	s.eventually("it is in the list", func() error {
		out := s.mustDrydock("plan", "schedule", "list", "-o", "json")
		schematest.Holds(t, "plan-schedules", []byte(out))
		var all show.PlanSchedules
		if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 || all[0].Name != "patches" || all[0].NextAt == nil || all[0].Recurrence.Cron != "0 22 * * 1" {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	s.exits(s.drydock("plan", "schedule", "list"), 0, "patches", "0 22 * * 1 in Europe/Berlin")
	if p := s.scheduled("patches"); len(p.Next) != 10 || p.Next[0].Weekday().String() != "Monday" || p.Plan == nil || p.Plan.Reason != "patches" {
		t.Errorf("it is %+v", p)
	}

	s.exits(s.drydock("plan", "schedule", "patches", "--now"), 0, "a run is begun")
	s.readyInPlan("patches", "worker-01")
	s.untilScheduled("patches", "tells of a run", func(p show.PlanSchedule) bool { return len(p.Runs) == 1 && p.Runs[0].Running })
	s.exits(s.drydock("plan", "schedule", "patches", "--now"), 1, "a run of plan patches goes on")
	if err := s.temporal.ScheduleClient().GetHandle(s.ctx, api.ScheduleID(s.cluster, "patches")).Trigger(s.ctx, client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	s.untilScheduled("patches", "tells of an overlap", func(p show.PlanSchedule) bool { return p.Overlapped == 1 && len(p.Runs) == 1 })
	s.mustDrydock("done", "worker-01", "--requestor", "plan-patches", "--yes")
	s.untilScheduled("patches", "tells of the run's end", func(p show.PlanSchedule) bool {
		return len(p.Runs) == 1 && p.Runs[0].Phase == api.PlanCompleted && !p.Runs[0].Running
	})
	s.exits(s.drydock("plan", "schedule", "patches"), 0, "Completed", "1 of 1 nodes are done")

	s.exits(s.drydock("plan", "schedule", "patches", "--pause", "--comment", "freeze over Christmas", "--by", "amy"), 0, "begins no more runs")
	if p := s.scheduled("patches"); !p.Paused || len(p.Next) != 0 || p.Note != "paused by amy: freeze over Christmas" {
		t.Errorf("it is %+v", p)
	}
	s.exits(s.drydock("plan", "schedule", "patches", "-f", file, "--every", "1d", "--yes"), 0, "schedule changed")
	s.exits(s.drydock("plan", "schedule", "patches"), 0, "every 1d", "paused by amy: freeze over Christmas")
	s.exits(s.drydock("plan", "schedule", "patches", "--resume"), 0, "begins runs again")

	// A plan of that name that was started otherwise.
	s.plan("patches", `{"nodes":["worker-02"],"requestor":"ops"}`)
	s.readyInPlan("patches", "worker-02")
	s.exits(s.drydock("plan", "schedule", "patches", "--now"), 0)
	s.untilScheduled("patches", "tells of a run that was skipped", func(p show.PlanSchedule) bool { return len(p.Runs) == 2 && p.Runs[1].Skipped })
	s.exits(s.drydock("plan", "schedule", "patches"), 0, "plan patches runs already")
	s.mustDrydock("done", "worker-02", "--requestor", "ops", "--yes")

	s.exits(s.drydock("plan", "schedule", "patches", "--delete", "--yes"), 0, "schedule deleted")
	s.eventually("the schedule is gone", func() error {
		if r := s.drydock("plan", "schedule", "patches"); !strings.Contains(r.out(), "has no schedule") {
			return errors.New(r.out())
		}
		return nil
	})

	// A schedule as the Temporal CLI makes it from the reference's command.
	if _, err := s.temporal.ScheduleClient().Create(s.ctx, client.ScheduleOptions{
		ID: api.ScheduleID(s.cluster, "elsewhere"), Spec: client.ScheduleSpec{CronExpressions: []string{"30 6 * * 1-5"}, TimeZoneName: "Europe/Berlin"},
		Action: &client.ScheduleWorkflowAction{
			ID: api.PlanRunID(s.cluster, "elsewhere"), Workflow: api.PlanRunType, TaskQueue: api.TaskQueue(s.cluster, api.DefaultTaskQueue),
			Args: []any{api.PlanRunInput{Name: "elsewhere", Plan: json.RawMessage(`{"nodes":["worker-01"],"reason":"patches"}`)}},
		},
	}); err != nil {
		t.Fatal(err)
	}
	s.exits(s.drydock("plan", "schedule", "elsewhere"), 0, "30 6 * * 1-5 in Europe/Berlin", "patches")
	s.exits(s.drydock("plan", "schedule", "elsewhere", "--delete", "--yes"), 0, "schedule deleted")
}
