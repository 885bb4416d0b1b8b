package profile

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/activitytest"
	nodes "drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/profile/state"
)

const (
	transitionID  = "profile-transition/p/n1"
	maintenanceID = "node-maintenance/n1/profile-p"
	firstRun      = "0190b1c0-0000-7000-8000-00000000000a"
	queue         = "drydock"
)

// marking writes a mark as it is given.
func marking(mark k8s.Mark) activitytest.NodeOption {
	return func(n *corev1.Node) {
		text, err := json.Marshal(mark)
		if err != nil {
			panic(err)
		}
		n.Annotations[api.HoldersAnnotation] = string(text)
	}
}

// callAs runs an activity as one of a workflow.
func callAs[In, Out any](t *testing.T, kind, id string, do func(context.Context, In) (Out, error), in In) (out Out) {
	t.Helper()
	env := activitytest.Environment()
	activitytest.CalledBy(env, activitytest.Task{Type: kind, WorkflowID: id, Queue: queue})
	env.RegisterActivity(do)
	value, err := env.ExecuteActivity(do, in)
	if err == nil {
		err = value.Get(&out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// historyOf is that of a transition which carried out one step.
func historyOf(t *testing.T, in CarryInput, carried Carried, change func(*historypb.WorkflowExecutionStartedEventAttributes)) []*historypb.HistoryEvent {
	t.Helper()
	payloads := func(value any) *commonpb.Payloads {
		p, err := converter.GetDefaultDataConverter().ToPayloads(value)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	return []*historypb.HistoryEvent{
		activitytest.Started("", func(a *historypb.WorkflowExecutionStartedEventAttributes) {
			a.WorkflowType, a.TaskQueue = &commonpb.WorkflowType{Name: api.ProfileTransitionType}, &taskqueuepb.TaskQueue{Name: queue}
			a.FirstExecutionRunId = activitytest.RunID
			if change != nil {
				change(a)
			}
		}),
		{EventId: 5, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityType: &commonpb.ActivityType{Name: "CarryTransition"}, Input: payloads(in),
			},
		}},
		{EventId: 6, Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: 5, Result: payloads(carried)},
		}},
	}
}

func TestAMaintenanceUncordonsWhatItsProfileLeftToIt(t *testing.T) {
	type started = historypb.WorkflowExecutionStartedEventAttributes
	for name, c := range map[string]struct {
		// triggers are those of the transition; forged is a mark that says after it what it did not do.
		triggers []string
		forged   bool
		// history changes what the server knows of the transition.
		history    func(*started)
		uid        types.UID
		uncordoned bool
	}{
		"the profile uncordons":                {triggers: []string{"label", "uncordon"}, uncordoned: true},
		"the profile leaves it cordoned":       {triggers: []string{"label"}},
		"a mark says otherwise":                {triggers: []string{"label"}, forged: true},
		"a mark says otherwise of a cordon":    {triggers: []string{"uncordon", "cordon"}, forged: true},
		"it is no transition":                  {triggers: []string{"uncordon"}, history: func(a *started) { a.WorkflowType.Name = "Mine" }},
		"it is another worker's":               {triggers: []string{"uncordon"}, history: func(a *started) { a.TaskQueue.Name = "mine" }},
		"it is another run's":                  {triggers: []string{"uncordon"}, history: func(a *started) { a.FirstExecutionRunId = firstRun }},
		"another worker began it":              {triggers: []string{"uncordon"}, history: func(a *started) { a.ContinuedExecutionRunId = firstRun }},
		"it was for another node of that name": {triggers: []string{"uncordon"}, uid: "u-0"},
	} {
		t.Run(name, func(t *testing.T) {
			// A person or the profile had cordoned the node before the maintenance held it.
			mark := k8s.Mark{Prior: map[string]*string{}, Holders: []k8s.Holder{{
				WorkflowID: maintenanceID, RunID: firstRun, Run: activitytest.RunID, Namespace: "home", Requestor: "profile-p", Cordon: true,
			}}}
			d := newDock(t, node("n1", map[string]state.State{"p": state.Maintenance}, activitytest.Cordoned, marking(mark)))
			in := transition(state.Maintenance, state.Operational, c.triggers...)
			carried := callAs(t, api.ProfileTransitionType, transitionID, d.acts.CarryTransition, in)
			if left := slices.Contains(carried.LeftTo, firstRun); carried.Moved.IsZero() || left != (c.triggers[len(c.triggers)-1] == "uncordon") {
				t.Fatalf("carried %+v", carried)
			}
			if again := callAs(t, api.ProfileTransitionType, transitionID, d.acts.CarryTransition, in); !slices.Equal(again.LeftTo, carried.LeftTo) {
				t.Errorf("a step whose answer was lost: %+v, before %+v", again, carried)
			}
			if c.forged {
				after := d.server.Node("n1")
				mark.Cordoned, mark.CordonedBy = true, &k8s.CordonedBy{WorkflowID: transitionID, RunID: activitytest.RunID, Run: activitytest.RunID}
				marking(mark)(after)
				d.server.Set(after)
			}
			if c.uid != "" {
				in.UID = string(c.uid)
			}
			events := historyOf(t, in, carried, c.history)
			temporal := &mocks.Client{}
			temporal.On("GetWorkflowHistory", mock.Anything, transitionID, activitytest.RunID, false, mock.Anything).Return(
				func(context.Context, string, string, bool, enums.HistoryEventFilterType) client.HistoryEventIterator {
					return activitytest.Events(false, events)
				})
			holding := &nodes.Activities{Client: d.server.Client(t), Temporal: temporal}
			released := callAs(t, api.NodeMaintenanceType, maintenanceID, holding.ReleaseNode, nodes.ReleaseInput{
				Node: "n1", RunID: firstRun, Prior: &k8s.Prior{UID: "u-n1"},
			})
			if n := d.server.Node("n1"); released.Uncordoned != c.uncordoned || n.Spec.Unschedulable == c.uncordoned || n.Annotations[api.HoldersAnnotation] != "" {
				t.Errorf("released %+v; unschedulable %t, annotations %v", released, n.Spec.Unschedulable, n.Annotations)
			}
		})
	}
}

func TestAForgedMarkOfATransitionIsNotCarriedOut(t *testing.T) {
	give := func(d *dock) func(context.Context, GiveUpInput) (bool, error) {
		return func(ctx context.Context, in GiveUpInput) (bool, error) { return true, d.acts.GiveUpTransition(ctx, in) }
	}
	for name, c := range map[string]struct {
		run     string
		release func(*testing.T, *dock)
	}{
		"of one that does not run": {firstRun, func(_ *testing.T, d *dock) { d.evaluate(EvaluateInput{}) }},
		"of an earlier run": {firstRun, func(t *testing.T, d *dock) {
			callAs(t, api.ProfileTransitionType, transitionID, d.acts.CarryTransition, transition(state.Maintenance, state.Operational, "drain"))
			callAs(t, api.ProfileTransitionType, transitionID, give(d), GiveUpInput{CarryInput: transition(state.Maintenance, state.Operational)})
		}},
		"of its own": {activitytest.RunID, func(t *testing.T, d *dock) {
			callAs(t, api.ProfileTransitionType, transitionID, give(d), GiveUpInput{CarryInput: transition(state.Maintenance, state.Operational)})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tainted := func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, k8s.OutOfServiceTaint) }
			mark := k8s.Mark{Cordoned: true, Prior: map[string]*string{}, Holders: []k8s.Holder{{
				WorkflowID: transitionID, RunID: c.run, Namespace: "home", Requestor: "profile-p", Cordon: true, OutOfService: true,
			}}}
			d := newDock(t, node("n1", map[string]state.State{"p": state.Maintenance}, activitytest.Cordoned, tainted, marking(mark)))
			c.release(t, d)
			n := d.server.Node("n1")
			if left, err := k8s.MarkOf(n); err != nil || len(left.Holders) != 0 || !n.Spec.Unschedulable || !k8s.IsOutOfService(n) {
				t.Errorf("mark %+v, %v; unschedulable %t, taints %v", left, err, n.Spec.Unschedulable, n.Spec.Taints)
			}
		})
	}
}
