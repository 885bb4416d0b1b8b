package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// view is a plan in a phase; stages are those of one whose nodes go through them together.
func view(phase api.PlanPhase, stages *api.PlanStages) client.PlanView {
	v := client.PlanView{Run: client.Run{
		Name: "kernel", WorkflowID: "plan/kernel", RunID: "second", FirstRunID: "first", Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}
	v.Status = &api.PlanStatus{
		Phase: phase, Since: noon, WaitingFor: "its nodes", Counts: plan.Counts{Total: 3, Done: 1, Running: 2}, Stages: stages,
		Events: []api.PlanEvent{{Sequence: 1}},
	}
	if phase.Ended() {
		v.Execution = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
		v.Result = &api.PlanResult{Phase: phase, Message: "the end", EndedAt: noon, Counts: v.Status.Counts}
	}
	return v
}

// trueOf are the conditions that are true.
func trueOf(is *v1alpha1.MaintenancePlanStatus) (kinds []string) {
	for _, c := range is.Conditions {
		if c.Status == metav1.ConditionTrue {
			kinds = append(kinds, c.Type)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// Each phase, and each stage, has its conditions: exactly these are true.
func TestConditionsOfPlans(t *testing.T) {
	refused := client.PlanView{Run: client.Run{FirstRunID: "first", Execution: enumspb.WORKFLOW_EXECUTION_STATUS_FAILED}, Failure: "windows[0]: nightly", Refused: true}
	for name, c := range map[string]struct {
		view client.PlanView
		want []string
	}{
		"running":    {view(api.PlanRunning, nil), []string{v1alpha1.Reconciling}},
		"paused":     {view(api.PlanPaused, nil), []string{v1alpha1.Stalled}},
		"completed":  {view(api.PlanCompleted, nil), []string{v1alpha1.Succeeded}},
		"incomplete": {view(api.PlanIncomplete, nil), []string{v1alpha1.Failed, v1alpha1.Stalled}},
		"cancelled":  {view(api.PlanCancelled, nil), []string{v1alpha1.Failed, v1alpha1.Stalled}},
		"aborted":    {view(api.PlanAborted, nil), []string{v1alpha1.Failed, v1alpha1.Stalled}},
		"refused":    {refused, []string{v1alpha1.Failed, v1alpha1.Stalled}},
		"idle":       {view(api.PlanRunning, &api.PlanStages{Stage: plan.Idle}), nil},
		"not taken":  {view(api.PlanRunning, &api.PlanStages{Stage: plan.Cordon, Revision: 1}), []string{v1alpha1.Reconciling}},
		"cordoning":  {view(api.PlanRunning, &api.PlanStages{Stage: plan.Cordon, Nodes: api.DrainCounts{Held: 2, Cordoned: 1}}), []string{v1alpha1.Reconciling}},
		"cordoned":   {view(api.PlanRunning, &api.PlanStages{Stage: plan.Cordon, Nodes: api.DrainCounts{Held: 2, Cordoned: 2}}), nil},
		"draining":   {view(api.PlanRunning, &api.PlanStages{Stage: plan.Drain}), []string{v1alpha1.Reconciling}},
		"drained":    {view(api.PlanRunning, &api.PlanStages{Stage: plan.Drain, Drained: api.Drained{Status: true}}), []string{v1alpha1.Drained}},
		"completing": {view(api.PlanRunning, &api.PlanStages{Stage: plan.Complete}), []string{v1alpha1.Reconciling}},
	} {
		is := statusOf(c.view)
		if got := trueOf(is); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v are true, want %v", name, got, c.want)
		}
		if is.RunID != "first" || is.Message == "" || is.Phase == "" {
			t.Errorf("%s: %+v", name, is)
		}
	}
	is := statusOf(view(api.PlanRunning, &api.PlanStages{Stage: plan.Drain, Tier: 2, Nodes: api.DrainCounts{Held: 2}}))
	if is.Stage != plan.Drain || *is.Tier != 2 || is.Drain.Held != 2 || *is.Counts != (plan.Counts{Total: 3, Done: 1, Running: 2}) || !is.Since.Time.Equal(noon) {
		t.Errorf("%+v", is)
	}
}

func TestASilentPlanIsInNoPhase(t *testing.T) {
	v := view(api.PlanRunning, nil)
	v.Status, v.Unanswered = nil, errors.New("no worker answers")
	if is := statusOf(v); is.Phase != "" || is.RunID != "first" || is.Message != "no worker answers" || !slices.Equal(trueOf(is), []string{v1alpha1.Reconciling}) {
		t.Errorf("%+v", is)
	}
}

func read(t *testing.T, name, spec string) (*Asked, error) {
	t.Helper()
	o := &v1alpha1.MaintenancePlan{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1"}, Spec: v1alpha1.Spec{Raw: []byte(spec)}}
	p, err := Kind{}.Read(o, client.New(nil, client.Options{}))
	return p.(*Asked), err
}

func TestAnObjectIsDecodedAsThePlanWill(t *testing.T) {
	for name, c := range map[string]struct{ name, spec, want string }{
		"the least":        {"kernel", `{"all":true,"requestedBy":"ann"}`, ""},
		"a name at bounds": {strings.Repeat("a", 53), `{"all":true}`, ""},
		"a long name":      {strings.Repeat("a", 54), `{"all":true}`, "at most 53"},
		"no nodes":         {"kernel", `{}`, "want exactly one"},
		"another object":   {"kernel", `{"all":true,"object":{"uid":"x"}}`, "object: Drydock alone sets it"},
		"an unknown field": {"kernel", `{"all":true,"stratgy":{}}`, "stratgy: unknown field"},
	} {
		p, err := read(t, c.name, c.spec)
		switch {
		case c.want == "" && (err != nil || p.asked.Object == nil || p.asked.Object.UID != "uid-1"):
			t.Errorf("%s: %v, asked %+v", name, err, p.asked)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestWhatAChangedSpecSends(t *testing.T) {
	const staged = `{"nodes":["a"],"strategy":{"type":"allAtOnce"},"stage":"Drain"}`
	for name, c := range map[string]struct {
		asked, runs string
		stage       api.Stage
		want        []string
	}{
		"nothing":                   {`{"nodes":["a"]}`, `{"nodes":["a"]}`, "", nil},
		"a pace":                    {`{"nodes":["a"],"strategy":{"maxParallel":2}}`, `{"nodes":["a"]}`, "", []string{api.MsgSetPace}},
		"a stage":                   {staged, `{"nodes":["a"],"strategy":{"type":"allAtOnce"}}`, plan.Idle, []string{api.MsgSetStage}},
		"a stage that is there":     {staged, staged, plan.Drain, nil},
		"a stage that is over":      {staged, staged, plan.Complete, nil},
		"other nodes and the stage": {staged, `{"all":true,"strategy":{"type":"allAtOnce"}}`, plan.Cordon, []string{api.MsgSetSelector, api.MsgSetStage}},
	} {
		p, err := read(t, "kernel", c.asked)
		runs, failed := plan.Decode("kernel", []byte(c.runs))
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		s := api.PlanStatus{Plan: runs}
		if c.stage != "" {
			s.Stages = &api.PlanStages{Stage: c.stage}
		}
		var got []string
		for _, change := range changesTo(p.asked, s) {
			got = append(got, change.name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestHowADeletedPlanEnds(t *testing.T) {
	for phase, want := range map[api.PlanPhase][]string{
		api.PlanRunning: {api.MsgCancel}, api.PlanPaused: {api.MsgCancel}, api.PlanCompleted: nil,
	} {
		p, _ := read(t, "kernel", `{"all":true}`)
		p.view = view(phase, nil)
		if got := p.View(); !slices.Equal(got.End, want) || got.Over != phase.Ended() || got.Again != 0 {
			t.Errorf("%s: %+v, want it ended by %v", phase, got, want)
		}
	}
}
