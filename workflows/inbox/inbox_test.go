package inbox_test

import (
	"encoding/json"
	"strings"
	"testing"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/inbox"
)

// TestALongPayloadIsRefusedUnread: its size is the error, whatever else is wrong with it.
func TestALongPayloadIsRefusedUnread(t *testing.T) {
	for _, raw := range []string{
		`{"comment":"` + strings.Repeat("a", 512<<10) + `"}`,
		`{"comment":[` + strings.Repeat("null,", 200<<10),
		strings.Repeat("<", 2<<20),
	} {
		payload, err := inbox.Decode[api.Message]([]byte(raw))
		if err == nil || !strings.Contains(err.Error(), "the payload has") || payload != (api.Message{}) {
			t.Errorf("%d bytes: %v", len(raw), err)
		}
	}
	// What is cut to its limit later is no reason to refuse a message.
	raw, err := json.Marshal(api.Message{By: "ops", Comment: strings.Repeat("<", 80<<10)})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := inbox.Decode[api.Message](raw)
	if err != nil || payload.By != "ops" {
		t.Errorf("%d bytes: %q, %v", len(raw), payload.By, err)
	}
}

// TestAHandlerTakesWhatIsDeclared: package api says what a message carries.
func TestAHandlerTakesWhatIsDeclared(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}}})
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		check := func(api.Cancel) error { return nil }
		return inbox.New(ctx, nobody{}).Take(nil, nil, inbox.On(api.MsgDone, check, func(api.Cancel) string { return "" }))
	}, workflow.RegisterOptions{Name: api.NodeMaintenanceType})
	env.ExecuteWorkflow(api.NodeMaintenanceType)
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "its handler takes a api.Cancel, and package api declares a api.Done") {
		t.Errorf("%v", err)
	}
}
