package inbox

import (
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// Interceptor remembers in which order signals arrive: a workflow has a channel for each name, and several that came
// within one workflow task have no order between the channels. Every worker and replayer has to have it.
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

// arrivals are the names of the signals that were not looked at yet, in the order of their arrival.
type arrivals struct{ names []string }

type arrivalsKey struct{}

// ExecuteWorkflow lets the workflow's inbox find the order.
func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	return i.Next.ExecuteWorkflow(workflow.WithValue(ctx, arrivalsKey{}, i.arrived), in)
}

// HandleSignal is called for every signal as it arrives.
func (i *inbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	i.arrived.names = append(i.arrived.names, in.SignalName)
	return i.Next.HandleSignal(ctx, in)
}

// arrivalsOf panics where the worker runs without the Interceptor: its workflows would never read a message.
func arrivalsOf(ctx workflow.Context) *arrivals {
	arrived, ok := ctx.Value(arrivalsKey{}).(*arrivals)
	if !ok {
		panic("the worker runs without inbox.Interceptor")
	}
	return arrived
}

// next takes the name of the signal that came first.
func (a *arrivals) next() string {
	name := a.names[0]
	a.names = a.names[1:]
	return name
}
