package client

import (
	"fmt"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
)

func heartbeat(t *testing.T, activity string, details any) *workflowpb.PendingActivityInfo {
	t.Helper()
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(details)
	if err != nil {
		t.Fatal(err)
	}
	return &workflowpb.PendingActivityInfo{ActivityType: &commonpb.ActivityType{Name: activity}, HeartbeatDetails: payloads}
}

func TestNewerProgressWins(t *testing.T) {
	known := api.DrainProgress{At: noon, Remaining: 5}
	newer := api.DrainProgress{At: noon.Add(time.Second), Remaining: 3}
	older := api.DrainProgress{At: noon.Add(-time.Second), Remaining: 9}
	for name, c := range map[string]struct {
		known   *api.DrainProgress
		pending *workflowpb.PendingActivityInfo
		want    int
	}{
		"nothing known":         {nil, heartbeat(t, "Drain", older), 9},
		"newer heartbeat":       {&known, heartbeat(t, "Drain", newer), 3},
		"of the wait for pods":  {&known, heartbeat(t, "WaitForPods", newer), 3},
		"older heartbeat":       {&known, heartbeat(t, "Drain", older), 5},
		"another activity":      {&known, heartbeat(t, "HoldNode", newer), 5},
		"no heartbeat yet":      {&known, &workflowpb.PendingActivityInfo{ActivityType: &commonpb.ActivityType{Name: "Drain"}}, 5},
		"before the first look": {&known, heartbeat(t, "Drain", api.DrainProgress{}), 5},
		"details of other form": {&known, heartbeat(t, "Drain", "text"), 5},
	} {
		status := viewOf(api.Draining).Status
		status.Drain = c.known
		got := withLiveProgress(status, []*workflowpb.PendingActivityInfo{c.pending})
		if got.Drain == nil || got.Drain.Remaining != c.want {
			t.Errorf("%s: %+v, want %d remaining", name, got.Drain, c.want)
		}
		if status.Drain != c.known {
			t.Errorf("%s: the status itself was changed", name)
		}
	}
	unknown := viewOf(api.Draining).Status
	if got := withLiveProgress(unknown, []*workflowpb.PendingActivityInfo{heartbeat(t, "Drain", api.DrainProgress{})}); got.Drain != nil {
		t.Errorf("before the first look it says %+v", got.Drain)
	}
	if withLiveProgress(nil, nil) != nil {
		t.Error("no status became one")
	}
}

func TestAPreflightShowsWhatItWaitsFor(t *testing.T) {
	status := viewOf(api.Pending, waitingFor("a preflight of the node")).Status
	seen := api.DrainProgress{At: noon, MoreBlockers: 1, Blockers: []api.Blocker{{Pod: "pod ns/bare", Message: "no controller would re-create it"}}}
	for want, progress := range map[string]api.DrainProgress{
		"a fix for what would stop the drain: pod ns/bare: no controller would re-create it (and 1 more)": seen,
		"a preflight of the node": {At: noon},
	} {
		got := withLiveProgress(status, []*workflowpb.PendingActivityInfo{heartbeat(t, "AwaitPreflight", progress)})
		if got.WaitingFor != want || got.Drain != nil || status.WaitingFor != "a preflight of the node" {
			t.Errorf("%q, drain %v, want %q", got.WaitingFor, got.Drain, want)
		}
	}
}

func TestFailuresTellTheResultAndWhy(t *testing.T) {
	result := api.Result{Phase: api.Cancelled, Message: "cancelled by jane@host"}
	for name, c := range map[string]struct {
		err   error
		phase api.Phase
		text  string
	}{
		"cancelled":               {temporal.NewCanceledError(result), api.Cancelled, "cancelled by jane@host"},
		"cancelled, no result":    {temporal.NewCanceledError(), "", "was cancelled"},
		"failed":                  {temporal.NewNonRetryableApplicationError("no room", "X", nil, api.Result{Phase: api.Failed}), api.Failed, "no room"},
		"refused before it began": {temporal.NewNonRetryableApplicationError("node: required", "InvalidSpec", nil), "", "node: required"},
	} {
		got, text := endOf(fmt.Errorf("workflow execution error: %w", c.err), maintenanceEnds, func(r api.Result) string { return r.Message })
		if !strings.Contains(text, c.text) {
			t.Errorf("%s: %q, want %q in it", name, text, c.text)
		}
		if (got == nil) != (c.phase == "") || got != nil && got.Phase != c.phase {
			t.Errorf("%s: result %+v, want phase %q", name, got, c.phase)
		}
	}
}

func TestListQueryDoesNotMixUpNodes(t *testing.T) {
	want := `WorkflowType="NodeMaintenance" AND WorkflowId STARTS_WITH "blue/node-maintenance/worker-1/" AND ExecutionStatus="Running"`
	if got := listQuery("blue", "worker-1", true); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want = `WorkflowType="NodeMaintenance" AND WorkflowId STARTS_WITH "node-maintenance/"`
	if got := listQuery("", "", false); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPhaseOfViews(t *testing.T) {
	canceledWithoutResult := endedView("", enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, "")
	canceledWithoutResult.Result = nil
	stale := viewOf(api.Ready)
	stale.Execution = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED
	for name, c := range map[string]struct {
		view View
		want api.Phase
	}{
		"running":                    {viewOf(api.Ready), api.Ready},
		"node gone":                  {endedView(api.NodeGone, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, ""), api.NodeGone},
		"cancelled without a result": {canceledWithoutResult, api.Cancelled},
		"failed with an old status":  {stale, api.Failed},
	} {
		if got := c.view.Phase(); got != c.want {
			t.Errorf("%s: phase = %s, want %s", name, got, c.want)
		}
	}
}
