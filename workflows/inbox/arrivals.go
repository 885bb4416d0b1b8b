package inbox

import (
	"errors"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// Interceptor records in which order signals arrive: a workflow has a channel for each name, and several signals that came within one
// workflow task have no order between the channels. Every worker and replayer has to have it.
type Interceptor struct {
	interceptor.WorkerInterceptorBase
}

// InterceptWorkflow is called for every run.
func (*Interceptor) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &inbound{queue: &Queue{}}
	i.Next = next
	return i
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	queue *Queue
}

type queueKey struct{}

// ExecuteWorkflow lets the workflow find its Queue.
func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	return i.Next.ExecuteWorkflow(workflow.WithValue(ctx, queueKey{}, i.queue), in)
}

func (i *inbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	i.queue.names = append(i.queue.names, in.SignalName)
	return i.Next.HandleSignal(ctx, in)
}

// Queue has the names of the unread signals of one run, in the order of their arrival.
type Queue struct{ names []string }

// QueueOf returns the queue of a run. It panics where the worker runs without the Interceptor: the workflow would never read a message.
func QueueOf(ctx workflow.Context) *Queue {
	queue, ok := ctx.Value(queueKey{}).(*Queue)
	if !ok {
		panic("the worker runs without inbox.Interceptor")
	}
	return queue
}

// Unread reports whether a signal waits.
func (q *Queue) Unread() bool { return len(q.names) > 0 }

// Next takes the signal that came first. There must be one.
func (q *Queue) Next(ctx workflow.Context) (name string, payload []byte, err error) {
	name = q.names[0]
	q.names = q.names[1:]
	var raw converter.RawValue
	if !workflow.GetSignalChannel(ctx, name).ReceiveAsync(&raw) {
		return name, nil, errors.New("its payload cannot be read")
	}
	return name, Payload(raw), nil
}

// MaxUnrested is how many bytes of messages are read in one go, before Rest.
const MaxUnrested = 256 << 10

// Rest lets the other coroutines run. The SDK takes a coroutine that runs for a second for one that hangs, and fails the workflow task.
// A workflow that is cancelled goes on.
func Rest(ctx workflow.Context) {
	rested := false
	_ = workflow.Await(ctx, func() bool {
		defer func() { rested = true }()
		return rested
	})
}
