package execution

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"

	"drydock.dev/drydock/activities/activitytest"
)

// mirror is a server that takes the worker for a principal, empty for nobody.
type mirror struct {
	principal string
	err       error
	asked     int
	sent      []*historypb.HistoryEvent
}

func (m *mirror) client() *mocks.Client {
	temporal := &mocks.Client{}
	temporal.On("SignalWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_ context.Context, _, _, name string, _ any) error {
			m.asked++
			event := ofTask(enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, m.principal)
			event.Attributes = &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
				WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name},
			}
			m.sent = append(m.sent, event)
			return m.err
		})
	temporal.On("GetWorkflowHistory", mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(context.Context, string, string, bool, enums.HistoryEventFilterType) client.HistoryEventIterator {
			return activitytest.Events(false, m.sent)
		})
	return temporal
}

func TestTheWorkerFindsItselfOnce(t *testing.T) {
	server := &mirror{principal: "drydock"}
	temporal, self := server.client(), new(Self)
	for _, step := range []struct {
		what      string
		principal string
		err       error
		// answered is who answered the tasks in question.
		answered, want string
		asked          int
	}{
		{"the server is away", "drydock", errors.New("away"), "jwt:drydock", "", 1},
		{"it is back", "drydock", nil, "jwt:drydock", "jwt:drydock", 2},
		{"what is known is not looked for", "drydock", errors.New("away"), "jwt:drydock", "jwt:drydock", 2},
		{"another worker answered", "drydock", nil, "jwt:eve", "jwt:drydock", 3},
		{"the worker has other credentials", "crane", nil, "jwt:crane", "jwt:crane", 4},
		{"which is remembered", "drydock", errors.New("away"), "jwt:crane", "jwt:crane", 4},
		{"the server verifies nobody", "", nil, "jwt:drydock", "", 5},
		{"which is not remembered", "drydock", nil, "jwt:drydock", "jwt:drydock", 6},
	} {
		server.principal, server.err = step.principal, step.err
		var got string
		err := activitytest.ExecuteAs(t, activitytest.Environment(), "KeepRecord", func(ctx context.Context) (err error) {
			got, err = self.Principal(ctx, temporal, func(principal string) bool { return principal == step.answered })
			return err
		})
		if failed := err != nil; failed != (step.err != nil && step.want == "") || got != step.want || server.asked != step.asked {
			t.Errorf("%s: %q, %v after %d signals; want %q after %d", step.what, got, err, server.asked, step.want, step.asked)
		}
	}
}
