package workflowtest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

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
		s.Queues[info.ActivityType.Name] = info.TaskQueue
		s.Limits[info.ActivityType.Name] = info.ScheduleToCloseTimeout
	})
}

// serveActivities makes every activity of a maintenance succeed at once, unless a test sets another reply.
func (s *Site) serveActivities() {
	s.Env.OnActivity("Prepare", mock.Anything, mock.Anything).Return(func(context.Context, json.RawMessage) (settings.Prepared, error) {
		prepared := s.Prepared
		prepared.Defaults, prepared.SearchAttributes = json.RawMessage(s.Defaults), s.Attributes
		return prepared, nil
	})
	Serve[node.HoldInput](s, "HoldNode", node.Held{UID: "uid-1", Mark: "mark-1"})
	serveNothing[node.HoldInput](s, "CheckReleases")
	Serve[node.HoldInput](s, "AdoptNode", node.Held{UID: "uid-2", Mark: "mark-2"})
	s.serveRelease()
	s.Env.OnActivity("AskSlot", mock.Anything, mock.Anything).Return(func(_ context.Context, slot node.Slot) (api.SlotHeld, error) {
		now := s.next("AskSlot")
		if now.Err != nil {
			return api.SlotHeld{}, now.Err
		}
		if now.Value != nil {
			return now.Value.(api.SlotHeld), nil
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		answer := s.frozen
		answer.Held = !s.refused[slot.RequestID]
		return answer, nil
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
	var begun latest
	s.Env.OnActivity(name, mock.Anything, mock.Anything).
		AfterFn(func() time.Duration { return begun.begin(s.next(name)).After }).
		Return(func(context.Context, In) (Out, error) {
			now := begun.get()
			if now.Value != nil && now.Err == nil {
				return now.Value.(Out), nil
			}
			return usual, now.Err
		})
}

// serveDrain empties the node, and signals the lockstep where the input says so, as Drain does.
func (s *Site) serveDrain() {
	var begun latest
	s.Env.OnActivity("Drain", mock.Anything, mock.Anything).
		AfterFn(func() time.Duration { return begun.begin(s.next("Drain")).After }).
		Return(func(_ context.Context, in drain.Input) (drain.Drained, error) {
			now := begun.get()
			if now.Err != nil {
				return drain.Drained{}, now.Err
			}
			emptied := drain.Drained{DrainProgress: api.DrainProgress{Evicted: 3, Skipped: 1}}
			if now.Value != nil {
				emptied.DrainProgress = now.Value.(api.DrainProgress)
			}
			if in.Then != nil {
				var progress api.NodeProgress
				if err := json.Unmarshal(in.Then.Payload, &progress); err != nil {
					s.t.Errorf("payload of %s: %v", in.Then.Signal, err)
				}
				emptied.Reported = s.toScheduler(in.Then.WorkflowID, "", in.Then.Signal, progress) == nil
			}
			return emptied, nil
		})
}

// serveRelease releases the node and then the slot, as ReleaseNode does.
func (s *Site) serveRelease() {
	var begun latest
	s.Env.OnActivity("ReleaseNode", mock.Anything, mock.Anything).
		AfterFn(func() time.Duration { return begun.begin(s.next("ReleaseNode")).After }).
		Return(func(_ context.Context, in node.ReleaseInput) (node.Released, error) {
			now := begun.get()
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

// serveNothing is Serve for an activity that returns no value.
func serveNothing[In any](s *Site, name string) {
	var begun latest
	s.Env.OnActivity(name, mock.Anything, mock.Anything).
		AfterFn(func() time.Duration { return begun.begin(s.next(name)).After }).
		Return(func(context.Context, In) error { return begun.get().Err })
}

// next is the reply to the call of an activity that begins now.
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
