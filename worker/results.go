package worker

import (
	"context"
	"slices"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/wait"
)

// The result of an activity is sent again for as long as the server may still wait for it: the longest heartbeat timeout is five minutes.
const (
	resultSentFor   = 5 * time.Minute
	resultSentAgain = 2 * time.Second
	resultTimeout   = 10 * time.Second
)

// unsent are the answers after which the server does not have a result and may take it later.
var unsent = []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Unauthenticated, codes.PermissionDenied}

// results sends the results of activities until the server takes them. The SDK gives up after ten seconds, and at once where the
// caller's credentials are refused. A workflow would then learn only by the heartbeat timeout that its watch has ended.
type results struct {
	// worker ends when the worker stops.
	worker context.Context
}

// Intercept implements grpc.UnaryClientInterceptor.
func (r results) Intercept(
	ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, reply, connection, options...)
	switch request.(type) {
	case *workflowservice.RespondActivityTaskCompletedRequest, *workflowservice.RespondActivityTaskFailedRequest,
		*workflowservice.RespondActivityTaskCanceledRequest:
	default:
		return err
	}
	if !slices.Contains(unsent, status.Code(err)) {
		return err
	}
	// The deadline of ctx is the SDK's ten seconds.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resultSentFor)
	defer cancel()
	defer context.AfterFunc(r.worker, cancel)()
	send := func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, resultTimeout)
		defer cancel()
		err = invoke(ctx, method, request, reply, connection, options...)
		return !slices.Contains(unsent, status.Code(err)), nil
	}
	// err is the last answer, also where the time is over.
	_ = wait.PollUntilContextCancel(ctx, resultSentAgain, false, send)
	return err
}
