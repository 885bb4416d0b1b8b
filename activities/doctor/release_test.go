package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/doctor"
)

// did are the events of an activity about n1 that has ended.
func did(t *testing.T, id int64, activity string, result any) []*historypb.HistoryEvent {
	t.Helper()
	payloads := func(value any) *commonpb.Payloads {
		p, err := converter.GetDefaultDataConverter().ToPayloads(value)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	return []*historypb.HistoryEvent{
		{EventId: id, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityId: fmt.Sprint(id), ActivityType: &commonpb.ActivityType{Name: activity}, Input: payloads(map[string]string{"node": "n1"}),
			},
		}},
		{EventId: id + 1, Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: id, Result: payloads(result)},
		}},
	}
}

// unreachable is a history that a server does not show now.
type unreachable struct{}

func (unreachable) HasNext() bool                          { return true }
func (unreachable) Next() (*historypb.HistoryEvent, error) { return nil, errors.New("away") }

func TestADeadMarkIsTakenOffByWhatTheHistorySays(t *testing.T) {
	began := []*historypb.HistoryEvent{activitytest.Started("", func(a *historypb.WorkflowExecutionStartedEventAttributes) {
		a.WorkflowType, a.FirstExecutionRunId = &commonpb.WorkflowType{Name: api.NodeMaintenanceType}, activitytest.RunID
		a.TaskQueue = &taskqueuepb.TaskQueue{Name: "default-test-taskqueue"}
	})}
	history := func(more ...[]*historypb.HistoryEvent) (all []*historypb.HistoryEvent) {
		all = append(all, began...)
		for _, one := range more {
			all = append(all, one...)
		}
		return all
	}
	cordoned, anothers := node.Prior{UID: "uid-1", Cordoned: true}, node.Prior{UID: "uid-1"}
	released := did(t, 9, "ReleaseNode", node.Released{})
	for name, c := range map[string]struct {
		history []*historypb.HistoryEvent
		// cordoned: the node stays so.
		cordoned bool
	}{
		"it cordoned the node":                  {history(did(t, 5, "HoldNode", node.Held{Prior: &cordoned})), false},
		"a person had cordoned it":              {history(did(t, 5, "HoldNode", node.Held{Prior: &anothers})), true},
		"it gave it back, and it shows again":   {history(did(t, 5, "HoldNode", node.Held{Prior: &cordoned}), released), false},
		"it gave back what a person cordoned":   {history(did(t, 5, "HoldNode", node.Held{Prior: &anothers}), released), true},
		"it never held it":                      {history(), true},
		"it began to":                           {history(did(t, 5, "HoldNode", nil)[:1]), false},
		"0.1.0, which remembers nothing":        {history(did(t, 5, "HoldNode", node.Held{})), false},
		"0.1.0, and it gave it back":            {history(did(t, 5, "HoldNode", node.Held{}), released), false},
		"it held another node of the same name": {history(did(t, 5, "HoldNode", node.Held{Prior: &node.Prior{UID: "uid-0", Cordoned: true}})), true},
		"its history is gone":                   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := k8stest.New(activitytest.HeldNode())
			did, err := heal(t, s, activitytest.Events(c.history == nil, c.history))
			if err != nil || s.Node("n1").Annotations[api.HoldersAnnotation] != "" {
				t.Fatalf("%q, %v; the node has %v", did, err, s.Node("n1").Annotations)
			}
			if is := s.Node("n1").Spec.Unschedulable; is != c.cordoned || strings.Contains(did, "stays cordoned") != c.cordoned {
				t.Errorf("%q, and cordoned is %t, want %t", did, is, c.cordoned)
			}
		})
	}
	t.Run("the server is away", func(t *testing.T) {
		s := k8stest.New(activitytest.HeldNode())
		if did, err := heal(t, s, unreachable{}); err == nil || s.Node("n1").Annotations[api.HoldersAnnotation] == "" {
			t.Errorf("%q, %v", did, err)
		}
	})
}

// heal has the mark taken off n1 of a maintenance that was terminated and has this history.
func heal(t *testing.T, s *k8stest.Server, history client.HistoryEventIterator) (string, error) {
	t.Helper()
	temporal := activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
		activitytest.WorkflowID + "/" + activitytest.RunID: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
	})
	temporal.On("GetWorkflowHistory", mock.Anything, activitytest.WorkflowID, activitytest.RunID, false, mock.Anything).Return(
		func(context.Context, string, string, bool, enums.HistoryEventFilterType) client.HistoryEventIterator {
			return history
		})
	d := &Activities{Client: s.Client(t), Temporal: temporal}
	return activitytest.Call(t, d.Heal, HealInput{Finding: doctor.Finding{
		Kind: doctor.MarkDead, Fix: doctor.ReleaseMark, Node: "n1", WorkflowID: activitytest.WorkflowID, RunID: activitytest.RunID,
	}})
}
