package workflowtest

import (
	"log/slog"
	"time"

	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"drydock.dev/drydock/workflows/inbox"
)

// Environment is one for a single workflow and what its test registers beside it. Its clock begins at now.
func Environment(now time.Time) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(20 * time.Second)
	env.SetStartTime(now)
	env.SetWorkflowRunTimeout(100 * 24 * time.Hour)
	// A machine that is busy with other tests is no deadlock.
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}}})
	return env
}
