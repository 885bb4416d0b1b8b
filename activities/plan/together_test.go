package plan

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/testsuite"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/drainplan"
)

// TestAnIntentStartsTheLockstepThatItIsFor, on the task queue of its plan: the signal and the start are one.
func TestAnIntentStartsTheLockstepThatItIsFor(t *testing.T) {
	in := IntentInput{Lockstep: api.LockstepID("prod"), Intent: api.PlanIntent{
		Name: "firmware", RunID: "d4c1a9b0-0000-4000-8000-000000000001", CreatedAt: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC),
		Revision: 3, Stage: api.StageDrain, Tiers: []drainplan.Entry{{PodType: drainplan.Default, PodPriority: 5}}, Nodes: []string{"a", "b"},
		Maintenance: []byte(`{"reason":"x"}`),
	}}
	for _, down := range []error{nil, errors.New("the server is away")} {
		server := &mocks.Client{}
		var sent api.PlanIntent
		var how client.StartWorkflowOptions
		server.On("SignalWithStartWorkflow", mock.Anything, in.Lockstep, api.SignalPlanIntent, mock.Anything, mock.Anything, api.LockstepType).Run(
			func(args mock.Arguments) {
				sent, how = args.Get(3).(api.PlanIntent), args.Get(4).(client.StartWorkflowOptions)
			}).Return(&mocks.WorkflowRun{}, down)
		a := &Activities{Temporal: server}
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		activitytest.CalledBy(env, activitytest.Task{Type: api.MaintenancePlanType, WorkflowID: api.PlanID("prod", "firmware"), Queue: "prod/drydock"})
		env.RegisterActivity(a.SendIntent)
		_, err := env.ExecuteActivity(a.SendIntent, in)
		if (err == nil) != (down == nil) || err != nil && !strings.Contains(err.Error(), "sending prod/drydock-plans the intent of plan firmware: the server is away") {
			t.Errorf("it ends with %v", err)
		}
		if !reflect.DeepEqual(sent, in.Intent) {
			t.Errorf("sent %+v, want %+v", sent, in.Intent)
		}
		if how.ID != in.Lockstep || how.TaskQueue != "prod/drydock" || how.WorkflowIDReusePolicy != enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE {
			t.Errorf("it is started with %+v", how)
		}
	}
}

func TestOtherNodesAreWaitedFor(t *testing.T) {
	s := k8stest.New(nodeIn("a", "1", "z1"))
	a := &Activities{Nodes: k8s.NewNodes(s.Client(t)), LookEvery: 5 * time.Millisecond}
	first, err := activitytest.Call(t, a.ListPlanNodes, ListInput{})
	if err != nil {
		t.Fatal(err)
	}
	if at, err := activitytest.Call(t, a.AwaitPlanNodes, ListInput{Digest: "of another list"}); err != nil || at.Digest != first.Digest || len(at.Nodes) != 1 {
		t.Errorf("a list that is out of date is answered with %+v, %v", at, err)
	}
	go s.Set(nodeIn("b", "2", "z1"))
	later, err := activitytest.Call(t, a.AwaitPlanNodes, ListInput{Digest: first.Digest})
	if err != nil || later.Unchanged || len(later.Nodes) != 2 || later.Digest == first.Digest {
		t.Errorf("it returned %+v, %v", later, err)
	}
	if _, err := activitytest.Call(t, a.AwaitPlanNodes, ListInput{Selector: "!!"}); err == nil || !strings.Contains(err.Error(), "selector") {
		t.Errorf("a selector that is none: %v", err)
	}
	// Nothing changes, and the worker stops: it is begun again elsewhere.
	ctx, cancel := context.WithCancel(t.Context())
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a.AwaitPlanNodes)
	env.SetWorkerStopChannel(stoppedBy(ctx))
	cancel()
	if _, err := env.ExecuteActivity(a.AwaitPlanNodes, ListInput{Digest: later.Digest}); err == nil {
		t.Error("it ends as if something had changed")
	}
}

func stoppedBy(ctx context.Context) chan struct{} {
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() { close(stopped) })
	return stopped
}
