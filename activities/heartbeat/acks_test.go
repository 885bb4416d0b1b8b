package heartbeat

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"drydock.dev/drydock/activities/activitytest"
)

// TestOnlyWhatTheServerTookCounts: refused within milliseconds is not heard.
func TestOnlyWhatTheServerTookCounts(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		alive  bool
	}{
		"taken":       {nil, true},
		"expired":     {status.Error(codes.Unauthenticated, "token is expired"), false},
		"forbidden":   {status.Error(codes.PermissionDenied, "no"), false},
		"not there":   {status.Error(codes.Unavailable, "no"), false},
		"never asked": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				acks := NewAcks()
				err := activitytest.Execute(t, activitytest.Environment(), func(ctx context.Context) error {
					l := Start(acks.Context(ctx))
					defer l.Stop()
					for range 10 {
						time.Sleep(Every)
						if name != "never asked" {
							send(t, acks, activity.GetInfo(ctx).TaskToken, c.answer)
						}
					}
					if err := l.Alive(); (err == nil) != c.alive {
						t.Errorf("alive: %v", err)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				if len(acks.loops) > 0 {
					t.Error("an activity that ended is still listened for")
				}
			})
		})
	}
}

// send is what the SDK's connection does with a heartbeat.
func send(t *testing.T, acks *Acks, token []byte, answer error) {
	t.Helper()
	for _, of := range [][]byte{[]byte("another activity's"), token} {
		request := &workflowservice.RecordActivityTaskHeartbeatRequest{TaskToken: of}
		err := acks.Intercept(t.Context(), "", request, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			return answer
		})
		if err != answer { //nolint:errorlint // the very same
			t.Errorf("error = %v", err)
		}
	}
}
