package bridge

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/health/nhc"
)

// ofNodeHealthCheck is what the objects of node-healthcheck-operator showed.
var ofNodeHealthCheck = recording{"node-healthcheck-operator", os.Getenv("DRYDOCK_NODE_HEALTHCHECK"), "testdata/node-healthcheck-dd44432.json"}

// sees adds what a version of an object shows. Counts are 0 there while a check is disabled, and true here.
func (s strands) sees(status nhc.Status) {
	s.add("phase", string(status.Phase))
	if status.Phase != health.PhaseDisabled {
		s.add("healthy", fmt.Sprintf("%d of %d", status.HealthyNodes, status.ObservedNodes))
	}
	nodes, well, steps := []string{}, []string{}, map[string]string{}
	for _, n := range status.UnhealthyNodes {
		nodes = append(nodes, n.Name)
		if n.ConditionsHealthyTimestamp != nil {
			well = append(well, n.Name)
		}
		for _, r := range n.Remediations {
			steps[r.Resource.Kind] = r.Resource.Name + " at work"
			if r.TimedOut != nil {
				steps[r.Resource.Kind] = r.Resource.Name + " timed out"
			}
		}
	}
	s.add("ill", strings.Join(nodes, ", "))
	s.add("well again", strings.Join(well, ", "))
	for _, kind := range []string{"FenceAgentsRemediation", "SelfNodeRemediation"} {
		s.add(kind, steps[kind])
	}
	for _, c := range status.Conditions {
		s.add(c.Type, c.Status+" "+c.Reason)
	}
}

// recorder keeps what the objects show.
type recorder struct {
	mu   sync.Mutex
	seen map[string]strands
}

func (r *recorder) add(o nodeHealthCheck) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.Status.Phase == "" {
		return
	}
	if r.seen[o.Metadata.Name] == nil {
		r.seen[o.Metadata.Name] = strands{}
	}
	r.seen[o.Metadata.Name].sees(o.Status)
}

// record watches the objects from now on.
func (b *bridged) record() *recorder {
	b.Helper()
	r := &recorder{seen: map[string]strands{}}
	version, plural := versionOf(nhcs.plural)
	b.watch(func(_ string, version []byte) {
		var o nodeHealthCheck
		if json.Unmarshal(version, &o) == nil {
			r.add(o)
		}
	}, "/apis", version, plural)
	return r
}

// healthCase is what happens to the nodes of an object: ill falls ill, and is well again at the end.
type healthCase struct {
	name, well, ill string
	spec            func(b *bridged, ward string) string
	does            func(b *bridged, c healthCase)
}

// ward is the label of its nodes.
func (c healthCase) ward(b *bridged) string { return b.ID + "-" + c.name }

const fenceTemplate = `{apiVersion: fence-agents-remediation.medik8s.io/v1alpha1, kind: FenceAgentsRemediationTemplate, namespace: ` + healthNamespace + `, name: fence}`

func healthSpec(minHealthy int, more string) func(*bridged, string) string {
	return func(_ *bridged, ward string) string {
		return fmt.Sprintf(`{selector: {matchLabels: {ward: %q}}, minHealthy: %d, unhealthyConditions: [{type: Broken, status: "True", duration: 1s}], %s}`,
			ward, minHealthy, more)
	}
}

// keep has a remediator keep the object of a node, or let it go.
func (b *bridged) keep(node string, finalizers ...string) {
	b.Helper()
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	if err == nil {
		err = b.Kube.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(fences, node).Body(text).Do(b.Ctx).Error()
	}
	if err != nil {
		b.Fatal(err)
	}
}

func isWell(s nhc.Status) bool {
	return len(s.UnhealthyNodes) == 1 && s.UnhealthyNodes[0].ConditionsHealthyTimestamp != nil
}

var healthCases = []healthCase{
	{"plain", "worker-01", "worker-02", healthSpec(1, "remediationTemplate: "+fenceTemplate), func(b *bridged, c healthCase) {
		b.broken(c.ill, "True")
		b.counts(c.name, health.PhaseRemediating, 2, 1)
		b.keep(c.ill, "test.drydock.dev/keep")
		b.broken(c.ill, "False")
		b.untilNHC(c.name, "waits for the remediator", isWell)
		b.keep(c.ill)
		b.counts(c.name, health.PhaseEnabled, 2, 2)
	}},
	{"too-many", "worker-03", "worker-04", healthSpec(2, "remediationTemplate: "+fenceTemplate), func(b *bridged, c healthCase) {
		b.broken(c.ill, "True")
		b.untilNHC(c.name, "lets the node be", func(s nhc.Status) bool { return len(s.UnhealthyNodes) == 1 && s.HealthyNodes == 1 })
		b.broken(c.ill, "False")
		b.counts(c.name, health.PhaseEnabled, 2, 2)
	}},
	{"escalates", "worker-05", "worker-06", healthSpec(1, `escalatingRemediations: [
		{order: 1, timeout: 10m, remediationTemplate: `+fenceTemplate+`},
		{order: 2, timeout: 10m, remediationTemplate: `+strings.NewReplacer("fence-agents", "self-node", "FenceAgents", "SelfNode").Replace(fenceTemplate)+`}]`), func(b *bridged, c healthCase) {
		b.broken(c.ill, "True")
		b.untilNHC(c.name, "has its first step", func(s nhc.Status) bool {
			return len(s.UnhealthyNodes) == 1 && len(s.UnhealthyNodes[0].Remediations) == 1
		})
		failed := []byte(`{"status":{"conditions":[{"type":"Succeeded","status":"False","reason":"Failed","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		if err := b.Kube.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(fences, c.ill, "status").Body(failed).Do(b.Ctx).Error(); err != nil {
			b.Fatal(err)
		}
		b.untilNHC(c.name, "has its second step", func(s nhc.Status) bool {
			return len(s.UnhealthyNodes) == 1 && len(s.UnhealthyNodes[0].Remediations) == 2
		})
		b.keep(c.ill, "test.drydock.dev/keep")
		b.broken(c.ill, "False")
		b.untilNHC(c.name, "waits for the remediator", isWell)
		b.keep(c.ill)
		b.counts(c.name, health.PhaseEnabled, 2, 2)
	}},
	{"no-template", "worker-07", "worker-08", healthSpec(1, "remediationTemplate: "+strings.Replace(fenceTemplate, "name: fence", "name: missing", 1)), func(b *bridged, c healthCase) {
		b.untilNHC(c.name, "is disabled", func(s nhc.Status) bool { return s.Phase == health.PhaseDisabled })
	}},
}

// The clients of node-healthcheck-operator see of the bridge what they see of the operator.
func TestNodeHealthChecksShowWhatTheOperatorShows(t *testing.T) {
	b := newNHC(t)
	self := strings.NewReplacer("fence-agents", "self-node", "fenceagentsremediations", "selfnoderemediationtemplates").Replace(fences)
	b.post(self, map[string]any{
		"apiVersion": "self-node-remediation.medik8s.io/v1alpha1", "kind": "SelfNodeRemediationTemplate", "metadata": map[string]any{"name": "fence"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}},
	})
	r := b.record()
	if ofNodeHealthCheck.program != "" {
		ofNodeHealthCheck.start(b, []string{"DEPLOYMENT_NAMESPACE=" + healthNamespace}, "--leader-elect=false", "--metrics-bind-address", "0")
	} else {
		b.startBridge()
		b.untilTheEnd()
	}
	for _, c := range healthCases {
		for _, node := range []string{c.well, c.ill} {
			b.PatchNode(node, `{"metadata":{"labels":{"ward":"`+c.ward(b)+`"}}}`)
			t.Cleanup(func() { b.PatchNode(node, `{"metadata":{"labels":{"ward":null}}}`) })
		}
		b.askFor(nhcs, c.name, c.spec(b, c.ward(b)))
		if c.name != "no-template" {
			b.counts(c.name, health.PhaseEnabled, 2, 2)
		}
		c.does(b, c)
		b.remove(nhcs, c.name)
		b.wasRemoved(nhcs, c.name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ofNodeHealthCheck.holds(b, r.seen)
}
