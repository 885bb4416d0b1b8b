package views_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func later(d time.Duration) *time.Time {
	t := startertest.Noon.Add(d)
	return &t
}

func checkView(t *testing.T) client.HealthCheckView {
	t.Helper()
	spec, err := health.Decode([]byte(`{"selector":{"matchLabels":{"pool":"blue"}},"groups":{"by":["zone"],"maxUnhealthy":1},"escalatingRemediations":[
		{"order":1,"timeout":"15m","maintenance":{"input":{"reason":"ill"},"outOfService":true}},
		{"order":2,"timeout":"1h","remediationTemplate":{"apiVersion":"a.io/v1","kind":"FenceTemplate","namespace":"remediators","name":"fence"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	status := api.HealthStatus{
		Name: "workers", WorkflowID: "health-check/workers", RunID: "run-1", CreatedAt: startertest.Before(72 * time.Hour), Spec: spec,
		Status: health.Status{
			ObservedNodes: 12, HealthyNodes: 8, MinHealthy: 7, Soon: 1, Unhealthy: 3, Remediating: 2, Phase: health.PhaseRemediating,
			Reason: "2 nodes are under remediation", Pauses: []health.PauseStatus{{By: "jane@laptop", Why: "storage\nmoves", At: startertest.Before(time.Minute)}},
			Blocked: "jane@laptop has paused it: storage moves", Storm: &health.StormStatus{Since: startertest.Before(time.Hour), Over: later(5 * time.Minute)},
			Groups: []health.GroupStatus{{Group: "eu-1a", Nodes: 6, Healthy: 3, MinHealthy: 5, Blocked: true}, {Group: "eu-1b", Nodes: 6, Healthy: 5, MinHealthy: 5}},
			UnhealthyNodes: []health.UnhealthyNode{
				{
					Name: "worker-07", Ill: "Ready is Unknown", Since: later(-20 * time.Minute), Step: 2, Steps: 2, Group: "eu-1a",
					Remediations: []health.RemediationOfNode{
						{WorkflowID: "node-maintenance/worker-07/health-workers", Started: startertest.Before(15 * time.Minute), TimedOut: later(0)},
						{Resource: &health.Resource{Kind: "Fence", Namespace: "remediators", Name: "worker-07"}, Started: startertest.Noon},
					},
					Next: "step 2 of 2 times out", NextAt: later(time.Hour),
				},
				{Name: "worker-08", Ill: "Ready is False", Since: later(-6 * time.Minute), Steps: 2, Group: "eu-1a", Blocked: "in eu-1a 3 of 6 nodes are healthy, and 5 have to be"},
				{Name: "worker-09", Step: 1, Steps: 2, ConditionsHealthyTimestamp: later(-time.Minute), Next: "the remediation is removed", NextAt: later(4 * time.Minute)},
			},
		},
		Messages: []api.Received{{At: startertest.Before(time.Minute), Name: "pause", By: "jane@laptop", Comment: "storage moves", Effect: "paused", Outcome: api.Applied}},
		Events: []api.HealthEvent{
			{At: startertest.Before(15 * time.Minute), Event: health.Event{Reason: health.EventRemediationCreated, Node: "worker-07", Text: "step 1 of 2 has begun"}},
			{At: startertest.Before(time.Minute), Event: health.Event{Reason: health.EventRemediationSkipped, Text: "paused", Warning: true}},
		},
	}
	return client.HealthCheckView{Status: &status, HealthCheckRun: client.HealthCheckRun{
		Run:        client.Run{Name: "workers", WorkflowID: "health-check/workers", RunID: "run-9", Started: startertest.Before(time.Hour), Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING},
		Configured: true,
	}}
}

func TestAHealthCheckIsDrawn(t *testing.T) {
	c := checkView(t).Known()
	startertest.GoldenInWidths(t, "health_status", func(w io.Writer) { terminal.Show(w, views.HealthCheck(c, noon)) })
}

func TestDetailsOfAHealthCheck(t *testing.T) {
	startertest.Golden(t, "health_details", func(w io.Writer) {
		v := checkView(t)
		v.Status.Troubles = []api.Trouble{{What: "list what remediates", Why: "no permission"}}
		fmt.Fprintln(w, document.Details(views.HealthCheck(api.HealthCheckOf(*v.Status), views.Brief())))
	})
}

func TestACheckThatWasRemovedIsSaidToHaveEnded(t *testing.T) {
	v := client.HealthCheckView{HealthCheckRun: client.HealthCheckRun{Run: client.Run{
		Name: "old", Ended: startertest.Noon, Execution: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
	}}, Failure: "it was removed"}
	var text strings.Builder
	terminal.Show(&text, views.HealthCheck(v.Known(), noon))
	if shown := text.String(); strings.Contains(shown, "unknown") || !strings.Contains(shown, "ended") || !strings.Contains(shown, "it was removed") {
		t.Error(shown)
	}
}

func TestHealthChecksAreListed(t *testing.T) {
	silent := client.HealthCheckView{HealthCheckRun: client.HealthCheckRun{Run: client.Run{
		Name: "infra", WorkflowID: "health-check/infra", RunID: "run-2", Started: startertest.Before(time.Hour), Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}, Unanswered: &client.NoWorkerError{}}
	ended := client.HealthCheckView{HealthCheckRun: client.HealthCheckRun{Run: client.Run{
		Name: "old", WorkflowID: "health-check/old", Execution: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
	}}, Failure: "it was removed"}
	checks := api.HealthChecks{silent.Summary(), ended.Summary(), checkView(t).Summary()}
	startertest.GoldenInWidths(t, "health_list", func(w io.Writer) { terminal.Show(w, views.HealthChecks(checks, false, noon)) })
	startertest.Golden(t, "health_list_wide", func(w io.Writer) { terminal.Show(w, views.HealthChecks(checks, true, noon)) })
}

func TestANodeIsExplained(t *testing.T) {
	e := api.CheckExplanation{Check: "workers", Phase: health.PhasePaused, Blocked: "jane@laptop has paused it", HealthExplanation: health.Explanation{
		Node: "worker-08", Found: true, State: "unhealthy", Summary: "Ready is False for 6m, and the check is paused",
		Conditions: []health.ExplainCondition{
			{Type: "Ready", Status: "False", Since: startertest.Before(6 * time.Minute), Duration: "5m", IllAt: startertest.Before(time.Minute), Over: true},
			{Type: "DiskPressure", Status: "True", Since: startertest.Before(time.Minute), Duration: "10m", IllAt: *later(9 * time.Minute)},
		},
		Blocks: []string{"jane@laptop has paused it", "in eu-1a 3 of 6 nodes are healthy, and 5 have to be"},
		Steps:  []health.ExplainStep{{Step: 1, What: "a maintenance", Timeout: "15m", State: "not begun"}, {Step: 2, What: "Fence", Timeout: "1h", State: "not begun"}},
		Next:   "step 1 of 2 begins once nothing blocks",
	}}
	startertest.GoldenInWidths(t, "health_explain", func(w io.Writer) { terminal.Show(w, views.CheckExplanation(e, noon)) })
}
