package account_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"

	"drydock.dev/drydock/activities/account"
	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/record"
)

// asking is the workflow of the test environment's activities.
const asking = "default-test-workflow-id"

func payloads(t *testing.T, text string) *commonpb.Payloads {
	t.Helper()
	encoded, err := converter.GetDefaultDataConverter().ToPayloads(text)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// seenAs has a server take the worker for a principal.
func seenAs(temporal *mocks.Client, principal string) *mocks.Client {
	var sent []*historypb.HistoryEvent
	temporal.On("SignalWorkflow", mock.Anything, asking, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_ context.Context, _, _, name string, _ any) error {
			sent = append(sent, &historypb.HistoryEvent{
				EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, Principal: &commonpb.Principal{Type: "jwt", Name: principal},
				Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
					WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name},
				},
			})
			return nil
		})
	temporal.On("GetWorkflowHistory", mock.Anything, asking, mock.Anything, mock.Anything, mock.Anything).Return(
		func(context.Context, string, string, bool, enums.HistoryEventFilterType) client.HistoryEventIterator {
			return activitytest.Events(false, sent)
		})
	return temporal
}

// recordOf is the record that a worker writes whom the server takes for jwt:drydock.
func recordOf(t *testing.T, runs ...*run) (kept record.Record, err error) {
	t.Helper()
	temporal := seenAs(server(t, runs...), "drydock")
	env := activitytest.Environment()
	read := func(ctx context.Context, ref api.Reference) (record.Record, error) {
		a, err := account.Of(ctx, temporal, ref, 0)
		if err == nil {
			proof := account.NewProof(new(execution.Self))
			err = a.Prove(ctx, temporal, ref, &proof)
		}
		return a.Record(), err
	}
	env.RegisterActivityWithOptions(read, activity.RegisterOptions{Name: "KeepRecord"})
	value, err := env.ExecuteActivity("KeepRecord", reference)
	if err == nil {
		err = value.Get(&kept)
	}
	return kept, err
}

// twoRuns are a maintenance that was continued as new and completed.
func twoRuns(t *testing.T) (before, last *run) {
	before = maintained(first, enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, nil)
	before.end, before.tasks, before.gives = continued(second), []string{"drydock"}, payloads(t, "state")
	last = maintained(second, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, status(api.Completed))
	last.says.Failure = "as amy said"
	last.end, last.tasks, last.given, last.before = completed(), []string{"drydock", "drydock"}, payloads(t, "state"), first
	return before, last
}

// TestNoRecordIsMadeOfAForgedState: a run is given its state by the run before it, and anyone who can write in the namespace can be that.
func TestNoRecordIsMadeOfAForgedState(t *testing.T) {
	for name, c := range map[string]struct {
		forge func(before, last *run)
		// refused is why there is no record, unread why it has no facts, claimed why they are claims.
		refused, unread, claimed string
		runs                     int
	}{
		"genuine":                     {forge: func(_, _ *run) {}, runs: 2},
		"begun on a queue of his own": {forge: func(b, _ *run) { b.queue = "mine" }, refused: `is on task queue "mine"`},
		"begun as another type":       {forge: func(b, _ *run) { b.kind = "Forged" }, refused: "is a Forged: want a NodeMaintenance"},
		"another input was passed on": {forge: func(b, _ *run) { b.gives = payloads(t, "another") }, unread: "did not pass on"},
		"nothing was passed on":       {forge: func(b, _ *run) { b.end = terminated() }, unread: "did not pass on"},
		"a foreign worker answered":   {forge: func(b, _ *run) { b.tasks = append(b.tasks, "eve") }, claimed: "answered by jwt:eve", runs: 2},
		"only foreign workers":        {forge: func(b, l *run) { b.tasks, l.tasks = []string{"eve"}, []string{"eve"} }, claimed: "answered by jwt:eve", runs: 2},
		"nobody was verified":         {forge: func(b, l *run) { b.tasks, l.tasks = []string{""}, []string{""} }, claimed: "did not verify", runs: 2},
		"a task was not verified":     {forge: func(b, _ *run) { b.tasks = append(b.tasks, "") }, claimed: "did not verify", runs: 2},
		"the first run is forgotten":  {forge: func(b, _ *run) { b.gone = true }, claimed: "not kept any more", runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			before, last := twoRuns(t)
			c.forge(before, last)
			kept, err := recordOf(t, before, last)
			if c.refused != "" {
				if activitytest.ErrorType(err) != api.ErrorNotAMaintenance || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("%v, want %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if unread := c.unread != ""; unread && !strings.Contains(kept.Failure, c.unread) || (kept.Phases == nil) != unread || strings.Contains(kept.Failure, "amy") == unread {
				t.Errorf("%+v, want facts unless %q", kept, c.unread)
			}
			p := kept.Provenance
			if claimed := strings.Join(p.Claimed, "\n"); !strings.Contains(claimed, c.claimed) || (claimed == "") != (c.claimed == "") {
				t.Errorf("claimed %q, want %q", claimed, c.claimed)
			}
			if c.runs > 0 && p.Runs != c.runs || c.unread == "" && c.claimed == "" && p.Worker != "jwt:drydock" {
				t.Errorf("%+v", p)
			}
		})
	}
}
