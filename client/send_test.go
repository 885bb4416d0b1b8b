package client

import (
	"context"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

func TestTheOutcomeOfAMessageIsFoundByItsID(t *testing.T) {
	status := &api.Status{Messages: []api.Received{
		{ID: "other", At: noon, Name: "done", By: "me", Outcome: api.Applied, Effect: "somebody's"},
		{At: noon, Name: "done", By: "me", Outcome: api.Applied, Effect: "of no ID"},
		{ID: "ours", At: noon, Name: "done", By: "me", Outcome: api.Ignored, Effect: "ignored: x"},
	}}
	if got, ok := outcomeOf(status, "ours"); !ok || got.Effect != "ignored: x" || !ignored(got) {
		t.Errorf("%+v, %v", got, ok)
	}
	if got, ok := outcomeOf(status, "not there yet"); ok {
		t.Errorf("%+v", got)
	}
	if _, ok := outcomeOf(nil, "ours"); ok {
		t.Error("nobody has answered")
	}
}

// answering is a Temporal where one maintenance runs, whose status is always the same.
type answering struct {
	temporalclient.Client
	view View
}

func (a answering) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: a.view.WorkflowID, RunId: a.view.RunID}, Status: a.view.Execution,
	}}, nil
}

func (a answering) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(a.view.Status)
	return temporalclient.NewValue(payloads), err
}

func TestAnIgnoredMessageIsAnErrorWhateverElseHappened(t *testing.T) {
	refused := func(name string) func(*api.Status) { return received(name, "ignored: it came too late") }
	kill := func(s *api.Status) { s.Force = spec.Kill }
	for name, c := range map[string]struct {
		message       Message
		before, after View
		already, err  string
	}{
		"escalate, Ready by now":    {Escalate(""), viewOf(api.Draining), viewOf(api.Ready, refused("escalate")), "", "the maintenance of worker-01 ignored escalate: it came too late"},
		"escalate, somebody else":   {Escalate(spec.BypassBudget), viewOf(api.Draining), viewOf(api.Draining, took(spec.BypassBudget, "bob"), refused("escalate")), "", "ignored escalate"},
		"escalate, another attempt": {Escalate(""), viewOf(api.Draining), viewOf(api.Draining, func(s *api.Status) { s.Attempt++ }, refused("escalate")), "", "ignored escalate"},
		"escalate, allowed by now":  {Escalate(spec.Kill), viewOf(api.Draining), viewOf(api.Draining, kill, refused("escalate")), "the drain is at kill already", ""},
		"skip-pod, Ready by now":    {SkipPod("a/db-0"), viewOf(api.Draining), viewOf(api.Ready, refused("skip-pod")), "", "ignored skip-pod"},
		"skip-pod, skipped by now":  {SkipPod("a/db-0"), viewOf(api.Draining), viewOf(api.Draining, skipped("a/db-0"), refused("skip-pod")), "a/db-0 is skipped already", ""},
		"retry-now, Ready by now":   {RetryNow(), viewOf(api.Draining), viewOf(api.Ready, refused("retry-now")), "", "ignored retry-now"},
		"done, done by now":         {Done("ops"), viewOf(api.Ready), viewOf(api.Releasing, refused("done")), "was done already", ""},
		"failed, released by now":   {Failed("ops", ""), viewOf(api.Ready), viewOf(api.Releasing, refused("failed")), "", "ignored failed"},
		"heeded":                    {RetryNow(), viewOf(api.Draining), viewOf(api.Draining, received("retry-now", "tried")), "", ""},
		"somebody else's is ignored": {SkipPod("a/db-0"), viewOf(api.Draining), viewOf(api.Ready, func(s *api.Status) {
			s.Messages = []api.Received{{At: noon, ID: "bobs", Name: "skip-pod", By: "bob", Outcome: api.Ignored, Effect: "ignored: x"}}
		}), "", ""},
	} {
		conn := New(answering{view: c.after}, Options{Now: clockAtNoon})
		conn.server.polledAt, conn.server.lastPolled = noon, noon
		w := effectWait{server: conn.server, observer: conn.observer(c.before.Maintenance), before: c.before.Status, message: c.message, who: api.Message{ID: ours, By: "me"}}
		sent, err := w.await(t.Context())
		already := sent.Already
		if (already == "") != (c.already == "") || !strings.Contains(already, c.already) {
			t.Errorf("%s: already = %q, want %q", name, already, c.already)
		}
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error = %v, want %q", name, err, c.err)
		}
	}
}
