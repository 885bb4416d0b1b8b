// Package caller refuses activities to all but workflows of this worker, and signals that the workflow is not entitled to.
package caller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"k8s.io/utils/lru"

	"drydock.dev/drydock/api"
)

// maxKnown bounds the runs whose task queues are remembered.
const maxKnown = 10000

// Describer is what the server knows of a run. A client of Temporal is one.
type Describer interface {
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// patience is the attempt from which on a run that the server does not know is refused. An activity is handed out only while its run
// exists, but a server of another region may not know the run yet: that must not end a workflow of ours. Half a minute later it does,
// or the run was deleted and nobody waits for the activity.
const patience = 9

// Identity is a workflow that calls an activity, as the server names it.
type Identity struct {
	Type, WorkflowID, RunID string
	// Cluster is that of the worker's task queue.
	Cluster string
	// FirstRunID is the first run of its chain, Parent the workflow ID of its parent. Only the server knows them, and they are empty
	// in what an activity reads from its own task.
	FirstRunID, Parent string
}

// identityOf is the caller as far as the task of the activity names it.
func identityOf(info activity.Info) Identity {
	who := Identity{WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID, Cluster: api.ClusterOf(info.TaskQueue)}
	if info.WorkflowType != nil {
		who.Type = info.WorkflowType.Name
	}
	return who
}

// Interceptor lets an activity run only for a workflow of a type that may call it, whose own tasks are on this worker's queue, and
// only for what that workflow is about. Anyone who can write in the namespace can schedule any activity, from a workflow that his own
// worker runs on a queue of his own under any type: so the type that comes with the task proves nothing, and the server is asked,
// once a run.
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
	if err := b.callers.check(ctx, activity.GetInfo(ctx), in.Args...); err != nil {
		return nil, err
	}
	result, err := b.Next.ExecuteActivity(ctx, in)
	var refused *temporal.ApplicationError
	if errors.As(err, &refused) && refused.Type() == api.ErrorForeignCaller {
		return result, refused // wrapped in another error it would be tried again
	}
	return result, err
}

// check refuses a caller or its input for good, or fails where the server does not answer. Local activities run in this worker's own
// workflows.
func (i *Interceptor) check(ctx context.Context, info activity.Info, inputs ...any) error {
	if info.IsLocalActivity {
		return nil
	}
	who, err := i.identify(ctx, info)
	if err != nil {
		return err
	}
	for _, input := range inputs {
		if err := who.Check(input); err != nil {
			return err
		}
	}
	return nil
}

// identify finds out who calls an activity, and refuses those who may not.
func (i *Interceptor) identify(ctx context.Context, info activity.Info) (Identity, error) {
	name, run := info.ActivityType.Name, info.WorkflowExecution
	if info.WorkflowType == nil || run.ID == "" || run.RunID == "" {
		return Identity{}, refuse("activity %s was called by no workflow", name)
	}
	if !slices.Contains(Allowed(name), info.WorkflowType.Name) {
		return Identity{}, refuse("activity %s is not for workflows of type %.100q: %.300q called it", name, info.WorkflowType.Name, run.ID)
	}
	found, err := i.describe(ctx, info)
	if err != nil {
		return Identity{}, err
	}
	if found.kind != info.WorkflowType.Name || found.queue != i.queue {
		return Identity{}, refuse("activity %s is for workflows of task queue %s: workflow %.300q of type %.100q is on %.300q", name, i.queue, run.ID, found.kind, found.queue)
	}
	if err := i.checkFirst(ctx, name, run, found); err != nil {
		return Identity{}, err
	}
	return Identity{
		Type: found.kind, WorkflowID: run.ID, RunID: run.RunID, Cluster: api.ClusterOf(i.queue), FirstRunID: found.first, Parent: found.parent,
	}, nil
}

// home is what the server says of a run: none of it changes in its life. Begun: its first run is of the same type and queue.
type home struct {
	kind, queue, first, parent string
	begun                      bool
}

// checkFirst refuses a run whose chain is of another type or queue at its beginning: somebody else's worker has continued it as new
// here, with a state that he made up. A first run that is not kept any more says nothing.
func (i *Interceptor) checkFirst(ctx context.Context, name string, run workflow.Execution, found home) error {
	if found.begun || found.first == "" || found.first == run.RunID {
		return nil
	}
	described, err := i.server.DescribeWorkflowExecution(ctx, run.ID, found.first)
	var unknown *serviceerror.NotFound
	if err != nil && !errors.As(err, &unknown) {
		return fmt.Errorf("asking who began the workflow that called activity %s: %s: %w", name, run.ID, err)
	}
	kind, queue := described.GetWorkflowExecutionInfo().GetType().GetName(), described.GetExecutionConfig().GetTaskQueue().GetName()
	if err == nil && (kind != found.kind || queue != found.queue) {
		return refuse("activity %s is for workflows of task queue %s: workflow %.300q was begun as %.100q on %.300q", name, i.queue, run.ID, kind, queue)
	}
	found.begun = true
	i.own.Add(run, found)
	return nil
}

// describe asks the server about a run, once.
func (i *Interceptor) describe(ctx context.Context, info activity.Info) (home, error) {
	run := info.WorkflowExecution
	if known, ok := i.own.Get(run); ok {
		return known.(home), nil
	}
	described, err := i.server.DescribeWorkflowExecution(ctx, run.ID, run.RunID)
	var unknown *serviceerror.NotFound
	if errors.As(err, &unknown) && info.Attempt >= patience {
		return home{}, refuse("activity %s was called by workflow %.300q, run %s, which the server does not know", info.ActivityType.Name, run.ID, run.RunID)
	}
	if err != nil {
		return home{}, fmt.Errorf("asking which workflow called activity %s: %s: %w", info.ActivityType.Name, run.ID, err)
	}
	of := described.GetWorkflowExecutionInfo()
	found := home{
		kind: of.GetType().GetName(), queue: described.GetExecutionConfig().GetTaskQueue().GetName(),
		first: of.GetFirstRunId(), parent: of.GetParentExecution().GetWorkflowId(),
	}
	i.own.Add(run, found)
	return found, nil
}

func refuse(format string, values ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, values...), api.ErrorForeignCaller, nil)
}
