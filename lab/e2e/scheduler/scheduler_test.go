package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// schedulerEvery is how often a worker makes sure that its scheduler runs.
const schedulerEvery = 30 * time.Second

func TestSlowTheSchedulerTerminatedByHandComesBackWithWhatItKnew(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 1}")
	s.MustDrydock("limits", "set", "--max-parallel", "2", "--comment", "two crews")
	nodes := s.WatchNodes()
	runs := map[string]client.WorkflowRun{}
	for _, name := range []string{"worker-01", "worker-02"} {
		runs[name] = s.Begin(name)
		s.Until(runs[name], api.Ready)
	}
	for _, name := range []string{"worker-03", "worker-04"} {
		runs[name] = s.Begin(name)
		s.WaitsFor(runs[name], "maxParallel 2")
	}
	s.MustDrydock("freeze", "--by", "incident-4711", "--comment", "look first")

	terminateScheduler(s)
	s.Within(schedulerEvery+site.Patience, "the scheduler is back", func() error {
		described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, api.SchedulerID(s.Cluster), "")
		if err == nil && described.WorkflowExecutionInfo.CloseTime != nil {
			err = errors.New("it does not run")
		}
		return err
	})
	var state api.State
	s.Eventually("it is rebuilt", func() error {
		if state = s.State(); state.Rebuilding || state.PendingAll != 2 {
			return fmt.Errorf("%+v", state)
		}
		return nil
	})
	holders := s.Holders()
	slices.Sort(holders)
	if !slices.Equal(holders, []string{"worker-01", "worker-02"}) {
		t.Errorf("holders = %v", holders)
	}
	if l := state.Limits; l.MaxParallel.String() != "2" || l.Comment != "two crews" {
		t.Errorf("limits = %+v", l)
	}
	if len(state.Freezes) != 1 || state.Freezes[0].By != "incident-4711" {
		t.Errorf("freezes = %+v", state.Freezes)
	}

	// What was granted before counts for what is granted now.
	s.MustDrydock("thaw", "--by", "incident-4711")
	s.WaitsFor(runs["worker-03"], "maxParallel 2")
	s.Done(runs["worker-01"])
	s.Until(runs["worker-03"], api.Ready)
	s.Done(runs["worker-02"])
	s.Until(runs["worker-04"], api.Ready)
	s.Done(runs["worker-03"])
	s.Done(runs["worker-04"])
	if most := s.NobodyHolds(nodes); most != 2 {
		t.Errorf("%d nodes were held at one instant, want 2", most)
	}
}

func terminateScheduler(s *site.Site) {
	s.Helper()
	if err := s.Temporal.TerminateWorkflow(s.Ctx, api.SchedulerID(s.Cluster), "", "by hand"); err != nil {
		s.Fatal(err)
	}
}

func TestAFreezeEndsWhenEverybodysIsTakenBack(t *testing.T) {
	s := site.New(t, "")
	s.MustDrydock("freeze", "--by", "ann", "--comment", "incident 1")
	s.MustDrydock("freeze", "--by", "bob", "--comment", "incident 2")
	run := s.Begin("worker-01")
	s.WaitsFor(run, "frozen by ann (incident 1), by bob (incident 2)")
	s.MustDrydock("thaw", "--by", "ann")
	if reason := s.WaitsFor(run, "by bob"); strings.Contains(reason, "ann") {
		t.Errorf("it waits for %q", reason)
	}
	s.MustBeFree("worker-01")
	s.Exits(s.Drydock("thaw", "--by", "ann"), 1, "bob")
	s.MustDrydock("thaw", "--all", "--comment", "over")
	s.Until(run, api.Ready)
	// A freeze says nothing to those that run.
	s.MustDrydock("freeze", "--by", "ann")
	s.Done(run)
}

func TestAFreezeOfRunningMaintenancesHoldsADrain(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	before := s.Imprint("worker-01")
	s.Guarded(ns, "web", "worker-01")
	run := s.Begin("worker-01")
	s.Until(run, api.Draining)
	s.RefusedOnce(ns)
	s.MustDrydock("freeze", "--by", "ann", "--comment", "incident", "--running")
	s.UntilStatus(run, "held", func(status api.Status) bool {
		return strings.Contains(status.WaitingFor, "thaw") && strings.Contains(status.WaitingFor, "incident")
	})
	s.Eventually("the drain has stopped", func() error {
		described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, run.GetID(), run.GetRunID())
		if err == nil && len(described.PendingActivities) > 0 {
			err = errors.New("it has not")
		}
		return err
	})
	s.Allow(ns, "web")
	s.Always("nothing is evicted", 3*time.Second, func() error {
		if accepted := s.Accepted(ns); len(accepted) > 0 {
			return fmt.Errorf("evicted: %v", accepted)
		}
		return nil
	})
	s.MustBeHeld("worker-01", run.GetRunID())
	s.MustDrydock("thaw", "--by", "ann")
	s.Until(run, api.Ready)
	s.Done(run)
	s.Back("worker-01", before)
}

func TestTheSchedulerSurvivesWhatItCannotUse(t *testing.T) {
	s := site.New(t, "")
	run := s.Begin("worker-01")
	s.Until(run, api.Ready)
	id := api.SchedulerID(s.Cluster)
	bad := []string{`"text"`, `[]`, `{"nonsense":1}`, `{"id":"x","node":"worker-02","requestor":"","runId":"r"}`, `{"requestId":7}`}
	for _, name := range []string{api.SignalSlotRequest, api.SignalSlotRelease} {
		for _, payload := range bad {
			if err := s.Temporal.SignalWorkflow(s.Ctx, id, "", name, json.RawMessage(payload)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Eventually("the bad signals are on record", func() error {
		ignored := 0
		for _, d := range s.State().Decisions {
			if strings.HasPrefix(d.What, "ignored") {
				ignored++
			}
		}
		if ignored != 2*len(bad) {
			return fmt.Errorf("%d of %d", ignored, 2*len(bad))
		}
		return nil
	})
	for update, payloads := range map[string][]string{
		api.UpdateSetLimits: {`{}`, `{"by":"ann","limits":{"maxParallel":0}}`, `{"by":"ann","limits":{"maxParallel":"many"}}`,
			`{"by":"ann","limits":{"groups":[{"name":"x"}]}}`, `"text"`, `{"by":"ann","limit":{}}`},
		api.UpdateFreeze: {`{}`, `[]`, `{"by":"ann","why":"x"}`},
		api.UpdateThaw:   {`{}`, `{"by":"ann"}`},
	} {
		for _, payload := range payloads {
			if _, err := updateScheduler(s, update, json.RawMessage(payload)); err == nil {
				t.Errorf("%s with %s is accepted", update, payload)
			}
		}
	}
	state := s.State()
	if state.Limits.SetBy != "configuration" || len(state.Freezes) > 0 || state.PendingAll > 0 || len(state.Holders) != 1 {
		t.Errorf("state = %+v", state)
	}
	s.Done(run)
}

func updateScheduler(s *site.Site, name string, payload any) (api.State, error) {
	var state api.State
	handle, err := s.Temporal.UpdateWorkflow(s.Ctx, client.UpdateWorkflowOptions{
		WorkflowID: api.SchedulerID(s.Cluster), UpdateName: name, Args: []any{payload},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(s.Ctx, &state)
	}
	return state, err
}
