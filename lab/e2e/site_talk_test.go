package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
)

// begin starts a maintenance by ops with the defaults of everything else.
func (s *site) begin(node string) client.WorkflowRun {
	s.Helper()
	return s.start(node, "ops", fmt.Sprintf(`{"node":%q,"requestor":"ops"}`, node))
}

// beginWith starts a maintenance by ops with more fields, written as JSON.
func (s *site) beginWith(node, fields string) client.WorkflowRun {
	s.Helper()
	return s.start(node, "ops", fmt.Sprintf(`{"node":%q,"requestor":"ops",%s}`, node, fields))
}

// start starts a maintenance from a JSON specification, and returns its run.
func (s *site) start(node, requestor, spec string) client.WorkflowRun {
	s.Helper()
	run, err := s.startAs(api.MaintenanceID(s.cluster, node, requestor), spec)
	if err != nil {
		s.Fatal(err)
	}
	return run
}

// readyNow starts a maintenance by ops and waits until it is Ready.
func (s *site) readyNow(node string) client.WorkflowRun {
	s.Helper()
	run := s.begin(node)
	s.until(run, api.Ready)
	return run
}

// runOf is the present run of ops' maintenance of a node.
func (s *site) runOf(node string) client.WorkflowRun {
	return s.temporal.GetWorkflow(s.ctx, api.MaintenanceID(s.cluster, node, "ops"), "")
}

// startAs starts the workflow as somebody without the command line would, under any ID.
func (s *site) startAs(id, spec string) (client.WorkflowRun, error) {
	return s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: api.TaskQueue(s.cluster, "drydock"),
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, api.NodeMaintenanceType, json.RawMessage(spec))
}

// status asks a maintenance for its status.
func (s *site) status(run client.WorkflowRun) (api.Status, error) {
	var status api.Status
	value, err := s.temporal.QueryWorkflow(s.ctx, run.GetID(), run.GetRunID(), api.QueryStatus)
	if err != nil {
		return status, err
	}
	return status, value.Get(&status)
}

// mustStatus is the status as soon as there is an answer, which a busy worker may owe for longer than a query waits.
func (s *site) mustStatus(run client.WorkflowRun) api.Status {
	s.Helper()
	return s.untilStatus(run, "known", func(api.Status) bool { return true })
}

// until waits for a maintenance to be in a phase.
func (s *site) until(run client.WorkflowRun, phase api.Phase) api.Status {
	s.Helper()
	return s.untilStatus(run, string(phase), func(status api.Status) bool { return status.Phase == phase })
}

// untilHeld waits until a maintenance is Ready and has nothing left to do but wait for its requestors.
func (s *site) untilHeld(run client.WorkflowRun) api.Status {
	s.Helper()
	return s.untilStatus(run, "Ready and waiting", func(status api.Status) bool {
		return status.Phase == api.Ready && status.WaitingFor != ""
	})
}

// untilStatus waits for a maintenance to say something of itself.
func (s *site) untilStatus(run client.WorkflowRun, what string, is func(api.Status) bool) api.Status {
	s.Helper()
	var status api.Status
	s.eventually(run.GetID()+" is "+what, func() (err error) {
		if status, err = s.status(run); err != nil {
			return err
		}
		if !is(status) {
			return fmt.Errorf("it is %s, waiting for %q, failure %q", status.Phase, status.WaitingFor, status.Failure)
		}
		return nil
	})
	return status
}

// signal sends a message with a payload, which may be nil.
func (s *site) signal(run client.WorkflowRun, name string, payload any) {
	s.Helper()
	if err := s.temporal.SignalWorkflow(s.ctx, run.GetID(), run.GetRunID(), name, payload); err != nil {
		s.Fatal(err)
	}
}

// tell sends a message as an update and returns its effect. Without a payload it is nil.
func (s *site) tell(run client.WorkflowRun, name string, payload ...any) (effect string, err error) {
	handle, err := s.temporal.UpdateWorkflow(s.ctx, client.UpdateWorkflowOptions{
		WorkflowID: run.GetID(), RunID: run.GetRunID(), UpdateName: name, Args: payload,
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return "", err
	}
	return effect, handle.Get(s.ctx, &effect)
}

// received waits for the n-th message of a name and returns it.
func (s *site) received(run client.WorkflowRun, name string, n int) api.Received {
	s.Helper()
	var found api.Received
	s.untilStatus(run, fmt.Sprintf("aware of message %d %q", n, name), func(status api.Status) bool {
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

// end waits for the end of a maintenance, whichever it is.
func (s *site) end(run client.WorkflowRun) (api.Result, error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
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

// mustEnd waits for the end of a maintenance and checks which it is.
func (s *site) mustEnd(run client.WorkflowRun, phase api.Phase) api.Result {
	s.Helper()
	result, err := s.end(run)
	if result.Phase != phase {
		s.Fatalf("%s ended %q (%s), want %s; error %v", run.GetID(), result.Phase, result.Message, phase, err)
	}
	return result
}

// done says that ops is done, and waits until the maintenance has completed.
func (s *site) done(run client.WorkflowRun) {
	s.Helper()
	s.signal(run, api.MsgDone, nil)
	s.mustEnd(run, api.Completed)
}

// state asks the scheduler.
func (s *site) state() api.State {
	s.Helper()
	var state api.State
	s.eventually("the scheduler answers", func() error {
		value, err := s.temporal.QueryWorkflow(s.ctx, api.SchedulerID(s.cluster), "", api.QueryState)
		if err != nil {
			return err
		}
		return value.Get(&state)
	})
	return state
}

// holders are the nodes that hold a slot, as the scheduler has it.
func (s *site) holders() []string {
	s.Helper()
	var names []string
	for _, h := range s.state().Holders {
		names = append(names, h.Node)
	}
	return names
}
