package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func holdN1(cordon bool) HoldInput {
	return HoldInput{Node: "n1", RunID: activitytest.RunID, Requestor: "ops", Cordon: cordon, Phase: "Cordoning",
		Event: nodeevent.Event{Reason: "MaintenanceStarted", Message: "by ops", Key: "1"}}
}

func TestHoldNodeMarksInTheNameOfItsWorkflow(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"))
	n := &Activities{Client: s.Client(t), Temporal: activitytest.Granting(), Events: nodeevent.Recorder{Client: s.Client(t), On: true}}
	held, err := activitytest.Call(t, n.HoldNode, holdN1(true))
	if err != nil || held.UID != "uid-1" || held.Again || held.WasUnschedulable {
		t.Fatalf("held %+v, %v", held, err)
	}
	after := s.Node("n1")
	mark, err := k8s.MarkOf(after)
	if err != nil || !mark.HeldBy(activitytest.WorkflowID, activitytest.RunID) || !after.Spec.Unschedulable || after.Annotations[api.HoldersAnnotation] != held.Mark {
		t.Errorf("mark %+v, %v", mark, err)
	}
	after.Spec.Unschedulable = false
	s.Set(after)
	if held, err = activitytest.Call(t, n.HoldNode, holdN1(true)); err != nil || !held.Again || !s.Node("n1").Spec.Unschedulable {
		t.Errorf("held again %+v, %v", held, err)
	}
	if got := len(s.Requests("POST /api/v1/namespaces/default/events")); got != 2 {
		t.Errorf("%d events", got)
	}
}

func TestHoldNodeHoldsOnlyWhatTheSchedulerGranted(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"))
	temporal := activitytest.Granting(api.SlotHeld{}, api.SlotHeld{Held: true, Rebuilding: true})
	n := &Activities{Client: s.Client(t), Temporal: temporal}
	in := holdN1(true)
	in.Slot = Slot{Scheduler: "drydock-scheduler", RequestID: "run/1"}
	if _, err := activitytest.Call(t, n.HoldNode, in); activitytest.ErrorType(err) != api.ErrorSlotNotHeld || !strings.Contains(err.Error(), "run/1") {
		t.Errorf("a slot that nobody granted: %v", err)
	}
	if _, err := activitytest.Call(t, n.HoldNode, in); err == nil || activitytest.ErrorType(err) != "" {
		t.Errorf("a scheduler that does not know yet: %v", err)
	}
	if got := s.Requests("PATCH /api/v1/nodes"); len(got) != 0 {
		t.Errorf("the node was touched: %v", got)
	}
	if _, err := activitytest.Call(t, n.HoldNode, in); err != nil {
		t.Fatal(err)
	}
	asked := temporal.Calls[len(temporal.Calls)-1].Arguments
	if asked.String(1) != "drydock-scheduler" || !reflect.DeepEqual(asked.Get(4), api.SlotQuestion{RequestIDs: []string{"run/1"}}) {
		t.Errorf("asked %v", asked)
	}
}

// TestASlotThatIsLostWhileTheNodeIsMarkedIsNotHeld: the scheduler frees a slot of which somebody says that it is given back
// where it sees no mark.
func TestASlotThatIsLostWhileTheNodeIsMarkedIsNotHeld(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"))
	n := &Activities{Client: s.Client(t), Temporal: activitytest.Granting(api.SlotHeld{Held: true}, api.SlotHeld{})}
	if _, err := activitytest.Call(t, n.HoldNode, holdN1(true)); activitytest.ErrorType(err) != api.ErrorSlotNotHeld {
		t.Errorf("held: %v", err)
	}
}

// current is a server on which a run acts for the workflow of the test environment.
func current(run string) *mocks.Client {
	temporal := activitytest.Granting()
	temporal.On("DescribeWorkflowExecution", mock.Anything, activitytest.WorkflowID, "").Return(
		&workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: activitytest.WorkflowID, RunId: run},
		}}, nil)
	return temporal
}

func TestANodeFollowsItsMaintenanceToTheRunThatActs(t *testing.T) {
	touch := map[string]func(n *Activities) error{
		"hold": func(n *Activities) error { _, err := activitytest.Call(t, n.HoldNode, holdN1(true)); return err },
		"phase": func(n *Activities) error {
			_, err := activitytest.Call(t, func(ctx context.Context, in AnnounceInput) (bool, error) { return true, n.AnnouncePhase(ctx, in) },
				AnnounceInput{Node: "n1", RunID: activitytest.RunID, Phase: "Ready"})
			return err
		},
		"untaint": func(n *Activities) error {
			_, err := activitytest.Call(t, func(ctx context.Context, in UntaintInput) (bool, error) { return true, n.Untaint(ctx, in) },
				UntaintInput{Node: "n1", RunID: activitytest.RunID})
			return err
		},
		"release": func(n *Activities) error {
			_, err := activitytest.Call(t, n.ReleaseNode, ReleaseInput{Node: "n1", RunID: activitytest.RunID})
			return err
		},
	}
	for name, act := range touch {
		t.Run(name, func(t *testing.T) {
			marked := func() *k8stest.Server {
				n := activitytest.Node("n1", activitytest.Cordoned, activitytest.Marked(activitytest.WorkflowID, activitytest.RunID))
				n.Annotations[api.HoldersAnnotation] = strings.Replace(n.Annotations[api.HoldersAnnotation], `"run":"`+activitytest.RunID, `"run":"earlier`, 1)
				return k8stest.New(n)
			}
			s := marked()
			if err := act(&Activities{Client: s.Client(t), Temporal: current("a-later-run")}); err == nil {
				t.Error("a run that was reset acts on")
			}
			if got := s.Requests("PATCH"); len(got) != 0 {
				t.Errorf("a run that was reset changed the node: %v", got)
			}
			s = marked()
			if err := act(&Activities{Client: s.Client(t), Temporal: current(activitytest.RunID)}); err != nil {
				t.Errorf("the run that acts now: %v", err)
			}
			mark, err := k8s.MarkOf(s.Node("n1"))
			if err != nil || len(mark.Holders) > 0 && mark.Holders[0].Run != activitytest.RunID || len(mark.Holders) == 0 != (name == "release") {
				t.Errorf("mark %+v, %v", mark, err)
			}
		})
	}
}

// judge is a policy that refuses, or fails, with an error.
type judge struct {
	err   error
	asked []string
}

func (j *judge) Judge(_ context.Context, maintenance json.RawMessage) error {
	j.asked = append(j.asked, string(maintenance))
	return j.err
}

func TestHoldNodeAsksThePolicyFirst(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"))
	j := &judge{err: temporal.NewNonRetryableApplicationError("policy two: no", api.ErrorPolicyRefused, nil)}
	n := &Activities{Client: s.Client(t), Temporal: activitytest.Granting(), Policy: j}
	in := holdN1(true)
	in.Maintenance = json.RawMessage(`{"node":"n1"}`)
	if _, err := activitytest.Call(t, n.HoldNode, in); activitytest.ErrorType(err) != api.ErrorPolicyRefused || len(s.Requests("PATCH")) != 0 {
		t.Errorf("error = %v, writes %v", err, s.Requests("PATCH"))
	}
	j.err = fmt.Errorf("node n1: %w", k8s.ErrNodeGone)
	if _, err := activitytest.Call(t, n.HoldNode, in); activitytest.ErrorType(err) != api.ErrorNodeGone {
		t.Errorf("error = %v", err)
	}
	j.err = nil
	if held, err := activitytest.Call(t, n.HoldNode, in); err != nil || held.UID != "uid-1" {
		t.Errorf("held %+v, %v", held, err)
	}
	if _, err := activitytest.Call(t, n.HoldNode, holdN1(true)); err != nil || len(j.asked) != 3 || j.asked[2] != `{"node":"n1"}` {
		t.Errorf("%v: asked with %v: a hold without a specification is not judged", err, j.asked)
	}
}

func TestHoldNodeWithoutEvents(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"))
	if _, err := activitytest.Call(t, (&Activities{Client: s.Client(t), Temporal: activitytest.Granting()}).HoldNode, holdN1(true)); err != nil {
		t.Fatal(err)
	}
	if got := len(s.Requests("events")); got != 0 {
		t.Errorf("%d events", got)
	}
}

func TestEventThatCannotBeRecordedStopsNothing(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"))
	s.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		k8stest.Respond(w, `{"kind":"Status","status":"Failure","message":"events is forbidden","reason":"Forbidden","code":403}`)
		return true
	}
	if _, err := activitytest.Call(t, (&Activities{Client: s.Client(t), Temporal: activitytest.Granting(), Events: nodeevent.Recorder{Client: s.Client(t), On: true}}).HoldNode, holdN1(true)); err != nil {
		t.Error(err)
	}
}

func TestHoldNodeDistinguishesItsErrors(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"))
	n := &Activities{Client: s.Client(t), Temporal: activitytest.Granting()}
	absent, other := holdN1(true), holdN1(true)
	absent.Node, other.UID = "n2", "uid-0"
	if _, err := activitytest.Call(t, n.HoldNode, absent); activitytest.ErrorType(err) != api.ErrorNodeGone {
		t.Errorf("error = %v", err)
	}
	if _, err := activitytest.Call(t, n.HoldNode, other); activitytest.ErrorType(err) != api.ErrorNodeReplaced {
		t.Errorf("error = %v", err)
	}
	s.Refuse(http.StatusForbidden)
	if _, err := activitytest.Call(t, n.HoldNode, holdN1(true)); err == nil || activitytest.ErrorType(err) != "" {
		t.Errorf("error = %v: nobody confirmed that a permission is missing", err)
	}
	s.Refuse(0)
	s.Deny("patch", "nodes")
	if _, err := activitytest.Call(t, n.HoldNode, holdN1(true)); activitytest.ErrorType(err) != api.ErrorMissingPermission {
		t.Errorf("error = %v", err)
	}
	s.Refuse(http.StatusInternalServerError)
	if _, err := activitytest.Call(t, n.HoldNode, holdN1(true)); err == nil || activitytest.ErrorType(err) != "" {
		t.Errorf("error = %v, want one worth a retry", err)
	}
}

func TestReleaseNodeThenGivesTheSlotBack(t *testing.T) {
	s := k8stest.New(activitytest.HeldNode())
	client := &mocks.Client{}
	signals, away := 0, true
	client.On("SignalWorkflow", mock.Anything, "drydock-scheduler", "", "slot-release", mock.Anything).Return(
		func(_ context.Context, _, _, _ string, payload any) error {
			if text, ok := payload.(json.RawMessage); !ok || string(text) != `{"requestId":"r/1"}` {
				t.Errorf("payload %v", payload)
			}
			if n := s.Node("n1"); n != nil && n.Spec.Unschedulable {
				t.Error("the slot is given back before the node")
			}
			if away {
				return serviceerror.NewNotFound("no such workflow")
			}
			signals++
			return nil
		})
	n := &Activities{Client: s.Client(t), Temporal: client}
	in := ReleaseInput{Node: "n1", WorkflowID: activitytest.WorkflowID, RunID: activitytest.RunID,
		Then: &Signal{WorkflowID: "drydock-scheduler", Name: "slot-release", Payload: json.RawMessage(`{"requestId":"r/1"}`)}}
	if _, err := activitytest.Call(t, n.ReleaseNode, in); err == nil || activitytest.ErrorType(err) != "" {
		t.Errorf("error = %v, want one worth a retry", err)
	}
	away = false
	if released, err := activitytest.Call(t, n.ReleaseNode, in); err != nil || signals != 1 || released.Gone {
		t.Errorf("released %+v, %v, %d signals", released, err, signals)
	}
	if _, err := k8s.MarkOf(s.Node("n1")); err != nil || s.Node("n1").Annotations[api.HoldersAnnotation] != "" || s.Node("n1").Spec.Unschedulable {
		t.Errorf("the node is %+v", s.Node("n1"))
	}
	s.Delete(activitytest.HeldNode())
	if released, err := activitytest.Call(t, n.ReleaseNode, in); err != nil || !released.Gone || signals != 2 {
		t.Errorf("released %+v, %v, %d signals: the slot of a node that is gone is given back too", released, err, signals)
	}
}

func TestReleaseNodeSignalsThePlanThatTheNodeIsBack(t *testing.T) {
	s := k8stest.New(activitytest.HeldNode())
	client := &mocks.Client{}
	var said []string
	client.On("SignalWorkflow", mock.Anything, "maintenance-plan/p", "", api.SignalNodeNews, mock.Anything).Return(
		func(_ context.Context, _, _, _ string, payload any) error {
			if s.Node("n1").Spec.Unschedulable {
				t.Error("the plan hears of it before the node is back")
			}
			said = append(said, fmt.Sprintf("%s", payload))
			return serviceerror.NewNotFound("the plan has ended")
		})
	n := &Activities{Client: s.Client(t), Temporal: client}
	in := ReleaseInput{Node: "n1", WorkflowID: activitytest.WorkflowID, RunID: activitytest.RunID,
		Plan: &Signal{WorkflowID: "maintenance-plan/p", Name: api.SignalNodeNews, Payload: json.RawMessage(`{"back":true}`)}}
	if _, err := activitytest.Call(t, n.ReleaseNode, in); err != nil || !slices.Equal(said, []string{`{"back":true}`}) {
		t.Errorf("said %q, %v", said, err)
	}
	s.Delete(activitytest.HeldNode())
	if released, err := activitytest.Call(t, n.ReleaseNode, in); err != nil || !released.Gone || len(said) != 1 {
		t.Errorf("released %+v, %v: said %q of a node that is gone", released, err, said)
	}
}

func TestReleaseNodeSignalsNobodyElse(t *testing.T) {
	for name, signal := range map[string]Signal{
		"an approval":            {WorkflowID: "node-maintenance/n2/ops", Name: api.MsgApprove},
		"a workflow of no ours":  {WorkflowID: "payroll", Name: api.SignalSlotRelease},
		"the scheduler, to thaw": {WorkflowID: "drydock-scheduler", Name: api.UpdateThaw},
		"news for a maintenance": {WorkflowID: "node-maintenance/n2/ops", Name: api.SignalNodeNews},
	} {
		for field, in := range map[string]ReleaseInput{"then": {Then: &signal}, "plan": {Plan: &signal}} {
			s := k8stest.New(activitytest.HeldNode())
			n := &Activities{Client: s.Client(t), Temporal: &mocks.Client{}}
			in.Node, in.WorkflowID, in.RunID = "n1", activitytest.WorkflowID, activitytest.RunID
			_, err := activitytest.Call(t, n.ReleaseNode, in)
			if activitytest.ErrorType(err) != api.ErrorForeignCaller || !s.Node("n1").Spec.Unschedulable || len(s.Requests("")) != 0 {
				t.Errorf("%s as %s: %v, and requests %v", name, field, err, s.Requests(""))
			}
		}
	}
}

func TestAnnouncePhaseIsForHoldersOnly(t *testing.T) {
	s := k8stest.New(activitytest.HeldNode())
	n := &Activities{Client: s.Client(t), Temporal: activitytest.Granting()}
	env := activitytest.Environment()
	env.RegisterActivity(n.AnnouncePhase)
	mark := s.Node("n1").Annotations[api.HoldersAnnotation]
	for name, c := range map[string]struct {
		in   AnnounceInput
		kind string
	}{
		"holder":                {AnnounceInput{Node: "n1", RunID: activitytest.RunID, Phase: "Ready"}, ""},
		"with the mark":         {AnnounceInput{Node: "n1", RunID: activitytest.RunID, Phase: "Ready", Mark: mark}, ""},
		"with an older mark":    {AnnounceInput{Node: "n1", RunID: activitytest.RunID, Phase: "Ready", Mark: "older"}, ""},
		"another run":           {AnnounceInput{Node: "n1", RunID: "other", Phase: "Ready"}, api.ErrorNotHolder},
		"on somebody's behalf":  {AnnounceInput{Node: "n1", WorkflowID: activitytest.WorkflowID, RunID: activitytest.RunID, Phase: "Orphaned"}, ""},
		"of another's workflow": {AnnounceInput{Node: "n1", WorkflowID: "other", RunID: activitytest.RunID, Phase: "Orphaned"}, api.ErrorNotHolder},
		"no node":               {AnnounceInput{Node: "n2", RunID: activitytest.RunID, Phase: "Ready"}, api.ErrorNodeGone},
		"no node, with a mark":  {AnnounceInput{Node: "n2", RunID: activitytest.RunID, Phase: "Ready", Mark: mark}, api.ErrorNodeGone},
	} {
		_, err := env.ExecuteActivity(n.AnnouncePhase, c.in)
		if activitytest.ErrorType(err) != c.kind || (err == nil) != (c.kind == "") {
			t.Errorf("%s: %v", name, err)
		}
		if c.kind == "" && s.Node("n1").Labels[api.PhaseLabel] != c.in.Phase {
			t.Errorf("%s: the node shows %s", name, s.Node("n1").Labels[api.PhaseLabel])
		}
	}
}

func TestAdoptNodeWaitsForTheReplacement(t *testing.T) {
	s := k8stest.New()
	n := &Activities{Client: s.Client(t), Temporal: activitytest.Granting()}
	type end struct {
		held Held
		err  error
	}
	done := make(chan end, 1)
	in := holdN1(true)
	in.UID = "uid-0" // of the node that went
	go func() {
		held, err := activitytest.Call(t, n.AdoptNode, in)
		done <- end{held, err}
	}()
	<-s.Asked
	replacement := activitytest.Node("n1")
	s.Set(replacement)
	select {
	case e := <-done:
		if e.err != nil || e.held.UID != "uid-1" || !s.Node("n1").Spec.Unschedulable {
			t.Errorf("held %+v, %v", e.held, e.err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the replacement was not adopted")
	}
}

func TestAdoptNodeLeavesAWorkerThatStops(t *testing.T) {
	s := k8stest.New()
	n := &Activities{Client: s.Client(t), Temporal: activitytest.Granting()}
	env := activitytest.Environment()
	stop := make(chan struct{})
	close(stop)
	env.SetWorkerStopChannel(stop)
	env.RegisterActivity(n.AdoptNode)
	_, err := env.ExecuteActivity(n.AdoptNode, holdN1(true))
	var cause *temporal.ApplicationError
	if !errors.As(err, &cause) || cause.Type() != api.ErrorWorkerStopping || cause.NextRetryDelay() > time.Second {
		t.Errorf("error = %v", err)
	}
}

func TestReleaseWithdrawsWhatADrainLeft(t *testing.T) {
	web := activitytest.Pod("web-1")
	s := k8stest.New(activitytest.HeldNode(), web, activitytest.EvictionRequest(web, time.Minute))
	n := &Activities{Client: s.Client(t), Temporal: activitytest.Granting()}
	in := ReleaseInput{Node: "n1", WorkflowID: activitytest.WorkflowID, RunID: activitytest.RunID, WithdrawRequests: true}
	if _, err := activitytest.Call(t, n.ReleaseNode, in); err != nil {
		t.Fatal(err)
	}
	writes := append(s.Requests("PATCH"), s.Requests("DELETE")...)
	if len(writes) != 3 || !strings.Contains(writes[0], "nodes/n1") || !strings.Contains(writes[1], "evictionrequests") || !strings.Contains(writes[2], "DELETE") {
		t.Errorf("writes %v", writes)
	}
	s.Deny("list", "evictionrequests")
	in.Node = "n2"
	api := func(ctx context.Context, in ReleaseInput) (bool, error) {
		return true, k8s.EvictionRequests{Client: n.Client, Node: in.Node, WorkflowID: in.WorkflowID, RunID: in.RunID}.WithdrawLeft(ctx)
	}
	if _, err := activitytest.Call(t, api, in); err != nil {
		t.Errorf("without the permission, which no drain had: %v", err)
	}
}

func TestReleaseOfANodeWhoseMarkIsGoneIsTheActingRuns(t *testing.T) {
	held := func() (*k8stest.Server, ReleaseInput) {
		s := k8stest.New(activitytest.Node("n1"))
		n := &Activities{Client: s.Client(t), Temporal: activitytest.Granting()}
		first, err := activitytest.Call(t, n.HoldNode, holdN1(true))
		if err != nil || first.Prior == nil || !first.Prior.Cordoned {
			t.Fatalf("held %+v, %v", first, err)
		}
		stripped := s.Node("n1")
		delete(stripped.Annotations, api.HoldersAnnotation)
		s.Set(stripped)
		return s, ReleaseInput{Node: "n1", RunID: activitytest.RunID, Prior: first.Prior}
	}
	s, in := held()
	released, err := activitytest.Call(t, (&Activities{Client: s.Client(t), Temporal: current("a-later-run")}).ReleaseNode, in)
	if err != nil || !released.Foreign || !s.Node("n1").Spec.Unschedulable {
		t.Errorf("a run that was reset: %+v, %v", released, err)
	}
	released, err = activitytest.Call(t, (&Activities{Client: s.Client(t), Temporal: current(activitytest.RunID)}).ReleaseNode, in)
	after := s.Node("n1")
	if err != nil || !released.Stripped || !released.Uncordoned || after.Spec.Unschedulable || len(after.Annotations) != 1 || len(k8s.GivenBackOn(after)) != 1 || len(after.Labels) != 0 {
		t.Errorf("%+v, %v: %v %v", released, err, after.Annotations, after.Labels)
	}
}
