package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nexus-rpc/sdk-go/nexus"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
)

func newEnvironment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	return env
}

// What the example says is what Drydock reads.
func TestTheRequestIsOneOfDrydocks(t *testing.T) {
	env := newEnvironment()
	var request map[string]any
	drydock := nexus.NewService(api.NexusService)
	drydock.MustRegister(nexus.NewSyncOperation(api.NexusRunPlan, func(_ context.Context, r map[string]any, _ nexus.StartOperationOptions) (Result, error) {
		request = r
		return Result{"bios", "Completed"}, nil
	}))
	env.RegisterNexusService(drydock)
	env.ExecuteWorkflow(Upgrade, UpgradeInput{Nodes: []string{"worker-01"}, Parallel: 2, Reason: "BIOS 2.4"})
	var result Result
	if err := env.GetWorkflowResult(&result); err != nil || result.Phase != "Completed" {
		t.Fatalf("it ended with %+v, %v", result, err)
	}
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	read := api.NexusRequest{Name: "bios"}
	if err := decoder.Decode(&read); err != nil {
		t.Fatal(err)
	}
	if err := read.Check(); err != nil {
		t.Error(err)
	}
	input, err := json.Marshal(read.Plan)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := plan.Decode("bios", input); err != nil || !slices.Equal(p.Nodes, []string{"worker-01"}) || p.Strategy.MaxParallel.Of(10) != 2 {
		t.Errorf("the plan is %+v (%v)", p, err)
	}
}

func TestTheCommandRunsForTheNode(t *testing.T) {
	env := newEnvironment()
	register(env, []string{"echo", "flashed {node}"})
	env.ExecuteWorkflow(Flash, Held{Node: "worker-01"})
	var output string
	if err := env.GetWorkflowResult(&output); err != nil || output != "flashed worker-01\n" {
		t.Errorf("it ended with %q, %v", output, err)
	}
	_, err := (&runner{[]string{"sh", "-c", "echo no link; exit 3"}}).Run(context.Background(), "worker-01")
	if err == nil || !strings.Contains(err.Error(), "no link") {
		t.Errorf("it ended with %v", err)
	}
}
