package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

// Begin starts a maintenance by ops with the defaults of everything else.
func (s *Site) Begin(node string) client.WorkflowRun {
	s.Helper()
	return s.Start(node, "ops", fmt.Sprintf(`{"node":%q,"requestor":"ops"}`, node))
}

// BeginWith starts a maintenance by ops with more fields, written as JSON.
func (s *Site) BeginWith(node, fields string) client.WorkflowRun {
	s.Helper()
	return s.Start(node, "ops", fmt.Sprintf(`{"node":%q,"requestor":"ops",%s}`, node, fields))
}

// Start starts a maintenance from a JSON specification, and returns its run.
func (s *Site) Start(node, requestor, spec string) client.WorkflowRun {
	s.Helper()
	run, err := s.StartAs(api.MaintenanceID(s.Cluster, node, requestor), spec)
	s.NoError(err)
	return run
}

// ReadyNow starts a maintenance by ops and waits until it is Ready.
func (s *Site) ReadyNow(node string) client.WorkflowRun {
	s.Helper()
	run := s.Begin(node)
	s.Until(run, api.Ready)
	return run
}

// RunOf is the present run of ops' maintenance of a node.
func (s *Site) RunOf(node string) client.WorkflowRun {
	return s.Temporal.GetWorkflow(s.Ctx, api.MaintenanceID(s.Cluster, node, "ops"), "")
}

// StartAs starts the workflow as somebody without the command line would, under any ID.
func (s *Site) StartAs(id, spec string) (client.WorkflowRun, error) {
	return s.Temporal.ExecuteWorkflow(s.Ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: api.TaskQueue(s.Cluster, "drydock"),
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, api.NodeMaintenanceType, json.RawMessage(spec))
}

// Status asks a maintenance for its status.
func (s *Site) Status(run client.WorkflowRun) (api.Status, error) {
	var status api.Status
	value, err := s.Temporal.QueryWorkflow(s.Ctx, run.GetID(), run.GetRunID(), api.QueryStatus)
	if err != nil {
		return status, err
	}
	return status, value.Get(&status)
}

// MustStatus is the status as soon as there is an answer, which a busy worker may owe for longer than a query waits.
func (s *Site) MustStatus(run client.WorkflowRun) api.Status {
	s.Helper()
	return s.UntilStatus(run, "known", func(api.Status) bool { return true })
}

// Until waits for a maintenance to be in a phase.
func (s *Site) Until(run client.WorkflowRun, phase api.Phase) api.Status {
	s.Helper()
	return s.UntilStatus(run, string(phase), func(status api.Status) bool { return status.Phase == phase })
}

// UntilHeld waits until a maintenance is Ready and has nothing left to do but wait for its requestors.
func (s *Site) UntilHeld(run client.WorkflowRun) api.Status {
	s.Helper()
	return s.UntilStatus(run, "Ready and waiting", func(status api.Status) bool {
		return status.Phase == api.Ready && status.WaitingFor != ""
	})
}

// UntilStatus waits for a maintenance to say something of itself.
func (s *Site) UntilStatus(run client.WorkflowRun, what string, is func(api.Status) bool) api.Status {
	s.Helper()
	var status api.Status
	s.Eventually(run.GetID()+" is "+what, func() (err error) {
		if status, err = s.Status(run); err != nil {
			return err
		}
		if !is(status) {
			return fmt.Errorf("it is %s, waiting for %q, failure %q", status.Phase, status.WaitingFor, status.Failure)
		}
		return nil
	})
	return status
}

// Signal sends a message with a payload, which may be nil.
func (s *Site) Signal(run client.WorkflowRun, name string, payload any) {
	s.Helper()
	s.NoError(s.Temporal.SignalWorkflow(s.Ctx, run.GetID(), run.GetRunID(), name, payload))
}

// Tell sends a message as an update and returns its effect. Without a payload it is nil.
func (s *Site) Tell(run client.WorkflowRun, name string, payload ...any) (effect string, err error) {
	handle, err := s.Temporal.UpdateWorkflow(s.Ctx, client.UpdateWorkflowOptions{
		WorkflowID: run.GetID(), RunID: run.GetRunID(), UpdateName: name, Args: payload,
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return "", err
	}
	return effect, handle.Get(s.Ctx, &effect)
}

// Received waits for the n-th message of a name and returns it.
func (s *Site) Received(run client.WorkflowRun, name string, n int) api.Received {
	s.Helper()
	var found api.Received
	s.UntilStatus(run, fmt.Sprintf("aware of message %d %q", n, name), func(status api.Status) bool {
		count := 0
		for _, m := range status.Messages {
			if m.Name == name {
				if count++; count == n {
					found = m
					return true
				}
			}
		}
		return false
	})
	return found
}

// End waits for the end of a maintenance, whichever it is.
func (s *Site) End(run client.WorkflowRun) (api.Result, error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Ctx, Patience)
	defer cancel()
	var result api.Result
	err := run.Get(ctx, &result)
	var failed *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	switch {
	case errors.As(err, &failed) && failed.HasDetails():
		return result, errors.Join(err, failed.Details(&result))
	case errors.As(err, &cancelled) && cancelled.HasDetails():
		return result, errors.Join(err, cancelled.Details(&result))
	}
	return result, err
}

// MustEnd waits for the end of a maintenance and checks which it is.
func (s *Site) MustEnd(run client.WorkflowRun, phase api.Phase) api.Result {
	s.Helper()
	result, err := s.End(run)
	if result.Phase != phase {
		s.Fatalf("%s ended %q (%s), want %s; error %v", run.GetID(), result.Phase, result.Message, phase, err)
	}
	return result
}

// Done says that ops is done, and waits until the maintenance has completed.
func (s *Site) Done(run client.WorkflowRun) {
	s.Helper()
	s.Signal(run, api.MsgDone, nil)
	s.MustEnd(run, api.Completed)
}

// State asks the scheduler.
func (s *Site) State() api.State {
	s.Helper()
	var state api.State
	s.Eventually("the scheduler answers", func() (err error) {
		state, err = world.Ask[api.State](s.Ctx, s.Temporal, api.SchedulerID(s.Cluster), api.QueryState)
		return err
	})
	return state
}

// Holders are the nodes that hold a slot, as the scheduler has it.
func (s *Site) Holders() []string {
	s.Helper()
	var names []string
	for _, h := range s.State().Holders {
		names = append(names, h.Node)
	}
	return names
}

// SignalAnyRun addresses a workflow ID without a run, as scripts do.
func (s *Site) SignalAnyRun(run client.WorkflowRun, name string, payload any) {
	s.Helper()
	s.NoError(s.Temporal.SignalWorkflow(s.Ctx, run.GetID(), "", name, payload))
}

// Entered is when a maintenance first came into a phase, which may be over.
func (s *Site) Entered(passed []api.Transition, phase api.Phase) time.Time {
	s.Helper()
	first := slices.IndexFunc(passed, func(t api.Transition) bool { return t.Phase == phase })
	if first < 0 {
		s.Fatalf("it was never %s: %+v", phase, passed)
	}
	return passed[first].At
}

// Undone checks that a maintenance ended Cancelled and left nothing behind.
func (s *Site) Undone(run client.WorkflowRun, node, before string) {
	s.Helper()
	s.MustEnd(run, api.Cancelled)
	var cancelled *temporal.CanceledError
	if err := run.Get(s.Ctx, nil); !errors.As(err, &cancelled) {
		s.Errorf("the workflow ended with %v, want it cancelled", err)
	}
	s.Back(node, before)
	s.SlotFree(node)
}

// SlotFree waits until nobody holds the slot of a node.
func (s *Site) SlotFree(node string) {
	s.Helper()
	s.Eventually("the slot of "+node+" is free", func() error {
		if slices.Contains(s.Holders(), node) {
			return errors.New("it is taken")
		}
		return nil
	})
}

// WaitsFor waits until a maintenance is told why it has no slot, and returns the reason.
func (s *Site) WaitsFor(run interface{ GetID() string }, reason string) string {
	s.Helper()
	var found string
	s.Eventually(run.GetID()+" waits for "+reason, func() error {
		for _, p := range s.State().Pending {
			if api.MaintenanceID(s.Cluster, p.Node, p.Requestor) == run.GetID() {
				if found = p.Reason; strings.Contains(found, reason) {
					return nil
				}
				return fmt.Errorf("it waits for %q", found)
			}
		}
		return errors.New("it does not wait")
	})
	return found
}
