package heartbeat

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// Acks know which heartbeats the server took. The SDK keeps to itself what becomes of them: one that is refused at once,
// as by credentials that have expired, looks like any other.
type Acks struct {
	mu sync.Mutex
	// loops are those of the activities under way, by their task's token.
	loops map[string]*Loop
}

// NewAcks are those of a worker: its connection has their Intercept, its activities their Context.
func NewAcks() *Acks { return &Acks{loops: map[string]*Loop{}} }

type acksKey struct{}

// Context is for activities: their loops learn which heartbeats the server took.
func (a *Acks) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, acksKey{}, a)
}

func acksOf(ctx context.Context) *Acks {
	a, _ := ctx.Value(acksKey{}).(*Acks)
	return a
}

// Intercept is a gRPC interceptor that passes each heartbeat that was taken to its activity's loop.
func (a *Acks) Intercept(
	ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	sent := time.Now()
	err := invoke(ctx, method, request, reply, connection, options...)
	if beat, ok := request.(*workflowservice.RecordActivityTaskHeartbeatRequest); ok && err == nil {
		a.mu.Lock()
		l := a.loops[string(beat.TaskToken)]
		a.mu.Unlock()
		if l != nil {
			l.acknowledged(sent)
		}
	}
	return err
}

// follow passes the heartbeats of a task to a loop.
func (a *Acks) follow(token []byte, l *Loop) (forget func()) {
	if a == nil {
		return func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loops[string(token)] = l
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.loops[string(token)] == l {
			delete(a.loops, string(token))
		}
	}
}
