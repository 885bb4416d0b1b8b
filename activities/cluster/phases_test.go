package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// described is a running workflow with activities under way.
func described(activities ...string) *workflowservice.DescribeWorkflowExecutionResponse {
	d := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING, FirstRunId: activitytest.RunID,
	}}
	for _, name := range activities {
		d.PendingActivities = append(d.PendingActivities, &workflowpb.PendingActivityInfo{ActivityType: &commonpb.ActivityType{Name: name}})
	}
	return d
}

func TestPhaseOfAHolder(t *testing.T) {
	for _, c := range []struct {
		shown api.Phase
		under []string
		want  api.Phase
	}{
		{"", nil, api.Scheduled},
		{"", []string{"CallHook"}, api.Scheduled},
		{"", []string{"HoldNode"}, api.Cordoning},
		{api.Cordoning, []string{"WaitForPods"}, api.WaitingForPods},
		{api.Cordoning, []string{"Drain", "AskSlot"}, api.Draining},
		{api.Cordoning, nil, api.Draining},
		{api.Ready, nil, api.Ready},
		{api.Ready, []string{"Drain"}, api.Draining},
		{api.Cordoned, nil, api.Cordoned},
		{api.Ready, []string{"AwaitWork"}, api.Ready},
		{api.RequestorFailed, nil, api.RequestorFailed},
		{api.Validating, []string{"Validate"}, api.Validating},
		{api.Ready, []string{"ReleaseNode"}, api.Releasing},
		{api.Cordoning, []string{"ReleaseNode"}, api.Releasing},
	} {
		if got := phaseOf(c.shown, described(c.under...)); got != c.want {
			t.Errorf("shown %q, under way %v: %s, want %s", c.shown, c.under, got, c.want)
		}
	}
}

func TestAWatchCountsWhatHoldersDo(t *testing.T) {
	nodes := map[string]*corev1.Node{
		"n1": activitytest.Node("n1", activitytest.Labelled(api.PhaseLabel, "Cordoning"), activitytest.Labelled("pool", "gpu")),
		"n2": activitytest.Node("n2", activitytest.Labelled(api.PhaseLabel, "Ready"), activitytest.Labelled("pool", "gpu"), activitytest.Labelled("zone", "a")),
		"n3": activitytest.Node("n3"),
		"n4": activitytest.Node("n4", activitytest.Labelled(api.PhaseLabel, "Ready")),
	}
	temporal := &mocks.Client{}
	for id, under := range map[string][]string{"m1": {"Drain"}, "m2": nil, "m3": nil} {
		temporal.On("DescribeWorkflowExecution", mock.Anything, id, "").Return(described(under...), nil)
	}
	grouper, err := schedule.NewGrouper([]schedule.Group{{Name: "gpu", NodeSelector: "pool=gpu"}, {Name: "zone", GroupBy: []string{"zone"}}})
	if err != nil {
		t.Fatal(err)
	}
	c := &Activities{Temporal: temporal, PhaseCounts: &PhaseCounts{}}
	if _, ok := c.PhaseCounts.Latest(time.Hour, time.Now()); ok {
		t.Error("there are counts before anybody looked")
	}
	in := WatchInput{
		Holders: []WatchedHolder{
			{Node: "n1", WorkflowID: "m1", RunID: activitytest.RunID}, {Node: "n2", WorkflowID: "m2", RunID: activitytest.RunID},
			{Node: "n3", WorkflowID: "m3", RunID: activitytest.RunID},
		},
		// n4's holder is left alone for a moment, n5 was given back and n6 is an orphan's.
		Known: []KnownMark{{Node: "n4"}, {Node: "n5", Until: time.Now()}, {Node: "n6", Stray: true}},
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no rounds but the one below
	d := c.pollHolders(ctx, in, grouper, copies(nodes))
	if err := d.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[HeldIn]int{
		{api.Draining, "gpu"}: 1, {api.Ready, "gpu"}: 1,
		// Every node is in a part of zone, also without the label.
		{api.Scheduled, "zone"}: 1, {api.Ready, "zone"}: 1,
	}
	held, ok := c.PhaseCounts.Latest(time.Minute, time.Now())
	if d := cmp.Diff(want, held); d != "" || !ok {
		t.Errorf("%t %s", ok, d)
	}
	if _, ok := c.PhaseCounts.Latest(time.Minute, time.Now().Add(2*time.Minute)); ok {
		t.Error("counts of a watch that has ended stay for ever")
	}
}

// copies are nodes by name.
type copies map[string]*corev1.Node

func (c copies) Get(name string) (*corev1.Node, bool) { n, ok := c[name]; return n, ok }
