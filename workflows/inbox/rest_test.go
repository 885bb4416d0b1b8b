package inbox_test

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/inbox"
)

// TestABurstOfLongMessagesLeavesTheOthersTheirTurn: what is read in one go counts as one step, which may not take long.
func TestABurstOfLongMessagesLeavesTheOthersTheirTurn(t *testing.T) {
	const messages = 12
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}}})
	read, turns := 0, 0
	burst := func(ctx workflow.Context) error {
		in := inbox.New(ctx, nobody{})
		inbox.Receive(in, api.SignalSlotPending, func(api.SlotAnswer) { read++ })
		in.Open()
		workflow.Go(ctx, func(ctx workflow.Context) {
			for seen := 0; seen < messages; seen = read {
				if err := workflow.Await(ctx, func() bool { return read > seen }); err != nil {
					return
				}
				turns++
			}
		})
		return workflow.Await(ctx, func() bool { return read == messages })
	}
	env.RegisterDelayedCallback(func() {
		for range messages {
			env.SignalWorkflowSkippingWorkflowTask(api.SignalSlotPending, api.SlotAnswer{Reason: strings.Repeat("x", 300<<10)})
		}
	}, time.Second)
	env.RegisterDelayedCallback(func() {}, time.Second+time.Nanosecond)
	env.ExecuteWorkflow(burst)
	if err := env.GetWorkflowError(); err != nil || read != messages {
		t.Fatalf("read %d: %v", read, err)
	}
	if turns < messages/2 {
		t.Errorf("the others had %d turns in %d messages", turns, messages)
	}
}

type nobody struct{}

func (nobody) Refused(string, api.Message, api.Outcome, error) {}
