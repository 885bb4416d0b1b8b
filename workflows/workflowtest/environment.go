package workflowtest

import (
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"drydock.dev/drydock/workflows"
)

// Environment is one for a single workflow and what its test registers beside it. Its clock begins at now.
func Environment(now time.Time) *testsuite.TestWorkflowEnvironment { return environment(now, nil) }

func environment(now time.Time, metrics client.MetricsHandler, more ...interceptor.WorkerInterceptor) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	suite.SetMetricsHandler(metrics)
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetStartTime(now)
	env.SetWorkflowRunTimeout(100 * 24 * time.Hour)
	env.SetWorkerOptions(options(more))
	return env
}

// options are those of a worker with more interceptors. A machine that is busy with other tests is no deadlock.
func options(more []interceptor.WorkerInterceptor) worker.Options {
	return worker.Options{DeadlockDetectionTimeout: time.Minute, Interceptors: append(workflows.Interceptors(), more...)}
}
