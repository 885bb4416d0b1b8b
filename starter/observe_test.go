package starter

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"drydock/api"
	"drydock/rules/spec"
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
	if withLiveProgress(nil, nil) != nil {
		t.Error("no status became one")
	}
}

func TestAPreflightShowsWhatItWaitsFor(t *testing.T) {
	status := viewOf(api.Pending, waitingFor("a preflight of the node")).Status
	seen := api.DrainProgress{At: noon, MoreBlockers: 1, Blockers: []api.Blocker{{Pod: "pod ns/bare", Message: "no controller would re-create it"}}}
	for want, progress := range map[string]api.DrainProgress{
		"what would stop the drain to be mended: pod ns/bare: no controller would re-create it (and 1 more problems)": seen,
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
		got, text := failureOf(fmt.Errorf("workflow execution error: %w", c.err))
		if !strings.Contains(text, c.text) {
			t.Errorf("%s: %q, want %q in it", name, text, c.text)
		}
		if (got == nil) != (c.phase == "") || got != nil && got.Phase != c.phase {
			t.Errorf("%s: result %+v, want phase %q", name, got, c.phase)
		}
	}
}

func TestListQueryDoesNotMixUpNodes(t *testing.T) {
	c := &connection{cluster: "blue"}
	want := `WorkflowType="NodeMaintenance" AND WorkflowId STARTS_WITH "blue/node-maintenance/worker-1/" AND ExecutionStatus="Running"`
	if got := c.listQuery("worker-1", true); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want = `WorkflowType="NodeMaintenance" AND WorkflowId STARTS_WITH "node-maintenance/"`
	if got := (&connection{}).listQuery("", false); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestErrorsOfTemporalSayWhatToDo(t *testing.T) {
	c := &connection{address: "host:7233", namespace: "ops"}
	for name, c2 := range map[string]struct {
		err  error
		want []string
		away bool
	}{
		"namespace":   {serviceerror.NewNamespaceNotFound("ops"), []string{`no namespace "ops"`, "temporal operator namespace create -n ops"}, false},
		"unavailable": {serviceerror.NewUnavailable("refused"), []string{"host:7233 is not reachable", "refused", "TEMPORAL_ADDRESS"}, true},
		"denied":      {serviceerror.NewPermissionDenied("no", ""), []string{"refuses access", "TEMPORAL_API_KEY"}, false},
		"other":       {errors.New("odd"), []string{"doing it: odd"}, false},
	} {
		err := c.explain("doing it", c2.err)
		for _, want := range c2.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q, want %q in it", name, err, want)
			}
		}
		if errors.Is(err, errUnreachable) != c2.away {
			t.Errorf("%s: worth another try: %v, want %v", name, !c2.away, c2.away)
		}
	}
	if c.explain("doing it", nil) != nil {
		t.Error("no error became one")
	}
}

func TestStaticSummaryFitsTemporal(t *testing.T) {
	if got, want := staticSummary(spec.Maintenance{Node: "n", Requestor: "ops", Reason: "a\nb"}), "n for ops: a b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	long := staticSummary(spec.Maintenance{Node: "n", Requestor: "ops", Reason: strings.Repeat("ü", 400)})
	if len(long) > maxSummary || !strings.HasSuffix(long, "ü…") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}
