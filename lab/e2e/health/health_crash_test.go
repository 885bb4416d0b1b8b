package health

import (
	"fmt"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
)

// TestSlowHealthChecksOutliveTheirWorker kills the worker while a duration runs, and has it stop while a remediation is at work
// and while it ends. The check is the configuration's.
func TestSlowHealthChecksOutliveTheirWorker(t *testing.T) {
	const duration = 45 * time.Second
	c := newClinic(t, 3, `
healthChecks:
  survivor:
    selector: {matchLabels: {`+ward+`: survivor}}
    unhealthyConditions: [{type: `+broken+`, status: "True", duration: 45s}]
    minHealthy: 1
    remediationTemplate: {apiVersion: fence-agents-remediation.medik8s.io/v1alpha1, kind: FenceAgentsRemediationTemplate, namespace: `+remediatorsNamespace+`, name: fence}
`)
	c.template(fence, "fence", nil)
	g := c.take("survivor", 3)
	g.StartWorker()
	g.well()
	node := g.nodes[0]
	since := g.breaks(node)
	g.until("it will be ill", func(s api.HealthStatus) bool { return s.Soon == 1 })
	g.Worker.Kill()
	due := since.Add(duration)
	g.Eventually("the duration is over", func() error {
		if left := time.Until(due); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		return nil
	})
	back := time.Now()
	g.StartWorker()
	object := g.remediated(fence, node)
	// Begun anew, the duration would end when the new worker has seen the node for as long.
	if created := object.GetCreationTimestamp().Time; created.Before(due) || !created.Before(back.Add(duration).Truncate(time.Second)) {
		t.Errorf("ill since %s, a new worker since %s, remediated at %s", since, back, created)
	}
	g.until("it remediates", func(s api.HealthStatus) bool { return s.Phase == health.PhaseRemediating && s.HealthyNodes == 2 })

	// One that ends in order hands over at once.
	g.finalizer(fence, node, "example.com/hold")
	g.StopWorker(g.Worker)
	g.mends(node)
	g.StartWorker()
	g.until("it has seen the recovery", func(s api.HealthStatus) bool {
		return len(s.UnhealthyNodes) == 1 && s.UnhealthyNodes[0].ConditionsHealthyTimestamp != nil
	})
	g.StopWorker(g.Worker)
	g.finalizer(fence, node, "")
	g.StartWorker()
	g.released(fence, node)
	g.well()
	if made := g.creations(node); made != 1 {
		t.Errorf("%d objects were made", made)
	}
}
