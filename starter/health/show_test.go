package health

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/starter/startertest"
)

func at(d time.Duration) *time.Time {
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
			Blocked: "jane@laptop has paused it: storage moves", Storm: &health.StormStatus{Since: startertest.Before(time.Hour), Over: at(5 * time.Minute)},
			Groups: []health.GroupStatus{{Group: "eu-1a", Nodes: 6, Healthy: 3, MinHealthy: 5, Blocked: true}, {Group: "eu-1b", Nodes: 6, Healthy: 5, MinHealthy: 5}},
			UnhealthyNodes: []health.UnhealthyNode{
				{
					Name: "worker-07", Ill: "Ready is Unknown", Since: at(-20 * time.Minute), Step: 2, Steps: 2, Group: "eu-1a",
					Remediations: []health.RemediationOfNode{
						{WorkflowID: "node-maintenance/worker-07/health-workers", Started: startertest.Before(15 * time.Minute), TimedOut: at(0)},
						{Resource: &health.Resource{Kind: "Fence", Namespace: "remediators", Name: "worker-07"}, Started: startertest.Noon},
					},
					Next: "step 2 of 2 times out", NextAt: at(time.Hour),
				},
				{Name: "worker-08", Ill: "Ready is False", Since: at(-6 * time.Minute), Steps: 2, Group: "eu-1a", Blocked: "in eu-1a 3 of 6 nodes are healthy, and 5 have to be"},
				{Name: "worker-09", Step: 1, Steps: 2, ConditionsHealthyTimestamp: at(-time.Minute), Next: "the remediation is removed", NextAt: at(4 * time.Minute)},
			},
		},
		Messages: []api.Received{{At: startertest.Before(time.Minute), Name: "pause", By: "jane@laptop", Comment: "storage moves", Effect: "paused", Outcome: api.Applied}},
		Events: []api.HealthEvent{
			{At: startertest.Before(15 * time.Minute), Event: health.Event{Reason: health.EventRemediationCreated, Node: "worker-07", Text: "step 1 of 2 has begun"}},
			{At: startertest.Before(time.Minute), Event: health.Event{Reason: health.EventRemediationSkipped, Text: "paused", Warning: true}},
		},
	}
	return client.HealthCheckView{Status: &status, HealthCheckRun: client.HealthCheckRun{
		Run:        client.Run{Name: "workers", RunID: "run-9", Started: startertest.Before(time.Hour), Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING},
		Configured: true,
	}}
}

func TestAHealthCheckIsDrawn(t *testing.T) {
	c := CheckOf(checkView(t), "health-check/workers")
	startertest.GoldenInWidths(t, "status", func(w io.Writer) { status(w, c, startertest.Noon) })
}

func TestACheckThatWasRemovedIsSaidToHaveEnded(t *testing.T) {
	v := client.HealthCheckView{HealthCheckRun: client.HealthCheckRun{Run: client.Run{
		Name: "old", Ended: startertest.Noon, Execution: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
	}}, Failure: "it was removed"}
	var text strings.Builder
	status(&text, CheckOf(v, "health-check/old"), startertest.Noon)
	if shown := text.String(); strings.Contains(shown, "unknown") || !strings.Contains(shown, "ended") || !strings.Contains(shown, "it was removed") {
		t.Error(shown)
	}
}

func TestHealthChecksAreListed(t *testing.T) {
	v := checkView(t)
	silent := client.HealthCheckView{HealthCheckRun: client.HealthCheckRun{Run: client.Run{
		Name: "infra", RunID: "run-2", Started: startertest.Before(time.Hour), Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}, Unanswered: &client.NoWorkerError{}}
	ended := client.HealthCheckView{HealthCheckRun: client.HealthCheckRun{Run: client.Run{Name: "old", Execution: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED}}, Failure: "it was removed"}
	checks := Checks{SummaryOf(silent, "health-check/infra"), SummaryOf(ended, "health-check/old"), SummaryOf(v, "health-check/workers")}
	startertest.GoldenInWidths(t, "list", func(w io.Writer) { list(w, checks, false, startertest.Noon) })
	startertest.Golden(t, "list_wide", func(w io.Writer) { list(w, checks, true, startertest.Noon) })
	checks.compare([]string{"other"})
	if !checks[2].Left || checks[2].Source != sourceLeft || checks[0].Left || checks[1].Left {
		t.Errorf("%+v", checks)
	}
}

func TestANodeIsExplained(t *testing.T) {
	e := Explained{Check: "workers", Phase: health.PhasePaused, Blocked: "jane@laptop has paused it", Explanation: health.Explanation{
		Node: "worker-08", Found: true, State: "unhealthy", Summary: "Ready is False for 6m, and the check is paused",
		Conditions: []health.ExplainCondition{
			{Type: "Ready", Status: "False", Since: startertest.Before(6 * time.Minute), Duration: "5m", IllAt: startertest.Before(time.Minute), Over: true},
			{Type: "DiskPressure", Status: "True", Since: startertest.Before(time.Minute), Duration: "10m", IllAt: *at(9 * time.Minute)},
		},
		Blocks: []string{"jane@laptop has paused it", "in eu-1a 3 of 6 nodes are healthy, and 5 have to be"},
		Steps:  []health.ExplainStep{{Step: 1, What: "a maintenance", Timeout: "15m", State: "not begun"}, {Step: 2, What: "Fence", Timeout: "1h", State: "not begun"}},
		Next:   "step 1 of 2 begins once nothing blocks",
	}}
	startertest.GoldenInWidths(t, "explain", func(w io.Writer) { explained(w, e, startertest.Noon) })
	if e.remediates() || !e.concerned() {
		t.Error("it is concerned, and does not remediate")
	}
	if e.State = "recovered"; !e.remediates() {
		t.Error("what has recovered has a remediation left")
	}
}

func TestFilesOfHealthChecks(t *testing.T) {
	const fields = "selector: {matchLabels: {a: b}}\nmaintenance: {}\n"
	for name, c := range map[string]struct {
		text, want string
		choose     []string
		names      string
	}{
		"a check with its name":    {text: "name: a\n" + fields, names: "a"},
		"several documents":        {text: "name: a\n" + fields + "---\nname: b\n" + fields, names: "a b"},
		"one of several":           {text: "name: a\n" + fields + "---\nname: b\n" + fields, choose: []string{"b"}, names: "b"},
		"one that is not there":    {text: "name: a\n" + fields, choose: []string{"c"}, want: `no health check "c": it has a`},
		"a worker's configuration": {text: "cluster: x\nhealthChecks: {a: {selector: {matchLabels: {a: b}}, maintenance: {}}}", names: "a"},
		"the same name twice":      {text: "name: a\n" + fields + "---\nname: a\n" + fields, want: `two health checks "a"`},
		"no name":                  {text: fields, want: "name: is missing"},
		"nothing":                  {text: "", want: "has no health check"},
		"another kind":             {text: "kind: Pod", want: "kind"},
		"no object":                {text: "[1]", want: "want an object"},
		"all that is wrong at once": {
			text: "name: a\nselector: {}\nmaintenance: {}\nminHealthy: 1\nmaxUnhealthy: 1\n", want: "a.selector",
		},
	} {
		file := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		checks, err := readChecks(file, nil, c.choose)
		var names []string
		for _, one := range checks {
			names = append(names, one.Name)
		}
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		case c.want == "" && (err != nil || strings.Join(names, " ") != c.names):
			t.Errorf("%s: %v, %v", name, names, err)
		}
	}
	if checks, err := readChecks("-", bytes.NewBufferString("name: a\n"+fields), nil); err != nil || len(checks) != 1 {
		t.Errorf("%v, %v", checks, err)
	}
}

// The pages show checks that are taken.
func TestThePagesShowHealthChecks(t *testing.T) {
	found := 0
	for _, page := range []string{"tasks/health-checks.md", "tasks/from-node-healthcheck.md", "reference/health.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(block[1], "healthChecks:") && !strings.Contains(block[1], "kind: NodeHealthCheck\n") {
				continue
			}
			found++
			checks, err := readChecks("-", strings.NewReader(block[1]), nil)
			if err != nil || len(checks) == 0 {
				t.Errorf("%s: %v\n%s", page, err, block[1])
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d examples were found", found)
	}
}
