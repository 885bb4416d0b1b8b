package nodework

import (
	"context"
	"io"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// TemporalClient is the maintenanceClient that talks to Temporal.
type TemporalClient struct {
	Conn *invocation.Connection
	Show *terminal.Display
}

func (d *TemporalClient) begin(ctx context.Context, o input.Order) (client.View, bool, error) {
	return d.Conn.StartOrAdopt(ctx, o.Input)
}

func (d *TemporalClient) awaitReady(ctx context.Context, t client.Maintenance) (client.View, error) {
	w := &invocation.Waiter{Conn: d.Conn, Show: d.Show}
	defer d.Show.Settle(t.WorkflowID)
	return w.Await(ctx, t, client.Ready)
}

func (d *TemporalClient) send(ctx context.Context, t client.Maintenance, name string, payload any) (client.Sent, error) {
	sent, err := d.Conn.Send(ctx, t, name, payload, "")
	return sent, d.Conn.ExplainSent(err, "status "+t.Node)
}

// started is a signal: the work does not wait for the record of it.
func (d *TemporalClient) started(ctx context.Context, t client.Maintenance) error {
	return d.Conn.Explain(d.Conn.Signal(ctx, t, api.MsgStarted, nil, ""))
}

// extend is a signal too: it comes often, and one that is ignored does no harm.
func (d *TemporalClient) extend(ctx context.Context, t client.Maintenance) error {
	return d.Conn.Explain(d.Conn.Signal(ctx, t, api.MsgExtend, nil, "the command is running"))
}

// awaitLeft shows nothing by itself: while a command runs the terminal is the command's.
func (d *TemporalClient) awaitLeft(ctx context.Context, t client.Maintenance) (client.View, error) {
	w := &invocation.Waiter{Conn: d.Conn, Show: terminal.NewDisplay(io.Discard, d.Conn.Clock)}
	return w.Await(ctx, t, client.Leaves(api.Ready))
}

func (d *TemporalClient) awaitEnd(ctx context.Context, t client.Maintenance) (client.View, error) {
	w := &invocation.Waiter{Conn: d.Conn, Show: d.Show}
	defer d.Show.Settle(t.WorkflowID)
	return w.Await(ctx, t, client.Completed)
}

func (d *TemporalClient) note(format string, args ...any) { d.Show.Note(format, args...) }

// PlanClient is the maintenanceClient of nodes whose maintenance a plan has begun.
type PlanClient struct {
	TemporalClient
	// RunID is the first run of the node's maintenance.
	RunID string
	// Rerun works also on a node on which somebody else has begun to work, and who is silent since.
	Rerun bool
	// claim is the ID of the message by which the work is begun.
	claim string
}

// begin finds the maintenance: it runs already.
func (p *PlanClient) begin(_ context.Context, o input.Order) (client.View, bool, error) {
	return client.View{Maintenance: client.Maintenance{
		Node: o.Spec.Node, Requestor: o.Spec.Requestor, WorkflowID: api.MaintenanceID(p.Conn.Cluster(), o.Spec.Node, o.Spec.Requestor),
		RunID: p.RunID, FirstRunID: p.RunID, Started: p.Conn.Clock(), Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}, false, nil
}

// started claims the node: of two terminals at one plan, one works on it.
func (p *PlanClient) started(ctx context.Context, t client.Maintenance) error {
	if p.claim == "" {
		p.claim = uuid.NewString()
	}
	_, err := p.Conn.Send(ctx, t, api.MsgStarted, api.Started{Message: api.Message{ID: p.claim}, Claim: true}, "")
	if p.Rerun && exit.Has[*client.RefusedError](err) {
		return p.TemporalClient.started(ctx, t)
	}
	return err
}

type maintenanceClient interface {
	// begin starts the maintenance or adopts the same one that runs.
	begin(ctx context.Context, o input.Order) (v client.View, adopted bool, err error)
	awaitReady(ctx context.Context, t client.Maintenance) (client.View, error)
	// send sends a message and returns the answer. With the same ID in the payload it is sent again.
	send(ctx context.Context, t client.Maintenance, name string, payload any) (client.Sent, error)
	// started and extend only send: the work does not wait for the record of it.
	started(ctx context.Context, t client.Maintenance) error
	extend(ctx context.Context, t client.Maintenance) error
	// awaitLeft waits until the node is no longer Ready.
	awaitLeft(ctx context.Context, t client.Maintenance) (client.View, error)
	// awaitEnd waits for the end, and any other than Completed is an error.
	awaitEnd(ctx context.Context, t client.Maintenance) (client.View, error)
	note(format string, args ...any)
}
