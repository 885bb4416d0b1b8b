package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drydock.dev/drydock/api"
)

// recording is a Temporal that keeps what it is sent.
type recording struct {
	temporalclient.Client
	updates  []temporalclient.UpdateWorkflowOptions
	signals  []string
	payloads []any
	// unanswered is the error of queries, status what they answer otherwise.
	unanswered error
	status     *api.Status
	// errs are those of the updates in their order, and answer what the next one gets: an effect or an error.
	errs   []error
	answer any
}

func (r *recording) DescribeTaskQueue(context.Context, string, enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{Pollers: []*taskqueuepb.PollerInfo{{LastAccessTime: timestamppb.New(noon)}}}, nil
}

func (r *recording) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	if r.unanswered != nil {
		return nil, r.unanswered
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(r.status)
	return temporalclient.NewValue(payloads), err
}

func (r *recording) SignalWorkflow(_ context.Context, _, _, name string, payload any) error {
	r.signals, r.payloads = append(r.signals, name), append(r.payloads, payload)
	if said, ok := payload.(api.Simple); ok && r.status != nil {
		for i := range r.status.Messages {
			r.status.Messages[i].ID = said.ID
		}
	}
	return nil
}

func (r *recording) UpdateWorkflow(_ context.Context, o temporalclient.UpdateWorkflowOptions) (temporalclient.WorkflowUpdateHandle, error) {
	r.updates = append(r.updates, o)
	if len(r.errs) > 0 {
		err := r.errs[0]
		r.errs = r.errs[1:]
		return nil, err
	}
	return handle{answer: r.answer}, nil
}

type handle struct {
	temporalclient.WorkflowUpdateHandle
	answer any
}

func (h handle) Get(_ context.Context, into any) error {
	if err, ok := h.answer.(error); ok {
		return err
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(h.answer)
	if err != nil {
		return err
	}
	return temporalclient.NewValue(payloads).Get(into)
}

func over(r *recording) *Client { return New(r, Options{By: "me", Now: clockAtNoon}) }

func refusal(kind string) error { return temporal.NewNonRetryableApplicationError("why", kind, nil) }

func TestAMessageIsAnUpdateAndItsAnswerIsWhatCameOfIt(t *testing.T) {
	late := temporalclient.NewWorkflowUpdateServiceTimeoutOrCanceledError(context.DeadlineExceeded)
	gone := serviceerror.NewNotFound("workflow execution already completed")
	failed := serviceerror.NewWorkflowNotReady("unexpected workflow task failure")
	ready := viewOf(api.Ready)
	for name, c := range map[string]struct {
		errs   []error
		answer any
		sent   Sent
		is     error
		text   string
	}{
		"it has its effect":      {nil, "ops is done", Sent{Effect: "ops is done"}, nil, ""},
		"nothing to do":          {[]error{refusal(api.ErrorNothingToDo)}, nil, Sent{Effect: "why", Already: true}, nil, ""},
		"refused at once":        {[]error{refusal("")}, nil, Sent{}, nil, "the maintenance of worker-01 refuses done: why"},
		"refused once judged":    {nil, refusal(""), Sent{}, nil, "the maintenance of worker-01 refuses done: why"},
		"between two runs":       {[]error{gone}, "ops is done", Sent{Effect: "ops is done"}, nil, ""},
		"its task failed":        {[]error{failed, failed}, "ops is done", Sent{Effect: "ops is done"}, nil, ""},
		"its tasks fail":         {[]error{failed, failed, failed, failed}, nil, Sent{}, nil, "sending done: unexpected workflow task failure"},
		"ended":                  {[]error{gone, gone}, nil, Sent{}, ErrEnded, "the maintenance of worker-01 has ended meanwhile"},
		"nobody has taken it":    {[]error{late}, nil, Sent{}, nil, "done was sent and is not confirmed, so it may take effect later"},
		"taken and not answered": {nil, late, Sent{}, nil, "the maintenance of worker-01 has taken done and not answered it yet"},
		"too many at once":       {[]error{serviceerror.NewResourceExhausted(0, "limit")}, nil, Sent{}, ErrUnreachable, "sending done: limit"},
		"not allowed": {[]error{serviceerror.NewPermissionDenied("no", "done is for operators")}, nil, Sent{}, nil,
			"sending done needs the permission to signal and update workflows: no"},
	} {
		r := &recording{errs: c.errs, answer: c.answer, status: ready.Status}
		sent, err := over(r).Send(t.Context(), ready.Maintenance, api.MsgDone, api.Done{Message: api.Message{ID: ours}}, "patched")
		if sent != c.sent || (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %+v, %v", name, sent, err)
		}
		for _, u := range r.updates {
			want := api.Done{Message: api.Message{ID: ours, By: "me", Comment: "patched"}, Run: "run-1"}
			if u.UpdateID != ours || u.UpdateName != api.MsgDone || u.FirstExecutionRunID != "run-1" || u.Args[0] != want {
				t.Errorf("%s: sent %+v", name, u)
			}
		}
	}
}

func TestNothingIsSentWhereNobodyAnswers(t *testing.T) {
	m := viewOf(api.Ready).Maintenance
	silence := serviceerror.NewDeadlineExceeded("no answer")
	r := &recording{unanswered: silence}
	_, err := over(r).Send(t.Context(), m, api.MsgDone, nil, "")
	var noWorker *NoWorkerError
	if !errors.Is(err, ErrUnanswered) || !errors.As(err, &noWorker) || !strings.HasPrefix(err.Error(), "nothing was changed: ") || len(r.updates)+len(r.signals) > 0 {
		t.Errorf("%v, sent %v and %v", err, r.updates, r.signals)
	}
	// Ending a maintenance must not wait for a worker.
	sent, err := over(r).Send(t.Context(), m, api.MsgCancel, nil, "")
	if err != nil || !errors.As(sent.Unanswered, &noWorker) || len(r.updates) > 0 || len(r.signals) != 1 {
		t.Errorf("%+v, %v, sent %v and %v", sent, err, r.updates, r.signals)
	}
	// A workflow that answers with an error has a worker.
	r = &recording{unanswered: serviceerror.NewQueryFailed("no"), answer: "paused"}
	if sent, err := PlanOf(over(r), "kernel").Send(t.Context(), api.MsgPause, nil, ""); err != nil || sent.Effect != "paused" {
		t.Errorf("%+v, %v", sent, err)
	}
	r = &recording{unanswered: serviceerror.NewNotFound("none")}
	var none *NoneError
	if _, err := PlanOf(over(r), "kernel").Send(t.Context(), api.MsgPause, nil, ""); !errors.As(err, &none) {
		t.Errorf("no plan: %v", err)
	}
}

// TestAnApprovalIsASignal: the server notes who it verified in the event of a signal, and not of an update.
func TestAnApprovalIsASignal(t *testing.T) {
	approved := func(s *api.Status) { s.Approval = &api.ApprovalStatus{At: noon} }
	record := func(outcome api.Outcome, effect string) func(*api.Status) {
		return func(s *api.Status) {
			s.Messages = []api.Received{{At: noon, Name: api.MsgApprove, Outcome: outcome, Effect: effect}}
		}
	}
	for name, c := range map[string]struct {
		view View
		sent Sent
		text string
	}{
		"approved":          {viewOf(api.Pending, approved, record(api.Applied, "the maintenance is approved")), Sent{Effect: "the maintenance is approved"}, ""},
		"approved before":   {viewOf(api.Pending, approved, record(api.Ignored, "ignored: it was approved already")), Sent{Effect: "is approved already", Already: true}, ""},
		"refused by policy": {viewOf(api.AwaitingApproval, record(api.Ignored, "ignored: policy two: no")), Sent{}, "the maintenance of worker-01 refuses approve: policy two: no"},
	} {
		r := &recording{status: c.view.Status}
		sent, err := over(r).Send(t.Context(), c.view.Maintenance, api.MsgApprove, nil, "go")
		if sent != c.sent || (err == nil) != (c.text == "") || err != nil && err.Error() != c.text {
			t.Errorf("%s: %+v, %v", name, sent, err)
		}
		if len(r.updates) > 0 || len(r.signals) != 1 {
			t.Errorf("%s: sent %v and %v", name, r.updates, r.signals)
		}
	}
	// What is still judged is not confirmed.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	v := viewOf(api.AwaitingApproval, record(api.Judged, "it is being judged"))
	_, err := over(&recording{status: v.Status}).Send(ctx, v.Maintenance, api.MsgApprove, nil, "")
	var unsettled *UnsettledError
	if !errors.As(err, &unsettled) || !unsettled.Taken {
		t.Errorf("%v", err)
	}
}

// leaving is a Temporal whose worker answers once, and no more.
type leaving struct {
	*recording
	asked bool
}

func (l *leaving) QueryWorkflow(ctx context.Context, id, run, query string, args ...any) (converter.EncodedValue, error) {
	if l.asked {
		return nil, serviceerror.NewFailedPrecondition("no poller seen for task queue recently, worker may be down")
	}
	l.asked = true
	return l.recording.QueryWorkflow(ctx, id, run, query, args...)
}

// What keeps the outcome from being known is in the error, unless the caller ended the wait.
func TestAWorkerThatLeavesIsNamed(t *testing.T) {
	v := viewOf(api.AwaitingApproval)
	send := func(ctx context.Context) (text string) {
		temporal := &leaving{recording: &recording{status: v.Status}}
		_, err := New(temporal, Options{By: "me", Now: clockAtNoon}).Send(ctx, v.Maintenance, api.MsgApprove, nil, "")
		var unsettled *UnsettledError
		if !errors.As(err, &unsettled) || !unsettled.Taken {
			t.Fatalf("%v", err)
		}
		return err.Error()
	}
	synctest.Test(t, func(t *testing.T) {
		if text := send(t.Context()); !strings.Contains(text, "no worker answers") {
			t.Errorf("%s does not say that no worker answers", text)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		if text := send(ctx); !strings.Contains(text, "enough") {
			t.Errorf("%s does not say that the caller had enough", text)
		}
	})
}

// TestAMessageOfAnEarlierRunHasItsOutcome: a maintenance may have gone on in a new run when a message is sent once more.
func TestAMessageOfAnEarlierRunHasItsOutcome(t *testing.T) {
	for _, c := range []struct {
		effect string
		sent   Sent
		text   string
	}{
		{"ops is done", Sent{Effect: "ops is done"}, ""},
		{"ignored: policy no: not so", Sent{}, "policy no: not so"},
	} {
		v := viewOf(api.Ready, received(api.MsgDone, c.effect))
		r := &recording{errs: []error{refusal(api.ErrorReceived)}, status: v.Status}
		sent, err := over(r).Send(t.Context(), v.Maintenance, api.MsgDone, api.Done{Message: api.Message{ID: ours}}, "")
		if sent != c.sent || (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %+v, %v", c.effect, sent, err)
		}
	}
}

func TestWhatIsNoMessageIsInvalid(t *testing.T) {
	c := over(&recording{})
	m := viewOf(api.Ready).Maintenance
	for what, err := range map[string]error{
		"unknown":         func() error { _, err := c.Send(t.Context(), m, "reboot", nil, ""); return err }(),
		"another payload": func() error { _, err := c.Send(t.Context(), m, api.MsgDone, api.Cancel{}, ""); return err }(),
		"Drydock's own":   c.Signal(t.Context(), m, api.SignalSlotGranted, nil, ""),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
