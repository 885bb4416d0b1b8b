package heartbeat

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// Ears hear which heartbeats the server took. The SDK keeps to itself what becomes of them: one that is refused at once,
// as by credentials that have expired, looks like any other.
type Ears struct {
	mu sync.Mutex
	// loops are those of the activities under way, by their task's token.
	loops map[string]*Loop
}

// NewEars are those of a worker: its connection has their Intercept, its activities their Context.
func NewEars() *Ears { return &Ears{loops: map[string]*Loop{}} }

type earsKey struct{}

// Context has the activities that run in it listen.
func (e *Ears) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, earsKey{}, e)
}

func earsOf(ctx context.Context) *Ears {
	e, _ := ctx.Value(earsKey{}).(*Ears)
	return e
}

// Intercept is a gRPC interceptor that tells an activity's loop of each heartbeat that was taken.
func (e *Ears) Intercept(
	ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	sent := time.Now()
	err := invoke(ctx, method, request, reply, connection, options...)
	if beat, ok := request.(*workflowservice.RecordActivityTaskHeartbeatRequest); ok && err == nil {
		e.mu.Lock()
		l := e.loops[string(beat.TaskToken)]
		e.mu.Unlock()
		if l != nil {
			l.heard(sent)
		}
	}
	return err
}

// listen has a loop told of the heartbeats of its task.
func (e *Ears) listen(token []byte, l *Loop) (forget func()) {
	if e == nil {
		return func() {}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.loops[string(token)] = l
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.loops[string(token)] == l {
			delete(e.loops, string(token))
		}
	}
}
