package activitytest

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Task is what the task of an activity says of the workflow that called it, and of the activity's own queue.
type Task struct{ Type, WorkflowID, Queue string }

// CalledBy has activities of an environment read a task in the place of the environment's own.
func CalledBy(env *testsuite.TestActivityEnvironment, task Task, more ...interceptor.WorkerInterceptor) {
	env.SetWorkerOptions(worker.Options{Interceptors: append([]interceptor.WorkerInterceptor{&posing{task: task}}, more...)})
}

type posing struct {
	interceptor.WorkerInterceptorBase
	task Task
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (p *posing) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &posingIn{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, task: p.task}
}

type posingIn struct {
	interceptor.ActivityInboundInterceptorBase
	task Task
}

// Init implements interceptor.ActivityInboundInterceptor.
func (p *posingIn) Init(out interceptor.ActivityOutboundInterceptor) error {
	return p.Next.Init(&posingOut{ActivityOutboundInterceptorBase: interceptor.ActivityOutboundInterceptorBase{Next: out}, task: p.task})
}

type posingOut struct {
	interceptor.ActivityOutboundInterceptorBase
	task Task
}

// GetInfo implements interceptor.ActivityOutboundInterceptor.
func (p *posingOut) GetInfo(ctx context.Context) activity.Info {
	info := p.Next.GetInfo(ctx)
	info.WorkflowType, info.TaskQueue = &workflow.Type{Name: p.task.Type}, p.task.Queue
	info.WorkflowExecution = workflow.Execution{ID: p.task.WorkflowID, RunID: RunID}
	return info
}
