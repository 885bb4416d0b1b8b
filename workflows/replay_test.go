package workflows_test

import (
	"compress/gzip"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/activities/doctor"
	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/policy"
	"drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/activities/windows"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/nexus"
	"drydock.dev/drydock/workflows"
)

// recordings has a folder for each release, written by `make record`: histories of real workflows on real servers, which no
// later change may break. They are never changed.
const recordings = "testdata/histories"

func recorded(t *testing.T) map[string]*historypb.History {
	t.Helper()
	files, err := fs.Glob(os.DirFS(recordings), "v*/*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	histories := map[string]*historypb.History{}
	for _, name := range files {
		histories[name] = readHistory(t, filepath.Join(recordings, name))
	}
	if len(histories) == 0 {
		t.Fatalf("no history in %s: record them with `make record`", recordings)
	}
	return histories
}

func readHistory(t *testing.T, path string) *historypb.History {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	history, err := client.HistoryFromJSON(r, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return history
}

// runOf is the run that a history is of: where it came by reset, another than the one that its first event names.
func runOf(history *historypb.History) string {
	run := history.Events[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
	for _, event := range history.Events {
		failed := event.GetWorkflowTaskFailedEventAttributes()
		if failed.GetCause() == enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			run = failed.GetNewRunId()
		}
	}
	return run
}

// original is the execution that a history is of: a maintenance under another ID than its own would only start the one
// that has it.
func original(history *historypb.History) worker.ReplayWorkflowHistoryOptions {
	began := history.Events[0].GetWorkflowExecutionStartedEventAttributes()
	return worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: began.GetWorkflowId(), RunID: runOf(history)}}
}

// replayed are the options of replays. That a task takes longer than a second on a busy machine says nothing of its commands, and the SDK
// goes on beside the workflow that it gives up.
var replayed = worker.WorkflowReplayerOptions{Interceptors: workflows.Interceptors(), DisableDeadlockDetection: true}

// TestRecordedHistoriesReplay shows that this build goes on with maintenances and schedulers that an earlier one began.
func TestRecordedHistoriesReplay(t *testing.T) {
	for name, history := range recorded(t) {
		t.Run(strings.TrimSuffix(name, ".json.gz"), func(t *testing.T) {
			t.Parallel()
			replayer, err := worker.NewWorkflowReplayerWithOptions(replayed)
			if err != nil {
				t.Fatal(err)
			}
			workflows.RegisterWorkflows(replayer)
			replayer.RegisterWorkflowWithOptions(nexus.Operation, workflow.RegisterOptions{Name: api.NexusOperationType})
			logger := sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
			err = replayer.ReplayWorkflowHistoryWithOptions(logger, history, original(history))
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// unreleased are the messages and activities that came after the last release: the next one records them.
var unreleased = []string{api.MsgConsent, api.MsgReschedule, api.MsgNote, api.MsgReportTo, "FindPod", "JudgeAmendment", "ListPlanNodes", "AwaitEnds", "FindBegun", "AwaitPlanNodes", "SendIntent", "BeginWork", "AwaitWork", "EndWork", "ComputeOpenings", "ListWindows",
	"CheckPlans", "FindShared", "BeginShared", "SteerShared", "EndShared", "WatchShared", "SendGrants", "TakeOutOfService", "AwaitOutOfService", "WatchHealth", "FindRemediations", "EnsureObject", "TakeLease", "WatchRemediation", "MarkObjects", "RemoveObjects", "BeginRepair", "FindRepair", "FindObjects", "EndRepair", "RecordNodeEvents", "FindOwner", "GiveBackLease",
	"EvaluateProfiles", "CarryTransition", "GiveUpTransition", "RunTriggerJob", "MaintainForProfile", "EndProfileMaintenance", "SendProfileNotice", "FindTransitions", "ReportProfiles", "CheckPermissions", "CheckReleases", "SeeLeftWork"}

// TestRecordedHistoriesTakeEveryPath keeps the recordings from falling behind what workflows can do.
func TestRecordedHistoriesTakeEveryPath(t *testing.T) {
	seen := map[string]bool{}
	for _, history := range recorded(t) {
		for _, e := range history.Events {
			for _, name := range []string{
				e.GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName(),
				e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName(),
				e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName(),
				e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetName(),
				strings.TrimPrefix(e.EventType.String(), "EVENT_TYPE_"),
			} {
				seen[name] = true
			}
		}
	}
	want := []string{
		api.NodeMaintenanceType, api.SchedulerType, api.PreflightType, api.DoctorType, api.NotificationType, api.AuditRecordType,
		api.SignalSlotGranted, api.SignalSlotPending, api.SignalSlotRefused, api.SignalNodeChanged,
		api.SignalHold, api.SignalDrainBlocked, api.SignalSlotRequest, api.SignalSlotRelease,
		api.UpdateSetLimits, api.UpdateFreeze, api.UpdateThaw,
		"WorkflowExecutionCompleted", "WorkflowExecutionFailed", "WorkflowExecutionCanceled", "WorkflowExecutionTerminated",
		"WorkflowExecutionContinuedAsNew", "TimerFired", "TimerCanceled", "ActivityTaskCanceled", "ActivityTaskFailed",
		"ChildWorkflowExecutionStarted",
	}
	want = append(want, activityNames()...)
	want = append(want, api.MessagesTo(api.NodeMaintenanceType)...)
	slices.Sort(want)
	for _, name := range want {
		switch later := slices.Contains(unreleased, name); {
		case !seen[name] && !later:
			t.Errorf("no recorded history has %s", name)
		case seen[name] && later:
			t.Errorf("a recorded history has %s: it is released", name)
		}
	}
}

// activityNames are all activities that a worker runs but those that leave no event of theirs (local ones).
func activityNames() []string {
	local := map[string]bool{"Prepare": true, "Run": true, "SeeGivenBack": true, "GlanceNodes": true}
	var names registered
	workflows.RegisterActivities(&names, workflows.Activities{
		Nodes: &node.Activities{}, Drains: &drain.Activities{}, Cluster: &cluster.Activities{}, Executions: &execution.Activities{},
		Settings: &settings.Activities{}, Preflights: &preflight.Activities{}, Doctors: &doctor.Activities{}, Checks: &checks.Activities{},
		Deliveries: &delivery.Activities{}, Policies: &policy.Activities{}, Windows: &windows.Activities{},
	})
	return slices.DeleteFunc(names, func(name string) bool { return local[name] })
}

// registered notes which activities are registered.
type registered []string

func (r *registered) RegisterActivity(a any) {
	typed := reflect.TypeOf(a)
	if typed.Kind() == reflect.Func {
		return // of Settings, which are local
	}
	for i := range typed.NumMethod() {
		*r = append(*r, typed.Method(i).Name)
	}
}

func (r *registered) RegisterActivityWithOptions(a any, _ activity.RegisterOptions) {
	r.RegisterActivity(a)
}

func (r *registered) RegisterDynamicActivity(any, activity.DynamicRegisterOptions) {}
