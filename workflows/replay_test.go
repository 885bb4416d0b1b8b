package workflows_test

import (
	"compress/gzip"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/workflows"
)

// recordings are the histories written by `make record`: of real workflows on real servers.
const recordings = "testdata/histories"

func recorded(t *testing.T) map[string]*historypb.History {
	t.Helper()
	files, err := fs.Glob(os.DirFS(recordings), "*.json.gz")
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

// TestRecordedHistoriesReplay shows that this build goes on with maintenances and schedulers that an earlier one began.
func TestRecordedHistoriesReplay(t *testing.T) {
	for name, history := range recorded(t) {
		t.Run(strings.TrimSuffix(name, ".json.gz"), func(t *testing.T) {
			t.Parallel()
			replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: workflows.Interceptors()})
			if err != nil {
				t.Fatal(err)
			}
			workflows.RegisterWorkflows(replayer)
			// A maintenance under another ID than its own would only start the one that has it.
			began := history.Events[0].GetWorkflowExecutionStartedEventAttributes()
			err = replayer.ReplayWorkflowHistoryWithOptions(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), history,
				worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{
					ID: began.GetWorkflowId(), RunID: runOf(history),
				}})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

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
		api.NodeMaintenanceType, api.SchedulerType, api.PreflightType, api.DoctorType,
		api.SignalSlotGranted, api.SignalSlotPending, api.SignalSlotRefused, api.SignalNodeChanged,
		api.SignalHold, api.SignalDrainBlocked, api.SignalSlotRequest, api.SignalSlotRelease,
		api.UpdateSetLimits, api.UpdateFreeze, api.UpdateThaw,
		"WorkflowExecutionCompleted", "WorkflowExecutionFailed", "WorkflowExecutionCanceled", "WorkflowExecutionTerminated",
		"TimerFired", "TimerCanceled", "ActivityTaskCanceled", "ActivityTaskFailed", "ChildWorkflowExecutionStarted",
		"HoldNode", "AdoptNode", "AnnouncePhase", "ReleaseNode", "Drain", "WaitForPods", "ObserveNodes", "WatchCluster",
		"TakeInventory", "Query",
	}
	want = append(want, api.MaintenanceMessages...)
	slices.Sort(want)
	for _, name := range want {
		if !seen[name] {
			t.Errorf("no recorded history has %s", name)
		}
	}
}
