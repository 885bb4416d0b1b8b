package workflows_test

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

	"drydock/activities"
	"drydock/checks"
	"drydock/notify"
	"drydock/workflows"
	"drydock/workflows/record"
	"drydock/workflows/validation"
)

const (
	testNode      = "n1"
	testRequestor = "ops"
	testRun       = "default-test-run-id"
)

var testID = workflows.MaintenanceID("", testNode, testRequestor)

// input is a maintenance's JSON input.
type input map[string]any

// of is a minimal input with more fields.
func of(fields input) input {
	in := input{"node": testNode, "requestor": testRequestor}
	for name, value := range fields {
		in[name] = value
	}
	return in
}

func (in input) payload(t *testing.T) converter.RawValue {
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return raw(string(text))
}

// reply is how an activity answers one call: after a time, with an error or a value; the zero reply is the usual
// answer at once.
type reply struct {
	after time.Duration
	err   error
	value any
}

// site is the world around one maintenance: its activities, the scheduler, and a clock that jumps.
type site struct {
	t   *testing.T
	env *testsuite.TestWorkflowEnvironment

	mu sync.Mutex
	// log names the activities begun and the signals sent to the scheduler, in order.
	log []string
	// replies are the next answers per activity, usual the one after those.
	replies map[string][]reply
	usual   map[string]reply
	// inputs are those of every call, per activity.
	inputs map[string][]json.RawMessage
	// scheduler answers a signal of the maintenance; nil grants every request at once.
	scheduler func(signal string, arg any) error
	// freeze is told to the maintenance after each grant.
	freeze []string
	// requested and released count what the scheduler was told, per request; refused are those it turned down.
	requested, released map[string]int
	refused             map[string]bool
	requestTimes        []time.Time
	schedulerID         string
	defaults            string
	attributes          bool
	// prepared is what the worker's configuration adds.
	prepared activities.Prepared
}

// newSite prepares a maintenance of n1 by ops under its canonical ID.
func newSite(t *testing.T) *site { return newSiteAs(t, testID, workflows.DefaultTaskQueue) }

func newSiteAs(t *testing.T, id, taskQueue string) *site {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &site{
		t: t, env: suite.NewTestWorkflowEnvironment(), schedulerID: workflows.SchedulerID(workflows.ClusterOf(taskQueue)),
		replies: map[string][]reply{}, usual: map[string]reply{"Drain": {after: time.Minute}}, inputs: map[string][]json.RawMessage{},
		requested: map[string]int{}, released: map[string]int{}, refused: map[string]bool{},
	}
	s.env.SetTestTimeout(time.Minute)
	s.env.SetWorkflowRunTimeout(10 * 24 * time.Hour)
	s.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue})
	workflows.Register(s.env, workflows.Activities{
		Nodes: &activities.Nodes{}, Drains: &activities.Drains{}, Cluster: &activities.Cluster{},
		Executions: &activities.Executions{}, Settings: &activities.Settings{}, Preflights: &activities.Preflights{}, Doctors: &activities.Doctors{},
		Checks: &activities.Checks{}, Notices: &activities.Notices{},
	})
	s.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
		var in json.RawMessage
		if err := args.Get(&in); err != nil {
			t.Errorf("input of %s: %v", info.ActivityType.Name, err)
		}
		s.note(info.ActivityType.Name)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inputs[info.ActivityType.Name] = append(s.inputs[info.ActivityType.Name], in)
	})
	s.env.OnActivity("Prepare", mock.Anything, mock.Anything).Return(func(context.Context, json.RawMessage) (activities.Prepared, error) {
		prepared := s.prepared
		prepared.Defaults, prepared.SearchAttributes = json.RawMessage(s.defaults), s.attributes
		return prepared, nil
	})
	serve[activities.HoldInput](s, "HoldNode", activities.Held{UID: "uid-1", Mark: "mark-1"})
	serve[activities.HoldInput](s, "AdoptNode", activities.Held{UID: "uid-2", Mark: "mark-2"})
	s.serveRelease()
	serve[activities.DrainInput](s, "Drain", activities.DrainProgress{Evicted: 3, Skipped: 1})
	serve[activities.QueryInput](s, "Query", []activities.Answered{})
	serveNothing[activities.WaitInput](s, "WaitForPods")
	serveNothing[activities.AnnounceInput](s, "AnnouncePhase")
	serveNothing[activities.UntaintInput](s, "Untaint")
	serveNothing[activities.ConditionsInput](s, "ShowConditions")
	serve[activities.HookInput](s, "CallHook", checks.Outcome{})
	serveNothing[activities.HookInput](s, "AbandonHook")
	serve[activities.ValidateInput](s, "Validate", activities.Validated{State: validation.Passed})
	serveNothing[activities.ValidateInput](s, "AbandonChecks")
	serve[activities.DeliverInput](s, "Deliver", notify.Receipt{})
	serve[activities.Execution](s, "Runs", true)
	serveNothing[activities.CollectInput](s, "Collect")
	serveNothing[record.Record](s, "KeepRecord")
	s.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_, id, run, name string, arg any) error { return s.toScheduler(id, run, name, arg) })
	return s
}

func serve[In, Out any](s *site, name string, usual Out) {
	var now reply
	s.env.OnActivity(name, mock.Anything, mock.Anything).
		AfterFn(func() time.Duration { now = s.next(name); return now.after }).
		Return(func(context.Context, In) (Out, error) {
			if now.value != nil && now.err == nil {
				return now.value.(Out), nil
			}
			return usual, now.err
		})
}

// serveRelease releases the node and then the slot, as ReleaseNode does.
func (s *site) serveRelease() {
	var now reply
	s.env.OnActivity("ReleaseNode", mock.Anything, mock.Anything).
		AfterFn(func() time.Duration { now = s.next("ReleaseNode"); return now.after }).
		Return(func(_ context.Context, in activities.ReleaseInput) (activities.Released, error) {
			if now.err != nil {
				return activities.Released{}, now.err
			}
			if in.Then != nil {
				var slot workflows.SlotRelease
				if err := json.Unmarshal(in.Then.Payload, &slot); err != nil {
					s.t.Errorf("payload of %s: %v", in.Then.Name, err)
				}
				if err := s.toScheduler(in.Then.WorkflowID, "", in.Then.Name, slot); err != nil {
					return activities.Released{}, err
				}
			}
			if now.value != nil {
				return now.value.(activities.Released), nil
			}
			return activities.Released{Uncordoned: true}, nil
		})
}

func serveNothing[In any](s *site, name string) {
	var now reply
	s.env.OnActivity(name, mock.Anything, mock.Anything).
		AfterFn(func() time.Duration { now = s.next(name); return now.after }).
		Return(func(context.Context, In) error { return now.err })
}

func (s *site) next(activity string) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.replies[activity]
	if len(queue) == 0 {
		return s.usual[activity]
	}
	s.replies[activity] = queue[1:]
	return queue[0]
}

// answer sets the next answers of an activity.
func (s *site) answer(activity string, replies ...reply) *site {
	s.replies[activity] = append(s.replies[activity], replies...)
	return s
}

func (s *site) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, what)
}

// toScheduler is the scheduler as a maintenance sees it.
func (s *site) toScheduler(id, run, name string, arg any) error {
	s.note(name)
	if id != s.schedulerID || run != "" {
		s.t.Errorf("signal %s went to workflow %q run %q, want the scheduler's present run", name, id, run)
	}
	answer := s.scheduler
	if answer == nil {
		answer = func(signal string, arg any) error {
			if r, ok := arg.(workflows.SlotRequest); ok {
				s.grant(r.ID)
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
	case workflows.SlotRequest:
		s.requested[arg.ID]++
		s.requestTimes = append(s.requestTimes, s.env.Now())
	case workflows.SlotRelease:
		s.released[arg.RequestID]++
	default:
		s.t.Errorf("signal %s carries %T", name, arg)
	}
	return nil
}

func (s *site) grant(request string) {
	s.env.SignalWorkflow(workflows.SignalSlotGranted, workflows.SlotAnswer{RequestID: request})
	if len(s.freeze) > 0 {
		s.env.SignalWorkflow(workflows.SignalHold, workflows.Hold{Reasons: s.freeze})
	}
}

func (s *site) refuse(request string, a workflows.SlotAnswer) {
	s.mu.Lock()
	s.refused[request] = true
	s.mu.Unlock()
	a.RequestID = request
	s.env.SignalWorkflow(workflows.SignalSlotRefused, a)
}

// at does something once the given time has passed since the start.
func (s *site) at(d time.Duration, do func()) *site {
	s.env.RegisterDelayedCallback(do, d)
	return s
}

// signalAt sends a message as a signal.
func (s *site) signalAt(d time.Duration, name string, payload any) *site {
	return s.at(d, func() { s.env.SignalWorkflow(name, payload) })
}

// done says done after a time.
func (s *site) doneAt(d time.Duration) *site { return s.signalAt(d, workflows.MsgDone, nil) }

// update sends a message as an update and returns its outcome once the run is over.
func (s *site) updateAt(d time.Duration, name string, payload ...any) *outcome {
	out := &outcome{}
	s.at(d, func() {
		s.env.UpdateWorkflow(name, "", &testsuite.TestUpdateCallback{
			OnReject: func(err error) { out.rejected = err },
			OnAccept: func() { out.accepted = true },
			OnComplete: func(value any, err error) {
				out.err = err
				if text, ok := value.(string); ok {
					out.effect = text
				}
			},
		}, payload...)
	})
	return out
}

// outcome is what became of an update.
type outcome struct {
	accepted bool
	rejected error
	effect   string
	err      error
}

// checkAt looks at the status after a time.
func (s *site) checkAt(d time.Duration, check func(workflows.Status)) *site {
	return s.at(d, func() { check(s.status()) })
}

// expectAt checks phase and, where it is not empty, a part of what the maintenance waits for.
func (s *site) expectAt(d time.Duration, phase workflows.Phase, waitingFor string) *site {
	s.t.Helper()
	return s.checkAt(d, func(status workflows.Status) {
		s.t.Helper()
		if status.Phase != phase {
			s.t.Errorf("after %s the phase is %s, want %s", d, status.Phase, phase)
		}
		if !strings.Contains(status.WaitingFor, waitingFor) {
			s.t.Errorf("after %s it waits for %q, want %q", d, status.WaitingFor, waitingFor)
		}
	})
}

func (s *site) status() workflows.Status {
	s.t.Helper()
	value, err := s.env.QueryWorkflow(workflows.QueryStatus)
	if err != nil {
		s.t.Fatalf("status: %v", err)
	}
	var status workflows.Status
	if err := value.Get(&status); err != nil {
		s.t.Fatalf("status: %v", err)
	}
	return status
}

// run executes the maintenance to its end and checks what holds for each: a held node is released, a slot asked for
// is given back once, and nothing is begun after the end.
func (s *site) run(in input) workflows.Status {
	s.t.Helper()
	s.env.ExecuteWorkflow(workflows.NodeMaintenance, in.payload(s.t))
	if !s.env.IsWorkflowCompleted() {
		s.t.Fatal("the maintenance did not end")
	}
	status := s.status()
	if !status.Phase.Ended() {
		s.t.Errorf("the maintenance ended in phase %s (error %v)", status.Phase, s.env.GetWorkflowError())
	}
	if status.WaitingFor != "" {
		s.t.Errorf("the ended maintenance waits for %q", status.WaitingFor)
	}
	s.checkUndone()
	return status
}

func (s *site) checkUndone() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	held := false
	for _, what := range s.log {
		switch what {
		case "HoldNode", "AdoptNode":
			held = true
		case "ReleaseNode":
			held = false
		}
	}
	if held {
		s.t.Errorf("the node is still held: %v", s.log)
	}
	for id := range s.requested {
		want := 1
		if s.refused[id] {
			want = 0
		}
		if s.released[id] != want {
			s.t.Errorf("request %s was released %d times, want %d: %v", id, s.released[id], want, s.log)
		}
	}
	for id := range s.released {
		if s.requested[id] == 0 {
			s.t.Errorf("a slot was released that nobody asked for: %s", id)
		}
	}
}

// count tells how often something is in the log.
func (s *site) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, entry := range s.log {
		if entry == what {
			n++
		}
	}
	return n
}

// expectLog compares what the maintenance did with what it was to do.
func (s *site) expectLog(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.log, want) {
		s.t.Errorf("the maintenance did\n %v, want\n %v", s.log, want)
	}
}

// inputOf decodes the input of the n-th call of an activity; the last with -1.
func inputOf[T any](s *site, activity string, n int) T {
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
func phases(status workflows.Status) []workflows.Phase {
	var all []workflows.Phase
	for _, t := range status.Transitions {
		if len(all) == 0 || all[len(all)-1] != t.Phase {
			all = append(all, t.Phase)
		}
	}
	return all
}

func (s *site) expectPhases(status workflows.Status, want ...workflows.Phase) {
	s.t.Helper()
	if got := phases(status); !slices.Equal(got, want) {
		s.t.Errorf("phases %v, want %v", got, want)
	}
}

// expectFailure checks the type and a part of the message of the error that the workflow failed with.
func (s *site) expectFailure(kind, message string) {
	s.t.Helper()
	err := s.env.GetWorkflowError()
	var application *temporal.ApplicationError
	if !errors.As(err, &application) {
		s.t.Fatalf("workflow error = %v, want one of type %s", err, kind)
	}
	if application.Type() != kind || !strings.Contains(application.Message(), message) || !application.NonRetryable() {
		s.t.Errorf("error %s (non-retryable %v): %s; want %s with %q",
			application.Type(), application.NonRetryable(), application.Message(), kind, message)
	}
}

func (s *site) expectCancelled() {
	s.t.Helper()
	if err := s.env.GetWorkflowError(); !temporal.IsCanceledError(err) {
		s.t.Errorf("workflow error = %v, want a cancellation", err)
	}
}

func (s *site) expectCompleted() workflows.Result {
	s.t.Helper()
	if err := s.env.GetWorkflowError(); err != nil {
		s.t.Errorf("workflow error = %v, want none", err)
	}
	var result workflows.Result
	if err := s.env.GetWorkflowResult(&result); err != nil {
		s.t.Errorf("result: %v", err)
	}
	return result
}

// received finds what became of the messages of a name.
func received(status workflows.Status, name string) []string {
	var effects []string
	for _, m := range status.Messages {
		if m.Name == name {
			effects = append(effects, m.Effect)
		}
	}
	return effects
}

// messagesOf are the messages of all transitions.
func messagesOf(status workflows.Status) string {
	var text strings.Builder
	for _, t := range status.Transitions {
		fmt.Fprintf(&text, "%s: %s\n", t.Phase, t.Message)
	}
	return text.String()
}

// raw is a payload of JSON text as it is, right or wrong.
func raw(text string) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(text),
	})
}

// failing is a non-retryable error of an activity.
func failing(kind, message string) error {
	return temporal.NewNonRetryableApplicationError(message, kind, nil)
}
