package takeover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drydock.dev/drydock/api"
)

// running is a workflow that runs.
type running struct {
	kind, queue string
	activities  []*workflowpb.PendingActivityInfo
}

// server is one that shows workflows, and begins an attempt anew elsewhere when one has failed.
type server struct {
	mu        sync.Mutex
	workflows map[string]running
	// hidden are not listed yet, unseen is how often lists fail, broken are workflows that cannot be described.
	hidden map[string]bool
	unseen int
	broken map[string]bool
	// failed are the attempts that failed, and refusal what is said to that.
	failed  []string
	refusal error
	// now and most are how many requests are served at once.
	now, most atomic.Int64
	synced    int
	blind     error
	// polled is when workers polled last, down why the server does not answer. listed counts the lists of workflows.
	polled map[string]time.Time
	down   error
	listed int
	onFail func()
}

func (s *server) setDown(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = why
}

func (s *server) DescribeTaskQueue(_ context.Context, queue string, kind enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := &workflowservice.DescribeTaskQueueResponse{}
	if queue != "drydock" || kind != enums.TASK_QUEUE_TYPE_ACTIVITY {
		return answer, s.down
	}
	for identity, at := range s.polled {
		if time.Since(at) > 5*time.Minute { // as the server does
			continue
		}
		answer.Pollers = append(answer.Pollers, &taskqueuepb.PollerInfo{Identity: identity, LastAccessTime: timestamppb.New(at)})
	}
	return answer, s.down
}

func (s *server) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed++
	if s.unseen > 0 {
		s.unseen--
		return nil, serviceerror.NewUnavailable("no visibility")
	}
	if !strings.Contains(r.GetQuery(), `TaskQueue="drydock"`) || !strings.Contains(r.GetQuery(), `"HealthCheck"`) {
		return nil, fmt.Errorf("query %s", r.GetQuery())
	}
	var all []*workflowpb.WorkflowExecutionInfo
	for id, w := range s.workflows {
		if !s.hidden[id] {
			all = append(all, &workflowpb.WorkflowExecutionInfo{
				Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "an older one"}, Type: &commonpb.WorkflowType{Name: w.kind},
			})
		}
	}
	s.hidden = nil
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: all}, nil
}

func (s *server) DescribeWorkflowExecution(_ context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	time.Sleep(time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	w, there := s.workflows[id]
	switch {
	case run != "":
		return nil, fmt.Errorf("run %s was asked for: it may have continued as new", run)
	case s.broken[id]:
		return nil, serviceerror.NewUnavailable("shard lost")
	case !there:
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{
		ExecutionConfig: &workflowpb.WorkflowExecutionConfig{TaskQueue: &taskqueuepb.TaskQueue{Name: w.queue}},
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run-" + id}, Type: &commonpb.WorkflowType{Name: w.kind},
		},
		PendingActivities: slices.Clone(w.activities),
	}, nil
}

func (s *server) CompleteActivityByIDWithOptions(_ context.Context, o client.CompleteActivityByIDOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal != nil {
		return s.refusal
	}
	var failure *temporal.ApplicationError
	if !errors.As(o.Err, &failure) || failure.NonRetryable() || failure.NextRetryDelay() != retryAfter {
		return fmt.Errorf("the attempt ends with %w", o.Err)
	}
	s.failed = append(s.failed, fmt.Sprintf("%s/%s/%s", o.WorkflowID, o.RunID, o.ActivityID))
	if s.onFail != nil {
		s.onFail()
	}
	return nil
}

func (s *server) Sync(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced++
	return s.blind
}

func (s *server) run(ctx context.Context) string {
	var log strings.Builder
	Worker{
		Temporal: s, Nodes: s, Logger: slog.New(slog.NewTextHandler(&log, nil)), Namespace: "default", TaskQueue: "drydock", Identity: ours, Started: started,
	}.start(ctx)
	slices.Sort(s.failed)
	return log.String()
}

func watching(kind, activity string) running {
	return running{kind, "drydock", []*workflowpb.PendingActivityInfo{attempt(named(activity))}}
}

func (s *server) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.failed, want) {
		t.Errorf("ended: %v, want %v", s.failed, want)
	}
}

func TestWatchesAreTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drain := running{api.NodeMaintenanceType, "drydock", []*workflowpb.PendingActivityInfo{attempt(named("Drain"))}}
		elsewhere := watching(api.HealthCheckType, "WatchHealth")
		elsewhere.queue = "other/drydock"
		s := &server{workflows: map[string]running{
			"health": watching(api.HealthCheckType, "WatchHealth"), "scheduler": watching(api.SchedulerType, "WatchCluster"),
			"late": watching(api.ProfilesType, "EvaluateProfiles"), "drain": drain, "elsewhere": elsewhere,
		}, hidden: map[string]bool{"late": true}}
		began := time.Now()
		log := s.run(t.Context())
		// The attempts are still there in the second pass, as if a live worker had taken them in between.
		s.expect(t, "health/run-health/7", "late/run-late/7", "scheduler/run-scheduler/7")
		if took := time.Since(began); took < nextPass || took > 2*nextPass {
			t.Errorf("two passes took %s", took)
		}
		if strings.Contains(log, "WARN") {
			t.Errorf("logged: %s", log)
		}
	})
}

func TestWithoutAWatchNothingIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{workflows: map[string]running{"scheduler": {api.SchedulerType, "drydock", nil}}}
		s.run(t.Context())
		if s.expect(t); s.synced > 0 {
			t.Error("the nodes were read")
		}
	})
}

func TestErrorsAreOutlived(t *testing.T) {
	tests := []struct {
		name   string
		broken func(s *server)
		mend   func(s *server)
	}{
		{"no visibility", func(s *server) { s.unseen = 3 }, func(*server) {}},
		{"a workflow that cannot be described", func(s *server) { s.broken = map[string]bool{"health": true} }, func(s *server) { s.broken = nil }},
		{"no role", func(s *server) { s.refusal = serviceerror.NewPermissionDenied("no", "") }, func(s *server) { s.refusal = nil }},
		{"no API server", func(s *server) { s.blind = errors.New("connection refused") }, func(s *server) { s.blind = nil }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{workflows: map[string]running{
					"health": watching(api.HealthCheckType, "WatchHealth"), "plan": watching(api.MaintenancePlanType, "AwaitEnds"),
				}}
				test.broken(s)
				time.AfterFunc(3*nextPass, func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					test.mend(s)
				})
				log := s.run(t.Context())
				s.expect(t, "health/run-health/7", "plan/run-plan/7")
				if !strings.Contains(log, "WARN") {
					t.Errorf("logged: %s", log)
				}
			})
		})
	}
}

func TestOneWorkflowDoesNotKeepTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{broken: map[string]bool{"health": true}, workflows: map[string]running{
			"health": watching(api.HealthCheckType, "WatchHealth"), "plan": watching(api.MaintenancePlanType, "AwaitEnds"),
		}}
		began := time.Now()
		s.run(t.Context())
		if s.expect(t, "plan/run-plan/7"); time.Since(began) > giveUp {
			t.Errorf("it took %s", time.Since(began))
		}
	})
}

// TestAWatchThatHasEndedIsLeft has the watches report between description and answer, and the server refuse the answer.
func TestAWatchThatHasEndedIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{refusal: serviceerror.NewNotFound("activity not found"), workflows: map[string]running{"health": watching(api.HealthCheckType, "WatchHealth")}}
		if log := s.run(t.Context()); log != "" {
			t.Errorf("logged: %s", log)
		}
	})
}

func TestRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{workflows: map[string]running{}}
		const many = 1000
		for i := range many {
			s.workflows[fmt.Sprintf("plan-%04d", i)] = running{api.MaintenancePlanType, "drydock", nil}
		}
		began := time.Now()
		if err := func() error {
			_, err := newPass(Worker{Temporal: s, Nodes: s, TaskQueue: "drydock"}, newcomer{}).run(t.Context())
			return err
		}(); err != nil {
			t.Fatal(err)
		}
		if most := s.most.Load(); most > atOnce {
			t.Errorf("%d workflows were described at once", most)
		}
		if took := time.Since(began); took < (many-atOnce)*time.Second/perSecond {
			t.Errorf("%d workflows were described in %s", many, took)
		}
	})
}

func TestTheMostUrgentAreFirst(t *testing.T) {
	s := &server{workflows: map[string]running{
		"a-plan": watching(api.MaintenancePlanType, "AwaitEnds"), "a-remediation": watching(api.NodeRemediationType, "WatchRemediation"),
		"scheduler": watching(api.SchedulerType, "WatchCluster"), "health": watching(api.HealthCheckType, "WatchHealth"),
	}}
	got, err := newPass(Worker{Temporal: s, TaskQueue: "drydock"}, newcomer{}).running(t.Context())
	if want := []string{"scheduler", "health", "a-remediation", "a-plan"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestItEndsWithTheWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &server{unseen: 1000}
		time.AfterFunc(nextPass/2, cancel)
		began := time.Now()
		s.run(ctx)
		if took := time.Since(began); took > nextPass/2 {
			t.Errorf("it ended after %s", took)
		}
	})
}
