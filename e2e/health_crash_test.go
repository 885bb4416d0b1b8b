package e2e

import (
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	"drydock/api"
	"drydock/rules/health"
)

// firstTask is the first completed workflow task of a workflow's latest run.
func firstTask(g *group, id string) int64 {
	g.Helper()
	history := g.temporal.GetWorkflowHistory(g.ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			g.Fatal(err)
		}
		if event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return event.GetEventId()
		}
	}
	g.Fatalf("%s has completed no workflow task", id)
	return 0
}

// TestHealthChecksOutliveTheirWorker kills the worker while a duration runs, and has it stop while a remediation is at work
// and while it ends. The check is the configuration's.
func TestHealthChecksOutliveTheirWorker(t *testing.T) {
	c := newClinic(t, 3, `
healthChecks:
  survivor:
    selector: {matchLabels: {`+ward+`: survivor}}
    unhealthyConditions: [{type: `+broken+`, status: "True", duration: 12s}]
    minHealthy: 1
    remediationTemplate: {apiVersion: fence-agents-remediation.medik8s.io/v1alpha1, kind: FenceAgentsRemediationTemplate, namespace: `+remediatorsNamespace+`, name: fence}
`)
	c.template(fence, "fence", nil)
	g := c.take("survivor", 3)
	g.startWorker()
	g.well()
	node := g.nodes[0]
	since := g.breaks(node)
	g.until("it will be ill", func(s api.HealthStatus) bool { return s.Soon == 1 })
	g.worker.Kill()
	g.startWorker()
	back := time.Now()
	object := g.remediated(fence, node)
	// Begun anew, the duration would end 12 s after the new worker had seen the node.
	if created := object.GetCreationTimestamp().Time; created.Before(since.Add(12*time.Second)) || !created.Before(back.Add(12*time.Second).Truncate(time.Second)) {
		t.Errorf("ill since %s, a new worker since %s, remediated at %s", since, back, created)
	}
	g.until("it remediates", func(s api.HealthStatus) bool { return s.Phase == health.PhaseRemediating && s.HealthyNodes == 2 })

	// One that ends in order hands over at once.
	g.finalizer(fence, node, "example.com/hold")
	g.stopWorker()
	g.mends(node)
	g.startWorker()
	g.until("it has seen the recovery", func(s api.HealthStatus) bool {
		return len(s.UnhealthyNodes) == 1 && s.UnhealthyNodes[0].ConditionsHealthyTimestamp != nil
	})
	g.stopWorker()
	g.finalizer(fence, node, "")
	g.startWorker()
	g.released(fence, node)
	g.well()
	if made := g.creations(node); made != 1 {
		t.Errorf("%d objects were made", made)
	}
}

func (c *clinic) stopWorker() {
	c.Helper()
	if err := c.worker.Stop(15 * time.Second); err != nil {
		c.Fatal(err)
	}
}
