package e2e

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
)

// schedulerEvery is how often a worker makes sure that its scheduler runs.
const schedulerEvery = 30 * time.Second

func TestTheSchedulerTerminatedByHandComesBackWithWhatItKnew(t *testing.T) {
	slow(t)
	s := newSite(t, "scheduler: {maxParallel: 1}")
	s.mustDrydock("limits", "set", "--max-parallel", "2", "--comment", "two crews")
	nodes := s.watchNodes()
	runs := map[string]client.WorkflowRun{}
	for _, name := range []string{"worker-01", "worker-02"} {
		runs[name] = s.begin(name)
		s.until(runs[name], api.Ready)
	}
	for _, name := range []string{"worker-03", "worker-04"} {
		runs[name] = s.begin(name)
		s.waitsFor(runs[name], "maxParallel 2")
	}
	s.mustDrydock("freeze", "--by", "incident-4711", "--reason", "look first")

	s.terminateScheduler()
	s.within(schedulerEvery+patience, "the scheduler is back", func() error {
		described, err := s.temporal.DescribeWorkflowExecution(s.ctx, api.SchedulerID(s.cluster), "")
		if err == nil && described.WorkflowExecutionInfo.CloseTime != nil {
			err = errors.New("it does not run")
		}
		return err
	})
	var state api.State
	s.eventually("it is rebuilt", func() error {
		if state = s.state(); state.Rebuilding || state.PendingAll != 2 {
			return fmt.Errorf("%+v", state)
		}
		return nil
	})
	holders := s.holders()
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
	s.mustDrydock("thaw", "--by", "incident-4711")
	s.waitsFor(runs["worker-03"], "maxParallel 2")
	s.done(runs["worker-01"])
	s.until(runs["worker-03"], api.Ready)
	s.done(runs["worker-02"])
	s.until(runs["worker-04"], api.Ready)
	s.done(runs["worker-03"])
	s.done(runs["worker-04"])
	if most := s.nobodyHolds(nodes); most != 2 {
		t.Errorf("%d nodes were held at one instant, want 2", most)
	}
}

func (s *site) terminateScheduler() {
	s.Helper()
	if err := s.temporal.TerminateWorkflow(s.ctx, api.SchedulerID(s.cluster), "", "by hand"); err != nil {
		s.Fatal(err)
	}
}

func TestAFreezeEndsWhenEverybodysIsTakenBack(t *testing.T) {
	s := newSite(t, "")
	s.mustDrydock("freeze", "--by", "ann", "--reason", "incident 1")
	s.mustDrydock("freeze", "--by", "bob", "--reason", "incident 2")
	run := s.begin("worker-01")
	s.waitsFor(run, "frozen by ann (incident 1), by bob (incident 2)")
	s.mustDrydock("thaw", "--by", "ann")
	if reason := s.waitsFor(run, "by bob"); strings.Contains(reason, "ann") {
		t.Errorf("it waits for %q", reason)
	}
	s.mustBeFree("worker-01")
	s.exits(s.drydock("thaw", "--by", "ann"), 1, "bob")
	s.mustDrydock("thaw", "--all", "--comment", "over")
	s.until(run, api.Ready)
	// A freeze says nothing to those that run.
	s.mustDrydock("freeze", "--by", "ann")
	s.done(run)
}

func TestAFreezeOfRunningMaintenancesHoldsADrain(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	before := s.imprint("worker-01")
	s.guarded(ns, "web", "worker-01")
	run := s.begin("worker-01")
	s.until(run, api.Draining)
	s.refusedOnce(ns)
	s.mustDrydock("freeze", "--by", "ann", "--reason", "incident", "--running")
	s.untilStatus(run, "held", func(status api.Status) bool {
		return strings.Contains(status.WaitingFor, "thaw") && strings.Contains(status.WaitingFor, "incident")
	})
	s.eventually("the drain has stopped", func() error {
		described, err := s.temporal.DescribeWorkflowExecution(s.ctx, run.GetID(), run.GetRunID())
		if err == nil && len(described.PendingActivities) > 0 {
			err = errors.New("it has not")
		}
		return err
	})
	s.allow(ns, "web")
	s.always("nothing is evicted", 3*time.Second, func() error {
		if accepted := s.accepted(ns); len(accepted) > 0 {
			return fmt.Errorf("evicted: %v", accepted)
		}
		return nil
	})
	s.mustBeHeld("worker-01", run.GetRunID())
	s.mustDrydock("thaw", "--by", "ann")
	s.until(run, api.Ready)
	s.done(run)
	s.back("worker-01", before)
}

func TestTheSchedulerSurvivesWhatItCannotUse(t *testing.T) {
	s := newSite(t, "")
	run := s.begin("worker-01")
	s.until(run, api.Ready)
	id := api.SchedulerID(s.cluster)
	bad := []string{`"text"`, `[]`, `{"nonsense":1}`, `{"id":"x","node":"worker-02","requestor":"","runId":"r"}`, `{"requestId":7}`}
	for _, name := range []string{api.SignalSlotRequest, api.SignalSlotRelease} {
		for _, payload := range bad {
			if err := s.temporal.SignalWorkflow(s.ctx, id, "", name, json.RawMessage(payload)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.eventually("the bad signals are on record", func() error {
		ignored := 0
		for _, d := range s.state().Decisions {
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
			if _, err := s.updateScheduler(update, json.RawMessage(payload)); err == nil {
				t.Errorf("%s with %s is accepted", update, payload)
			}
		}
	}
	state := s.state()
	if state.Limits.SetBy != "configuration" || len(state.Freezes) > 0 || state.PendingAll > 0 || len(state.Holders) != 1 {
		t.Errorf("state = %+v", state)
	}
	s.done(run)
}

func (s *site) updateScheduler(name string, payload any) (api.State, error) {
	var state api.State
	handle, err := s.temporal.UpdateWorkflow(s.ctx, client.UpdateWorkflowOptions{
		WorkflowID: api.SchedulerID(s.cluster), UpdateName: name, Args: []any{payload},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(s.ctx, &state)
	}
	return state, err
}
