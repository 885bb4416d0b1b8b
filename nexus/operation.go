package nexus

import (
	"errors"
	"maps"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/maintain"
	"drydock.dev/drydock/workflows/inbox"
)

// Operation is the workflow NexusOperation, which maintains a node, or the nodes of a plan, as a workflow in the caller's place would by package maintain. Its input is an
// api.NexusRequest in JSON. Its ID is api.NexusOperationID.
func Operation(ctx workflow.Context, input converter.RawValue) (api.NexusResult, error) {
	request, err := inbox.Decode[api.NexusRequest](inbox.Payload(input))
	if err == nil {
		err = request.Check()
	}
	if err == nil && request.Work == nil {
		err = errors.New("work: is missing: start a NodeMaintenance or a MaintenancePlan instead")
	}
	if err != nil {
		return api.NexusResult{}, inbox.InvalidSpec(err)
	}
	in, work := clusterOf(workflow.GetInfo(ctx).TaskQueueName), callback{request, workflow.NewSemaphore(ctx, mostAtOnce)}.work
	if request.Plan != nil {
		err := maintain.Nodes(ctx, maintain.PlanInput{
			Name: request.Name, Fields: request.Plan, AwaitDecision: request.AwaitDecision, GiveBackOnCancel: request.GiveBackOnCancel, Cluster: in,
		}, work)
		return api.NexusResult{Name: request.Name, Phase: api.Completed}, failed(ctx, err)
	}
	fields := maps.Clone(request.Maintenance)
	delete(fields, "node")
	delete(fields, "requestor")
	result := api.NexusResult{Node: request.Text("node"), Requestor: request.Text("requestor"), Phase: api.Completed}
	err = maintain.Node(ctx, maintain.Input{
		Node: result.Node, Requestor: result.Requestor, Fields: fields,
		AwaitDecision: request.AwaitDecision, GiveBackOnCancel: request.GiveBackOnCancel, Cluster: in,
	}, work)
	return result, failed(ctx, err)
}

// failed is the error of an operation that was not cancelled itself: work that was cancelled by somebody else has failed.
func failed(ctx workflow.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorMaintenanceFailed, nil)
}

// clusterOf is the one whose workers poll a task queue.
func clusterOf(queue string) maintain.Cluster {
	name := api.ClusterOf(queue)
	return maintain.Cluster{Name: name, TaskQueue: strings.TrimPrefix(queue, api.TaskQueue(name, ""))}
}

// callback works by the operation that the caller has named.
type callback struct {
	api.NexusRequest
	places workflow.Semaphore
}

// mostAtOnce is how many operations of the caller's are under way: a server takes 30 of a workflow, and fails its task beyond.
const mostAtOnce = 25

// work calls the caller's operation, for as long as that takes.
func (c callback) work(ctx workflow.Context, m *maintain.Held) error {
	if err := c.places.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.places.Release(1)
	return workflow.NewNexusClient(c.Work.Endpoint, c.Work.Service).ExecuteOperation(ctx, c.Work.Operation, api.NexusHeld{
		Node: m.Node, Requestor: m.Requestor, WorkflowID: m.WorkflowID, RunID: m.RunID, Input: c.Work.Input,
	}, workflow.NexusOperationOptions{
		CancellationType: workflow.NexusOperationCancellationTypeWaitCompleted, Summary: "work on " + m.Node,
	}).Get(ctx, nil)
}
