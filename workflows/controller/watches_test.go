package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/inbox"
)

// Where what a watch is about changes more often than it reports, it reports all the same.
func TestAWatchThatLastsReportsThoughAnotherIsWanted(t *testing.T) {
	for lasts, want := range map[bool]bool{true: true, false: false} {
		t.Run(fmt.Sprint(lasts), func(t *testing.T) {
			var begun []string
			reported := map[string]bool{}
			s := newSite(t, func(s *stub, _ controller.Turn) controller.Decision {
				w := watch(fmt.Sprint(len(s.Received)), "")
				w.Lasts = lasts
				return controller.Decision{Watches: []controller.Watch{w}}
			})
			s.stub.outcome = func(s *stub, o controller.Outcome, _ time.Time) {
				var report string
				if err := o.Get(&report); err != nil || o.Begun.(controller.Watch).Input != report {
					t.Errorf("%q, %v of %+v", report, err, o.Begun)
				}
				reported[report] = true
			}
			s.env.OnActivity("act", mock.Anything, mock.Anything).After(5 * time.Second).Return(func(_ context.Context, in string) (string, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				begun = append(begun, in)
				return in, nil
			})
			for i := range 600 {
				s.signal(time.Duration(i)*200*time.Millisecond, "word", word{Text: "another"})
			}
			if err := s.run(2 * time.Minute); err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock() // an activity may outlive the run
			if (len(reported) > 2) != want || len(begun) > 50 {
				t.Errorf("begun with %q, reported %v", begun, reported)
			}
		})
	}
}

func TestAControllerJudgesAWatchThatFails(t *testing.T) {
	failures := 0
	s := newSite(t, func(s *stub, _ controller.Turn) (d controller.Decision) {
		if s.Verdict == "" {
			w := watch("a", "")
			w.Call.Attempts = 1
			d.Watches = append(d.Watches, w)
		}
		return d
	})
	s.stub.outcome = func(s *stub, o controller.Outcome, now time.Time) {
		if o.Err == nil || o.What != controller.Reported {
			t.Errorf("%+v", o)
		}
		failures++
		if s.Fails(o.Key, "the watch is broken", "for a reason", now); failures == 3 {
			s.Verdict = "not wanted any more"
		}
	}
	s.env.OnActivity("act", mock.Anything, mock.Anything).Return(func(context.Context, string) (string, error) {
		s.note("a")
		return "", errors.New("no such luck")
	})
	s.at(20*time.Second, func() {
		if all := s.stub.Troubles(); len(s.stub.Notes) != 0 || len(all) != 1 || all[0].What != "the watch is broken" || all[0].Why != "for a reason" {
			t.Errorf("%+v, %+v", s.stub.Notes, all)
		}
	})
	if err := s.run(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	s.want("0s a", "10s a", "30s a")
	if all := s.stub.Troubles(); len(all) != 0 {
		t.Errorf("what is not wanted any more: %+v", all)
	}
}

func TestAWatchOfAFewRequestsHasNoHeartbeats(t *testing.T) {
	for _, want := range []time.Duration{0, 10 * time.Second} {
		s := newSite(t, func(*stub, controller.Turn) controller.Decision {
			w := watch("a", "")
			w.Call.Heartbeat = want
			return controller.Decision{Watches: []controller.Watch{w}}
		})
		var timeouts []time.Duration
		s.env.OnActivity("act", mock.Anything, mock.Anything).Return(func(ctx context.Context, in string) (string, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			timeouts = append(timeouts, activity.GetInfo(ctx).HeartbeatTimeout)
			return in, nil
		})
		if err := s.run(time.Second); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock() // an activity may outlive the run
		if !slices.Contains(timeouts, want) {
			t.Errorf("%s: %s", want, timeouts)
		}
		s.mu.Unlock()
	}
}

// memos keeps the memos that children are started with.
type memos struct {
	interceptor.WorkerInterceptorBase
	started []map[string]any
}

type memosIn struct {
	interceptor.WorkflowInboundInterceptorBase
	memos *memos
}

type memosOut struct {
	interceptor.WorkflowOutboundInterceptorBase
	memos *memos
}

func (m *memos) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &memosIn{memos: m}
	i.Next = next
	return i
}

func (i *memosIn) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &memosOut{memos: i.memos}
	o.Next = next
	return i.Next.Init(o)
}

func (o *memosOut) ExecuteChildWorkflow(ctx workflow.Context, kind string, args ...any) workflow.ChildWorkflowFuture {
	o.memos.started = append(o.memos.started, workflow.GetChildWorkflowOptions(ctx).Memo)
	return o.Next.ExecuteChildWorkflow(ctx, kind, args...)
}

func TestAChildHasAMemo(t *testing.T) {
	started := false
	s := newSite(t, func(*stub, controller.Turn) (d controller.Decision) {
		if !started {
			d.Effects = append(d.Effects, controller.Start{
				Meta: meta("start", ""), Type: "child", ID: "child", Input: time.Second, Memo: map[string]any{"what": "it is"},
			})
		}
		return d
	})
	s.stub.outcome = func(*stub, controller.Outcome, time.Time) { started = true }
	m := &memos{}
	s.env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}, m},
	})
	if err := s.run(time.Minute); err != nil {
		t.Fatal(err)
	}
	if len(m.started) != 1 || m.started[0]["what"] != "it is" {
		t.Errorf("%v", m.started)
	}
}
