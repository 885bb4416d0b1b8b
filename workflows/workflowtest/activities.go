package workflowtest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	checkactivity "drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/node"
	policyactivity "drydock.dev/drydock/activities/policy"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
)

// Reply is how an activity answers one call: after a time, with an error or a value; the zero reply is the usual
// answer at once.
type Reply struct {
	After time.Duration
	Err   error
	Value any
}

// Answer sets the next answers of an activity.
func (s *Site) Answer(activity string, replies ...Reply) *Site {
	s.replies[activity] = append(s.replies[activity], replies...)
	return s
}

// noteCalls keeps the name and the input of every activity that begins.
func (s *Site) noteCalls() {
	s.Env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
		var in json.RawMessage
		if err := args.Get(&in); err != nil {
			s.t.Errorf("input of %s: %v", info.ActivityType.Name, err)
		}
		s.note(info.ActivityType.Name)
		if info.ActivityType.Name == "ReadEvents" {
			s.look()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inputs[info.ActivityType.Name] = append(s.inputs[info.ActivityType.Name], in)
		s.Called[info.ActivityType.Name] = *info
	})
}

// serveActivities makes every activity of a maintenance succeed at once, unless a test sets another reply.
func (s *Site) serveActivities() {
	serveFrom(s, "Prepare", func(json.RawMessage) settings.Prepared { return s.Prepared })
	Serve[node.HoldInput](s, "HoldNode", node.Held{UID: "uid-1", Mark: "mark-1"})
	serveNothing[node.HoldInput](s, "CheckReleases")
	Serve[node.HoldInput](s, "AdoptNode", node.Held{UID: "uid-2", Mark: "mark-2"})
	s.serveRelease()
	serveFrom(s, "AskSlot", func(slot node.Slot) api.SlotHeld {
		s.mu.Lock()
		defer s.mu.Unlock()
		answer := s.frozen
		answer.Held = !s.refused[slot.RequestID]
		return answer
	})
	s.serveDrain()
	Serve[execution.QueryInput](s, "Query", []execution.Answered{})
	Serve[policyactivity.ApprovalInput](s, "JudgeApproval", policyactivity.Judged{})
	Serve[policyactivity.AmendmentInput](s, "JudgeAmendment", policyactivity.Judged{})
	Serve[drain.PodInput](s, "FindPod", drain.PodFound{})
	Serve[drain.OutOfServiceInput](s, "TakeOutOfService", drain.TakenOutOfService{Tainted: true})
	Serve[drain.OutOfServiceInput](s, "AwaitOutOfService", drain.LeftOutOfService{})
	serveNothing[drain.WaitInput](s, "WaitForPods")
	serveNothing[node.AnnounceInput](s, "AnnouncePhase")
	serveNothing[node.UntaintInput](s, "Untaint")
	serveNothing[node.ConditionsInput](s, "ShowConditions")
	Serve[checkactivity.HookInput](s, "CallHook", checks.Outcome{})
	serveNothing[checkactivity.HookInput](s, "AbandonHook")
	Serve[checkactivity.WorkInput](s, "BeginWork", checkactivity.WorkBegun{Job: "jobs/job-1", BootID: "boot-1"})
	Serve[checkactivity.WorkInput](s, "AwaitWork", checkactivity.WorkEnded{OK: true, Message: "Job jobs/job-1 is complete", Output: "flashed"})
	serveNothing[checkactivity.WorkInput](s, "EndWork")
	Serve[checkactivity.ValidateInput](s, "Validate", checkactivity.Validated{State: validation.Passed})
	serveNothing[checkactivity.ValidateInput](s, "AbandonChecks")
	serveNothing[spec.Object](s, api.ReconcileObject)
	s.serveDeliveries()
}

// Serve has an activity answer with its next reply, and with the usual value where the reply has none.
func Serve[In, Out any](s *Site, name string, usual Out) {
	serveFrom(s, name, func(In) Out { return usual })
}

// serveFrom is Serve with a usual answer that depends on the input.
func serveFrom[In, Out any](s *Site, name string, usual func(In) Out) {
	serve(s, name, func(in In, reply Reply) (Out, error) {
		if reply.Value != nil {
			return reply.Value.(Out), nil
		}
		return usual(in), nil
	})
}

// serve has an activity answer as succeed makes it of the input and of the next reply, unless that is an error.
func serve[In, Out any](s *Site, name string, succeed func(In, Reply) (Out, error)) {
	s.on(name).Return(func(_ context.Context, in In) (out Out, err error) {
		reply := s.present(name)
		if reply.Err != nil {
			return out, reply.Err
		}
		return succeed(in, reply)
	})
}

// serveNothing is Serve for an activity that returns no value.
func serveNothing[In any](s *Site, name string) {
	s.on(name).Return(func(context.Context, In) error { return s.present(name).Err })
}

// serveDrain empties the node, and signals the lockstep where the input says so, as Drain does.
func (s *Site) serveDrain() {
	serve(s, "Drain", func(in drain.Input, reply Reply) (drain.Drained, error) {
		emptied := drain.Drained{DrainProgress: api.DrainProgress{Evicted: 3, Skipped: 1}}
		if reply.Value != nil {
			emptied.DrainProgress = reply.Value.(api.DrainProgress)
		}
		if in.Then != nil {
			emptied.Reported = s.toScheduler(in.Then.WorkflowID, "", in.Then.Signal, in.Then.Payload) == nil
		}
		return emptied, nil
	})
}

// serveRelease releases the node and then the slot, as ReleaseNode does.
func (s *Site) serveRelease() {
	serve(s, "ReleaseNode", func(in node.ReleaseInput, reply Reply) (node.Released, error) {
		if in.Then != nil {
			if err := s.toScheduler(in.Then.WorkflowID, "", in.Then.Name, in.Then.Payload); err != nil {
				return node.Released{}, err
			}
		}
		if reply.Value != nil {
			return reply.Value.(node.Released), nil
		}
		return node.Released{Uncordoned: true}, nil
	})
}

// on is an activity that takes as long as its next reply says. That is the present one: the environment asks how long a call takes before it
// asks for its answer, never for that of one that is cancelled meanwhile, and several may be under way at once.
func (s *Site) on(activity string) *testsuite.MockCallWrapper {
	return s.Env.OnActivity(activity, mock.Anything, mock.Anything).AfterFn(func() time.Duration {
		s.mu.Lock()
		defer s.mu.Unlock()
		reply := s.Usual[activity]
		if queue := s.replies[activity]; len(queue) > 0 {
			reply, s.replies[activity] = queue[0], queue[1:]
		}
		s.replying[activity] = reply
		return reply.After
	})
}

// present is the reply to the call that began last.
func (s *Site) present(activity string) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replying[activity]
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

// Failing is a non-retryable error of an activity.
func Failing(kind, message string) error {
	return temporal.NewNonRetryableApplicationError(message, kind, nil)
}
