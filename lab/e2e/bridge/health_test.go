package bridge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/rules/health"
)

var checks = kinds[2]

// untilCheck waits until the object of a check shows what is wanted.
func (b *bridged) untilCheck(name, what string, is func(v1alpha1.HealthCheck) bool) (c v1alpha1.HealthCheck) {
	b.Helper()
	b.Eventually("health check "+name+" "+what, func() error {
		c = v1alpha1.HealthCheck{}
		err := b.send(checks.plural, "get", name, nil, &c)
		if err == nil && !is(c) {
			err = fmt.Errorf("generation %d: %+v", c.Generation, c.Status)
		}
		return err
	})
	return c
}

// broken sets the condition by which nodes are ill.
func (b *bridged) broken(node, status string) {
	b.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Broken","status":%q,"reason":"Test","message":"as the test has it","lastTransitionTime":%q}]}}`,
		status, time.Now().UTC().Format(time.RFC3339))
	if _, err := b.Kube.CoreV1().Nodes().Patch(b.Ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		b.Fatal(err)
	}
}

func remediating(n int) func(v1alpha1.HealthCheck) bool {
	return func(c v1alpha1.HealthCheck) bool { return c.Status.Counts != nil && c.Status.Counts.Remediating == n }
}

func TestAHealthCheckWatchesAndRepairs(t *testing.T) {
	b := newBridged(t, "")
	b.roles(manifests + "rbac-health.yaml")
	const ill = "worker-02"
	for _, node := range []string{"worker-01", ill} {
		b.PatchNode(node, `{"metadata":{"labels":{"ward":"a"}}}`)
		t.Cleanup(func() { b.PatchNode(node, `{"metadata":{"labels":{"ward":null}}}`) })
	}
	b.askFor(checks, "gpu", `{selector: {matchLabels: {ward: a}}, minHealthy: 1, maintenance: {},
		unhealthyConditions: [{type: Broken, status: "True", duration: 1s}]}`)
	c := b.untilCheck("gpu", "watches its nodes", func(c v1alpha1.HealthCheck) bool {
		return c.Status.Counts != nil && c.Status.Counts.Observed == 2 && meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.Ready)
	})
	if c.Status.WorkflowID != api.HealthCheckID(b.Cluster, "gpu") || c.Status.RunID == "" || c.Status.Phase != health.PhaseEnabled ||
		!meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.Reconciling) || !meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.Stalled) {
		t.Errorf("it shows %+v", c.Status)
	}
	b.broken(ill, "True")
	b.untilCheck("gpu", "repairs", remediating(1))

	// What may change while it repairs does, and what may not waits until it is over.
	b.patch(checks, "gpu", map[string]any{"spec": map[string]any{"minHealthy": 0}})
	b.untilCheck("gpu", "follows its spec", func(c v1alpha1.HealthCheck) bool {
		return c.Status.ObservedGeneration == 2 && c.Status.Counts.MinHealthy == 0 && meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.Stalled)
	})
	b.patch(checks, "gpu", map[string]any{"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/hostname": ill}}}})
	c = b.untilCheck("gpu", "says what is refused", func(c v1alpha1.HealthCheck) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.Stalled) && c.Status.ObservedGeneration == 3
	})
	if !strings.Contains(c.Status.Message, "selector: cannot change while a node is being remediated") {
		t.Errorf("it shows %+v", c.Status)
	}
	b.broken(ill, "False")
	b.untilCheck("gpu", "follows its spec when the node is well", func(c v1alpha1.HealthCheck) bool {
		return remediating(0)(c) && c.Status.Counts.Observed == 1 && meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.Ready) &&
			meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.Stalled)
	})
	b.MustBeFree(ill)

	// Only the worker knows its channels.
	b.patch(checks, "gpu", map[string]any{"spec": map[string]any{"notify": []string{"nobody"}}})
	b.untilCheck("gpu", "says what the worker refuses", func(c v1alpha1.HealthCheck) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.Stalled) && strings.Contains(c.Status.Message, "nobody")
	})
	b.patch(checks, "gpu", map[string]any{"spec": map[string]any{"notify": nil}})
	b.untilCheck("gpu", "follows its spec again", func(c v1alpha1.HealthCheck) bool {
		return c.Status.ObservedGeneration == 5 && meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.Stalled)
	})
	b.pausesAndEnds(ill)
}

// pausesAndEnds pauses the check gpu, and deletes its object while it repairs a node.
func (b *bridged) pausesAndEnds(ill string) {
	b.Helper()
	b.patch(checks, "gpu", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"maintenance.drydock.dev/pause": "storage moves"}}})
	c := b.untilCheck("gpu", "is paused", func(c v1alpha1.HealthCheck) bool {
		return c.Status.Phase == health.PhasePaused && len(c.Annotations) == 0
	})
	if !meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.Ready) {
		b.Errorf("it shows %+v", c.Status)
	}
	b.broken(ill, "True")
	b.untilCheck("gpu", "sees an ill node, and lets it be", func(c v1alpha1.HealthCheck) bool { return c.Status.Counts.Unhealthy == 1 && remediating(0)(c) })
	b.patch(checks, "gpu", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"maintenance.drydock.dev/resume": ""}}})
	b.untilCheck("gpu", "repairs again", remediating(1))
	b.remove(checks, "gpu")
	c = b.untilCheck("gpu", "waits for the repair", func(c v1alpha1.HealthCheck) bool {
		return strings.Contains(c.Status.Message, "nodes are being remediated")
	})
	if c.Status.Phase == v1alpha1.HealthCheckEnded {
		b.Errorf("it shows %+v", c.Status)
	}
	b.broken(ill, "False")
	b.wasRemoved(checks, "gpu")
	b.MustBeFree(ill)
	described, err := b.Temporal.DescribeWorkflowExecution(b.Ctx, c.Status.WorkflowID, c.Status.RunID)
	if status := described.GetWorkflowExecutionInfo().GetStatus().String(); err != nil || status != "Completed" {
		b.Errorf("%v: the check is %s", err, status)
	}
}

func TestAHealthCheckThatCannotBeSaysSo(t *testing.T) {
	b := newBridged(t, "")
	b.askFor(checks, "invalid", `{selector: {matchLabels: {ward: a}}, escalatingRemediations: [{timeout: 30s, maintenance: {}}]}`)
	c := b.untilCheck("invalid", "is refused", func(c v1alpha1.HealthCheck) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.Stalled)
	})
	if !strings.Contains(c.Status.Message, "timeout") || c.Status.WorkflowID != "" || len(c.Finalizers) > 0 {
		t.Errorf("it shows %+v", c.Status)
	}
	if _, err := b.Temporal.DescribeWorkflowExecution(b.Ctx, api.HealthCheckID(b.Cluster, "invalid"), ""); err == nil {
		t.Error("a check was started")
	}
	b.remove(checks, "invalid")
	b.wasRemoved(checks, "invalid")

	b.askFor(checks, "channel", `{selector: {matchLabels: {ward: a}}, maintenance: {}, notify: [nobody]}`)
	c = b.untilCheck("channel", "is refused by the worker", func(c v1alpha1.HealthCheck) bool { return c.Status.Phase == v1alpha1.HealthCheckEnded })
	if !strings.Contains(c.Status.Message, "nobody") || !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.Stalled) {
		t.Errorf("it shows %+v", c.Status)
	}
	b.remove(checks, "channel")
	b.wasRemoved(checks, "channel")
}
