package nhc

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/rules/health"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// The object is as kubectl writes one that a server has kept for a while.
const kept = `
apiVersion: remediation.medik8s.io/v1alpha1
kind: NodeHealthCheck
metadata:
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
  creationTimestamp: null
  generation: 3
  name: nhc-snr-worker
  resourceVersion: "4711"
  uid: 7d4c1c0e-2e5f-4f0a-9c3c-8f1f6f6f6f6f
spec:
  minHealthy: 51%
  pauseRequests: []
  escalatingRemediations: null
  remediationTemplate:
    apiVersion: self-node-remediation.medik8s.io/v1alpha1
    kind: SelfNodeRemediationTemplate
    name: self-node-remediation-resource-deletion-template
    namespace: snr
    uid: f6f6
    resourceVersion: "1"
  selector:
    matchExpressions:
    - {key: node-role.kubernetes.io/control-plane, operator: DoesNotExist}
    - {key: node-role.kubernetes.io/master, operator: DoesNotExist}
  unhealthyConditions:
  - {duration: 300s, status: "False", type: Ready}
  - {duration: 300s, status: Unknown, type: Ready}
status: {phase: Enabled, healthyNodes: 3, observedNodes: 3}
`

func TestANodeHealthCheckIsReadAsItIs(t *testing.T) {
	checks, err := Read(object(t, kept))
	if err != nil || len(checks) != 1 || checks[0].Name != "nhc-snr-worker" {
		t.Fatalf("%v, %v", checks, err)
	}
	spec, err := health.Decode(checks[0].Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := health.TemplateRef{
		APIVersion: "self-node-remediation.medik8s.io/v1alpha1", Kind: "SelfNodeRemediationTemplate", Namespace: "snr",
		Name: "self-node-remediation-resource-deletion-template",
	}
	if diff := cmp.Diff(&want, spec.RemediationTemplate); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if spec.MinHealthy.String() != "51%" || len(spec.UnhealthyConditions) != 2 || len(spec.Selector.MatchExpressions) != 2 {
		t.Errorf("%+v", spec)
	}
}

func TestAListHasThemAll(t *testing.T) {
	one := strings.TrimSpace(kept)
	other := strings.ReplaceAll(one, "nhc-snr-worker", "infra")
	list := "kind: List\napiVersion: v1\nitems:\n"
	for _, o := range []string{one, other} {
		list += "- " + strings.ReplaceAll(o, "\n", "\n  ") + "\n"
	}
	checks, err := Read(object(t, list))
	if err != nil || len(checks) != 2 || checks[1].Name != "infra" {
		t.Errorf("%v, %v", checks, err)
	}
}

func TestWhatIsNoNodeHealthCheckIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"kind: MachineHealthCheck": "want NodeHealthCheck of remediation.medik8s.io/v1alpha1",
		"{kind: NodeHealthCheck, apiVersion: v1, metadata: {name: a}, spec: {}}":                    "apiVersion",
		"{kind: NodeHealthCheck, apiVersion: remediation.medik8s.io/v1alpha1, spec: {}}":            "metadata.name",
		"{kind: NodeHealthCheck, apiVersion: remediation.medik8s.io/v1alpha1, metadata: {name: a}}": "spec",
		"{kind: List, items: []}":                          "items",
		"{kind: List, items: [{kind: Node}, {kind: Pod}]}": "items[1].kind",
	} {
		if _, err := Read(object(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// What is shown is the object that it was read from, with the status.
func TestACheckIsShownAsItWasRead(t *testing.T) {
	checks, err := Read(object(t, kept))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := health.Decode(checks[0].Spec)
	if err != nil {
		t.Fatal(err)
	}
	spec.Flapping = &health.Flapping{}
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	shown := Show(checks[0].Name, spec, health.Status{
		ObservedNodes: 3, HealthyNodes: 2, Phase: health.PhaseRemediating, Reason: "1 node is remediated", LastUpdateTime: at,
		Pauses: []health.PauseStatus{{By: "jane", Why: "storage moves"}},
		UnhealthyNodes: []health.UnhealthyNode{{Name: "worker-07", Remediations: []health.RemediationOfNode{
			{Started: at, TemplateName: "t", Resource: &health.Resource{Kind: "SelfNodeRemediation", Name: "worker-07", Namespace: "snr"}},
			{Started: at, WorkflowID: "node-maintenance/worker-07/health-a"},
		}}},
	})
	text, err := yaml.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile("testdata/shown.yaml", text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/shown.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	again, err := Read(object(t, string(text)))
	if err != nil {
		t.Fatal(err)
	}
	reread, err := health.Decode(again[0].Spec)
	if err != nil || len(reread.PauseRequests) != 1 {
		t.Errorf("%v, %v", reread.PauseRequests, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(kept))
	f.Fuzz(func(t *testing.T, data []byte) {
		var o map[string]any
		if yaml.Unmarshal(data, &o) != nil {
			return
		}
		checks, err := Read(o)
		if err != nil {
			return
		}
		for _, c := range checks {
			if !json.Valid(c.Spec) {
				t.Errorf("%s", c.Spec)
			}
		}
	})
}
