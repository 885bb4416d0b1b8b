package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock/api"
)

// updateTimeout bounds an update, which unlike a signal is lost unless a worker accepts it now.
const updateTimeout = 20 * time.Second

// updateScheduler changes the scheduler's state and waits until it is changed.
func (c *connection) updateScheduler(ctx context.Context, name string, payload any) error {
	if err := c.schedulerExists(ctx); err != nil {
		return err
	}
	if !c.polled(ctx) {
		return fmt.Errorf("nothing was changed: %s", c.noWorker())
	}
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	err := c.update(ctx, name, payload)
	var between *serviceerror.NotFound
	if errors.As(err, &between) {
		// The scheduler continues as new now and then, and an update can fall between two of its runs.
		err = c.update(ctx, name, payload)
	}
	var refused *temporal.ApplicationError
	if errors.As(err, &refused) {
		return &refusal{refused}
	}
	return c.explainScheduler(name, err)
}

// refusal is the scheduler's word that it does not do what it was asked.
type refusal struct{ why *temporal.ApplicationError }

func (r *refusal) Error() string { return "the scheduler refuses it: " + r.why.Message() }

func (r *refusal) Unwrap() error { return r.why }

// limitsChanged tells whether the limits are refused because somebody else set others meanwhile.
func limitsChanged(err error) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.why.Type() == api.ErrorLimitsChanged
}

func (c *connection) update(ctx context.Context, name string, payload any) error {
	handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: api.SchedulerID(c.cluster), UpdateName: name,
		Args: []any{payload}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, nil)
}

// everything is the number of pending requests to ask for where all are wanted.
const everything = 0

// schedulerState asks the scheduler for its state, with the first of those that wait, or with everything.
func (c *connection) schedulerState(ctx context.Context, pending int) (api.State, error) {
	var state api.State
	if err := c.schedulerExists(ctx); err != nil {
		return state, err
	}
	if !c.polled(ctx) {
		return state, errors.New(c.noWorker())
	}
	page := api.StateRequest{Limit: pending}
	if pending == everything {
		page.Limit = 1000
	}
	for {
		next, err := c.statePage(ctx, page)
		if err != nil {
			return state, err
		}
		next.Pending = append(state.Pending, next.Pending...)
		state = next
		if pending != everything || next.NextOffset <= page.Offset {
			state.NextOffset = 0
			return state, nil
		}
		page.Offset = next.NextOffset
	}
}

func (c *connection) statePage(ctx context.Context, page api.StateRequest) (api.State, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var state api.State
	answer, err := c.QueryWorkflow(ctx, api.SchedulerID(c.cluster), "", api.QueryState, page)
	if err == nil {
		err = answer.Get(&state)
	}
	return state, c.explainScheduler("asking the scheduler", err)
}

// schedulerExists makes sure that what answers is a scheduler that runs: a query is answered by an ended one too.
func (c *connection) schedulerExists(ctx context.Context) error {
	described, err := c.describe(ctx, api.SchedulerID(c.cluster), "")
	if err != nil {
		return c.explainScheduler("looking for the scheduler", err)
	}
	if described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return c.errNoScheduler()
	}
	return nil
}

func (c *connection) explainScheduler(doing string, err error) error {
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return c.errNoScheduler()
	}
	return c.explain(doing, err)
}

func (c *connection) errNoScheduler() error {
	err := fmt.Errorf("no scheduler is running (workflow %s in namespace %q)", api.SchedulerID(c.cluster), c.namespace)
	return hint(err, "Workers start it within half a minute: start drydock-worker, or name its cluster with --cluster.")
}
