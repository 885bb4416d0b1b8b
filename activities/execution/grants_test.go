package execution

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/testsuite"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
)

func TestSendGrants(t *testing.T) {
	in := GrantInput{Cluster: "east", Holders: []GrantedSlot{
		{Node: "n1", Requestor: "ops", RequestID: "one/1"}, {Node: "n2", Requestor: "ops", RequestID: "two/1"}, {Node: "n3", Requestor: "dba", RequestID: "three/2"},
	}}
	temporal := &mocks.Client{}
	for _, h := range in.Holders {
		var err error
		if h.Node != "n2" {
			err = serviceerror.NewNotFound("it has ended")
		}
		temporal.On("SignalWorkflow", mock.Anything, api.MaintenanceID("east", h.Node, h.Requestor), "", api.SignalSlotGranted,
			api.SlotAnswer{RequestID: h.RequestID}).Return(err).Once()
	}
	var gone []string
	env := newEnvironment(&Activities{Temporal: temporal})
	activitytest.CalledBy(env, activitytest.Task{Type: api.SchedulerType, WorkflowID: api.SchedulerID("east"), Queue: "east/drydock"})
	value, err := env.ExecuteActivity("SendGrants", in)
	if err != nil {
		t.Fatal(err)
	}
	if err := value.Get(&gone); err != nil || !slices.Equal(gone, []string{"one/1", "three/2"}) {
		t.Errorf("gone: %v, %v", gone, err)
	}
	temporal.AssertExpectations(t)
}

func TestSendGrantsIsTriedAgain(t *testing.T) {
	temporal := &mocks.Client{}
	temporal.On("SignalWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(errors.New("away"))
	_, err := newEnvironment(&Activities{Temporal: temporal}).ExecuteActivity("SendGrants", GrantInput{Holders: []GrantedSlot{{Node: "n1", Requestor: "ops"}}})
	if err == nil {
		t.Error("a failure was swallowed")
	}
}

func TestAMalformedHolderKeepsNoneFromItsGrant(t *testing.T) {
	temporal := &mocks.Client{}
	temporal.On("SignalWorkflow", mock.Anything, api.MaintenanceID("east", "n1", "ops"), "", api.SignalSlotGranted, mock.Anything).Return(nil).Once()
	env := newEnvironment(&Activities{Temporal: temporal})
	activitytest.CalledBy(env, activitytest.Task{Type: api.SchedulerType, WorkflowID: api.SchedulerID("east"), Queue: "east/drydock"})
	_, err := env.ExecuteActivity("SendGrants", GrantInput{Cluster: "east", Holders: []GrantedSlot{
		{Node: "n0", Requestor: "a/b", RequestID: "zero/1"}, {Node: "n1", Requestor: "ops", RequestID: "one/1"},
	}})
	if err != nil {
		t.Error(err)
	}
	temporal.AssertExpectations(t)
}

func newEnvironment(a *Activities) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a)
	return env
}
