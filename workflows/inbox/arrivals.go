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
	i := &inbound{arrived: &arrivals{}}
	i.Next = next
	return i
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	arrived *arrivals
}

// arrivals are the names of the unread signals, in the order of their arrival.
type arrivals struct{ names []string }

type arrivalsKey struct{}

// ExecuteWorkflow lets the workflow's Queue find the order.
func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	return i.Next.ExecuteWorkflow(workflow.WithValue(ctx, arrivalsKey{}, i.arrived), in)
}

func (i *inbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	i.arrived.names = append(i.arrived.names, in.SignalName)
	return i.Next.HandleSignal(ctx, in)
}

// Queue holds the unread signals of one run, of all names, in the order of their arrival.
type Queue struct {
	ctx     workflow.Context
	arrived *arrivals
}

// NewQueue returns the queue of a run. It panics where the worker runs without the Interceptor: the workflow would never read a message.
func NewQueue(ctx workflow.Context) *Queue {
	arrived, ok := ctx.Value(arrivalsKey{}).(*arrivals)
	if !ok {
		panic("the worker runs without inbox.Interceptor")
	}
	return &Queue{ctx: ctx, arrived: arrived}
}

// Unread reports whether a signal waits.
func (q *Queue) Unread() bool { return len(q.arrived.names) > 0 }

// Next takes the signal that came first. There must be one.
func (q *Queue) Next() (name string, payload []byte, err error) {
	name = q.arrived.names[0]
	q.arrived.names = q.arrived.names[1:]
	var raw converter.RawValue
	if !workflow.GetSignalChannel(q.ctx, name).ReceiveAsync(&raw) {
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
