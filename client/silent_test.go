package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// queue is a Temporal that knows when a task queue was polled last, and cannot say so where it is away.
type queue struct {
	temporalclient.Client
	polled time.Time
	away   bool
}

func (q queue) DescribeTaskQueue(context.Context, string, enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	if q.away {
		return nil, serviceerror.NewUnavailable("connection refused")
	}
	answer := &workflowservice.DescribeTaskQueueResponse{}
	if !q.polled.IsZero() {
		answer.Pollers = []*taskqueuepb.PollerInfo{{LastAccessTime: timestamppb.New(q.polled)}}
	}
	return answer, nil
}

func TestWhoDoesNotAnswerIsNamed(t *testing.T) {
	silence := serviceerror.NewCanceled("stream terminated by RST_STREAM with error code: CANCEL")
	for name, c := range map[string]struct {
		queue queue
		err   error
		want  string // empty is the error as it was
	}{
		"worker stopped a moment ago":  {queue{polled: before(time.Minute)}, silence, "no worker answers"},
		"a worker has polled since":    {queue{polled: before(time.Second)}, silence, "a worker is polling and has not answered within 10s"},
		"worker stopped long ago":      {queue{polled: before(time.Hour)}, silence, "no worker is polling"},
		"never was a worker":           {queue{}, serviceerror.NewDeadlineExceeded("context deadline exceeded"), "no worker is polling"},
		"server says that nobody does": {queue{}, serviceerror.NewFailedPrecondition("no poller seen for task queue recently, worker may be down"), "no worker is polling"},
		"server away":                  {queue{away: true}, silence, ""},
		"other errors":                 {queue{polled: noon}, errors.New("odd"), ""},
	} {
		got := New(c.queue, Options{Now: clockAtNoon}).server.silent(context.Background(), c.err, before(time.Minute), CallTimeout)
		switch {
		case c.want == "" && !errors.Is(got, c.err):
			t.Errorf("%s: %v, want it as it was", name, got)
		case c.want != "" && !strings.Contains(got.Error(), c.want):
			t.Errorf("%s: %v, want %q in it", name, got, c.want)
		}
	}
}
