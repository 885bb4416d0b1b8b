package client

import (
	"context"
	"fmt"
	"math"

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

const pendingPerPage = 1000

// State asks the scheduler for its state, with the first of those that wait for a slot, or with AllPending.
func (s *Scheduler) State(ctx context.Context, pending int) (api.State, error) {
	limit := pending
	if pending == AllPending {
		limit = pendingPerPage
	}
	state, err := s.firstPage(ctx, limit)
	for err == nil && pending == AllPending && state.NextOffset > 0 {
		err = s.addPage(ctx, &state)
	}
	state.NextOffset = 0
	return state, err
}

// StateWith is State with the first pending requests, and with all those that are refused with a code. It reads further pages only while
// the scheduler's summary counts more requests with that code than were found.
func (s *Scheduler) StateWith(ctx context.Context, pending int, code schedule.Code) (api.State, error) {
	state, err := s.firstPage(ctx, pending)
	if err != nil || state.NextOffset == 0 {
		return state, err
	}
	counted, err := s.countPending(ctx, code)
	for err == nil && state.NextOffset > 0 && requestsWith(state.Pending, code) < counted {
		err = s.addPage(ctx, &state)
	}
	state.NextOffset = 0
	return state, err
}

func (s *Scheduler) firstPage(ctx context.Context, limit int) (api.State, error) {
	if err := s.exists(ctx); err != nil {
		return api.State{}, err
	}
	return s.statePage(ctx, api.StateRequest{Limit: limit})
}

// addPage brings a state up to date, and adds the next page to its pending requests. NextOffset is 0 after the last page.
func (s *Scheduler) addPage(ctx context.Context, state *api.State) error {
	page := api.StateRequest{Offset: state.NextOffset, Limit: pendingPerPage}
	next, err := s.statePage(ctx, page)
	if err != nil {
		return err
	}
	next.Pending = append(state.Pending, next.Pending...)
	if next.NextOffset <= page.Offset {
		next.NextOffset = 0
	}
	*state = next
	return nil
}

func (s *Scheduler) countPending(ctx context.Context, code schedule.Code) (n int, err error) {
	var summary api.Summary
	err = s.server.query(ctx, s.id, "", api.QuerySummary, &summary)
	if isA[*serviceerror.QueryFailed](err) {
		return math.MaxInt, nil // workers of 0.1.0 do not know this query: read all pages
	}
	for _, p := range summary.Pending {
		if p.Code == code {
			n += p.Count
		}
	}
	return n, s.failed("asking the scheduler", err)
}

func requestsWith(pending []api.PendingRequest, code schedule.Code) (n int) {
	for i := range pending {
		if pending[i].Code == code {
			n++
		}
	}
	return n
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
			return state, marked{err, ErrInvalid}
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

func (s *Scheduler) update(ctx context.Context, name string, payload any) error {
	if err := s.exists(ctx); err != nil {
		return err
	}
	_, err := s.server.tell(ctx, recipient{
		kind: api.SchedulerType, who: "the scheduler", by: s.by, id: s.id, question: api.QueryState, asked: []any{api.StateRequest{Limit: 1}},
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
	switch {
	case isA[*serviceerror.NotFound](err):
		return s.missing()
	case isA[*NoWorkerError](err):
		return err
	}
	return failedCall(doing, err)
}

func (s *Scheduler) missing() error {
	return &NoSchedulerError{WorkflowID: s.id, Namespace: s.server.namespace}
}
