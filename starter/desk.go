package starter

import (
	"context"
	"io"

	"drydock/api"
	"drydock/client"
)

// temporalDesk is the desk that talks to Temporal.
type temporalDesk struct {
	conn *connection
	show *display
}

func (d *temporalDesk) begin(ctx context.Context, o order) (client.View, bool, error) {
	return d.conn.start(ctx, o)
}

func (d *temporalDesk) awaitReady(ctx context.Context, t client.Maintenance) (client.View, error) {
	w := &waiter{conn: d.conn, show: d.show}
	defer d.show.settle(t.WorkflowID)
	return w.await(ctx, t, client.Ready)
}

func (d *temporalDesk) tell(ctx context.Context, t client.Maintenance, m message) error {
	_, _, err := d.conn.send(ctx, t, m, "")
	return err
}

func (d *temporalDesk) started(ctx context.Context, t client.Maintenance) error {
	return d.conn.explain(d.conn.Signal(ctx, t, client.Started(), ""))
}

// extend sends without looking, since it comes often and an extension that is ignored does no harm.
func (d *temporalDesk) extend(ctx context.Context, t client.Maintenance) error {
	return d.conn.explain(d.conn.Signal(ctx, t, client.Extend(0, nil), "the command is running"))
}

// awaitLeft shows nothing by itself: while a command runs the terminal is the command's.
func (d *temporalDesk) awaitLeft(ctx context.Context, t client.Maintenance) (client.View, error) {
	w := &waiter{conn: d.conn, show: newDisplay(io.Discard, d.conn.now)}
	return w.await(ctx, t, client.Leaves(api.Ready))
}

func (d *temporalDesk) awaitEnd(ctx context.Context, t client.Maintenance) (client.View, error) {
	w := &waiter{conn: d.conn, show: d.show}
	defer d.show.settle(t.WorkflowID)
	return w.await(ctx, t, client.Completed)
}

func (d *temporalDesk) note(format string, args ...any) { d.show.note(format, args...) }
