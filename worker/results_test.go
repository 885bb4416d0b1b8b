package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestResultsAreSentUntilTheyAreTaken(t *testing.T) {
	completed := &workflowservice.RespondActivityTaskCompletedRequest{}
	tests := []struct {
		name    string
		request any
		// lasts is how long the server answers with code.
		lasts time.Duration
		code  codes.Code
		// stopped is when the worker stops.
		stopped time.Duration
		want    codes.Code
	}{
		{"taken at once", completed, 0, codes.OK, time.Hour, codes.OK},
		{"credentials refused", completed, time.Minute, codes.Unauthenticated, time.Hour, codes.OK},
		{"no permission", &workflowservice.RespondActivityTaskFailedRequest{}, time.Minute, codes.PermissionDenied, time.Hour, codes.OK},
		{"server away", &workflowservice.RespondActivityTaskCanceledRequest{}, 4 * time.Minute, codes.Unavailable, time.Hour, codes.OK},
		{"server away for longer than it waits", completed, 6 * time.Minute, codes.Unavailable, time.Hour, codes.Unavailable},
		{"worker stops", completed, 4 * time.Minute, codes.Unavailable, time.Minute, codes.Unavailable},
		{"not waited for any more", completed, time.Minute, codes.NotFound, time.Hour, codes.NotFound},
		{"another call", &workflowservice.RecordActivityTaskHeartbeatRequest{}, time.Minute, codes.Unauthenticated, time.Hour, codes.Unauthenticated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				worker, stop := context.WithCancel(t.Context())
				defer stop()
				defer time.AfterFunc(tt.stopped, stop).Stop()
				began := time.Now()
				server := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
					if err := ctx.Err(); err != nil {
						return status.FromContextError(err).Err()
					}
					if time.Since(began) < tt.lasts {
						return status.Error(tt.code, "refused")
					}
					return nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), resultTimeout)
				defer cancel()
				err := results{worker}.Intercept(ctx, "", tt.request, nil, nil, server)
				if got := status.Code(err); got != tt.want {
					t.Errorf("after %v: %v, want %v", time.Since(began), err, tt.want)
				}
			})
		})
	}
}
