package health

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/objects"
	rules "drydock.dev/drydock/rules/health"
)

// another replaces the worker by one that knows nothing yet, and that cannot read a resource.
func (s *site) another(unread string) {
	s.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if unread != "" && strings.Contains(r.URL.Path, "/"+unread) {
			http.Error(w, "it is down", http.StatusInternalServerError)
			return true
		}
		return s.kinds.Handle(w, r)
	}
	client := s.server.Client(s.T)
	s.acts = &Activities{
		Nodes: k8s.NewNodes(client), Objects: objects.New(client), Home: execution.Namespace{ID: "home"}, Temporal: s.acts.Temporal, Settings: s.acts.Settings,
	}
}

// A worker that takes over a watch reports what it cannot find out as it was: it would lift what keeps remediations from beginning.
func TestWhatCannotBeFoundOutIsAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		unread string
		// blocks has something block the check, and returns what ends that.
		blocks    func(s *site, in *WatchInput) (over func())
		isBlocked func(o rules.Observation) bool
	}{
		"an upgrade": {"clusterversions", func(s *site, _ *WatchInput) func() {
			version := func(status string) {
				s.kinds.Set(`{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"},"status":{"conditions":[{"type":"Progressing","status":"` + status + `"}]}}`)
			}
			s.kinds.Serve("config.openshift.io/v1", "ClusterVersion", "clusterversions", false)
			version("True")
			return func() { version("False") }
		}, func(o rules.Observation) bool { return o.Upgrading != "" }},
		"a MachineHealthCheck": {"machinehealthchecks", func(s *site, _ *WatchInput) func() {
			machineCheck(s, "Ready")
			return func() { machineCheck(s, "Terminating") }
		}, func(o rules.Observation) bool { return o.DisabledReason == rules.DisabledMachineHealthCheck }},
		"a template": {"fixtemplates", func(s *site, in *WatchInput) func() {
			s.kinds.Serve("fix.example.com/v1", "FixTemplate", "fixtemplates", true)
			in.Intent.Templates = []rules.TemplateRef{{APIVersion: "fix.example.com/v1", Kind: "FixTemplate", Namespace: "n", Name: "t"}}
			return func() {
				s.kinds.Serve("fix.example.com/v1", "Fix", "fixes", true)
				s.kinds.Set(`{"apiVersion":"fix.example.com/v1","kind":"FixTemplate","metadata":{"namespace":"n","name":"t"},"spec":{"template":{"spec":{}}}}`)
			}
		}, func(o rules.Observation) bool { return o.DisabledReason == rules.DisabledTemplateNotFound }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, worker("n1", "Unknown"))
			in := check("workers")
			over := c.blocks(s, &in)
			first := s.see(in)
			if !c.isBlocked(*first.Observation) {
				t.Fatalf("%+v", first.Observation)
			}
			in.Known.Take(first)
			s.another(c.unread)
			s.quiet(in, func() {})
			s.quiet(in, func() {}) // another watch of this worker
			s.server.Set(worker("n1", "False"))
			seen := s.see(in)
			if !c.isBlocked(*seen.Observation) {
				t.Errorf("for want of an answer it tells %+v", seen.Observation)
			}
			in.Known.Take(seen)
			over()
			s.another("")
			if seen := s.see(in); c.isBlocked(*seen.Observation) {
				t.Errorf("with an answer it tells %+v", seen.Observation)
			}
		})
	}
}

func machineCheck(s *site, condition string) {
	for _, kind := range []string{"MachineHealthCheck machinehealthchecks", "Machine machines"} {
		name, resource, _ := strings.Cut(kind, " ")
		s.kinds.Serve("machine.openshift.io/v1beta1", name, resource, true)
	}
	s.kinds.Set(`{"apiVersion":"machine.openshift.io/v1beta1","kind":"Machine","metadata":{"namespace":"m","name":"one","labels":{"a":"b"}},"status":{"nodeRef":{"name":"n1"}}}`)
	s.kinds.Set(`{"apiVersion":"machine.openshift.io/v1beta1","kind":"MachineHealthCheck","metadata":{"namespace":"m","name":"mhc"},
		"spec":{"selector":{"matchLabels":{"a":"b"}},"unhealthyConditions":[{"type":"` + condition + `","status":"True"}]}}`)
}

// Nodes that a cloud takes away are left to a MachineHealthCheck, also by a worker that cannot see that yet.
func TestTerminatingNodesAreLeftToMachineHealthChecksThatCannotBeRead(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown", func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: terminating, Status: "True", LastTransitionTime: since})
	}))
	machineCheck(s, "Terminating")
	in := check("workers")
	first := s.see(in)
	if names(*first.Observation) != "" {
		t.Fatalf("%+v", first.Observation)
	}
	in.Known.Take(first)
	s.another("machinehealthchecks")
	s.quiet(in, func() {})
}

// Which older checks there are is as it was where that cannot be found out.
func TestAnOverlapThatCannotBeFoundOutIsAsItWas(t *testing.T) {
	s := newSite(t, worker("n1", "True"))
	memo, err := converter.GetDefaultDataConverter().ToPayload(api.HealthCheckMemo{Selector: "role=worker", CreatedAt: since.Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	temporal := &mocks.Client{}
	temporal.On("ListWorkflow", mock.Anything, mock.Anything).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{{
		Execution: &commonpb.WorkflowExecution{WorkflowId: "health-check/elder"}, Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{api.MemoHealthCheck: memo}},
	}}}, nil)
	s.acts.Temporal = temporal
	in := check("workers")
	in.Known.Take(s.see(in))
	if in.Known.Around.Overlap.Check != "elder" {
		t.Fatalf("%+v", in.Known)
	}
	down := &mocks.Client{}
	down.On("ListWorkflow", mock.Anything, mock.Anything).Return(nil, errors.New("it is down"))
	s.acts.Temporal = down
	s.another("")
	s.quiet(in, func() {})
}

// A template that does not answer keeps no other check from looking, and is not waited for again by each watch.
func TestATemplateThatHangsHoldsNobodyUp(t *testing.T) {
	s := newSite(t, worker("n1", "True"))
	s.kinds.Serve("fix.example.com/v1", "FixTemplate", "fixtemplates", true)
	asked, release := make(chan struct{}, 10), make(chan struct{})
	s.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/fixtemplates") {
			asked <- struct{}{}
			<-release
		}
		return s.kinds.Handle(w, r)
	}
	slow := check("slow")
	slow.Intent.Templates = []rules.TemplateRef{{APIVersion: "fix.example.com/v1", Kind: "FixTemplate", Namespace: "n", Name: "t"}}
	look := func(ctx context.Context, in WatchInput) error {
		s.acts.lookFirst(ctx, in)
		return nil
	}
	over := make(chan error, 1)
	go func() {
		env := activitytest.Environment()
		env.RegisterActivity(look)
		_, err := env.ExecuteActivity(look, slow)
		over <- err
	}()
	<-asked
	for _, in := range []WatchInput{check("other"), slow} {
		env := activitytest.Environment()
		env.RegisterActivity(look)
		if _, err := env.ExecuteActivity(look, in); err != nil {
			t.Error(err)
		}
		if len(over) > 0 || len(asked) > 0 {
			t.Errorf("check %s has waited for the template", in.Check)
		}
	}
	close(release)
	if err := <-over; err != nil {
		t.Error(err)
	}
}
