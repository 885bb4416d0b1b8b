package profile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activity "drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller/controllertest"
	"drydock.dev/drydock/workflows/inbox"
	"drydock.dev/drydock/workflows/profile"
	"drydock.dev/drydock/workflows/workflowtest"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// yard is the world around Profiles: nodes that are evaluated, and transitions that come to something.
type yard struct {
	t      *testing.T
	env    *testsuite.TestWorkflowEnvironment
	packed []byte
	found  []activity.UnderWay
	// mu guards what an evaluation beside the one before it writes.
	mu sync.Mutex
	// evaluations are what was known to each; decides answers, and returns nothing where it has to wait.
	evaluations []activity.EvaluateInput
	decides     func(activity.EvaluateInput) *activity.Evaluated
	// carries is what comes of a transition, after how long.
	carries func(api.ProfileTransitionInput) (api.ProfileTransitionEnded, error)
	takes   time.Duration
	// spread is how much longer each takes than the one before, evaluates how long an evaluation does.
	spread    time.Duration
	evaluates time.Duration
	begun     []api.ProfileTransitionInput
	sent      []activity.Notice
	sends     func(activity.Notice) (activity.Sent, error)
	left      []activity.EndMaintenanceInput
	// moved is when each node that began is in its new state, whether or not the run that has begun it goes on.
	moved map[string]time.Time
	// resetAt is when a run finds that it came by reset, 0 never. resets counts that.
	resetAt time.Duration
	resets  int
}

func newYard(t *testing.T) *yard {
	y := &yard{t: t, takes: time.Minute, evaluates: 10 * time.Millisecond, moved: map[string]time.Time{}}
	y.begin(start)
	return y
}

func (y *yard) begin(now time.Time) {
	y.env = workflowtest.Environment(now)
	y.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: api.ProfilesID(""), TaskQueue: api.DefaultTaskQueue})
	y.env.RegisterWorkflowWithOptions(profile.Profiles, workflow.RegisterOptions{Name: api.ProfilesType})
	y.env.RegisterWorkflowWithOptions(func(ctx workflow.Context, in api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		y.mu.Lock()
		y.begun = append(y.begun, in)
		y.moved[in.Node] = workflow.Now(ctx).Add(y.takes)
		y.mu.Unlock()
		if err := workflow.Sleep(ctx, y.takes+time.Duration(len(y.begun))*y.spread); err != nil {
			return api.ProfileTransitionEnded{}, err
		}
		return y.carries(in)
	}, workflow.RegisterOptions{Name: api.ProfileTransitionType})
	if y.resetAt > 0 {
		y.becomesReset(now)
	}
	y.env.RegisterActivity(call.Profiles)
	y.env.OnActivity(call.Profiles.FindTransitions, mock.Anything).Return(func(context.Context) (api.List[activity.UnderWay], error) {
		return append(y.found, y.running()...), nil
	})
	y.env.OnActivity(call.Profiles.EvaluateProfiles, mock.Anything, mock.Anything).AfterFn(func() time.Duration { return y.evaluates }).Return(y.evaluate)
	y.env.OnActivity(call.Profiles.SendProfileNotice, mock.Anything, mock.Anything).Return(func(_ context.Context, n activity.Notice) (activity.Sent, error) {
		y.mu.Lock()
		defer y.mu.Unlock()
		y.sent = append(y.sent, n)
		if y.sends == nil {
			return activity.Sent{}, nil
		}
		return y.sends(n)
	})
	y.env.OnActivity(call.Profiles.EndProfileMaintenance, mock.Anything, mock.Anything).Return(func(_ context.Context, in activity.EndMaintenanceInput) error {
		y.left = append(y.left, in)
		return nil
	})
}

// evaluate fails where there is nothing to do yet, so that the server asks again: a mock cannot wait.
func (y *yard) evaluate(_ context.Context, in activity.EvaluateInput) (activity.Evaluated, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.evaluations = append(y.evaluations, in)
	if result := y.decides(in); result != nil {
		return *result, nil
	}
	return activity.Evaluated{}, errors.New("nothing is due")
}

func (y *yard) run(end time.Duration) error {
	y.env.RegisterDelayedCallback(y.env.CancelWorkflow, end)
	y.env.ExecuteWorkflow(api.ProfilesType, y.packed)
	return y.env.GetWorkflowError()
}

func due(node string) api.ProfileTransitionInput {
	return api.ProfileTransitionInput{Profile: "p", Node: node, UID: "u-" + node, From: state.Required, To: state.Maintenance, Since: start}
}

func (y *yard) knows(in activity.EvaluateInput, node string) *activity.UnderWay {
	i := slices.IndexFunc(in.UnderWay, func(u activity.UnderWay) bool { return u.Node == node })
	if i < 0 {
		return nil
	}
	return &in.UnderWay[i]
}

func TestATransitionCountsUntilTheNodeShowsIt(t *testing.T) {
	y := newYard(t)
	movedAt := start.Add(5 * time.Minute)
	y.carries = func(api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		return api.ProfileTransitionEnded{Moved: movedAt}, nil
	}
	settled := false
	y.decides = func(in activity.EvaluateInput) *activity.Evaluated {
		switch u := y.knows(in, "n1"); {
		case len(y.begun) == 0:
			return &activity.Evaluated{Begin: []api.ProfileTransitionInput{due("n1")}}
		case u != nil && u.Ended:
			if !u.Moved.Equal(movedAt) {
				y.t.Errorf("%+v", u)
			}
			settled = true
			return &activity.Evaluated{Settled: []activity.Ref{u.Ref}}
		case u == nil && !settled:
			y.t.Error("a transition that runs is not known to an evaluation")
		}
		return nil
	}
	_ = y.run(10 * time.Minute)
	if len(y.begun) != 1 || !settled || y.knows(y.evaluations[len(y.evaluations)-1], "n1") != nil {
		t.Errorf("begun %+v, settled %t, then %+v", y.begun, settled, y.evaluations[len(y.evaluations)-1])
	}
}

func TestATransitionThatFailsIsPutOff(t *testing.T) {
	y := newYard(t)
	y.takes = time.Second
	y.carries = func(api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		return api.ProfileTransitionEnded{Error: "no room"}, nil
	}
	var at []time.Duration
	y.decides = func(in activity.EvaluateInput) *activity.Evaluated {
		u := y.knows(in, "n1")
		switch {
		case u != nil && u.Ended:
			return &activity.Evaluated{Settled: []activity.Ref{u.Ref}}
		case u != nil || len(in.Failed) > 0 && y.env.Now().Before(in.Failed[0].Until):
			return nil
		}
		at = append(at, y.env.Now().Sub(start))
		return &activity.Evaluated{Begin: []api.ProfileTransitionInput{due("n1")}}
	}
	_ = y.run(10 * time.Minute)
	if len(at) < 3 || len(at) > 6 {
		t.Fatalf("tried at %s", at)
	}
	for i := 1; i < len(at); i++ {
		if pause := at[i] - at[i-1]; pause < 30*time.Second<<(i-1) {
			t.Errorf("try %d came %s after the one before", i, pause)
		}
	}
}

// One that has no slot is decided anew soon, and then ever less often: each try is a workflow.
func TestATransitionThatHasNoSlotIsPutOff(t *testing.T) {
	for name, c := range map[string]struct {
		opens  time.Duration
		within time.Duration
		want   []time.Duration
	}{
		"there is no room":       {0, time.Hour, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, 10 * time.Minute}},
		"windows that open soon": {20 * time.Minute, 30 * time.Minute, []time.Duration{19 * time.Minute, 20 * time.Second}},
		"in days":                {48 * time.Hour, 3 * time.Hour, []time.Duration{time.Hour, time.Hour}},
	} {
		t.Run(name, func(t *testing.T) { putsOff(t, c.opens, c.within, c.want) })
	}
}

func putsOff(t *testing.T, opens, within time.Duration, want []time.Duration) {
	y := newYard(t)
	y.takes = time.Minute
	y.carries = func(api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		ended := api.ProfileTransitionEnded{Error: "it waits for a slot", Waits: true}
		if opens > 0 {
			ended.OpensAt = start.Add(opens)
		}
		return ended, nil
	}
	var pauses []time.Duration
	y.decides = func(in activity.EvaluateInput) *activity.Evaluated {
		u := y.knows(in, "n1")
		switch {
		case u != nil && u.Ended:
			pauses = append(pauses, in.Failed[0].Until.Sub(u.EndedAt))
			return &activity.Evaluated{Settled: []activity.Ref{u.Ref}}
		case u != nil || len(in.Failed) > 0 && y.env.Now().Before(in.Failed[0].Until):
			return nil
		}
		return &activity.Evaluated{Begin: []api.ProfileTransitionInput{due("n1")}}
	}
	_ = y.run(within)
	if len(pauses) < len(want) {
		t.Fatalf("put off for %s, want %s", pauses, want)
	}
	for i, pause := range want {
		if got := pauses[i]; got < pause-time.Second || got > pause {
			t.Errorf("put off for %s the time %d, want %s", got, i+1, pause)
		}
	}
}

func TestANotificationIsSentOnceAndKnownUntilThen(t *testing.T) {
	y := newYard(t)
	n := activity.Notice{Ref: activity.Ref{Profile: "p", Node: "n1"}, UID: "u", Instance: "mail", At: start}
	tries := 0
	y.sends = func(activity.Notice) (activity.Sent, error) {
		if tries++; tries < 4 {
			return activity.Sent{}, errors.New("the server does not answer")
		}
		return activity.Sent{}, nil
	}
	returned := false
	y.decides = func(in activity.EvaluateInput) *activity.Evaluated {
		if !returned {
			returned = true
			return &activity.Evaluated{Notices: []activity.Notice{n, n}}
		}
		if tries < 4 && len(in.Sending) != 1 {
			y.t.Errorf("an evaluation does not know what is being sent: %+v", in.Sending)
		}
		return nil
	}
	_ = y.run(time.Hour)
	if tries != 4 || len(y.evaluations[len(y.evaluations)-1].Sending) != 0 {
		t.Errorf("%d tries, then %+v", tries, y.evaluations[len(y.evaluations)-1].Sending)
	}
}

func TestWhatRunsIsKnownBeforeAnythingIsDecided(t *testing.T) {
	y := newYard(t)
	y.found = []activity.UnderWay{{Ref: activity.Ref{Profile: "p", Node: "n1"}, RunID: "r", To: state.Maintenance}}
	y.decides = func(in activity.EvaluateInput) *activity.Evaluated {
		if y.knows(in, "n1") == nil {
			y.t.Errorf("%+v", in)
		}
		return nil
	}
	_ = y.run(time.Minute)
	if len(y.evaluations) == 0 {
		t.Error("nothing was evaluated")
	}
}

func TestAWorkerWithoutProfilesEndsIt(t *testing.T) {
	y := newYard(t)
	y.decides = func(activity.EvaluateInput) *activity.Evaluated { return &activity.Evaluated{Absent: true} }
	if err := y.run(time.Hour); err != nil || y.env.Now().Sub(start) > 2*time.Minute {
		t.Errorf("%v at %s", err, y.env.Now().Sub(start))
	}
}

func TestAMaintenanceThatIsLeftIsSignalledOnce(t *testing.T) {
	y := newYard(t)
	left := activity.Left{Node: "n1", Requestor: "profile-p", RunID: "r"}
	y.decides = func(in activity.EvaluateInput) *activity.Evaluated {
		if slices.Contains(in.Leaving, left) {
			return nil
		}
		return &activity.Evaluated{Leave: []activity.Left{left}}
	}
	_ = y.run(time.Hour)
	if len(y.left) != 1 || y.left[0].Done {
		t.Errorf("%+v", y.left)
	}
}

func TestWhatHasEndedIsNotShownAsUnderWay(t *testing.T) {
	y := newYard(t)
	y.decides = func(activity.EvaluateInput) *activity.Evaluated {
		if len(y.begun) == 0 {
			return &activity.Evaluated{Begin: []api.ProfileTransitionInput{due("n1")}}
		}
		return nil // that the node shows it is worth no word of its own
	}
	y.carries = func(api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		return api.ProfileTransitionEnded{Moved: start}, nil
	}
	y.env.RegisterDelayedCallback(func() {
		var shown api.ProfilesState
		value, err := y.env.QueryWorkflow(api.QueryState)
		if err == nil {
			err = value.Get(&shown)
		}
		if err != nil || len(y.begun) != 1 || len(shown.UnderWay) != 0 {
			t.Errorf("%d begun, shown %+v, %v", len(y.begun), shown.UnderWay, err)
		}
	}, 5*time.Minute)
	_ = y.run(10 * time.Minute)
}

func TestANewRunGoesOn(t *testing.T) {
	y := newYard(t)
	y.takes = time.Hour
	y.carries = func(api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		return api.ProfileTransitionEnded{Moved: start}, nil
	}
	n := activity.Notice{Ref: activity.Ref{Profile: "p", Node: "n1"}, UID: "u", Instance: "mail", At: start}
	y.sends = func(activity.Notice) (activity.Sent, error) {
		return activity.Sent{}, errors.New("the server does not answer")
	}
	y.decides = func(activity.EvaluateInput) *activity.Evaluated {
		if len(y.begun) == 0 {
			return &activity.Evaluated{Begin: []api.ProfileTransitionInput{due("n1")}, Notices: []activity.Notice{n}}
		}
		return nil
	}
	y.env.RegisterDelayedCallback(func() {
		y.env.SetContinueAsNewSuggested(true)
		y.env.SignalWorkflow("anything", "wakes it")
	}, time.Minute)
	err := y.run(20 * time.Minute)
	var again *workflow.ContinueAsNewError
	if !errors.As(err, &again) {
		t.Fatal(err)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &y.packed); err != nil {
		t.Fatal(err)
	}
	y.begin(start.Add(time.Hour))
	y.env.SetContinuedExecutionRunID("before")
	y.sends, y.sent = nil, nil
	ended := false
	y.decides = func(in activity.EvaluateInput) *activity.Evaluated {
		u := y.knows(in, "n1")
		switch {
		case u == nil && !ended, u != nil && u.RunID == "":
			y.t.Errorf("%+v", in.UnderWay)
		case u != nil && !u.Ended:
			ended = true
			gone := *u
			gone.Ended, gone.Moved = true, start
			return &activity.Evaluated{Ended: []activity.UnderWay{gone}}
		case u != nil:
			return &activity.Evaluated{Settled: []activity.Ref{u.Ref}}
		}
		return nil
	}
	_ = y.run(10 * time.Minute)
	if !ended || len(y.sent) != 1 || len(y.begun) != 1 {
		t.Errorf("ended %t, sent %+v, begun %+v", ended, y.sent, y.begun)
	}
}

func TestATransitionIsStoppedWhoseProfileTheNodeHasNoMore(t *testing.T) {
	y := newYard(t)
	y.takes = time.Hour
	y.carries = func(api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		t.Error("it was not stopped")
		return api.ProfileTransitionEnded{}, nil
	}
	stopped := 0
	y.decides = func(in activity.EvaluateInput) *activity.Evaluated {
		switch u := y.knows(in, "n1"); {
		case len(y.begun) == 0:
			return &activity.Evaluated{Begin: []api.ProfileTransitionInput{due("n1")}}
		case u != nil && u.Ended:
			return &activity.Evaluated{Settled: []activity.Ref{u.Ref}}
		case u != nil && u.RunID != "" && !u.Stopped:
			stopped++
			return &activity.Evaluated{Stop: []activity.Ref{u.Ref}}
		}
		return nil
	}
	_ = y.run(2 * time.Minute)
	last := y.evaluations[len(y.evaluations)-1]
	if stopped != 1 || y.knows(last, "n1") != nil || len(last.Failed) != 0 {
		t.Errorf("stopped %d times, then %+v", stopped, last)
	}
}

func TestATransitionThatHasEndedIsShownAsUnderWayNoMore(t *testing.T) {
	y := newYard(t)
	y.takes = time.Minute
	y.carries = func(api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		return api.ProfileTransitionEnded{Moved: start.Add(time.Minute)}, nil
	}
	y.decides = func(activity.EvaluateInput) *activity.Evaluated {
		if len(y.begun) == 0 {
			return &activity.Evaluated{Begin: []api.ProfileTransitionInput{due("n1")}}
		}
		return nil // that the node shows it is not worth a word yet
	}
	shown := func() (page api.ProfilesState) {
		value, err := y.env.QueryWorkflow(api.QueryState)
		if err == nil {
			err = value.Get(&page)
		}
		if err != nil {
			t.Error(err)
		}
		return page
	}
	y.env.RegisterDelayedCallback(func() {
		if page := shown(); len(page.UnderWay) != 1 {
			t.Errorf("while it runs: %+v", page)
		}
	}, 30*time.Second)
	y.env.RegisterDelayedCallback(func() {
		if page := shown(); len(page.UnderWay) != 0 {
			t.Errorf("after its end: %+v", page)
		}
	}, 3*time.Minute)
	_ = y.run(5 * time.Minute)
}

// What is under way is not taken back: another that is started finds it.
func TestACancellationEndsItAndNotWhatItHasBegun(t *testing.T) {
	y := newYard(t)
	y.takes = 10 * time.Minute
	y.carries = func(api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		return api.ProfileTransitionEnded{Moved: start}, nil
	}
	y.decides = func(activity.EvaluateInput) *activity.Evaluated {
		if len(y.begun) == 0 {
			return &activity.Evaluated{Begin: []api.ProfileTransitionInput{due("n1")}, Notices: []activity.Notice{
				{Ref: activity.Ref{Profile: "p", Node: "n1"}, UID: "u", Instance: "mail", At: start},
			}}
		}
		return nil
	}
	y.sends = func(activity.Notice) (activity.Sent, error) {
		return activity.Sent{}, errors.New("the server does not answer")
	}
	stopped := false
	y.env.SetOnChildWorkflowCanceledListener(func(*workflow.Info) { stopped = true })
	err := y.run(time.Minute)
	var cancelled *temporal.CanceledError
	if !errors.As(err, &cancelled) || stopped || len(y.begun) != 1 || y.env.Now().Sub(start) > 2*time.Minute {
		t.Errorf("%v at %s, begun %+v, stopped %t", err, y.env.Now().Sub(start), y.begun, stopped)
	}
}

// An end comes every half second, for fifty seconds, and an evaluation takes two: it decides all the same, and is not begun each time.
func TestAnEvaluationThatTakesItsTimeDecides(t *testing.T) {
	y := newYard(t)
	y.takes, y.spread, y.evaluates = 0, 500*time.Millisecond, 2*time.Second
	y.carries = func(api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		return api.ProfileTransitionEnded{Moved: y.env.Now()}, nil
	}
	y.decides = func(in activity.EvaluateInput) *activity.Evaluated {
		result := &activity.Evaluated{}
		for i := range 100 - len(y.begun) {
			result.Begin = append(result.Begin, due(fmt.Sprint("n", i)))
		}
		for _, u := range in.UnderWay {
			if u.Ended && len(y.begun) == 100 {
				return &activity.Evaluated{Begin: []api.ProfileTransitionInput{due("another")}}
			}
		}
		return result
	}
	y.env.RegisterDelayedCallback(func() {
		if len(y.begun) != 101 || len(y.evaluations) > 15 {
			t.Errorf("%d begun by %d evaluations", len(y.begun), len(y.evaluations))
		}
	}, 20*time.Second)
	_ = y.run(time.Minute)
}

func TestWhatItShows(t *testing.T) {
	y := newYard(t)
	y.takes = time.Hour
	n := activity.Notice{Ref: activity.Ref{Profile: "p", Node: "n1"}, UID: "u", Instance: "mail", At: start}
	y.sends = func(activity.Notice) (activity.Sent, error) {
		return activity.Sent{}, errors.New("the server does not answer")
	}
	problem := "line 3 is wrong"
	y.decides = func(in activity.EvaluateInput) *activity.Evaluated {
		switch {
		case len(y.begun) == 0:
			return &activity.Evaluated{Begin: []api.ProfileTransitionInput{due("n1"), {Profile: "p", Node: "n2"}}, Notices: []activity.Notice{n}, Problem: &problem}
		default:
			return nil
		}
	}
	y.env.RegisterDelayedCallback(func() {
		var page api.ProfilesState
		value, err := y.env.QueryWorkflow(api.QueryState)
		if err == nil {
			err = value.Get(&page)
		}
		var details string
		if err == nil {
			value, err = y.env.QueryWorkflow("__temporal_workflow_metadata")
		}
		if err == nil {
			var metadata sdkpb.WorkflowMetadata
			err = value.Get(&metadata)
			details = metadata.GetCurrentDetails()
		}
		if err != nil || len(page.UnderWay) != 1 || page.Sending != 1 || page.Problem != problem || len(page.Failed) != 1 || page.Waiting != "" {
			t.Errorf("%+v, %v", page, err)
		}
		for _, want := range []string{
			"**Under way:** 1 transition", "**Being sent:** 1 notification", "The file is not in force, the last good one is: line 3 is wrong",
			"- n1; profile: p; to: in-maintenance", "- n2; profile: p; not carried out: ",
			"note: the file is not in force: the last good one is: line 3 is wrong",
		} {
			if !strings.Contains(details, want) {
				t.Errorf("%q is not in %q", want, details)
			}
		}
	}, 30*time.Second)
	_ = y.run(time.Minute)
}

// becomesReset has the run find that it came by reset, with what is under way then.
func (y *yard) becomesReset(now time.Time) {
	const place = 1000
	env := y.env
	env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}, &controllertest.AsReset{}},
	})
	env.RegisterActivity(call.Executions)
	env.OnActivity(call.Executions.ThisRun, mock.Anything).Return("this run", nil)
	env.OnGetVersion(mock.Anything, workflow.DefaultVersion, workflow.Version(1)).Return(func(change string, _, _ workflow.Version) workflow.Version {
		if change == fmt.Sprintf("reset-at-%d", place) {
			return 1
		}
		return workflow.DefaultVersion
	})
	if y.resets == 0 {
		env.RegisterDelayedCallback(func() {
			if !env.IsWorkflowCompleted() {
				y.resets++
				env.SetCurrentHistoryLength(place)
				env.SignalWorkflow("no-such-message", nil)
			}
		}, max(start.Add(y.resetAt).Sub(now), time.Nanosecond))
	}
}

// movesFive runs Profiles until five nodes have moved and three notifications are sent.
func movesFive(t *testing.T, every int, resetAt time.Duration) {
	y := newYard(t)
	y.resetAt = resetAt
	y.begin(start)
	var err error
	if y.packed, err = api.Pack(map[string]int{"continueAfter": every}); err != nil {
		t.Fatal(err)
	}
	y.takes = 5 * time.Second
	y.carries = func(in api.ProfileTransitionInput) (api.ProfileTransitionEnded, error) {
		y.mu.Lock()
		defer y.mu.Unlock()
		return api.ProfileTransitionEnded{Moved: y.moved[in.Node]}, nil
	}
	notices := map[string]bool{}
	y.sends = func(n activity.Notice) (activity.Sent, error) {
		notices[n.Instance] = true
		return activity.Sent{}, nil
	}
	y.decides = func(in activity.EvaluateInput) *activity.Evaluated { return y.wants(in, notices) }
	runs := 0
	for again := (&workflow.ContinueAsNewError{}); ; runs++ {
		y.env.SetContinuedExecutionRunID("before")
		if err = y.run(5 * time.Minute); !errors.As(err, &again) || runs > 300 {
			break
		}
		if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &y.packed); err != nil {
			t.Fatal(err)
		}
		y.begin(y.env.Now())
	}
	var cancelled *temporal.CanceledError
	last := y.evaluations[len(y.evaluations)-1]
	if !errors.As(err, &cancelled) || len(y.begun) != 5 || len(y.moved) != 5 || len(notices) != 3 || len(last.UnderWay)+len(last.Sending) != 0 {
		t.Errorf("%v after %d runs: begun %d, of %d nodes, sent %v, at last %+v", err, runs, len(y.begun), len(y.moved), notices, last)
	}
	if (runs > 0) != (every > 0) || (y.resets > 0) != (resetAt > 0) {
		t.Errorf("%d runs, %d resets", runs, y.resets)
	}
}

// What comes of it does not depend on how many events a run takes.
func TestHoweverOftenItContinuesAsNew(t *testing.T) {
	for _, every := range []int{0, 1, 2, 3, 5, 7, 11} {
		t.Run(fmt.Sprint(every), func(t *testing.T) { movesFive(t, every, 0) })
	}
}

// What a transition has done since is found, and one that starts at the reset is not started again.
func TestProfilesThatAreResetGoOn(t *testing.T) {
	for _, every := range []int{0, 1, 3} {
		for _, at := range []time.Duration{
			5 * time.Millisecond, 12 * time.Millisecond, time.Second, 5*time.Second + 5*time.Millisecond, 8 * time.Second, 21 * time.Second, time.Minute,
		} {
			t.Run(fmt.Sprint(every, "/", at), func(t *testing.T) { movesFive(t, every, at) })
		}
	}
}

// running are the transitions that run, whichever run has begun them.
func (y *yard) running() (all []activity.UnderWay) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, in := range y.begun {
		if y.resetAt > 0 && y.moved[in.Node].After(y.env.Now()) {
			all = append(all, activity.UnderWay{Ref: activity.Ref{Profile: in.Profile, Node: in.Node}, UID: in.UID, To: in.To, RunID: "found"})
		}
	}
	return all
}

// wants begins one transition after the other, of five nodes, and sends three notifications.
func (y *yard) wants(in activity.EvaluateInput, sent map[string]bool) *activity.Evaluated {
	var result activity.Evaluated
	for _, u := range in.UnderWay {
		switch at := y.moved[u.Node]; {
		case u.Ended:
			result.Settled = append(result.Settled, u.Ref)
		case u.RunID == "":
			y.t.Errorf("evaluated while %s starts", u.Node)
		case y.env.Now().After(at.Add(time.Second)):
			u.Ended, u.Moved = true, at
			result.Ended = append(result.Ended, u)
		}
	}
	for i := range 5 {
		if node := fmt.Sprint("n", i); y.moved[node].IsZero() && y.knows(in, node) == nil {
			result.Begin = append(result.Begin, due(node))
			break
		}
	}
	for i := range 3 {
		n := activity.Notice{Ref: activity.Ref{Profile: "p", Node: "n1"}, UID: "u", Instance: fmt.Sprint("mail", i), At: start}
		if !sent[n.Instance] && !slices.ContainsFunc(in.Sending, func(other activity.Notice) bool { return other.Instance == n.Instance }) {
			result.Notices = append(result.Notices, n)
			break
		}
	}
	if len(result.Begin)+len(result.Settled)+len(result.Ended)+len(result.Notices) == 0 {
		return nil
	}
	return &result
}
