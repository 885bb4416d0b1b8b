package starter

import (
	"context"
	"io"

	"drydock/api"
)

// temporalDesk is the desk that talks to Temporal.
type temporalDesk struct {
	conn *connection
	show *display
}

func (d *temporalDesk) begin(ctx context.Context, o order) (view, bool, error) {
	return d.conn.start(ctx, o)
}

func (d *temporalDesk) awaitReady(ctx context.Context, t target) (view, error) {
	w := &waiter{conn: d.conn, show: d.show}
	defer d.show.settle(t.ID)
	return w.await(ctx, t, becomesReady)
}

func (d *temporalDesk) tell(ctx context.Context, t target, m message) error {
	_, _, err := d.conn.send(ctx, t, m, "")
	return err
}

func (d *temporalDesk) started(ctx context.Context, t target) error {
	payload := api.Simple{Message: api.Message{By: d.conn.by}, Run: t.Run}
	return d.conn.signal(ctx, t, api.MsgStarted, payload)
}

// extend sends without looking, since it comes often and an extension that is ignored does no harm.
func (d *temporalDesk) extend(ctx context.Context, t target) error {
	payload := api.Extend{Message: api.Message{By: d.conn.by, Comment: "the command is running"}, Run: t.Run}
	return d.conn.signal(ctx, t, api.MsgExtend, payload)
}

// awaitLeft shows nothing by itself: while a command runs the terminal is the command's.
func (d *temporalDesk) awaitLeft(ctx context.Context, t target) (view, error) {
	w := &waiter{conn: d.conn, show: newDisplay(io.Discard, d.conn.now)}
	return w.await(ctx, t, func(v view) (bool, error) {
		return v.phase() != "" && v.phase() != api.Ready, nil
	})
}

func (d *temporalDesk) awaitEnd(ctx context.Context, t target) (view, error) {
	w := &waiter{conn: d.conn, show: d.show}
	defer d.show.settle(t.ID)
	return w.await(ctx, t, completes)
}

func (d *temporalDesk) note(format string, args ...any) { d.show.note(format, args...) }
