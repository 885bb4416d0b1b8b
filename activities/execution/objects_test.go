package execution

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/k8s/kube"
)

// carls is the object that the tests' maintenances name.
const carls = `{"apiVersion":"drydock.dev/v1alpha1","kind":"NodeMaintenance","metadata":{"name":"m","uid":"u1"},
"spec":{"node":"n1","drain":{"timeout":"1h"},"requestedBy":"carl"},"status":{"decision":{"message":"approve","by":"amy","comment":"go"}}}`

// objectsOf serves one object, or an error where text is a number.
func objectsOf(t *testing.T, text string) *Objects {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case text == "503":
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path != "/apis/drydock.dev/v1alpha1/nodemaintenances/m":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
		}
	}))
	t.Cleanup(server.Close)
	client, err := kube.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return &Objects{Kubernetes: client}
}

// startersOf know one maintenance, n1's run "first", and one that it started, "child".
func startersOf(t *testing.T, kind, input string, objects *Objects) *Starters {
	t.Helper()
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(json.RawMessage(input))
	if err != nil {
		t.Fatal(err)
	}
	first := activitytest.Started("drydock-bridge", func(a *historypb.WorkflowExecutionStartedEventAttributes) {
		a.WorkflowType, a.Input = &commonpb.WorkflowType{Name: kind}, payloads
	})
	first.Principal = &commonpb.Principal{Type: "jwt", Name: "bridge"}
	child := activitytest.Started("history-service", func(a *historypb.WorkflowExecutionStartedEventAttributes) {
		a.ParentWorkflowExecution = &commonpb.WorkflowExecution{WorkflowId: "id", RunId: "first"}
	})
	temporal := &mocks.Client{}
	temporal.On("WorkflowService").Return(&activitytest.Histories{First: map[string]*historypb.HistoryEvent{"first": first, "child": child}})
	s := NewStarters(temporal, "default")
	s.Objects = objects
	return s
}

const (
	asked = `{"node":"n1","requestor":"m","drain":{"timeout":"1h"},"object":{"resource":"nodemaintenances.drydock.dev","name":"m","uid":"u1"}}`
	bot   = "jwt:bridge"
)

func TestWhoAskedByAnObject(t *testing.T) {
	for name, c := range map[string]struct {
		kind, input, object, want string
	}{
		"as it asks":              {"", asked, carls, "kubernetes:carl"},
		"a force it does not ask": {"", strings.Replace(asked, `"1h"`, `"1h","force":true`, 1), carls, bot},
		"less than it asks":       {"", strings.Replace(asked, `"drain":{"timeout":"1h"},`, "", 1), carls, bot},
		"another requestor":       {"", strings.Replace(asked, `"requestor":"m"`, `"requestor":"n"`, 1), carls, bot},
		"another node":            {"", strings.Replace(asked, `"n1"`, `"n2"`, 1), carls, bot},
		"an earlier object":       {"", asked, strings.Replace(carls, `"u1"`, `"u2"`, 1), bot},
		"no object":               {"", `{"node":"n1"}`, carls, bot},
		"another kind of object":  {"", strings.Replace(asked, "nodemaintenances.", "pods.", 1), carls, bot},
		"a name that is a path":   {"", strings.Replace(asked, `"name":"m"`, `"name":"../nodemaintenances/m"`, 1), carls, bot},
		"an object that is gone":  {"", strings.Replace(asked, `"name":"m"`, `"name":"gone"`, 1), carls, bot},
		"whose creator is not known": {
			"", asked, strings.Replace(carls, `,"requestedBy":"carl"`, "", 1), bot,
		},
		"another workflow": {"Other", asked, carls, bot},
	} {
		if c.kind == "" {
			c.kind = api.NodeMaintenanceType
		}
		got, err := startersOf(t, c.kind, c.input, objectsOf(t, c.object)).Of(t.Context(), Run{WorkflowID: "id", RunID: "first"})
		if err != nil || got.Principal != c.want {
			t.Errorf("%s: %+v, %v, want %s", name, got, err, c.want)
		}
	}
	run := Run{WorkflowID: "id", RunID: "first"}
	if got, err := startersOf(t, api.NodeMaintenanceType, asked, nil).Of(t.Context(), run); err != nil || got.Principal != bot {
		t.Errorf("where objects are not to be believed: %+v, %v", got, err)
	}
	if got, err := startersOf(t, api.NodeMaintenanceType, asked, objectsOf(t, "503")).Of(t.Context(), run); err == nil {
		t.Errorf("the API server is away: %+v, want an error that is tried again", got)
	}
}

func TestWhoDecidedByAnObject(t *testing.T) {
	amy := v1alpha1.Decision{Message: "approve", By: "amy", Comment: "go"}
	first := Run{WorkflowID: "id", RunID: "first"}
	for name, c := range map[string]struct {
		run   Run
		input string
		said  v1alpha1.Decision
		want  string
	}{
		"amy":                        {first, asked, amy, "kubernetes:amy"},
		"another":                    {first, asked, v1alpha1.Decision{Message: "approve", By: "bob", Comment: "go"}, ""},
		"another comment":            {first, asked, v1alpha1.Decision{Message: "approve", By: "amy", Comment: "go on"}, ""},
		"the opposite":               {first, asked, v1alpha1.Decision{Message: "deny", By: "amy", Comment: "go"}, ""},
		"of what she has not read":   {first, strings.Replace(asked, `"1h"`, `"1h","force":true`, 1), amy, ""},
		"of another's maintenance":   {Run{WorkflowID: "other", RunID: "child"}, asked, amy, ""},
		"of one whose runs are gone": {Run{WorkflowID: "id", RunID: "gone"}, asked, amy, ""},
	} {
		got, err := startersOf(t, api.NodeMaintenanceType, c.input, objectsOf(t, carls)).Decider(t.Context(), c.run, c.said)
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	if got, err := startersOf(t, api.NodeMaintenanceType, asked, nil).Decider(t.Context(), first, amy); err != nil || got != "" {
		t.Errorf("where objects are not to be believed: %q, %v", got, err)
	}
}
