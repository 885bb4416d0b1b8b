package account_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drydock.dev/drydock/activities/account"
	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

const (
	id     = "node-maintenance/worker-01/ops"
	first  = "0198b2a4-7c1d-7e55-9d1b-6f1f3c6d2a10"
	second = "0198b2a4-7c1d-7e55-9d1b-6f1f3c6d2a11"
	later  = "0198b2a4-7c1d-7e55-9d1b-6f1f3c6d2a12"
	// taskQueue is that of the test environment.
	taskQueue = "default-test-taskqueue"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// run is a run as the server knows it.
type run struct {
	id, first, kind, queue string
	status                 enums.WorkflowExecutionStatus
	end                    *historypb.HistoryEvent
	says                   *api.Status
	unanswered             error
	resetTo                string
	// tasks are the principals that answered its workflow tasks, given what it handed on, and before who handed it that.
	tasks        []string
	given, gives *commonpb.Payloads
	before       string
	gone         bool
}

// history is all that is kept of a run.
func (r *run) history() []*historypb.HistoryEvent {
	began := &historypb.WorkflowExecutionStartedEventAttributes{
		WorkflowType: &commonpb.WorkflowType{Name: r.kind}, TaskQueue: &taskqueuepb.TaskQueue{Name: r.queue}, FirstExecutionRunId: r.first,
		Input: r.given, ContinuedExecutionRunId: r.before,
	}
	if r.before != "" {
		began.Initiator = enums.CONTINUE_AS_NEW_INITIATOR_WORKFLOW
	}
	all := []*historypb.HistoryEvent{activitytest.Started("amy@desk", func(a *historypb.WorkflowExecutionStartedEventAttributes) { proto.Merge(a, began) })}
	for _, by := range r.tasks {
		task := &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED}
		if by != "" {
			task.Principal = &commonpb.Principal{Type: "jwt", Name: by}
		}
		all = append(all, task)
	}
	if r.end != nil {
		end := proto.Clone(r.end).(*historypb.HistoryEvent)
		if handed := end.GetWorkflowExecutionContinuedAsNewEventAttributes(); handed != nil {
			handed.Input = r.gives
		}
		all = append(all, end)
	}
	return all
}

func maintained(runID string, status enums.WorkflowExecutionStatus, says *api.Status) *run {
	return &run{id: runID, first: first, kind: api.NodeMaintenanceType, queue: taskQueue, status: status, says: says}
}

// server is a Temporal server with the runs of one workflow, the present one last.
func server(t *testing.T, runs ...*run) *mocks.Client {
	t.Helper()
	find := func(runID string) *run {
		for _, r := range runs {
			if r.id == runID {
				return r
			}
		}
		if runID == "" && len(runs) > 0 {
			return runs[len(runs)-1]
		}
		return nil
	}
	temporal := &mocks.Client{}
	temporal.On("DescribeWorkflowExecution", mock.Anything, id, mock.Anything).Return(
		func(_ context.Context, _, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
			r := find(runID)
			if r == nil || r.gone {
				return nil, serviceerror.NewNotFound("no such workflow")
			}
			return &workflowservice.DescribeWorkflowExecutionResponse{
				WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
					Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: r.id}, Type: &commonpb.WorkflowType{Name: r.kind},
					TaskQueue: r.queue, FirstRunId: r.first, Status: r.status,
					StartTime: timestamppb.New(noon), CloseTime: timestamppb.New(noon.Add(time.Hour)),
				},
				WorkflowExtendedInfo: &workflowpb.WorkflowExecutionExtendedInfo{ResetRunId: r.resetTo},
			}, nil
		})
	temporal.On("GetWorkflowHistory", mock.Anything, id, mock.Anything, mock.Anything, mock.Anything).Return(
		func(ctx context.Context, _, runID string, _ bool, filter enums.HistoryEventFilterType) client.HistoryEventIterator {
			events := &mocks.HistoryEventIterator{}
			r := find(runID)
			if filter == enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT {
				return activitytest.Events(r.gone, r.history())
			}
			events.On("HasNext").Return(true)
			events.On("Next").Return(func() (*historypb.HistoryEvent, error) {
				if r.end == nil {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return r.end, nil
			})
			return events
		})
	temporal.On("QueryWorkflow", mock.Anything, id, mock.Anything, api.QueryStatus).Return(
		func(_ context.Context, _, runID, _ string, _ ...any) (converter.EncodedValue, error) {
			r := find(runID)
			if r.unanswered != nil {
				return nil, r.unanswered
			}
			payloads, err := converter.GetDefaultDataConverter().ToPayloads(r.says)
			return client.NewValue(payloads), err
		})
	return temporal
}

func status(phase api.Phase) *api.Status {
	return &api.Status{
		WorkflowID: id, RunID: first, Phase: phase, Since: noon.Add(30 * time.Minute), Spec: spec.Maintenance{Node: "worker-01", Requestor: "ops"},
		Transitions: []api.Transition{{Phase: api.Pending, At: noon}, {Phase: phase, At: noon.Add(30 * time.Minute)}},
	}
}

func completed() *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED}
}

func terminated() *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
			WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{Reason: "too slow", Identity: "amy@desk"},
		},
	}
}

func continued(next string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
			WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{NewExecutionRunId: next},
		},
	}
}

func read(t *testing.T, temporal client.Client, ref api.Reference) (account.Account, error) {
	t.Helper()
	var a account.Account
	err := activitytest.Execute(t, activitytest.Environment(), func(ctx context.Context) (err error) {
		a, err = account.Of(ctx, temporal, ref, 10*time.Millisecond)
		return err
	})
	return a, err
}

var reference = api.Reference{WorkflowID: id, RunID: first}

func TestTheAccountOfAMaintenance(t *testing.T) {
	closed := func(r *run, end *historypb.HistoryEvent) *run { r.end = end; return r }
	completedRun := closed(maintained(second, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, status(api.Completed)), completed())
	another := maintained(later, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, status(api.Draining))
	another.first = later
	reset := closed(maintained(first, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, status(api.Ready)), terminated())
	reset.resetTo = second
	for name, c := range map[string]struct {
		runs   []*run
		phase  string
		closed bool
	}{
		"running": {[]*run{maintained(first, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, status(api.Draining))}, "Draining", false},
		"closed":  {[]*run{closed(maintained(first, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, status(api.Completed)), completed())}, "Completed", true},
		"continued as new": {[]*run{
			closed(maintained(first, enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, nil), continued(second)), completedRun,
		}, "Completed", true},
		"continued, and the ID taken by a later one": {[]*run{
			closed(maintained(first, enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, nil), continued(second)), completedRun, another,
		}, "Completed", true},
		"reset, and the ID taken by a later one": {[]*run{reset, completedRun, another}, "Completed", true},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := read(t, server(t, c.runs...), reference)
			if err != nil {
				t.Fatal(err)
			}
			if string(a.Status.Phase) != c.phase || (a.Closed != nil) != c.closed {
				t.Errorf("%+v", a)
			}
			if r := a.Record(); c.closed && (!r.EndedAt.Equal(noon.Add(30*time.Minute)) || r.Failure != "") {
				t.Errorf("record %+v", r)
			}
		})
	}
}

func TestTheRecordSaysHowAMaintenanceWasEnded(t *testing.T) {
	gone := maintained(first, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, status(api.Draining))
	gone.end = terminated()
	late := maintained(first, enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, status(api.Ready))
	late.end = &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT}
	refused := maintained(first, enums.WORKFLOW_EXECUTION_STATUS_FAILED, &api.Status{WorkflowID: id, RunID: first, Phase: api.Pending, Since: noon})
	refused.end = &historypb.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
			WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{Failure: &failurepb.Failure{Message: "nodee: unknown field"}},
		},
	}
	for want, r := range map[string]*run{
		"the workflow was terminated by amy@desk: too slow (it was Draining)": gone,
		"the workflow's time was over (it was Ready)":                         late,
		"nodee: unknown field (it was Pending)":                               refused,
	} {
		a, err := read(t, server(t, r), reference)
		if err != nil {
			t.Fatal(err)
		}
		got := a.Record()
		if got.Failure != want || got.Phase != "Failed" || !got.EndedAt.Equal(noon.Add(time.Hour)) || got.Node != "worker-01" || got.Validate() != nil {
			t.Errorf("want %q: %+v", want, got)
		}
	}
}

// TestTheRecordNamesTheRunThatEnded: one that is reset after its end, and ends again, has two records.
func TestTheRecordNamesTheRunThatEnded(t *testing.T) {
	gone := maintained(first, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, status(api.Draining))
	gone.end = terminated()
	again := maintained(second, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, status(api.Ready))
	again.end = terminated()
	reset := *gone
	reset.resetTo = second
	for want, runs := range map[string][]*run{"": {gone}, second: {&reset, again}} {
		a, err := read(t, server(t, runs...), reference)
		if err != nil {
			t.Fatal(err)
		}
		if r := a.Record(); r.RunID != first || r.LastRunID != want {
			t.Errorf("run %s, the last %q, want %q", r.RunID, r.LastRunID, want)
		}
	}
}

func TestWhatIsNoMaintenanceOfOursIsRefused(t *testing.T) {
	kind := maintained(first, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, status(api.Completed))
	kind.kind = "Forged"
	queue := maintained(first, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, status(api.Completed))
	queue.queue = "mine"
	lies := maintained(first, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, status(api.Completed))
	lies.says.RunID = later
	middle := maintained(second, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, status(api.Completed))
	present := maintained(later, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, status(api.Draining))
	present.first = later
	for name, c := range map[string]struct {
		ref  api.Reference
		runs []*run
		want string
	}{
		"another type":          {reference, []*run{kind}, "is a Forged: want a NodeMaintenance"},
		"another task queue":    {reference, []*run{queue}, `is on task queue "mine"`},
		"another maintenance":   {reference, []*run{lies}, "says that it is"},
		"not the first run":     {api.Reference{WorkflowID: id, RunID: second}, []*run{middle, present}, "is not the first run"},
		"no maintenance's ID":   {api.Reference{WorkflowID: "drydock-scheduler", RunID: first}, nil, "workflowId: "},
		"an ID in another form": {api.Reference{WorkflowID: "/" + id, RunID: first}, nil, "workflowId: "},
		"no run's ID":           {api.Reference{WorkflowID: id, RunID: "latest"}, nil, `runId: "latest" is not the ID of a run`},
		"no run":                {api.Reference{WorkflowID: id}, nil, `runId: ""`},
		"of another cluster":    {api.Reference{WorkflowID: "blue/" + id, RunID: first}, nil, `cluster "blue"`},
	} {
		_, err := read(t, server(t, c.runs...), c.ref)
		if activitytest.ErrorType(err) != api.ErrorNotAMaintenance || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestWhatIsNotKnownYetIsTriedAgain(t *testing.T) {
	wedged := maintained(first, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil)
	wedged.unanswered = serviceerror.NewQueryFailed("unknown queryType status")
	for name, runs := range map[string][]*run{"unknown": nil, "wedged": {wedged}} {
		if _, err := read(t, server(t, runs...), reference); err == nil || activitytest.ErrorType(err) != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
