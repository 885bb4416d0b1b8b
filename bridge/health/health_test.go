package health

import (
	"errors"
	"slices"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/health"
)

// view is a check that runs.
func view(s api.HealthStatus) client.HealthCheckView {
	v := client.HealthCheckView{Status: &s}
	v.Run = client.Run{Name: "gpu", WorkflowID: "health-check/gpu", RunID: "second", FirstRunID: "first", Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
	return v
}

func in(phase health.Phase) health.Status {
	return health.Status{Phase: phase, Reason: "as it is", ObservedNodes: 3, HealthyNodes: 2, Remediating: 1}
}

// Each phase has its conditions: exactly these are true.
func TestConditionsOfChecks(t *testing.T) {
	ended := view(api.HealthStatus{})
	ended.Status, ended.Execution, ended.Failure = nil, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "it was removed"
	silent := view(api.HealthStatus{})
	silent.Status, silent.Unanswered = nil, errors.New("no worker answers")
	for name, c := range map[string]struct {
		view  client.HealthCheckView
		phase health.Phase
		want  []string
	}{
		"enabled":     {view(api.HealthStatus{Status: in(health.PhaseEnabled)}), health.PhaseEnabled, []string{v1alpha1.Ready}},
		"remediating": {view(api.HealthStatus{Status: in(health.PhaseRemediating)}), health.PhaseRemediating, []string{v1alpha1.Ready}},
		"paused":      {view(api.HealthStatus{Status: in(health.PhasePaused)}), health.PhasePaused, nil},
		"disabled":    {view(api.HealthStatus{Status: in(health.PhaseDisabled)}), health.PhaseDisabled, []string{v1alpha1.Stalled}},
		"beginning":   {view(api.HealthStatus{Status: in(health.PhaseEnabled), WaitingFor: "the watch"}), health.PhaseEnabled, []string{v1alpha1.Reconciling}},
		"ended":       {ended, v1alpha1.HealthCheckEnded, []string{v1alpha1.Stalled}},
		"silent":      {silent, "", []string{v1alpha1.Reconciling}},
	} {
		is := statusOf(c.view)
		var got []string
		for _, condition := range is.Conditions {
			if condition.Status == metav1.ConditionTrue {
				got = append(got, condition.Type)
			}
		}
		if !slices.Equal(got, c.want) || is.Phase != c.phase || is.RunID != "first" || is.Message == "" {
			t.Errorf("%s: %v are true, want %v: %+v", name, got, c.want, is)
		}
	}
	if c := statusOf(view(api.HealthStatus{Status: in(health.PhaseEnabled)})).Counts; c.Observed != 3 || c.Healthy != 2 || c.Remediating != 1 {
		t.Errorf("it counts %+v", c)
	}
}

func read(name, spec string) (*mirrored, error) {
	o := &v1alpha1.HealthCheck{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", Generation: 2}, Spec: v1alpha1.Spec{Raw: []byte(spec)}}
	c, err := Kind{}.Read(o, client.New(nil, client.Options{}))
	return c.(*mirrored), err
}

const valid = `{"selector":{"matchLabels":{"pool":"gpu"}},"maintenance":{}}`

func TestAnObjectIsDecodedAsTheCheckWill(t *testing.T) {
	for name, c := range map[string]struct{ name, spec, want string }{
		"the least":        {"gpu", valid, ""},
		"a long name":      {strings.Repeat("a", 57), valid, "at most 56"},
		"all nodes":        {"gpu", `{"selector":{},"maintenance":{}}`, "selector: required"},
		"another object":   {"gpu", `{"object":{"uid":"x"}}`, "object: Drydock alone sets it"},
		"an unknown field": {"gpu", `{"selektor":{}}`, "selektor: unknown field"},
	} {
		check, err := read(c.name, c.spec)
		switch {
		case c.want == "" && (err != nil || check.asked.Object == nil || check.asked.Object.UID != "uid-1"):
			t.Errorf("%s: %v, asked %+v", name, err, check.asked)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// What is refused for now, or for good, is not sent: there is no Temporal to send it to.
func TestWhichChangesAreNotSent(t *testing.T) {
	c, err := read("gpu", valid)
	if err != nil {
		t.Fatal(err)
	}
	other, err := health.Decode([]byte(`{"selector":{"matchLabels":{"pool":"cpu"}},"maintenance":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	c.view = view(api.HealthStatus{Spec: c.asked})
	if err := c.Change(t.Context(), "it was refused"); err != nil {
		t.Errorf("what the check has already: %v", err)
	}
	var refused *mirror.RefusedError
	c.view = view(api.HealthStatus{Spec: other, Status: in(health.PhaseRemediating)})
	if err := c.Change(t.Context(), ""); !errors.As(err, &refused) || !strings.Contains(err.Error(), "selector: cannot change while a node is being remediated") {
		t.Errorf("while it remediates: %v", err)
	}
	c.view = view(api.HealthStatus{Spec: other, Messages: []api.Received{{ID: "uid-1/2/configure"}}})
	if err := c.Change(t.Context(), "no such channel"); !errors.As(err, &refused) || err.Error() != "no such channel" {
		t.Errorf("what the worker has refused: %v", err)
	}
	c.wrong = errors.New("selector: required")
	if err := c.Change(t.Context(), ""); !errors.As(err, &refused) || err.Error() != "selector: required" {
		t.Errorf("a wrong spec: %v", err)
	}
}

func TestHowADeletedCheckEnds(t *testing.T) {
	c, _ := read("gpu", valid)
	for name, of := range map[string]struct {
		status health.Status
		want   []string
	}{
		"while it remediates": {in(health.PhaseRemediating), []string{api.MsgPause, api.MsgRemove}},
		"once it is paused": {
			health.Status{Remediating: 1, Pauses: []health.PauseStatus{{By: "kubernetes: healthchecks.drydock.dev gpu"}}}, []string{api.MsgRemove},
		},
		"otherwise": {health.Status{Phase: health.PhaseEnabled}, []string{api.MsgRemove}},
	} {
		c.view = view(api.HealthStatus{Status: of.status})
		if got := c.View().End; !slices.Equal(got, of.want) {
			t.Errorf("%s: %v, want %v", name, got, of.want)
		}
	}
}
