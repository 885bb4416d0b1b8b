package execution

import (
	"errors"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/mocks"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
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
	remedy := by("7@pod@", "remedy")
	remedy.GetWorkflowExecutionStartedEventAttributes().Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{api.MemoBegun: nil}}
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
		"begun by a worker":            {"remedy", api.Sender{Identity: "health check workers (worker 7@pod@)"}},
	} {
		id := "node-maintenance/n1/ops"
		if c.run == "remedy" {
			id = "node-maintenance/n1/health-workers"
		}
		temporal := &mocks.Client{}
		temporal.On("WorkflowService").Return(&activitytest.Histories{First: map[string]*historypb.HistoryEvent{
			"first": verified, "third": by("worker", "first"), "reset": copied, "child": child, "parent": by("bob@desk", "parent"),
			"orphan": by("worker", "gone"), "loop": by("worker", "pool"), "pool": by("worker", "loop"),
			"remedy": remedy,
		}})
		got, err := NewStarters(temporal, "default").Of(t.Context(), Run{WorkflowID: id, RunID: c.run})
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	away := &mocks.Client{}
	away.On("WorkflowService").Return(&activitytest.Histories{Err: errors.New("away")})
	if _, err := NewStarters(away, "default").Of(t.Context(), Run{WorkflowID: "id"}); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("error = %v", err)
	}
}

func TestStartersRememberThoseOfParents(t *testing.T) {
	child := func(a *historypb.WorkflowExecutionStartedEventAttributes) {
		a.ParentWorkflowExecution = &commonpb.WorkflowExecution{WorkflowId: "maintenance-plan/p", RunId: "parent"}
	}
	histories := &activitytest.Histories{First: map[string]*historypb.HistoryEvent{
		"one": activitytest.Started("history-service", child), "two": activitytest.Started("history-service", child),
		"parent": activitytest.Started("bob@desk", func(*historypb.WorkflowExecutionStartedEventAttributes) {}),
	}}
	temporal := &mocks.Client{}
	temporal.On("WorkflowService").Return(histories)
	starters := NewStarters(temporal, "default")
	for _, run := range []string{"one", "two"} {
		if got, err := starters.Of(t.Context(), Run{WorkflowID: "node-maintenance/n1/ops", RunID: run}); err != nil || got.Identity != "bob@desk" {
			t.Errorf("%s: %+v, %v", run, got, err)
		}
		delete(histories.First, "parent")
	}
}

// ofTask is the event of a workflow task, written in somebody's name.
func ofTask(kind enums.EventType, name string) *historypb.HistoryEvent {
	event := &historypb.HistoryEvent{EventType: kind}
	if name != "" {
		event.Principal = &commonpb.Principal{Type: "jwt", Name: name}
	}
	return event
}

func TestPersonIsWhoStartedAWorkflowAndNoWorker(t *testing.T) {
	by := func(name string, memo map[string]*commonpb.Payload) *historypb.HistoryEvent {
		event := activitytest.Started("somebody", func(a *historypb.WorkflowExecutionStartedEventAttributes) { a.Memo = &commonpb.Memo{Fields: memo} })
		event.Principal = ofTask(0, name).Principal
		return event
	}
	completed := func(name string) []*historypb.HistoryEvent {
		return []*historypb.HistoryEvent{
			ofTask(enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, "ann"), ofTask(enums.EVENT_TYPE_WORKFLOW_TASK_STARTED, name),
			ofTask(enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, name),
		}
	}
	histories := &activitytest.Histories{
		First: map[string]*historypb.HistoryEvent{
			"by a person": by("ann", nil), "at its beginning": by("ann", nil), "by a worker": by("worker", nil), "by nobody verified": by("", nil),
			"begun by a worker": by("worker", map[string]*commonpb.Payload{api.MemoBegun: nil}),
		},
		Later: map[string][]*historypb.HistoryEvent{
			"by a person": completed("worker"), "by a worker": completed("worker"), "by nobody verified": completed("worker"),
		},
	}
	temporal := &mocks.Client{}
	temporal.On("WorkflowService").Return(histories)
	starters := NewStarters(temporal, "default")
	for run, want := range map[string]string{
		"by a person": "jwt:ann", "at its beginning": "jwt:ann", "by a worker": "", "by nobody verified": "", "begun by a worker": "", "of no history": "",
	} {
		if got, err := starters.Person(t.Context(), Run{WorkflowID: "node-maintenance/n1/ops", RunID: run}); err != nil || got != want {
			t.Errorf("started %s: %q, %v; want %q", run, got, err, want)
		}
	}
	histories.Err = errors.New("away")
	if _, err := starters.Person(t.Context(), Run{WorkflowID: "node-maintenance/n1/ops", RunID: "by a person"}); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("a server that does not answer: %v", err)
	}
}

func TestWorkerOf(t *testing.T) {
	for event, want := range map[*historypb.HistoryEvent]string{
		ofTask(enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, "worker"):      "jwt:worker",
		ofTask(enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, ""):            "",
		ofTask(enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, "ann"):         "",
		ofTask(enums.EVENT_TYPE_WORKFLOW_TASK_STARTED, "ann"):           "",
		ofTask(enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, "ann"):     "",
		ofTask(enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, "a neighbour"): "",
	} {
		if got := WorkerOf(event); got != want {
			t.Errorf("%s by %s: %q, want %q", event.GetEventType(), event.GetPrincipal(), got, want)
		}
	}
}

func TestSenderOf(t *testing.T) {
	for name, c := range map[string]struct {
		identity  string
		principal *commonpb.Principal
		want      api.Sender
	}{
		"verified":              {"ann@desk", &commonpb.Principal{Type: "jwt", Name: "ann"}, api.Sender{Identity: "ann@desk", Principal: "jwt:ann"}},
		"verified by no type":   {"ann@desk", &commonpb.Principal{Name: "ann"}, api.Sender{Identity: "ann@desk", Principal: ":ann"}},
		"of another type":       {"", &commonpb.Principal{Type: "temporal-cloud", Name: "ann"}, api.Sender{Principal: "temporal-cloud:ann"}},
		"not verified":          {"ann@desk", nil, api.Sender{Identity: "ann@desk"}},
		"verified as nobody":    {"ann@desk", &commonpb.Principal{Type: "jwt"}, api.Sender{Identity: "ann@desk"}},
		"the server":            {"temporal-scheduler", &commonpb.Principal{Type: "temporal", Name: "internal"}, api.Sender{Identity: "temporal-scheduler"}},
		"a service of a server": {"", &commonpb.Principal{Type: "temporal", Name: "history"}, api.Sender{}},
		"of a name too long":    {"", &commonpb.Principal{Type: "jwt", Name: strings.Repeat("x", bounds.Text)}, api.Sender{}},
	} {
		if got := SenderOf(c.identity, c.principal); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
