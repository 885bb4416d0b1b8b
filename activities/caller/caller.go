// Package caller refuses activities to whoever is not a workflow of this worker.
package caller

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"k8s.io/utils/lru"

	"drydock/api"
)

// maxKnown bounds the runs whose task queues are remembered.
const maxKnown = 10000

// Describer is what the server knows of a run. A client of Temporal is one.
type Describer interface {
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// Interceptor lets an activity run only for a workflow of a type that may call it, whose own tasks are on this worker's queue. Whoever
// may write in the namespace can schedule any activity, from a workflow that his own worker runs on a queue of his own under any
// type: so the type that comes with the task proves nothing, and the server is asked, once a run.
type Interceptor struct {
	interceptor.WorkerInterceptorBase
	server Describer
	queue  string
	own    *lru.Cache
}

// New makes an interceptor for a worker whose workflows are on a queue, not on that of a lane.
func New(server Describer, queue string) *Interceptor {
	return &Interceptor{server: server, queue: queue, own: lru.New(maxKnown)}
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (i *Interceptor) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &inbound{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, callers: i}
}

type inbound struct {
	interceptor.ActivityInboundInterceptorBase
	callers *Interceptor
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (b *inbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if err := b.callers.check(ctx, activity.GetInfo(ctx)); err != nil {
		return nil, err
	}
	return b.Next.ExecuteActivity(ctx, in)
}

// check refuses a caller for good, or fails where the server does not answer. Local activities run in this worker's own workflows.
func (i *Interceptor) check(ctx context.Context, info activity.Info) error {
	if info.IsLocalActivity {
		return nil
	}
	name, run := info.ActivityType.Name, info.WorkflowExecution
	if info.WorkflowType == nil || run.ID == "" || run.RunID == "" {
		return refuse("activity %s was called by no workflow", name)
	}
	if !slices.Contains(Allowed(name), info.WorkflowType.Name) {
		return refuse("activity %s is not for workflows of type %.100q: %.300q called it", name, info.WorkflowType.Name, run.ID)
	}
	if known, ok := i.own.Get(run); ok {
		return i.compare(name, run, info.WorkflowType.Name, known.(home))
	}
	described, err := i.server.DescribeWorkflowExecution(ctx, run.ID, run.RunID)
	if err != nil {
		return fmt.Errorf("asking which workflow called activity %s: %s: %w", name, run.ID, err)
	}
	found := home{kind: described.GetWorkflowExecutionInfo().GetType().GetName(), queue: described.GetExecutionConfig().GetTaskQueue().GetName()}
	i.own.Add(run, found)
	return i.compare(name, run, info.WorkflowType.Name, found)
}

// home is where a run is at home, as the server says: neither changes in its life.
type home struct{ kind, queue string }

func (i *Interceptor) compare(name string, run workflow.Execution, kind string, found home) error {
	if found.kind != kind || found.queue != i.queue {
		return refuse("activity %s is for workflows of task queue %s: workflow %.300q of type %.100q is on %.300q", name, i.queue, run.ID, found.kind, found.queue)
	}
	return nil
}

func refuse(format string, values ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, values...), api.ErrorForeignCaller, nil)
}
