package maintenance

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// badInputs are inputs of a maintenance, each with what the refusal has to name.
var badInputs = []struct {
	name, input string
	names       []string
}{
	{"unknown field", `{"node":"worker-01","nods":"x"}`, []string{"nods", "unknown"}},
	{"unknown field inside", `{"node":"worker-01","drain":{"mod":"evict"}}`, []string{"drain.mod", "unknown"}},
	{"wrong type", `{"node":"worker-01","priority":"high"}`, []string{"priority", "number"}},
	{"wrong type inside", `{"node":"worker-01","drain":{"force":"yes"}}`, []string{"drain.force"}},
	{"null", `{"node":"worker-01","reason":null}`, []string{"reason", "null"}},
	{"bad selector", `{"node":"worker-01","drain":{"podSelector":"app in ("}}`, []string{"drain.podSelector"}},
	{"bad selector to wait for", `{"node":"worker-01","waitForPodCompletion":{"podSelector":"=="}}`, []string{"waitForPodCompletion.podSelector"}},
	{"bad regular expression", `{"node":"worker-01","drain":{"podEvictionFilters":[{"byResourceNameRegex":"a("}]}}`,
		[]string{"drain.podEvictionFilters[0].byResourceNameRegex"}},
	{"negative duration", `{"node":"worker-01","readyTimeout":"-5m"}`, []string{"readyTimeout", "negative"}},
	{"duration without unit", `{"node":"worker-01","readyTimeout":60}`, []string{"readyTimeout"}},
	{"negative grace", `{"node":"worker-01","drain":{"gracePeriodSeconds":-1}}`, []string{"drain.gracePeriodSeconds"}},
	{"unknown mode", `{"node":"worker-01","drain":{"mode":"delete"}}`, []string{"drain.mode", "evict"}},
	{"unknown rung", `{"node":"worker-01","drain":{"escalation":[{"after":"1h","do":"explode"}]}}`, []string{"drain.escalation[0].do"}},
	{"empty node", `{"node":""}`, []string{"node", "required"}},
	{"no node", `{}`, []string{"node", "required"}},
	{"impossible node", `{"node":"Worker 1"}`, []string{"node"}},
	{"requestor too long", `{"node":"worker-01","requestor":"` + strings.Repeat("r", 64) + `"}`, []string{"requestor", "63"}},
	{"requestor too short", `{"node":"worker-01","requestor":"r"}`, []string{"requestor"}},
	{"several at once", `{"node":"","drain":{"mode":"x","podSelector":"=="}}`, []string{"node", "drain.mode", "drain.podSelector"}},
	{"a string", `"worker-01"`, []string{"object", "string"}},
	{"a list", `[]`, []string{"object", "list"}},
	{"null itself", `null`, []string{"object", "null"}},
}

func TestBadInputIsRefusedAndNothingStarts(t *testing.T) {
	s := site.New(t, "")
	runs := make([]client.WorkflowRun, len(badInputs))
	for i, bad := range badInputs {
		var err error
		if runs[i], err = s.StartAs(fmt.Sprintf("%s/bad-%d", s.ID, i), bad.input); err != nil {
			t.Fatal(err)
		}
	}
	for i, bad := range badInputs {
		s.Sub(bad.name, func(s *site.Site) { s.Refused(runs[i], bad.names...) })
	}
	s.Sub("no input", func(s *site.Site) {
		run, err := s.Temporal.ExecuteWorkflow(s.Ctx, client.StartWorkflowOptions{
			ID: s.ID + "/none", TaskQueue: api.TaskQueue(s.Cluster, "drydock"),
		}, api.NodeMaintenanceType)
		if err != nil {
			t.Fatal(err)
		}
		s.Refused(run, "node")
	})
	if touched := s.Touched(); len(touched) > 0 {
		t.Errorf("nodes were touched: %+v", touched)
	}
	if asked := s.SignalsTo(api.SchedulerID(s.Cluster)); len(asked) > 0 {
		t.Errorf("the scheduler was asked: %v", asked)
	}
	s.Eventually("nothing but the scheduler runs", func() error {
		if left := s.Running(); len(left) > 1 {
			return fmt.Errorf("running: %v", left)
		}
		return nil
	})
}

func TestANodeThatDoesNotExistFailsWithASuggestion(t *testing.T) {
	s := site.New(t, "")
	run := s.Begin("worker-1")
	_, err := s.End(run)
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || failed.Type() != api.ErrorNodeNotFound {
		t.Fatalf("it ended with %v, want %s", err, api.ErrorNodeNotFound)
	}
	if !strings.Contains(failed.Message(), "worker-1;") || !strings.Contains(failed.Message(), "worker-01") {
		t.Errorf("%q does not suggest worker-01", failed.Message())
	}
	if state := s.State(); len(state.Holders) > 0 || state.PendingAll > 0 {
		t.Errorf("the scheduler remembers it: %+v", state)
	}
}
