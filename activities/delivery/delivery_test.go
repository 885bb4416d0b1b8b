package delivery_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/audit/audittest"
	"drydock.dev/drydock/audit/file"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/notify/webhook"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
)

const (
	run = "0198b2a4-7c1d-7e55-9d1b-6f1f3c6d2a10"
	// taskQueue is that of the test environment.
	taskQueue = "default-test-taskqueue"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func reference(node string) api.Reference {
	return api.Reference{WorkflowID: api.MaintenanceID("", node, "ops"), RunID: run}
}

// execution is a workflow as the server knows it: what it is, how it was started and what it says.
type execution struct {
	kind, queue string
	status      enums.WorkflowExecutionStatus
	input, says any
}

// maintained is a maintenance of a node that has ended in these states, or runs.
func maintained(node string, running bool, states ...notices.State) execution {
	s := api.Status{
		WorkflowID: reference(node).WorkflowID, RunID: run, Spec: spec.Maintenance{Node: node, Requestor: "ops", Reason: strings.Repeat("<", 100_000)},
		Phase: api.Completed, Since: noon, Transitions: []api.Transition{{Phase: api.Pending, At: noon}}, Tells: []string{"oncall"},
	}
	for i, state := range states {
		entered := api.LifecycleState{Sequence: i + 1, State: state, At: noon.Add(time.Duration(i) * time.Second), Phase: api.Draining}
		entered.ID = api.EventID(s.WorkflowID, run, entered.Moment())
		s.States = append(s.States, entered)
	}
	e := execution{kind: api.NodeMaintenanceType, queue: taskQueue, status: enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, says: s}
	if running {
		s.Phase = api.Draining
		e.status, e.says = enums.WORKFLOW_EXECUTION_STATUS_RUNNING, s
	}
	return e
}

func payloads(t *testing.T, value any) *commonpb.Payloads {
	t.Helper()
	encoded, err := converter.GetDefaultDataConverter().ToPayloads(value)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// server is a Temporal server with some workflows.
func server(t *testing.T, workflows map[string]execution) *mocks.Client {
	t.Helper()
	temporal := &mocks.Client{}
	temporal.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, mock.Anything).Return(
		func(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
			e, ok := workflows[id]
			if !ok {
				return nil, serviceerror.NewNotFound("no such workflow")
			}
			return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
				Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run}, Type: &commonpb.WorkflowType{Name: e.kind},
				TaskQueue: e.queue, FirstRunId: run, Status: e.status,
			}}, nil
		})
	temporal.On("GetWorkflowHistory", mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(ctx context.Context, id, _ string, wait bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
			if !wait {
				return activitytest.Events(false, []*historypb.HistoryEvent{activitytest.Started("", func(a *historypb.WorkflowExecutionStartedEventAttributes) {
					a.WorkflowType, a.TaskQueue = &commonpb.WorkflowType{Name: workflows[id].kind}, &taskqueuepb.TaskQueue{Name: workflows[id].queue}
					a.Input = payloads(t, workflows[id].input)
				})})
			}
			events := &mocks.HistoryEventIterator{}
			events.On("HasNext").Return(true)
			events.On("Next").Return(func() (*historypb.HistoryEvent, error) {
				e := workflows[id]
				if e.status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED}, nil
			})
			return events
		})
	temporal.On("QueryWorkflow", mock.Anything, mock.Anything, mock.Anything, api.QueryStatus).Return(
		func(_ context.Context, id, _, _ string, _ ...any) (converter.EncodedValue, error) {
			return client.NewValue(payloads(t, workflows[id].says)), nil
		})
	return temporal
}

func activities(t *testing.T, workflows map[string]execution, sinks *audit.Sinks) *delivery.Activities {
	t.Helper()
	config, err := notifytest.Parse(t, notify.Kinds{webhook.Kind}, `{
		"oncall": {"webhook": {"url": {"env": "NOWHERE"}}, "filter": {"events": ["MaintenanceStarted", "MaintenanceComplete"]}},
		"others": {"webhook": {"url": {"env": "NOWHERE"}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	senders, err := notify.New(config, nil, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return &delivery.Activities{
		Temporal: server(t, workflows), Senders: senders, Sinks: sinks, Metrics: delivery.NewMetrics(prometheus.NewRegistry(), nil),
	}
}

func TestEventsAreReadFromTheMaintenance(t *testing.T) {
	ref := reference("n1")
	acts := activities(t, map[string]execution{ref.WorkflowID: maintained("n1", false, notices.MaintenanceUnknown, notices.MaintenanceStarted, notices.MaintenanceComplete)}, nil)
	read, err := activitytest.Call(t, acts.ReadEvents, delivery.ReadInput{Channel: "oncall", Maintenance: ref, After: api.Moment{Sequence: 1, At: noon}})
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Events) != 2 || !read.Closed || read.Lost != 0 || read.Plan.Name != "oncall" || len(read.Plan.Filter.Events) != 2 {
		t.Fatalf("%+v", read)
	}
	if e := read.Events[0]; e.State != notices.MaintenanceStarted || e.Node != "n1" || e.Phase != "Draining" || len(e.Reason) > 1100 {
		t.Errorf("%.200v", e)
	}
	for channel, want := range map[string]string{"others": "does not tell channel others", "pager": `channel "pager" is not configured: want one of oncall, others`} {
		_, err := activitytest.Call(t, acts.ReadEvents, delivery.ReadInput{Channel: channel, Maintenance: ref})
		if activitytest.ErrorType(err) != api.ErrorUndeliverable || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", channel, err)
		}
	}
	forged := reference("n1")
	forged.WorkflowID = "drydock-scheduler"
	if _, err := activitytest.Call(t, acts.ReadEvents, delivery.ReadInput{Channel: "oncall", Maintenance: forged}); activitytest.ErrorType(err) != api.ErrorNotAMaintenance {
		t.Errorf("error %v", err)
	}
}

func TestManyEventsAreReadInTurn(t *testing.T) {
	ref, states := reference("n1"), make([]notices.State, 45)
	for i := range states {
		states[i] = notices.Escalated
	}
	acts := activities(t, map[string]execution{ref.WorkflowID: maintained("n1", false, states...)}, nil)
	var after api.Moment
	var seen []int
	for range 3 {
		read, err := activitytest.Call(t, acts.ReadEvents, delivery.ReadInput{Channel: "oncall", Maintenance: ref, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range read.Events {
			seen = append(seen, e.Sequence)
			after = api.Moment{Sequence: e.Sequence, At: e.At}
		}
		if last := len(seen) == len(states); read.More == last || read.Closed != last {
			t.Errorf("after %d: more %v, closed %v", len(seen), read.More, read.Closed)
		}
	}
	if len(seen) != len(states) || seen[44] != 45 {
		t.Errorf("seen %v", seen)
	}
}

func TestEventsOfManyMaintenancesAreFoundOrRefused(t *testing.T) {
	workflows := map[string]execution{}
	var asked []api.EventReference
	for _, node := range []string{"n1", "n2"} {
		workflows[reference(node).WorkflowID] = maintained(node, true, notices.MaintenanceStarted, notices.Escalated)
		asked = append(asked, api.EventReference{Reference: reference(node), Moment: api.Moment{Sequence: 1, At: noon}})
	}
	stranger := maintained("n3", true, notices.MaintenanceStarted)
	stranger.kind = "Forged"
	workflows[reference("n3").WorkflowID] = stranger
	asked = append(asked, []api.EventReference{
		{Reference: reference("n1"), Moment: api.Moment{Sequence: 9, At: noon}},
		{Reference: reference("n1"), Moment: api.Moment{Sequence: 1, At: noon.Add(time.Hour)}},
		{Reference: reference("n1"), Moment: api.Moment{Sequence: 2, At: noon.Add(time.Second)}}, // the channel does not want it
		{Reference: reference("n3"), Moment: api.Moment{Sequence: 1, At: noon}},
	}...)
	acts := activities(t, workflows, nil)
	found, err := activitytest.Call(t, acts.Gather, delivery.GatherInput{Channel: "oncall", Events: asked})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Events) != 2 || found.Events[0].Node != "n1" || found.Events[1].Node != "n2" || found.Refused != 4 || !strings.Contains(found.Why, "is a Forged") {
		t.Errorf("%+v", found)
	}
	if len(found.Events[0].Reason) > 300 {
		t.Errorf("a text of %d bytes", len(found.Events[0].Reason))
	}
}

func TestWhatHasTakenAnID(t *testing.T) {
	ref, running := reference("n1"), enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	const id = "audit-record/n1/ops/" + run
	asked := delivery.SameInput{WorkflowID: id, WorkflowType: api.AuditRecordType, Maintenance: ref}
	tells := delivery.SameInput{WorkflowID: id, WorkflowType: api.NotificationType, Maintenance: ref, Channel: "oncall"}
	for name, c := range map[string]struct {
		in   delivery.SameInput
		by   execution
		same bool
	}{
		"the same record":     {asked, execution{api.AuditRecordType, taskQueue, running, ref, nil}, true},
		"another's record":    {asked, execution{api.AuditRecordType, taskQueue, running, reference("n2"), nil}, false},
		"something else":      {asked, execution{"Squat", taskQueue, running, ref, nil}, false},
		"on another queue":    {asked, execution{api.AuditRecordType, "mine", running, ref, nil}, false},
		"it has ended":        {asked, execution{api.AuditRecordType, taskQueue, enums.WORKFLOW_EXECUTION_STATUS_FAILED, ref, nil}, false},
		"no reference":        {asked, execution{api.AuditRecordType, taskQueue, running, "n1", nil}, false},
		"the same channel":    {tells, execution{api.NotificationType, taskQueue, running, api.NotificationInput{Channel: "oncall", Maintenance: &ref}, nil}, true},
		"another channel":     {tells, execution{api.NotificationType, taskQueue, running, api.NotificationInput{Channel: "others", Maintenance: &ref}, nil}, false},
		"one that collects":   {tells, execution{api.NotificationType, taskQueue, running, api.NotificationInput{Channel: "oncall", Collects: true}, nil}, false},
		"a reference by name": {tells, execution{api.NotificationType, taskQueue, running, ref, nil}, false},
	} {
		acts := activities(t, map[string]execution{id: c.by}, nil)
		if same, err := activitytest.Call(t, acts.Same, c.in); err != nil || same != c.same {
			t.Errorf("%s: %v, %v", name, same, err)
		}
	}
	if same, err := activitytest.Call(t, activities(t, nil, nil).Same, asked); err != nil || same {
		t.Errorf("free: %v, %v", same, err)
	}
}

func keep(t *testing.T, acts *delivery.Activities, ref api.Reference) error {
	t.Helper()
	env := activitytest.Environment()
	env.RegisterActivity(acts.KeepRecord)
	_, err := env.ExecuteActivity(acts.KeepRecord, ref)
	return err
}

func TestARecordIsWhatTheMaintenanceSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	sinks := audittest.Sinks("file", &file.Config{Path: path}, slog.Default())
	ended, runs := reference("n1"), reference("n2")
	acts := activities(t, map[string]execution{ended.WorkflowID: maintained("n1", false, notices.MaintenanceComplete), runs.WorkflowID: maintained("n2", true)}, sinks)
	if err := keep(t, acts, ended); err != nil {
		t.Fatal(err)
	}
	if err := keep(t, acts, runs); err == nil || activitytest.ErrorType(err) != "" || !strings.Contains(err.Error(), "has not ended yet: it is Draining") {
		t.Errorf("of one that runs: %v", err)
	}
	if err := keep(t, acts, api.Reference{WorkflowID: "node-maintenance/n1/ops", RunID: "made-up"}); activitytest.ErrorType(err) != api.ErrorNotAMaintenance {
		t.Errorf("of none: %v", err)
	}
	records, err := file.Read(path)
	if err != nil || len(records) != 1 || records[0].Node != "n1" || records[0].Phase != "Completed" || len(records[0].Reason) > 1100 || records[0].Number != 1 {
		t.Errorf("%d records, %v", len(records), err)
	}
	if err := keep(t, activities(t, nil, audit.New(audit.Config{}, slog.Default())), ended); activitytest.ErrorType(err) != api.ErrorUndeliverable {
		t.Errorf("without a sink: %v", err)
	}
}

// TestARecordIsProvenOnce: where a sink is down there are many attempts, and a proof takes whole histories.
func TestARecordIsProvenOnce(t *testing.T) {
	down := filepath.Join(t.TempDir(), "down")
	if err := os.WriteFile(down, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sinks := audittest.Sinks("file", &file.Config{Path: filepath.Join(down, "audit.jsonl")}, slog.Default())
	ref := reference("n1")
	acts := activities(t, map[string]execution{ref.WorkflowID: maintained("n1", false, notices.MaintenanceComplete)}, sinks)
	var histories []int
	attempt := func(ctx context.Context) error {
		err := acts.KeepRecord(ctx, ref)
		n := 0
		for _, call := range acts.Temporal.(*mocks.Client).Calls {
			if call.Method == "GetWorkflowHistory" && call.Arguments.Get(3) == false {
				n++
			}
		}
		histories = append(histories, n)
		return err
	}
	var suite testsuite.WorkflowTestSuite
	env, last := suite.NewTestWorkflowEnvironment(), error(nil)
	env.RegisterActivityWithOptions(attempt, activity.RegisterOptions{Name: "KeepRecord"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, HeartbeatTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3},
		})
		last = workflow.ExecuteActivity(ctx, "KeepRecord").Get(ctx, nil)
		return nil
	})
	if last == nil || len(histories) != 3 || histories[0] == 0 || histories[2] != histories[0] {
		t.Errorf("%v; histories that were read by then: %v", last, histories)
	}
}
