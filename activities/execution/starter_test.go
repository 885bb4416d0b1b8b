package execution

import (
	"errors"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/mocks"

	"drydock/activities/activitytest"
	"drydock/api"
)

func TestStarterOf(t *testing.T) {
	by := func(identity, first string) *historypb.HistoryEvent {
		return activitytest.Started(identity, func(a *historypb.WorkflowExecutionStartedEventAttributes) { a.FirstExecutionRunId = first })
	}
	verified := by("ann@desk", "first")
	verified.Principal = &commonpb.Principal{Type: "jwt", Name: "ann"}
	copied := by("ann@desk", "first")
	copied.GetWorkflowExecutionStartedEventAttributes().OriginalExecutionRunId = "first"
	child := by("history-service", "child")
	child.GetWorkflowExecutionStartedEventAttributes().ParentWorkflowExecution = &commonpb.WorkflowExecution{WorkflowId: "typed-by-hand", RunId: "parent"}
	for name, c := range map[string]struct {
		run  string
		want api.Sender
	}{
		"its first run":                {"first", api.Sender{Identity: "ann@desk", Principal: "jwt:ann"}},
		"continued as new":             {"third", api.Sender{Identity: "ann@desk", Principal: "jwt:ann"}},
		"reset, and the first is lost": {"reset", api.Sender{Identity: "ann@desk"}},
		"started by another workflow":  {"child", api.Sender{Identity: "bob@desk"}},
		"whose first run is lost":      {"orphan", api.Sender{}},
		"a chain that does not end":    {"loop", api.Sender{}},
		"not known":                    {"other", api.Sender{}},
	} {
		temporal := &mocks.Client{}
		temporal.On("WorkflowService").Return(&activitytest.Histories{First: map[string]*historypb.HistoryEvent{
			"first": verified, "third": by("worker", "first"), "reset": copied, "child": child, "parent": by("bob@desk", "parent"),
			"orphan": by("worker", "gone"), "loop": by("worker", "pool"), "pool": by("worker", "loop"),
		}})
		got, err := StarterOf(t.Context(), temporal, "default", Run{WorkflowID: "node-maintenance/n1/ops", RunID: c.run})
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	away := &mocks.Client{}
	away.On("WorkflowService").Return(&activitytest.Histories{Err: errors.New("away")})
	if _, err := StarterOf(t.Context(), away, "default", Run{WorkflowID: "id"}); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("error = %v", err)
	}
}
