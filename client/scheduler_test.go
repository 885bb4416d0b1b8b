package client

import (
	"context"
	"errors"
	"fmt"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

func TestOnlyLimitsThatChangedMeanwhileAreSetAnew(t *testing.T) {
	refused := func(kind string) error {
		return fmt.Errorf("setting: %w", &RefusedError{By: "the scheduler", Message: api.UpdateSetLimits, Type: kind, Reason: "no"})
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"changed":         {refused(api.ErrorLimitsChanged), true},
		"another refusal": {refused("Invalid"), false},
		"no refusal":      {ErrUnreachable, false},
		"none":            {nil, false},
	} {
		if got := LimitsChanged(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// scheduling is a Temporal whose scheduler has many pending requests.
type scheduling struct {
	queue
	pending []api.PendingRequest
	// unknown is the query that the worker does not know.
	unknown string
	pages   int
}

func (*scheduling) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING},
	}, nil
}

func (s *scheduling) QueryWorkflow(_ context.Context, _, _, query string, args ...any) (converter.EncodedValue, error) {
	var answer any
	switch query {
	case s.unknown:
		return nil, serviceerror.NewQueryFailed("unknown queryType " + query)
	case api.QuerySummary:
		answer = api.Summary{Pending: []api.PendingCount{
			{Code: schedule.GangTooLarge, Count: requestsWith(s.pending, schedule.GangTooLarge) - 1},
			{Code: schedule.GangTooLarge, Group: "gpu", Count: 1},
			{Code: schedule.MaxParallel, Count: requestsWith(s.pending, schedule.MaxParallel)},
		}}
		if requestsWith(s.pending, schedule.GangTooLarge) == 0 {
			answer = api.Summary{}
		}
	case api.QueryState:
		s.pages++
		page := args[0].(api.StateRequest)
		end := min(page.Offset+page.Limit, len(s.pending))
		state := api.State{PendingAll: len(s.pending), Pending: s.pending[page.Offset:end]}
		if end < len(s.pending) {
			state.NextOffset = end
		}
		answer = state
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(answer)
	return temporalclient.NewValue(payloads), err
}

func TestPagesAreReadOnlyWhileRequestsAreMissing(t *testing.T) {
	const all, first = 15000, 20
	for name, c := range map[string]struct {
		tooLarge []int // their places in the queue
		unknown  string
		pages    int
	}{
		"none is too large":             {nil, "", 1},
		"all are on the first page":     {[]int{3, 19}, "", 1},
		"one is on the third":           {[]int{3, first + 1000}, "", 3},
		"one is the last":               {[]int{all - 1}, "", 16},
		"the worker counts no requests": {[]int{3}, api.QuerySummary, 16},
	} {
		t.Run(name, func(t *testing.T) {
			temporal := &scheduling{queue: queue{polled: noon}, pending: make([]api.PendingRequest, all), unknown: c.unknown}
			for i := range temporal.pending {
				temporal.pending[i].Code = schedule.MaxParallel
			}
			for _, place := range c.tooLarge {
				temporal.pending[place].Code = schedule.GangTooLarge
			}
			state, err := New(temporal, Options{Now: clockAtNoon}).Scheduler().StateWith(t.Context(), first, schedule.GangTooLarge)
			if err != nil {
				t.Fatal(err)
			}
			if temporal.pages != c.pages || requestsWith(state.Pending, schedule.GangTooLarge) != len(c.tooLarge) {
				t.Errorf("%d pages with %d requests, want %d", temporal.pages, requestsWith(state.Pending, schedule.GangTooLarge), c.pages)
			}
			if len(state.Pending) < first || state.PendingAll != all || state.NextOffset != 0 {
				t.Errorf("%d of %d requests, next %d", len(state.Pending), state.PendingAll, state.NextOffset)
			}
		})
	}
}

func TestAllPendingReadsEveryPage(t *testing.T) {
	temporal := &scheduling{queue: queue{polled: noon}, pending: make([]api.PendingRequest, 2500)}
	scheduler := New(temporal, Options{Now: clockAtNoon}).Scheduler()
	state, err := scheduler.State(t.Context(), AllPending)
	if err != nil || len(state.Pending) != 2500 || temporal.pages != 3 {
		t.Errorf("%d requests in %d pages, %v", len(state.Pending), temporal.pages, err)
	}
	temporal.unknown = api.QueryState
	var failed *CallError
	if _, err := scheduler.StateWith(t.Context(), 1, schedule.GangTooLarge); !errors.As(err, &failed) {
		t.Errorf("error = %v", err)
	}
}
