package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

// history is what a server says of a run.
type history struct {
	events []*historypb.HistoryEvent
	err    error
}

func (h *history) HasNext() bool { return len(h.events) > 0 || h.err != nil }

func (h *history) Next() (*historypb.HistoryEvent, error) {
	if h.err != nil {
		err := h.err
		h.err = nil
		return nil, err
	}
	event := h.events[0]
	h.events = h.events[1:]
	return event, nil
}

const testQueue = "default-test-taskqueue"

// began is the first event of a run of the maintenance.
func began(change func(*historypb.WorkflowExecutionStartedEventAttributes)) *historypb.HistoryEvent {
	return activitytest.Started("", func(a *historypb.WorkflowExecutionStartedEventAttributes) {
		a.WorkflowType = &commonpb.WorkflowType{Name: api.NodeMaintenanceType}
		a.TaskQueue, a.FirstExecutionRunId = &taskqueuepb.TaskQueue{Name: testQueue}, activitytest.RunID
		if change != nil {
			change(a)
		}
	})
}

func payloads(t *testing.T, value any) *commonpb.Payloads {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayloads(value)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// did are the events of an activity about n1; one without a result has not ended.
func did(t *testing.T, id int64, activity string, result any) []*historypb.HistoryEvent {
	events := []*historypb.HistoryEvent{{EventId: id, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			ActivityId: fmt.Sprint(id), ActivityType: &commonpb.ActivityType{Name: activity}, Input: payloads(t, map[string]string{"node": "n1"}),
		},
	}}}
	if result == nil {
		return events
	}
	return append(events, &historypb.HistoryEvent{EventId: id + 1, Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
		ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: id, Result: payloads(t, result)},
	}})
}

func continued(run string) []*historypb.HistoryEvent {
	return []*historypb.HistoryEvent{{Attributes: &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
		WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{NewExecutionRunId: run},
	}}}
}

func after(first *historypb.HistoryEvent, more ...[]*historypb.HistoryEvent) []*historypb.HistoryEvent {
	all := []*historypb.HistoryEvent{first}
	for _, one := range more {
		all = append(all, one...)
	}
	return all
}

// telling has a server tell the histories of runs; it knows no other.
func telling(temporal *mocks.Client, runs map[string][]*historypb.HistoryEvent) *mocks.Client {
	temporal.On("GetWorkflowHistory", mock.Anything, mock.Anything, mock.Anything, false, mock.Anything).Return(
		func(_ context.Context, id, run string, _ bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
			if events := runs[run]; events != nil && id == activitytest.WorkflowID {
				return &history{events: events}
			}
			return &history{err: serviceerror.NewNotFound("no such run")}
		})
	return temporal
}

// heldByHistory is the history of a maintenance that holds n1, which it has cordoned.
func heldByHistory(t *testing.T) map[string][]*historypb.HistoryEvent {
	return map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil), did(t, 5, "HoldNode", Held{Prior: &Prior{UID: "uid-1", Cordoned: true}}))}
}

func TestAForgedMarkOfAnOrphanIsNotCarriedOut(t *testing.T) {
	holds := did(t, 5, "HoldNode", Held{Prior: &Prior{UID: "uid-1", Cordoned: true}})
	const later = "0190b1c0-0000-7000-8000-00000000000a"
	followed := began(func(a *historypb.WorkflowExecutionStartedEventAttributes) {
		a.ContinuedExecutionRunId = activitytest.RunID
	})
	for name, c := range map[string]struct {
		runs map[string][]*historypb.HistoryEvent
		// run is the one that the mark names; empty is the first.
		run         string
		kind        string
		uncordoned  bool
		differences bool
	}{
		"it holds the node":               {runs: heldByHistory(t), uncordoned: true},
		"it began to":                     {runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil), did(t, 5, "HoldNode", nil))}, uncordoned: true},
		"a person had cordoned it":        {runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil), did(t, 5, "HoldNode", Held{Prior: &Prior{UID: "uid-1"}}))}, differences: true},
		"a run before held it":            {runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil), holds, continued(later)), later: after(followed)}, run: later, uncordoned: true},
		"it has given it back":            {runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil), holds, did(t, 9, "ReleaseNode", Released{}))}, kind: api.ErrorMarkUnconfirmed},
		"a later run has given it back":   {runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil), holds, continued(later)), later: after(followed, did(t, 5, "ReleaseNode", Released{}))}, kind: api.ErrorMarkUnconfirmed},
		"what came later is gone":         {runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil), holds, continued(later))}, kind: api.ErrorMarkUnconfirmed},
		"it never held it":                {runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil))}, kind: api.ErrorMarkUnconfirmed},
		"its history is gone":             {kind: api.ErrorMarkUnconfirmed},
		"it is of another type":           {runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(func(a *historypb.WorkflowExecutionStartedEventAttributes) { a.WorkflowType.Name = "Mine" }), holds)}, kind: api.ErrorMarkUnconfirmed},
		"it is another worker's":          {runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(func(a *historypb.WorkflowExecutionStartedEventAttributes) { a.TaskQueue.Name = "mine" }), holds)}, kind: api.ErrorMarkUnconfirmed},
		"the run is of another chain":     {runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(func(a *historypb.WorkflowExecutionStartedEventAttributes) { a.FirstExecutionRunId = later }), holds)}, kind: api.ErrorMarkUnconfirmed},
		"it held a node of the same name": {runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil), did(t, 5, "HoldNode", Held{Prior: &Prior{UID: "uid-0", Cordoned: true}}))}, kind: api.ErrorMarkUnconfirmed},
	} {
		t.Run(name, func(t *testing.T) {
			s := k8stest.New(activitytest.Node("n1", activitytest.Cordoned, activitytest.MarkedBy(k8s.Holder{
				WorkflowID: activitytest.WorkflowID, RunID: activitytest.RunID, Run: c.run,
			})))
			n := &Activities{Client: s.Client(t), Temporal: telling(activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
				activitytest.WorkflowID + "/" + activitytest.RunID: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
			}), c.runs)}
			released, err := activitytest.Call(t, n.ReleaseNode, ReleaseInput{Node: "n1", WorkflowID: activitytest.WorkflowID, RunID: activitytest.RunID, Orphan: true})
			if activitytest.ErrorType(err) != c.kind || released.Uncordoned != c.uncordoned || (released.Differs != "") != c.differences {
				t.Errorf("released %+v, %v", released, err)
			}
			if after := s.Node("n1"); marked(s) != (c.kind != "") || after.Spec.Unschedulable == c.uncordoned {
				t.Errorf("unschedulable %t, annotations %v", after.Spec.Unschedulable, after.Annotations)
			}
		})
	}
}

func TestAServerThatIsAwaySaysNothingOfAnOrphan(t *testing.T) {
	s := k8stest.New(activitytest.HeldNode())
	temporal := activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
		activitytest.WorkflowID + "/" + activitytest.RunID: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
	})
	temporal.On("GetWorkflowHistory", mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).
		Return(&history{err: serviceerror.NewUnavailable("away")})
	n := &Activities{Client: s.Client(t), Temporal: temporal}
	_, err := activitytest.Call(t, n.ReleaseNode, ReleaseInput{Node: "n1", WorkflowID: activitytest.WorkflowID, RunID: activitytest.RunID, Orphan: true})
	if err == nil || activitytest.ErrorType(err) != "" || !marked(s) {
		t.Errorf("error %v, want one worth a retry; marked %t", err, marked(s))
	}
}

func TestASecondHolderRemembersWhatTheFirstOnesHistorySays(t *testing.T) {
	for name, c := range map[string]struct {
		runs     map[string][]*historypb.HistoryEvent
		cordoned bool
	}{
		"it has cordoned the node": {heldByHistory(t), true},
		"nobody knows the first":   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			first := k8s.Mark{Cordoned: true, Prior: map[string]*string{}, Holders: []k8s.Holder{{
				WorkflowID: activitytest.WorkflowID, RunID: activitytest.RunID, Requestor: "first", Cordon: true,
			}}}
			text, err := json.Marshal(first)
			if err != nil {
				t.Fatal(err)
			}
			node := activitytest.Node("n1", activitytest.Cordoned)
			node.Annotations[api.HoldersAnnotation] = string(text)
			s := k8stest.New(node)
			n := &Activities{Client: s.Client(t), Temporal: telling(activitytest.Granting(), c.runs)}
			in := holdN1(true)
			in.RunID = "another-run"
			held, err := activitytest.Call(t, n.HoldNode, in)
			if err != nil || held.Prior == nil || held.Prior.Cordoned != c.cordoned {
				t.Errorf("held %+v, %+v, %v", held, held.Prior, err)
			}
		})
	}
}

// counting is a history that counts the events that are read of it.
type counting struct {
	history
	read *int
}

func (c *counting) Next() (*historypb.HistoryEvent, error) {
	*c.read++
	return c.history.Next()
}

func TestLongHistoriesOfOtherHoldersKeepNoNode(t *testing.T) {
	const long = 15_000
	mark := k8s.Mark{Cordoned: true, Prior: map[string]*string{}}
	for range maxConfirmed {
		mark.Holders = append(mark.Holders, k8s.Holder{WorkflowID: activitytest.WorkflowID, RunID: activitytest.RunID, Requestor: "forged", Cordon: true})
	}
	text, err := json.Marshal(mark)
	if err != nil {
		t.Fatal(err)
	}
	node := activitytest.Node("n1", activitytest.Cordoned)
	node.Annotations[api.HoldersAnnotation] = string(text)
	events := after(began(nil), slices.Repeat([]*historypb.HistoryEvent{{}}, long))
	read := 0
	temporal := activitytest.Granting()
	temporal.On("GetWorkflowHistory", mock.Anything, mock.Anything, mock.Anything, false, mock.Anything).Return(
		func(context.Context, string, string, bool, enums.HistoryEventFilterType) client.HistoryEventIterator {
			return &counting{history: history{events: events}, read: &read}
		})
	n := &Activities{Client: k8stest.New(node).Client(t), Temporal: temporal}
	in := holdN1(true)
	in.RunID = "another-run"
	held, err := activitytest.Call(t, n.HoldNode, in)
	if err != nil || held.Prior == nil || held.Prior.Cordoned || read < long || read > 2*long {
		t.Errorf("held %+v, %v after %d events", held, err, read)
	}
}
