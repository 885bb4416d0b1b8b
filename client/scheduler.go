package client

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// Scheduler is the one workflow of a cluster that grants slots. Its calls return a NoSchedulerError where none is
// running, a NoWorkerError where nobody could answer, and a RefusedError where it does not do what it is asked.
type Scheduler struct {
	server *server
	// id is the workflow's.
	id string
	by string
}

// Scheduler is the cluster's scheduler.
func (c *Client) Scheduler() *Scheduler {
	return &Scheduler{server: c.server, id: api.SchedulerID(c.options.Cluster), by: c.options.By}
}

// AllPending is the number of pending requests to ask for where all are wanted.
const AllPending = 0

// State asks the scheduler for its state, with the first of those that wait for a slot, or with AllPending.
func (s *Scheduler) State(ctx context.Context, pending int) (api.State, error) {
	var state api.State
	if err := s.exists(ctx); err != nil {
		return state, err
	}
	page := api.StateRequest{Limit: pending}
	if pending == AllPending {
		page.Limit = 1000
	}
	for {
		next, err := s.statePage(ctx, page)
		if err != nil {
			return state, err
		}
		next.Pending = append(state.Pending, next.Pending...)
		state = next
		if pending != AllPending || next.NextOffset <= page.Offset {
			state.NextOffset = 0
			return state, nil
		}
		page.Offset = next.NextOffset
	}
}

func (s *Scheduler) statePage(ctx context.Context, page api.StateRequest) (api.State, error) {
	var state api.State
	err := s.server.query(ctx, s.id, "", api.QueryState, &state, page)
	return state, s.failed("asking the scheduler", err)
}

// limitAttempts bounds how often limits are changed again because somebody else was faster.
const limitAttempts = 10

// ChangeLimits reads the limits in force, changes them and writes them back, unless somebody else did so in between: then
// it begins again, so that of two who change one limit each neither is lost. Limits that make no sense are ErrInvalid. It
// returns the state afterwards, with the first of those that wait.
func (s *Scheduler) ChangeLimits(ctx context.Context, change func(schedule.Limits) (schedule.Limits, error), comment string, pending int) (api.State, error) {
	for attempt := 1; ; attempt++ {
		state, err := s.State(ctx, pending)
		if err != nil {
			return state, fmt.Errorf("nothing was changed: %w", err)
		}
		limits, err := change(state.Limits.Limits)
		if err != nil {
			return state, err
		}
		if err := limits.Validate(); err != nil {
			return state, invalidError{err}
		}
		request := api.SetLimits{Limits: limits, By: s.by, Comment: comment}
		if !state.Rebuilding {
			request.IfRevision = &state.Revision
		}
		err = s.update(ctx, api.UpdateSetLimits, request)
		if LimitsChanged(err) && attempt < limitAttempts {
			continue
		}
		if err != nil {
			return state, err
		}
		return s.State(ctx, pending)
	}
}

// Freeze stops grants until its By, or the Client's where that is empty, thaws.
func (s *Scheduler) Freeze(ctx context.Context, request api.FreezeRequest) error {
	return s.update(ctx, api.UpdateFreeze, request)
}

// Thaw takes back the freeze of its By, or of the Client's where that is empty, or with All everybody's.
func (s *Scheduler) Thaw(ctx context.Context, request api.ThawRequest) error {
	return s.update(ctx, api.UpdateThaw, request)
}

// update changes the scheduler's state and waits until it is changed.
func (s *Scheduler) update(ctx context.Context, name string, payload any) error {
	if err := s.exists(ctx); err != nil {
		return err
	}
	_, err := s.server.tell(ctx, recipient{
		kind: api.SchedulerType, who: "the scheduler", by: s.by, id: s.id, question: api.QueryState, asked: api.StateRequest{Limit: 1},
		none: s.missing(),
	}, name, payload, "")
	return err
}

// exists makes sure that what answers is a scheduler that runs: a query is answered by an ended one too.
func (s *Scheduler) exists(ctx context.Context) error {
	described, err := s.server.describe(ctx, s.id, "")
	if err != nil {
		return s.failed("looking for the scheduler", err)
	}
	if described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return s.missing()
	}
	return nil
}

func (s *Scheduler) failed(doing string, err error) error {
	var (
		missing  *serviceerror.NotFound
		noWorker *NoWorkerError
	)
	switch {
	case errors.As(err, &missing):
		return s.missing()
	case errors.As(err, &noWorker):
		return err
	}
	return failedCall(doing, err)
}

func (s *Scheduler) missing() error {
	return &NoSchedulerError{WorkflowID: s.id, Namespace: s.server.namespace}
}
