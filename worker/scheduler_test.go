package worker

import (
	"fmt"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drydock.dev/drydock/api"
)

func TestASchedulerThatFailsAtOnceIsStartedLessAndLessOften(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	var f failures
	runs := 0
	// closed is how long it takes until a run that ended in this way is followed.
	closed := func(status enums.WorkflowExecutionStatus, lived time.Duration) time.Duration {
		runs++
		info := &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{RunId: fmt.Sprint(runs)}, Status: status,
			StartTime: timestamppb.New(now.Add(-lived)), CloseTime: timestamppb.New(now),
		}
		began := now
		for f.wait(info, now) {
			now = now.Add(schedulerEvery)
		}
		return now.Sub(began)
	}
	const failed = enums.WORKFLOW_EXECUTION_STATUS_FAILED
	for i, want := range []time.Duration{0, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute} {
		if got := closed(failed, time.Second); got != want {
			t.Errorf("after failure %d it waits %s, want %s", i+1, got, want)
		}
	}
	for range 20 {
		closed(failed, time.Second)
	}
	if got := closed(failed, time.Second); got != time.Hour {
		t.Errorf("in the end it waits %s", got)
	}
	if got := closed(enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, time.Second); got != 0 {
		t.Errorf("terminated by hand it waits %s", got)
	}
	if got := closed(failed, time.Hour); got != 0 {
		t.Errorf("after an hour of work it waits %s", got)
	}
}

func TestASchedulerIsToldOfOtherWindowsLessAndLessOften(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	w := windowsKeeper{digest: "mine"}
	if w.differ(nil, now) || w.differ(&api.WindowsKnown{Digest: "mine"}, now) {
		t.Error("it is told of what it knows, or needs not know")
	}
	told := 0
	for i := range 2 * 60 * 24 { // every 30 s, for a day
		if w.differ(&api.WindowsKnown{Digest: "another's"}, now.Add(time.Duration(i)*schedulerEvery)) {
			told++
		}
	}
	if told < 100 || told > 150 {
		t.Errorf("it was told %d times a day", told)
	}
	if w.differ(&api.WindowsKnown{Digest: "mine"}, now) || !w.differ(&api.WindowsKnown{Digest: "the next"}, now) {
		t.Error("after they agreed it is not told at once")
	}
}

func TestTheWindowsOfTheWorkerThatWasStartedLastCount(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	w := windowsKeeper{digest: "mine", since: now}
	later := &api.WindowsKnown{Digest: "the next", Since: now.Add(time.Hour)}
	if w.differ(later, now) || !w.overruled(later) || w.overruled(later) {
		t.Error("one that was started later is not told otherwise, and that is said once")
	}
	earlier := &api.WindowsKnown{Digest: "the last", Since: now.Add(-time.Hour)}
	if !w.differ(earlier, now) || w.overruled(earlier) {
		t.Error("one that was started earlier does not count")
	}
}
