package profiletransition_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/drain"
	activity "drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/profiletransition"
	"drydock.dev/drydock/workflows/workflowtest"
)

// trip is a transition with the world around it.
type trip struct {
	t   *testing.T
	env *testsuite.TestWorkflowEnvironment
	in  api.ProfileTransitionInput
	// carried are the answers to the steps, steps what they were asked.
	carried []activity.Carried
	steps   []activity.CarryInput
	works   []activity.WorkInput
	worked  activity.Worked
	drains  []drain.Input
	drained func(ctx context.Context) error
	ended   []activity.EndMaintenanceInput
	gaveUp  []activity.GiveUpInput
	// slots are the signals to the scheduler, answer what it says to a request: nil is nothing.
	slots  []string
	answer func(id string) (signal string, answer api.SlotAnswer)
}

var moved = time.Date(2026, 7, 1, 12, 5, 0, 0, time.UTC)

func newTrip(t *testing.T) *trip {
	s := &trip{t: t, env: workflowtest.Environment(time.Now()), in: api.ProfileTransitionInput{
		Profile: "flatcar", Node: "n1", UID: "u1", From: state.Required, To: state.Maintenance, Since: moved.Add(-time.Hour), Triggers: []string{"a", "b"},
	}}
	s.env.RegisterWorkflowWithOptions(profiletransition.ProfileTransition, workflow.RegisterOptions{Name: api.ProfileTransitionType})
	s.env.RegisterWorkflowWithOptions(func(ctx workflow.Context, id string, in api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		var ended api.ProfileTransitionEnded
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: id})
		err := workflow.ExecuteChildWorkflow(ctx, api.ProfileTransitionType, in).Get(ctx, &ended)
		return ended, err
	}, workflow.RegisterOptions{Name: "parent"})
	s.env.RegisterActivity(call.Profiles)
	s.env.RegisterActivity(call.Drains)
	s.answer = func(id string) (string, api.SlotAnswer) { return api.SignalSlotGranted, api.SlotAnswer{RequestID: id} }
	s.env.OnSignalExternalWorkflow(mock.Anything, api.SchedulerID(""), "", mock.Anything, mock.Anything).Return(func(_, _, _, name string, arg any) error {
		s.slots = append(s.slots, name)
		if r, ok := arg.(api.SlotRequest); ok && s.answer != nil {
			name, answer := s.answer(r.ID)
			s.env.RegisterDelayedCallback(func() { _ = s.env.SignalWorkflowByID(r.WorkflowID(""), name, answer) }, time.Millisecond)
		}
		return nil
	})
	s.expect()
	return s
}

func (s *trip) expect() {
	s.env.OnActivity(call.Profiles.CarryTransition, mock.Anything, mock.Anything).Return(func(_ context.Context, in activity.CarryInput) (activity.Carried, error) {
		s.steps = append(s.steps, in)
		next := s.carried[0]
		s.carried = s.carried[1:]
		return next, nil
	})
	s.env.OnActivity(call.Profiles.GiveUpTransition, mock.Anything, mock.Anything).Return(func(_ context.Context, in activity.GiveUpInput) error {
		s.gaveUp = append(s.gaveUp, in)
		return nil
	})
	s.env.OnActivity(call.Profiles.EndProfileMaintenance, mock.Anything, mock.Anything).Return(func(_ context.Context, in activity.EndMaintenanceInput) error {
		s.ended = append(s.ended, in)
		return nil
	})
	work := func(_ context.Context, in activity.WorkInput) (activity.Worked, error) {
		s.works = append(s.works, in)
		return s.worked, nil
	}
	s.env.OnActivity(call.Profiles.RunTriggerJob, mock.Anything, mock.Anything).Return(work)
	s.env.OnActivity(call.Profiles.MaintainForProfile, mock.Anything, mock.Anything).Return(work)
	s.env.OnActivity(call.Drains.Drain, mock.Anything, mock.Anything).Return(func(ctx context.Context, in drain.Input) (drain.Drained, error) {
		s.drains = append(s.drains, in)
		if s.drained != nil {
			return drain.Drained{}, s.drained(ctx)
		}
		return drain.Drained{}, nil
	})
}

// runBy has a workflow of an ID begin the transition.
func (s *trip) runBy(parent string) (api.ProfileTransitionEnded, error) {
	s.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: parent, TaskQueue: api.DefaultTaskQueue})
	s.env.ExecuteWorkflow("parent", api.ProfileTransitionID("", s.in.Profile, s.in.Node), s.in)
	var ended api.ProfileTransitionEnded
	if err := s.env.GetWorkflowError(); err != nil {
		return ended, err
	}
	return ended, s.env.GetWorkflowResult(&ended)
}

func (s *trip) run() api.ProfileTransitionEnded {
	s.t.Helper()
	ended, err := s.runBy(api.ProfilesID(""))
	if err != nil {
		s.t.Fatal(err)
	}
	return ended
}

func TestATransitionOfChangesIsOneStep(t *testing.T) {
	s := newTrip(t)
	s.carried = []activity.Carried{{Next: 2, Moved: moved}}
	if ended := s.run(); !ended.Moved.Equal(moved) || ended.Error != "" {
		t.Errorf("%+v", ended)
	}
	if len(s.steps) != 1 || s.steps[0].RunID == "" || len(s.gaveUp)+len(s.ended) != 0 {
		t.Errorf("%+v, gave up %+v, ended %+v", s.steps, s.gaveUp, s.ended)
	}
	if want := []string{api.SignalSlotRequest, api.SignalSlotRelease}; !slices.Equal(s.slots, want) {
		t.Errorf("the scheduler was sent %q, want %q", s.slots, want)
	}
}

// No answer, no step.
func TestATransitionWithoutASlotDoesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(id string) (string, api.SlotAnswer)
		want   string
	}{
		"no answer": {nil, "the scheduler does not answer"},
		"it waits": {func(id string) (string, api.SlotAnswer) {
			return api.SignalSlotPending, api.SlotAnswer{RequestID: id, Code: schedule.Window, Reason: "maxUnavailable 1: 1 is unavailable", OpensAt: &moved}
		}, "it waits for a slot: maxUnavailable 1"},
		"refused": {func(id string) (string, api.SlotAnswer) {
			return api.SignalSlotRefused, api.SlotAnswer{RequestID: id, Reason: "there is no node n1"}
		}, "it gets no slot: there is no node"},
		"an answer to another": {func(string) (string, api.SlotAnswer) {
			return api.SignalSlotGranted, api.SlotAnswer{RequestID: "another/1"}
		}, "the scheduler does not answer"},
	} {
		s := newTrip(t)
		s.answer = c.answer
		ended := s.run()
		if name == "it waits" && !ended.OpensAt.Equal(moved) {
			t.Errorf("%s: it hands out %+v", name, ended)
		}
		if !ended.Waits || !strings.Contains(ended.Error, c.want) || len(s.steps)+len(s.gaveUp) != 0 || s.slots[len(s.slots)-1] != api.SignalSlotRelease {
			t.Errorf("%s: %+v, %d steps, sent %q", name, ended, len(s.steps), s.slots)
		}
	}
}

func TestOnlyTheWayIntoMaintenanceNeedsASlot(t *testing.T) {
	for name, change := range map[string]func(*api.ProfileTransitionInput){
		"on entering":      func(i *api.ProfileTransitionInput) { i.From, i.Enter = state.Maintenance, true },
		"back":             func(i *api.ProfileTransitionInput) { i.From, i.To = state.Maintenance, state.Operational },
		"to required":      func(i *api.ProfileTransitionInput) { i.From, i.To = state.Operational, state.Required },
		"by a maintenance": func(i *api.ProfileTransitionInput) { i.OwnSlot = true },
	} {
		s := newTrip(t)
		change(&s.in)
		s.carried = []activity.Carried{{Next: 2, Moved: moved}}
		if ended := s.run(); ended.Moved.IsZero() || len(s.slots) != 0 {
			t.Errorf("%s: %+v, sent %q", name, ended, s.slots)
		}
	}
}

func TestADrainIsBetweenTwoSteps(t *testing.T) {
	s := newTrip(t)
	s.carried = []activity.Carried{{Next: 0, Do: activity.DoDrain, Force: true, Cordoned: moved}, {Next: 2, Moved: moved}}
	ended := s.run()
	if !ended.Moved.Equal(moved) || len(s.steps) != 2 || len(s.drains) != 1 {
		t.Fatalf("%+v, %d steps, %d drains", ended, len(s.steps), len(s.drains))
	}
	d := s.drains[0]
	if d.Node != "n1" || d.UID != "u1" || d.RunID != s.steps[0].RunID || !d.EndsStuck || !d.Drain.Force || !d.Drain.DeleteEmptyDir || d.Force != "" {
		t.Errorf("%+v", d)
	}
	if s.steps[1].Next != 1 || !s.steps[1].Held || s.steps[0].Held {
		t.Errorf("after the drain: %+v", s.steps[1])
	}
}

func TestWhatIsDecidedOnIsNotSoAnyMore(t *testing.T) {
	s := newTrip(t)
	s.carried = []activity.Carried{{Refused: "the node is gone"}}
	ended := s.run()
	if ended.Error != "the node is gone" || !ended.Moved.IsZero() || len(s.gaveUp) != 1 || s.gaveUp[0].Held {
		t.Errorf("%+v, %+v", ended, s.gaveUp)
	}
}

func TestAJobThatFailsStopsTheTransition(t *testing.T) {
	s := newTrip(t)
	s.carried = []activity.Carried{{Next: 1, Do: activity.DoJob}}
	s.worked.Failed = "exit code 3"
	ended := s.run()
	if ended.Error != "exit code 3" || len(s.works) != 1 || s.works[0].Next != 1 || len(s.gaveUp) != 1 {
		t.Errorf("%+v, %+v, %+v", ended, s.works, s.gaveUp)
	}
}

func TestTheMaintenanceOfAStateEndsWithIt(t *testing.T) {
	s := newTrip(t)
	s.in.From, s.in.To, s.in.Maintained = state.Maintenance, state.Operational, "r1"
	s.carried = []activity.Carried{{Next: 2, Moved: moved}}
	s.run()
	if len(s.ended) != 1 || !s.ended[0].Done || s.ended[0].RunID != "r1" {
		t.Errorf("%+v", s.ended)
	}
}

func TestADrainThatIsCancelledGivesTheNodeBack(t *testing.T) {
	s := newTrip(t)
	s.carried = []activity.Carried{{Next: 0, Do: activity.DoDrain, Cordoned: moved}}
	s.drained = func(context.Context) error {
		s.env.CancelWorkflow() // not before it drains
		return temporal.NewCanceledError()
	}
	_, _ = s.runBy(api.ProfilesID(""))
	if len(s.gaveUp) != 1 {
		t.Errorf("%+v", s.gaveUp)
	}
}

func TestOnlyProfilesBeginsTransitions(t *testing.T) {
	s := newTrip(t)
	if _, err := s.runBy("somebody"); err == nil || !strings.Contains(err.Error(), "only workflow drydock-profiles begins transitions") || len(s.steps) != 0 {
		t.Errorf("%v, %+v", err, s.steps)
	}
	alone := newTrip(t)
	alone.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: api.ProfileTransitionID("", "flatcar", "n1"), TaskQueue: api.DefaultTaskQueue})
	alone.env.ExecuteWorkflow(api.ProfileTransitionType, alone.in)
	if err := alone.env.GetWorkflowError(); err == nil || len(alone.steps) != 0 {
		t.Errorf("%v, %+v", err, alone.steps)
	}
}

func TestInputsThatDoNotGoWithTheWorkflowAreRefused(t *testing.T) {
	for name, change := range map[string]func(*api.ProfileTransitionInput){
		"no UID":        func(i *api.ProfileTransitionInput) { i.UID = "" },
		"no transition": func(i *api.ProfileTransitionInput) { i.To = i.From },
		"no state":      func(i *api.ProfileTransitionInput) { i.To = "elsewhere" },
	} {
		s := newTrip(t)
		change(&s.in)
		if _, err := s.runBy(api.ProfilesID("")); err == nil || len(s.steps) != 0 {
			t.Errorf("%s: %v, %+v", name, err, s.steps)
		}
	}
}
