// Package workflowtest is the world around a workflow under test: activities that answer as told, and a scheduler.
package workflowtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	checkactivity "drydock/activities/checks"
	"drydock/activities/cluster"
	"drydock/activities/delivery"
	"drydock/activities/doctor"
	"drydock/activities/drain"
	"drydock/activities/execution"
	"drydock/activities/node"
	preflightactivity "drydock/activities/preflight"
	"drydock/activities/settings"
	"drydock/api"
	"drydock/checks"
	"drydock/notify"
	"drydock/rules/record"
	"drydock/rules/validation"
	"drydock/workflows"
	"drydock/workflows/maintenance"
)

const (
	Node      = "n1"
	Requestor = "ops"
	RunID     = "default-test-run-id"
)

var ID = api.MaintenanceID("", Node, Requestor)

// Input is a maintenance's JSON input.
type Input map[string]any

// Of is a minimal input with more fields.
func Of(fields Input) Input {
	in := Input{"node": Node, "requestor": Requestor}
	for name, value := range fields {
		in[name] = value
	}
	return in
}

func (in Input) Payload(t *testing.T) converter.RawValue {
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return Raw(string(text))
}

// Reply is how an activity answers one call: after a time, with an error or a value; the zero reply is the usual
// answer at once.
type Reply struct {
	After time.Duration
	Err   error
	Value any
}

// Site is the world around one maintenance: its activities, the scheduler, and a clock that jumps.
type Site struct {
	t   *testing.T
	Env *testsuite.TestWorkflowEnvironment

	mu sync.Mutex
	// Log names the activities begun and the signals sent to the scheduler, in order.
	Log []string
	// replies are the next answers per activity, usual the one after those.
	replies map[string][]Reply
	Usual   map[string]Reply
	// inputs are those of every call, per activity.
	inputs map[string][]json.RawMessage
	// Scheduler answers a signal of the maintenance; nil grants every request at once.
	Scheduler func(signal string, arg any) error
	// Freeze is told to the maintenance after each grant.
	Freeze []string
	// Requested and released count what the scheduler was told, per request; refused are those it turned down.
	Requested, Released map[string]int
	refused             map[string]bool
	RequestTimes        []time.Time
	schedulerID         string
	Defaults            string
	Attributes          bool
	// Prepared is what the worker's configuration adds.
	Prepared settings.Prepared
}

// newSite prepares a maintenance of n1 by ops under its canonical ID.
func New(t *testing.T) *Site { return NewAs(t, ID, api.DefaultTaskQueue) }

func NewAs(t *testing.T, id, taskQueue string) *Site {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &Site{
		t: t, Env: suite.NewTestWorkflowEnvironment(), schedulerID: api.SchedulerID(api.ClusterOf(taskQueue)),
		replies: map[string][]Reply{}, Usual: map[string]Reply{"Drain": {After: time.Minute}}, inputs: map[string][]json.RawMessage{},
		Requested: map[string]int{}, Released: map[string]int{}, refused: map[string]bool{},
	}
	s.Env.SetTestTimeout(time.Minute)
	s.Env.SetWorkflowRunTimeout(10 * 24 * time.Hour)
	s.Env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue})
	workflows.Register(s.Env, workflows.Activities{
		Nodes: &node.Activities{}, Drains: &drain.Activities{}, Cluster: &cluster.Activities{},
		Executions: &execution.Activities{}, Settings: &settings.Activities{}, Preflights: &preflightactivity.Activities{}, Doctors: &doctor.Activities{},
		Checks: &checkactivity.Activities{}, Deliveries: &delivery.Activities{},
	})
	s.Env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
		var in json.RawMessage
		if err := args.Get(&in); err != nil {
			t.Errorf("input of %s: %v", info.ActivityType.Name, err)
		}
		s.note(info.ActivityType.Name)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inputs[info.ActivityType.Name] = append(s.inputs[info.ActivityType.Name], in)
	})
	s.Env.OnActivity("Prepare", mock.Anything, mock.Anything).Return(func(context.Context, json.RawMessage) (settings.Prepared, error) {
		prepared := s.Prepared
		prepared.Defaults, prepared.SearchAttributes = json.RawMessage(s.Defaults), s.Attributes
		return prepared, nil
	})
	Serve[node.HoldInput](s, "HoldNode", node.Held{UID: "uid-1", Mark: "mark-1"})
	Serve[node.HoldInput](s, "AdoptNode", node.Held{UID: "uid-2", Mark: "mark-2"})
	s.serveRelease()
	Serve[drain.Input](s, "Drain", api.DrainProgress{Evicted: 3, Skipped: 1})
	Serve[execution.QueryInput](s, "Query", []execution.Answered{})
	serveNothing[drain.WaitInput](s, "WaitForPods")
	serveNothing[node.AnnounceInput](s, "AnnouncePhase")
	serveNothing[node.UntaintInput](s, "Untaint")
	serveNothing[node.ConditionsInput](s, "ShowConditions")
	Serve[checkactivity.HookInput](s, "CallHook", checks.Outcome{})
	serveNothing[checkactivity.HookInput](s, "AbandonHook")
	Serve[checkactivity.ValidateInput](s, "Validate", checkactivity.Validated{State: validation.Passed})
	serveNothing[checkactivity.ValidateInput](s, "AbandonChecks")
	Serve[delivery.DeliverInput](s, "Deliver", notify.Receipt{})
	Serve[execution.Run](s, "Runs", true)
	serveNothing[delivery.CollectInput](s, "Collect")
	serveNothing[record.Record](s, "KeepRecord")
	s.Env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_, id, run, name string, arg any) error { return s.toScheduler(id, run, name, arg) })
	return s
}

func Serve[In, Out any](s *Site, name string, usual Out) {
	var now Reply
	s.Env.OnActivity(name, mock.Anything, mock.Anything).
		AfterFn(func() time.Duration { now = s.next(name); return now.After }).
		Return(func(context.Context, In) (Out, error) {
			if now.Value != nil && now.Err == nil {
				return now.Value.(Out), nil
			}
			return usual, now.Err
		})
}

// serveRelease releases the node and then the slot, as ReleaseNode does.
func (s *Site) serveRelease() {
	var now Reply
	s.Env.OnActivity("ReleaseNode", mock.Anything, mock.Anything).
		AfterFn(func() time.Duration { now = s.next("ReleaseNode"); return now.After }).
		Return(func(_ context.Context, in node.ReleaseInput) (node.Released, error) {
			if now.Err != nil {
				return node.Released{}, now.Err
			}
			if in.Then != nil {
				var slot api.SlotRelease
				if err := json.Unmarshal(in.Then.Payload, &slot); err != nil {
					s.t.Errorf("payload of %s: %v", in.Then.Name, err)
				}
				if err := s.toScheduler(in.Then.WorkflowID, "", in.Then.Name, slot); err != nil {
					return node.Released{}, err
				}
			}
			if now.Value != nil {
				return now.Value.(node.Released), nil
			}
			return node.Released{Uncordoned: true}, nil
		})
}

func serveNothing[In any](s *Site, name string) {
	var now Reply
	s.Env.OnActivity(name, mock.Anything, mock.Anything).
		AfterFn(func() time.Duration { now = s.next(name); return now.After }).
		Return(func(context.Context, In) error { return now.Err })
}

func (s *Site) next(activity string) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.replies[activity]
	if len(queue) == 0 {
		return s.Usual[activity]
	}
	s.replies[activity] = queue[1:]
	return queue[0]
}

// Answer sets the next answers of an activity.
func (s *Site) Answer(activity string, replies ...Reply) *Site {
	s.replies[activity] = append(s.replies[activity], replies...)
	return s
}

func (s *Site) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Log = append(s.Log, what)
}

// toScheduler is the scheduler as a maintenance sees it.
func (s *Site) toScheduler(id, run, name string, arg any) error {
	s.note(name)
	if id != s.schedulerID || run != "" {
		s.t.Errorf("signal %s went to workflow %q run %q, want the scheduler's present run", name, id, run)
	}
	answer := s.Scheduler
	if answer == nil {
		answer = func(signal string, arg any) error {
			if r, ok := arg.(api.SlotRequest); ok {
				s.Grant(r.ID)
			}
			return nil
		}
	}
	err := answer(name, arg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch arg := arg.(type) {
	case api.SlotRequest:
		s.Requested[arg.ID]++
		s.RequestTimes = append(s.RequestTimes, s.Env.Now())
	case api.SlotRelease:
		s.Released[arg.RequestID]++
	default:
		s.t.Errorf("signal %s carries %T", name, arg)
	}
	return nil
}

func (s *Site) Grant(request string) {
	s.Env.SignalWorkflow(api.SignalSlotGranted, api.SlotAnswer{RequestID: request})
	if len(s.Freeze) > 0 {
		s.Env.SignalWorkflow(api.SignalHold, api.Hold{Reasons: s.Freeze})
	}
}

func (s *Site) Refuse(request string, a api.SlotAnswer) {
	s.mu.Lock()
	s.refused[request] = true
	s.mu.Unlock()
	a.RequestID = request
	s.Env.SignalWorkflow(api.SignalSlotRefused, a)
}

// At does something once the given time has passed since the start.
func (s *Site) At(d time.Duration, do func()) *Site {
	s.Env.RegisterDelayedCallback(do, d)
	return s
}

// SignalAt sends a message as a signal.
func (s *Site) SignalAt(d time.Duration, name string, payload any) *Site {
	return s.At(d, func() { s.Env.SignalWorkflow(name, payload) })
}

// done says done after a time.
func (s *Site) DoneAt(d time.Duration) *Site { return s.SignalAt(d, api.MsgDone, nil) }

// update sends a message as an update and returns its outcome once the run is over.
func (s *Site) UpdateAt(d time.Duration, name string, payload ...any) *Outcome {
	out := &Outcome{}
	s.At(d, func() {
		s.Env.UpdateWorkflow(name, "", &testsuite.TestUpdateCallback{
			OnReject: func(err error) { out.Rejected = err },
			OnAccept: func() { out.Accepted = true },
			OnComplete: func(value any, err error) {
				out.Err = err
				if text, ok := value.(string); ok {
					out.Effect = text
				}
			},
		}, payload...)
	})
	return out
}

// Outcome is what became of an update.
type Outcome struct {
	Accepted bool
	Rejected error
	Effect   string
	Err      error
}

// CheckAt looks at the status after a time.
func (s *Site) CheckAt(d time.Duration, check func(api.Status)) *Site {
	return s.At(d, func() { check(s.Status()) })
}

// ExpectAt checks phase and, where it is not empty, a part of what the maintenance waits for.
func (s *Site) ExpectAt(d time.Duration, phase api.Phase, waitingFor string) *Site {
	s.t.Helper()
	return s.CheckAt(d, func(status api.Status) {
		s.t.Helper()
		if status.Phase != phase {
			s.t.Errorf("after %s the phase is %s, want %s", d, status.Phase, phase)
		}
		if !strings.Contains(status.WaitingFor, waitingFor) {
			s.t.Errorf("after %s it waits for %q, want %q", d, status.WaitingFor, waitingFor)
		}
	})
}

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

// Run executes the maintenance to its end and checks what holds for each: a held node is released, a slot asked for
// is given back once, and nothing is begun after the end.
func (s *Site) Run(in Input) api.Status {
	s.t.Helper()
	s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, in.Payload(s.t))
	if !s.Env.IsWorkflowCompleted() {
		s.t.Fatal("the maintenance did not end")
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

func (s *Site) checkUndone() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	held := false
	for _, what := range s.Log {
		switch what {
		case "HoldNode", "AdoptNode":
			held = true
		case "ReleaseNode":
			held = false
		}
	}
	if held {
		s.t.Errorf("the node is still held: %v", s.Log)
	}
	for id := range s.Requested {
		want := 1
		if s.refused[id] {
			want = 0
		}
		if s.Released[id] != want {
			s.t.Errorf("request %s was released %d times, want %d: %v", id, s.Released[id], want, s.Log)
		}
	}
	for id := range s.Released {
		if s.Requested[id] == 0 {
			s.t.Errorf("a slot was released that nobody asked for: %s", id)
		}
	}
}

// Count tells how often something is in the log.
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

// ExpectLog compares what the maintenance did with what it was to do.
func (s *Site) ExpectLog(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.Log, want) {
		s.t.Errorf("the maintenance did\n %v, want\n %v", s.Log, want)
	}
}

// InputOf decodes the input of the n-th call of an activity; the last with -1.
func InputOf[T any](s *Site, activity string, n int) T {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var in T
	all := s.inputs[activity]
	if n < 0 {
		n += len(all)
	}
	if n < 0 || n >= len(all) {
		s.t.Fatalf("%s was called %d times", activity, len(all))
	}
	if err := json.Unmarshal(all[n], &in); err != nil {
		s.t.Fatal(err)
	}
	return in
}

// phases are the phases of the transitions, each change once.
func phases(status api.Status) []api.Phase {
	var all []api.Phase
	for _, t := range status.Transitions {
		if len(all) == 0 || all[len(all)-1] != t.Phase {
			all = append(all, t.Phase)
		}
	}
	return all
}

func (s *Site) ExpectPhases(status api.Status, want ...api.Phase) {
	s.t.Helper()
	if got := phases(status); !slices.Equal(got, want) {
		s.t.Errorf("phases %v, want %v", got, want)
	}
}

// ExpectFailure checks the type and a part of the message of the error that the workflow failed with.
func (s *Site) ExpectFailure(kind, message string) {
	s.t.Helper()
	err := s.Env.GetWorkflowError()
	var application *temporal.ApplicationError
	if !errors.As(err, &application) {
		s.t.Fatalf("workflow error = %v, want one of type %s", err, kind)
	}
	if application.Type() != kind || !strings.Contains(application.Message(), message) || !application.NonRetryable() {
		s.t.Errorf("error %s (non-retryable %v): %s; want %s with %q",
			application.Type(), application.NonRetryable(), application.Message(), kind, message)
	}
}

func (s *Site) ExpectCancelled() {
	s.t.Helper()
	if err := s.Env.GetWorkflowError(); !temporal.IsCanceledError(err) {
		s.t.Errorf("workflow error = %v, want a cancellation", err)
	}
}

func (s *Site) ExpectCompleted() api.Result {
	s.t.Helper()
	if err := s.Env.GetWorkflowError(); err != nil {
		s.t.Errorf("workflow error = %v, want none", err)
	}
	var result api.Result
	if err := s.Env.GetWorkflowResult(&result); err != nil {
		s.t.Errorf("result: %v", err)
	}
	return result
}

// Received finds what became of the messages of a name.
func Received(status api.Status, name string) []string {
	var effects []string
	for _, m := range status.Messages {
		if m.Name == name {
			effects = append(effects, m.Effect)
		}
	}
	return effects
}

// MessagesOf are the messages of all transitions.
func MessagesOf(status api.Status) string {
	var text strings.Builder
	for _, t := range status.Transitions {
		fmt.Fprintf(&text, "%s: %s\n", t.Phase, t.Message)
	}
	return text.String()
}

// Raw is a payload of JSON text as it is, right or wrong.
func Raw(text string) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(text),
	})
}

// Failing is a non-retryable error of an activity.
func Failing(kind, message string) error {
	return temporal.NewNonRetryableApplicationError(message, kind, nil)
}
