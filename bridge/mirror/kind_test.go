package mirror

import (
	"context"
	"errors"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
)

// fakeKind is a kind whose workflow is what a test has it be.
type fakeKind struct{ asked *fakeAsked }

func (fakeKind) Resource() string { return "nodemaintenances.drydock.dev" }

func (fakeKind) New() v1alpha1.Object { return &v1alpha1.NodeMaintenance{} }

func (fakeKind) Messages() []string { return []string{api.MsgApprove, api.MsgDone} }

func (k fakeKind) Read(v1alpha1.Object, *client.Client) (Asked, error) { return k.asked, k.asked.wrong }

// fakeAsked plays a workflow.
type fakeAsked struct {
	wrong, known, start, change, say error
	found                            bool
	view                             View
	// did are the methods that were called, with what was said.
	did []string
}

func (a *fakeAsked) note(did string) { a.did = append(a.did, did) }

func (a *fakeAsked) Known(context.Context) error {
	a.note("known")
	return a.known
}

func (a *fakeAsked) Find(context.Context) (bool, error) {
	a.note("find")
	return a.found, nil
}

func (a *fakeAsked) Start(context.Context) error {
	a.note("start")
	return a.start
}

func (a *fakeAsked) View() View {
	v := a.view
	if v.Status == nil {
		v.Status = in(api.Draining)
	}
	v.Status = v.Status.Copy()
	return v
}

func (a *fakeAsked) Change(_ context.Context, before string) error {
	a.note(strings.TrimSpace("change " + before))
	return a.change
}

func (a *fakeAsked) Say(_ context.Context, name string, said api.Message) (string, error) {
	a.note(name + " by " + said.By + ": " + said.Comment)
	return "so be it", a.say
}

// anObject is an object that asks for a workflow.
func anObject() *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "kernel", UID: "uid-1", Generation: 1}, Spec: v1alpha1.Spec{Raw: []byte(`{"requestedBy":"ann"}`)},
	}
}

func TestAPrincipalIsNamed(t *testing.T) {
	for user, want := range map[string]string{"ann": "kubernetes: ann", "": "kubernetes: nodemaintenances.drydock.dev kernel"} {
		if got := Principal(fakeKind{}.Resource(), anObject(), user); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestALookSaysWhoseAWorkflowIs(t *testing.T) {
	ours := &spec.Object{Resource: "nodemaintenances.drydock.dev", Name: "kernel", UID: "uid-1"}
	theirs := &spec.Object{Resource: "nodemaintenances.drydock.dev", Name: "kernel", UID: "uid-0"}
	silent := errors.New("no worker answers")
	run := func(first string, running bool) client.Run {
		r := client.Run{WorkflowID: "plan/kernel", FirstRunID: first, Execution: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED}
		if running {
			r.Execution = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		}
		return r
	}
	for name, c := range map[string]struct {
		look    Look
		checked error
		found   bool
		failed  error
	}{
		"ours":                     {look: Look{Run: run("first", true), Answered: true, Asker: ours}, found: true},
		"ours, which has ended":    {look: Look{Run: run("first", false), Answered: true, Asker: ours}, found: true},
		"ours, and nobody answers": {look: Look{Run: run("first", true), Unanswered: silent}, failed: silent},
		"an earlier object's":      {look: Look{Run: run("first", true), Answered: true, Asker: theirs}, checked: ErrForeign},
		"nobody's":                 {look: Look{Run: run("first", true), Answered: true}, checked: ErrForeign},
		"one that came later":      {look: Look{Run: run("later", true), Answered: true}, checked: ErrLost},
		"ended, nobody answers":    {look: Look{Run: run("first", false), Unanswered: silent}},
		"none":                     {look: Look{Err: &client.NoneError{What: "plan kernel"}}, checked: ErrLost},
		"not known":                {look: Look{Err: silent}, checked: silent, failed: silent},
	} {
		o := anObject()
		if found, err := c.look.Found(fakeKind{}.Resource(), o); found != c.found || !errors.Is(err, c.failed) {
			t.Errorf("%s: found %t, %v; want %t, %v", name, found, err, c.found, c.failed)
		}
		o.Status.WorkflowID, o.Status.RunID = "plan/kernel", "first"
		if err := c.look.Check(fakeKind{}.Resource(), o); !errors.Is(err, c.checked) {
			t.Errorf("%s: %v, want %v", name, err, c.checked)
		}
		o.Status.WorkflowID = "plan/another"
		if err := c.look.Check(fakeKind{}.Resource(), o); c.look.Err == nil && !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v, and the status names another workflow", name, err)
		}
	}
}

func TestInputsNameTheirObject(t *testing.T) {
	o := anObject()
	input, err := Input(fakeKind{}, o, map[string]string{"requestor": "kernel"})
	if err != nil || input["requestor"] != "kernel" || !Owns(fakeKind{}.Resource(), o, new(input["object"].(spec.Object))) {
		t.Errorf("%v: %v", err, input)
	}
	for _, own := range drydocks {
		o.Spec.Raw = []byte(`{"` + own + `":{}}`)
		if _, err := Input(fakeKind{}, o, nil); err == nil || !strings.Contains(err.Error(), own+": Drydock alone sets it") {
			t.Errorf("%s is taken: %v", own, err)
		}
	}
}
