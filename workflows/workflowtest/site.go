// Package workflowtest is the world around a workflow under test: activities that answer as told, and a scheduler.
package workflowtest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows"
	"drydock.dev/drydock/workflows/maintenance"
)

// Site is the world around one maintenance: its activities, the scheduler, and a clock that jumps.
type Site struct {
	t   *testing.T
	Env *testsuite.TestWorkflowEnvironment
	slots

	mu sync.Mutex
	// Log names the activities begun and the signals sent to the scheduler, in order.
	Log []string
	// replies are the next answers per activity, Usual the one after those.
	replies map[string][]Reply
	Usual   map[string]Reply
	// inputs are those of every call, per activity.
	inputs map[string][]json.RawMessage
	// replying are the replies to the calls that began last, per activity.
	replying map[string]Reply
	// Prepared is what the worker's configuration adds.
	Prepared settings.Prepared
	accounts

	// metrics takes the measures of all runs.
	metrics client.MetricsHandler
	// Called is what the latest call of an activity began with, by its name.
	Called map[string]activity.Info
	// Workflow is run in place of maintenance.NodeMaintenance, where it is not nil.
	Workflow func(root workflow.Context, input, carried converter.RawValue) (api.Result, error)
	// interceptors are those of Workflow.
	interceptors []interceptor.WorkerInterceptor
	// Runs counts those of the maintenance. Planned is what is done at which time after its start.
	Runs    int
	planned []planned
	started time.Time
	options client.StartWorkflowOptions
}

type planned struct {
	at time.Time
	do func()
}

// New prepares a maintenance of n1 by ops under its canonical ID.
func New(t *testing.T) *Site { return NewAs(t, ID, api.DefaultTaskQueue) }

// NewAs prepares a workflow under another ID, or on the task queue of another cluster.
func NewAs(t *testing.T, id, taskQueue string) *Site {
	s := &Site{
		t: t, started: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC),
		options: client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue},
		replies: map[string][]Reply{}, Usual: map[string]Reply{"Drain": {After: time.Minute}}, replying: map[string]Reply{},
		inputs: map[string][]json.RawMessage{}, Called: map[string]activity.Info{},
		slots: slots{
			Requested: map[string]int{}, Released: map[string]int{}, refused: map[string]bool{}, Reports: map[string][]api.MaintenanceReport{},
			cluster: api.ClusterOf(taskQueue),
		},
	}
	s.begin(s.started)
	return s
}

// begin makes the world in which the next run begins.
func (s *Site) begin(now time.Time) {
	s.Env = environment(now, s.metrics, s.interceptors...)
	s.Env.SetStartWorkflowOptions(s.options)
	workflows.Register(s.Env, workflows.Activities{})
	s.Env.RegisterActivityWithOptions(func(context.Context, spec.Object) error { return nil }, activity.RegisterOptions{Name: api.ReconcileObject})
	s.noteCalls()
	s.serveActivities()
	s.Env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_, id, run, name string, arg any) error { return s.toScheduler(id, run, name, arg) })
}

// Intercept has interceptors too, which the code of another release has of its own.
func (s *Site) Intercept(with ...interceptor.WorkerInterceptor) {
	s.interceptors = with
	s.Env.SetWorkerOptions(options(with))
}

// MeasureBy has a handler take the measures. It comes before all else.
func (s *Site) MeasureBy(metrics client.MetricsHandler) {
	s.metrics = metrics
	s.begin(s.started)
}

// At does something once the given time has passed since the start, in whichever run that is.
func (s *Site) At(d time.Duration, do func()) *Site {
	s.planned = append(s.planned, planned{s.started.Add(d), do})
	s.Env.RegisterDelayedCallback(do, d)
	return s
}

// ContinueAt has the server suggest after a time that the maintenance go on in a new run.
func (s *Site) ContinueAt(d time.Duration) *Site {
	return s.At(d, func() {
		s.Env.SetContinueAsNewSuggested(true)
		s.Env.SignalWorkflow("wake-up", nil)
	})
}

// nextRun begins the run that the last one continues as, and returns its input.
func (s *Site) nextRun(again *workflow.ContinueAsNewError) []any {
	now := s.Env.Now()
	s.begin(now)
	s.Env.SetContinuedExecutionRunID(RunID)
	for _, p := range s.planned {
		if p.at.After(now) {
			s.Env.RegisterDelayedCallback(p.do, p.at.Sub(now))
		}
	}
	var args []any
	for _, payload := range again.Input.GetPayloads() {
		if size := len(payload.GetData()); size > maxCarried {
			s.t.Errorf("%d bytes are carried to the next run", size)
		}
		args = append(args, converter.NewRawValue(payload))
	}
	return args
}

// maxCarried is far below what a server takes as one payload.
const maxCarried = 1 << 20

// Run executes the maintenance to its end and checks what holds for each: a held node is released, a requested slot
// is given back once, and nothing is begun after the end.
func (s *Site) Run(in Input) api.Status {
	s.t.Helper()
	args := []any{in.Payload(s.t), Raw("")}
	for again := new(workflow.ContinueAsNewError); again != nil; s.Runs++ {
		if s.Workflow == nil {
			s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, args...)
		} else {
			s.Env.RegisterWorkflow(s.Workflow)
			s.Env.ExecuteWorkflow(s.Workflow, args...)
		}
		if !s.Env.IsWorkflowCompleted() {
			s.t.Fatal("the maintenance did not end")
		}
		if !errors.As(s.Env.GetWorkflowError(), &again) {
			again = nil
			continue
		}
		args = s.nextRun(again)
	}
	status := s.Status()
	if !status.Phase.Ended() {
		s.t.Errorf("the maintenance ended in phase %s (error %v)", status.Phase, s.Env.GetWorkflowError())
	}
	if status.WaitingFor != "" {
		s.t.Errorf("the ended maintenance waits for %q", status.WaitingFor)
	}
	s.checkUndone()
	return status
}

// Status asks the maintenance for its status.
func (s *Site) Status() api.Status {
	s.t.Helper()
	value, err := s.Env.QueryWorkflow(api.QueryStatus)
	if err != nil {
		s.t.Fatalf("status: %v", err)
	}
	var status api.Status
	if err := value.Get(&status); err != nil {
		s.t.Fatalf("status: %v", err)
	}
	return status
}

func (s *Site) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Log = append(s.Log, what)
}

// Count returns how often something is in the log.
func (s *Site) Count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, entry := range s.Log {
		if entry == what {
			n++
		}
	}
	return n
}
