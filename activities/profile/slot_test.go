package profile

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/schedule"
)

// Whoever may write signals may say that a slot is granted, and a transition may be one that its Profiles knows nothing of any more.
func TestATransitionActsOnNoNodeWithoutASlot(t *testing.T) {
	for name, c := range map[string]struct {
		change func(d *dock, in *CarryInput)
		want   string
	}{
		"the slot of another":          {func(d *dock, _ *CarryInput) { d.slots.Held = []string{"another/1"} }, "no slot"},
		"a scheduler that rebuilds":    {func(d *dock, _ *CarryInput) { d.slots.Rebuilding = true }, "error"},
		"profiles that do not know it": {func(d *dock, _ *CarryInput) { d.knows.UnderWay = nil }, "do not know of it"},
		"another run of it":            {func(d *dock, _ *CarryInput) { d.knows.UnderWay[0].RunID = "another" }, "do not know of it"},
		"profiles that have begun":     {func(d *dock, _ *CarryInput) { d.knows.Waiting = "which transitions run is not known yet" }, "error"},
		"no trigger has a slot":        {func(_ *dock, in *CarryInput) { in.OwnSlot = true }, "no trigger begins a maintenance"},
		"a cordon before its slot":     {func(_ *dock, in *CarryInput) { in.OwnSlot, in.Triggers = true, []string{"cordon", "maintain"} }, "no trigger begins a maintenance"},
		"a maintenance asks itself": {func(d *dock, in *CarryInput) {
			d.slots.Held, in.OwnSlot, in.Triggers = nil, true, []string{"label", "maintain", "cordon"}
		}, ""},
		"with both":         {func(d *dock, _ *CarryInput) { d.knows.UnderWay[0].RunID = activitytest.RunID }, ""},
		"later it is known": {func(d *dock, in *CarryInput) { d.knows.UnderWay, in.Next = nil, 1 }, ""},
	} {
		d := newDock(t, node("n1", map[string]state.State{"p": state.Required}))
		in := transition(state.Required, state.Maintenance, "label", "label")
		c.change(d, &in)
		carried, err := activitytest.Call(t, d.acts.CarryTransition, in)
		got := carried.Refused
		if err != nil {
			got = "error"
		}
		if !strings.Contains(got, c.want) || c.want == "" && got != "" || c.want != "" && len(d.server.Requests("PATCH")) != 0 {
			t.Errorf("%s: %+v, %v, %q", name, carried, err, d.server.Requests("PATCH"))
		}
	}
}

// A maintenance asks for the slot of its node. What is done before it does is done without.
func TestWhichTransitionsLeaveTheSlotToTheirMaintenance(t *testing.T) {
	config, problem := newDock(t).acts.File.Read()
	if config == nil {
		t.Fatal(problem)
	}
	for triggers, want := range map[string]bool{
		"maintain": true, "maintain cordon drain": true, "label finalize maintain": true, "uncordon maintain": true, "": false, "label": false,
		"cordon drain maintain": false, "label cordon maintain": false, "drain maintain": false, "unknown maintain": false,
	} {
		if got := maintainsFirst(config, strings.Fields(triggers)); got != want {
			t.Errorf("%q: %t, want %t", triggers, got, want)
		}
	}
}

// Visibility may lag for minutes.
func TestTransitionsThatHoldASlotAreFoundThoughNoListShowsThem(t *testing.T) {
	d := newDock(t)
	temporal, _ := d.acts.Temporal.(*mocks.Client)
	temporal.On("ListWorkflow", mock.Anything, mock.Anything).Return(func(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
		return &workflowservice.ListWorkflowExecutionsResponse{}, nil
	})
	d.scheduler.Holders = api.List[api.Holder]{
		{Grant: schedule.Grant{Node: "n1", Requestor: "profile-p", Kind: schedule.KindProfile}, RunID: "r1"}, {Grant: schedule.Grant{Node: "n2", Requestor: "profile-p"}, RunID: "r2"},
	}
	d.scheduler.Pending = []api.PendingRequest{{SlotRequest: api.SlotRequest{RunID: "r3", Request: schedule.Request{Node: "n3", Requestor: "profile-q", Kind: schedule.KindProfile}}}}
	find := func(ctx context.Context, _ struct{}) (api.List[UnderWay], error) { return d.acts.FindTransitions(ctx) }
	found, err := activitytest.Call(t, find, struct{}{})
	var got []string
	for _, u := range found {
		got = append(got, u.Profile+"/"+u.Node+"/"+u.RunID+"/"+string(u.To))
	}
	if want := []string{"p/n1/r1/in-maintenance", "q/n3/r3/in-maintenance"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("found %q, want %q, %v", got, want, err)
	}
	d.scheduler.Rebuilding = true
	if _, err := activitytest.Call(t, find, struct{}{}); err == nil {
		t.Error("a scheduler that does not know yet was believed")
	}
}
