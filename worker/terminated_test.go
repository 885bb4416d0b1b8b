package worker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/utils/lru"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/config"
)

// ended are the runs that a server lists as terminated, and what has taken workflow IDs there, by ID.
type ended struct {
	*mocks.Client
	runs  []*workflowservice.DescribeWorkflowExecutionResponse
	taken map[string]api.Reference
	// closed is when what has taken an ID ended; what is not in it runs.
	closed  map[string]time.Time
	started []string
	queries []string
	// broken are the workflows whose record cannot be started, described counts the runs that were asked for.
	broken    map[string]bool
	described int
}

// terminatedNow is when the runs of these tests were terminated.
var terminatedNow = time.Date(2026, 7, 1, 11, 30, 0, 0, time.UTC)

func terminatedRun(id, first, run string) *workflowservice.DescribeWorkflowExecutionResponse {
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run}, FirstRunId: first, Status: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
			CloseTime: timestamppb.New(terminatedNow),
		},
		WorkflowExtendedInfo: &workflowpb.WorkflowExecutionExtendedInfo{},
	}
}

func serverOf(t *testing.T, e *ended) *ended {
	t.Helper()
	e.Client = &mocks.Client{}
	e.On("ListWorkflow", mock.Anything, mock.Anything).Return(func(_ context.Context, in *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
		e.queries = append(e.queries, in.GetQuery())
		page := &workflowservice.ListWorkflowExecutionsResponse{}
		for _, r := range e.runs {
			page.Executions = append(page.Executions, &workflowpb.WorkflowExecutionInfo{Execution: r.GetWorkflowExecutionInfo().GetExecution()})
		}
		return page, nil
	})
	e.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, mock.Anything).Return(func(_ context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		e.described++
		for _, r := range e.runs {
			if x := r.GetWorkflowExecutionInfo().GetExecution(); x.GetWorkflowId() == id && x.GetRunId() == run {
				return r, nil
			}
		}
		if _, ok := e.taken[id]; ok {
			info := &workflowpb.WorkflowExecutionInfo{
				Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "r"}, Type: &commonpb.WorkflowType{Name: api.AuditRecordType}, TaskQueue: "drydock",
			}
			if at, over := e.closed[id]; over {
				info.CloseTime = timestamppb.New(at)
			}
			return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
		}
		return nil, serviceerror.NewNotFound("there is none")
	})
	e.On("GetWorkflowHistory", mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_ context.Context, id, _ string, _ bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
			input, err := converter.GetDefaultDataConverter().ToPayloads(e.taken[id])
			if err != nil {
				t.Error(err)
			}
			return activitytest.Events(false, []*historypb.HistoryEvent{activitytest.Started("", func(a *historypb.WorkflowExecutionStartedEventAttributes) { a.Input = input })})
		})
	e.On("ExecuteWorkflow", mock.Anything, mock.Anything, api.AuditRecordType, mock.Anything).Return(
		func(_ context.Context, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
			ref := args[0].(api.Reference)
			if e.broken[ref.WorkflowID] {
				return nil, serviceerror.NewUnavailable("not now")
			}
			if _, ok := e.taken[o.ID]; ok {
				return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("taken", "", "")
			}
			e.taken[o.ID] = ref
			e.started = append(e.started, fmt.Sprintf("%s of %s on %s", o.ID, ref.RunID, o.TaskQueue))
			return &mocks.WorkflowRun{}, nil
		})
	return e
}

// TestWhatIsTerminatedHasARecord: a maintenance that somebody terminates keeps none itself, whatever it was at.
func TestWhatIsTerminatedHasARecord(t *testing.T) {
	maintenance, plan := api.MaintenanceID("", "n1", "ops"), api.PlanID("", "kernel")
	record, planRecord := api.AuditRecordID("", "n1", "ops", "first"), api.PlanRecordID("", "kernel", "p")
	reset := terminatedRun(maintenance, "first", "last")
	reset.WorkflowExtendedInfo.ResetRunId = "next"
	for name, c := range map[string]struct {
		runs  []*workflowservice.DescribeWorkflowExecutionResponse
		taken map[string]api.Reference
		// closed is when the record's workflow ended, zero if it runs.
		closed time.Time
		want   []string
	}{
		"a maintenance":            {runs: []*workflowservice.DescribeWorkflowExecutionResponse{terminatedRun(maintenance, "first", "last")}, want: []string{record + " of first on drydock"}},
		"a plan":                   {runs: []*workflowservice.DescribeWorkflowExecutionResponse{terminatedRun(plan, "p", "p")}, want: []string{planRecord + " of p on drydock"}},
		"no maintenance's ID":      {runs: []*workflowservice.DescribeWorkflowExecutionResponse{terminatedRun("mine", "first", "last")}},
		"one that a reset goes on": {runs: []*workflowservice.DescribeWorkflowExecutionResponse{reset}},
		"its record is kept": {
			runs:  []*workflowservice.DescribeWorkflowExecutionResponse{terminatedRun(maintenance, "first", "last")},
			taken: map[string]api.Reference{record: {WorkflowID: maintenance, RunID: "first"}},
		},
		"its record was kept": {
			runs:   []*workflowservice.DescribeWorkflowExecutionResponse{terminatedRun(maintenance, "first", "last")},
			taken:  map[string]api.Reference{record: {WorkflowID: maintenance, RunID: "first"}},
			closed: terminatedNow.Add(time.Second),
		},
		"recorded, then reset and terminated again": {
			runs:   []*workflowservice.DescribeWorkflowExecutionResponse{reset, terminatedRun(maintenance, "first", "next")},
			taken:  map[string]api.Reference{record: {WorkflowID: maintenance, RunID: "first"}},
			closed: terminatedNow.Add(-time.Hour), want: []string{record + "/2 of first on drydock"},
		},
		"its ID is taken": {
			runs:  []*workflowservice.DescribeWorkflowExecutionResponse{terminatedRun(maintenance, "first", "last")},
			taken: map[string]api.Reference{record: {WorkflowID: maintenance, RunID: "another"}}, want: []string{record + "/2 of first on drydock"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.taken == nil {
				c.taken = map[string]api.Reference{}
			}
			server := serverOf(t, &ended{runs: c.runs, taken: c.taken, closed: map[string]time.Time{}})
			if !c.closed.IsZero() {
				server.closed[record] = c.closed
			}
			now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
			k := &terminated{temporal: server, logger: slog.New(slog.DiscardHandler), namespace: "default", queue: "drydock", wanted: true, seen: lru.New(10)}
			for range 2 {
				if err := k.record(t.Context(), now); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(server.started, c.want) {
				t.Errorf("started %q, want %q", server.started, c.want)
			}
			if !strings.Contains(server.queries[0], `CloseTime>"2026-06-24T12:00:00Z"`) || !strings.Contains(server.queries[1], `CloseTime>"2026-07-01T11:50:00Z"`) {
				t.Errorf("asked %q", server.queries)
			}
		})
	}
}

func terminatedAt(t *testing.T, server *ended) (*terminated, time.Time) {
	t.Helper()
	return &terminated{
		temporal: server, logger: slog.New(slog.DiscardHandler), namespace: "default", queue: "drydock", wanted: true, seen: lru.New(maxTerminated),
	}, time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
}

// TestOneRecordThatFailsKeepsNoneFromTheOthers: it comes first, and is tried again.
func TestOneRecordThatFailsKeepsNoneFromTheOthers(t *testing.T) {
	bad, good := api.MaintenanceID("", "n1", "ops"), api.MaintenanceID("", "n2", "ops")
	server := serverOf(t, &ended{
		runs:  []*workflowservice.DescribeWorkflowExecutionResponse{terminatedRun(bad, "a", "a"), terminatedRun(good, "b", "b")},
		taken: map[string]api.Reference{}, broken: map[string]bool{bad: true},
	})
	k, now := terminatedAt(t, server)
	if err := k.record(t.Context(), now); err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("%v", err)
	}
	second := api.AuditRecordID("", "n2", "ops", "b") + " of b on drydock"
	if !slices.Equal(server.started, []string{second}) {
		t.Errorf("started %q", server.started)
	}
	server.broken = nil
	if err := k.record(t.Context(), now.Add(time.Hour)); err != nil || !slices.Equal(server.started, []string{second, api.AuditRecordID("", "n1", "ops", "a") + " of a on drydock"}) {
		t.Errorf("%v, started %q", err, server.started)
	}
}

// TestManyTerminatedRunsAreSeenToInSeveralGoes: thousands of requests at once would keep the server busy.
func TestManyTerminatedRunsAreSeenToInSeveralGoes(t *testing.T) {
	const all = 450
	server := serverOf(t, &ended{taken: map[string]api.Reference{}})
	for i := range all {
		run := fmt.Sprintf("r%d", i)
		server.runs = append(server.runs, terminatedRun(api.MaintenanceID("", fmt.Sprintf("n%d", i), "ops"), run, run))
	}
	k, now := terminatedAt(t, server)
	for i, want := range []int{seenAtOnce, 2 * seenAtOnce, all, all} {
		if err := k.record(t.Context(), now.Add(time.Duration(i)*schedulerEvery)); err != nil || server.described != want || len(server.started) != want {
			t.Errorf("go %d: %v, described %d, started %d, want %d", i, err, server.described, len(server.started), want)
		}
	}
	if got := len(server.queries); got != 4 || !strings.Contains(server.queries[3], `CloseTime>"2026-07-01T11:50:00Z"`) {
		t.Errorf("%d lists, the last %q", got, server.queries[got-1])
	}
}

func TestAWorkerWithoutASinkRecordsNothing(t *testing.T) {
	server := serverOf(t, &ended{})
	if err := newTerminated(Options{Config: config.Config{}}, server, "default", "drydock").record(t.Context(), time.Now()); err != nil || len(server.queries) > 0 {
		t.Errorf("%v, asked %q", err, server.queries)
	}
}
