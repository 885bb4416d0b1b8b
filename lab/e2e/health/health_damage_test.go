package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/health"
)

// TestSlowDamageToHealthChecksIsMadeGood resets and terminates remediations under way, and has the control plane's nodes fall ill.
func TestSlowDamageToHealthChecksIsMadeGood(t *testing.T) {
	c := newClinic(t, 33, "")
	defer c.parts.Wait()
	c.StartWorker()
	template := c.template(fence, "fence", nil)
	fields := `"minHealthy":1,"remediationTemplate":` + template
	c.part("a remediation that is reset", func(c *clinic) { remediationReset(c, fields) })
	c.part("a remediation that is terminated", func(c *clinic) { remediationTerminated(c, fields) })
	c.part("an object that somebody deletes", func(c *clinic) { objectDeleted(c, fields) })
	c.part("a check that is reset", func(c *clinic) { checkReset(c, fields) })
	c.part("the control plane", func(c *clinic) { controlPlane(c, fields) })
	c.part("a node that goes for good", func(c *clinic) { goesForGood(c, fields) })
}

func (g *group) remediation(node string) client.WorkflowRun {
	return g.Temporal.GetWorkflow(g.Ctx, api.RemediationID(g.Cluster, g.name, node), "")
}

func remediationReset(c *clinic, fields string) {
	g := c.check("again", 3, fields)
	node := g.nodes[0]
	g.breaks(node)
	object := g.remediated(fence, node)
	g.ResetTo(g.remediation(node), g.FirstTask(g.remediation(node).GetID()), false)
	g.until("it goes on", func(s api.HealthStatus) bool {
		return s.Phase == health.PhaseRemediating && len(s.UnhealthyNodes) == 1 && len(s.UnhealthyNodes[0].Remediations) == 1
	})
	if now := g.remediated(fence, node); now.GetUID() != object.GetUID() {
		g.Error("it is another object")
	}
	g.mends(node)
	g.released(fence, node)
	g.well()
	if made := g.creations(node); made != 1 {
		g.Errorf("%d objects were made", made)
	}
}

// remediationTerminated leaves an object that nobody looks after: the check finds that out and removes it when the node is well.
func remediationTerminated(c *clinic, fields string) {
	g := c.check("cut-off", 3, fields)
	node := g.nodes[0]
	g.breaks(node)
	g.remediated(fence, node)
	g.until("it knows of the object", func(s api.HealthStatus) bool {
		return len(s.UnhealthyNodes) == 1 && len(s.UnhealthyNodes[0].Remediations) == 1
	})
	if err := g.Temporal.TerminateWorkflow(g.Ctx, g.remediation(node).GetID(), "", "a test"); err != nil {
		g.Fatal(err)
	}
	g.mends(node)
	g.Within(time.Minute+site.Patience, "what it had made is removed", func() error {
		if left := g.objectsFor(fence, node); len(left) > 0 || g.lease(node) != nil {
			return fmt.Errorf("%d objects, lease %v; %s", len(left), g.lease(node), g.told(node))
		}
		return nil
	})
	g.well()
	if made := g.creations(node); made != 1 {
		g.Errorf("%d objects were made", made)
	}
}

// objectDeleted has somebody delete the object of a node that stays ill: another is made, after a minute.
func objectDeleted(c *clinic, fields string) {
	g := c.check("deleted", 3, fields)
	node := g.nodes[0]
	g.breaks(node)
	object := g.remediated(fence, node)
	if _, err := g.object(fence, node, "", "delete", nil); err != nil {
		g.Fatal(err)
	}
	g.Within(time.Minute+site.Patience, "another is made", func() error {
		found := g.objectsFor(fence, node)
		if len(found) != 1 || found[0].GetUID() == object.GetUID() {
			return fmt.Errorf("%d objects; %s", len(found), g.told(node))
		}
		if waited := found[0].GetCreationTimestamp().Sub(object.GetCreationTimestamp().Time); waited < time.Minute {
			return fmt.Errorf("it is made %s after the first", waited)
		}
		return nil
	})
	g.mends(node)
	g.released(fence, node)
	g.well()
}

// checkReset resets a check while it waits for nothing but what its watch reports.
func checkReset(c *clinic, fields string) {
	g := c.check("watched", 3, fields)
	check := g.Temporal.GetWorkflow(g.Ctx, api.HealthCheckID(g.Cluster, g.name), "")
	node := g.nodes[0]
	g.breaks(node)
	g.remediated(fence, node)
	g.until("it knows of the object", func(s api.HealthStatus) bool {
		return len(s.UnhealthyNodes) == 1 && len(s.UnhealthyNodes[0].Remediations) == 1
	})
	g.ResetTo(check, g.FirstTask(check.GetID()), false)
	g.mends(node)
	g.released(fence, node)
	g.well()
	if made := g.creations(node); made != 1 {
		g.Errorf("%d objects were made", made)
	}
}

// controlPlane has two of five nodes of the control plane fall ill: the second waits until nothing of the first's remediation
// is left.
func controlPlane(c *clinic, fields string) {
	g := c.take("control-plane", 6)
	for _, node := range g.nodes[:5] {
		g.PatchNode(node, `{"metadata":{"labels":{"`+site.ControlPlaneLabel+`":""}}}`)
	}
	g.start(fields)
	first, second, worker := g.nodes[0], g.nodes[1], g.nodes[5]
	g.breaks(first)
	object := g.remediated(fence, first)
	if _, marked := object.GetLabels()["remediation.medik8s.io/isControlPlaneNode"]; !marked {
		g.Errorf("labels %v", object.GetLabels())
	}
	g.finalizer(fence, first, "example.com/hold")
	g.breaks(second)
	g.breaks(worker)
	g.remediated(fence, worker)
	g.explains(second, "one control-plane node is remediated at a time")
	g.mends(first)
	g.until("the first has recovered", func(s api.HealthStatus) bool {
		for _, n := range s.UnhealthyNodes {
			if n.Name == first {
				return n.ConditionsHealthyTimestamp != nil
			}
		}
		return false
	})
	if made := g.creations(second); made != 0 {
		g.Errorf("%d objects were made of the second", made)
	}
	g.finalizer(fence, first, "")
	freed := time.Now()
	g.remediated(fence, second)
	g.Logf("the second was begun %s after the first was over", time.Since(freed).Round(time.Millisecond))
	g.mends(second)
	g.mends(worker)
	g.released(fence, second)
	g.well()
	for _, node := range g.nodes[:5] {
		g.PatchNode(node, `{"metadata":{"labels":{"`+site.ControlPlaneLabel+`":null}}}`)
	}
}

// goesForGood has a remediator say that the node comes back under another name: its object stays until the remediator is done,
// though the node is gone.
func goesForGood(c *clinic, fields string) {
	g := c.check("for-good", 3, fields)
	node := g.nodes[0]
	g.breaks(node)
	g.remediated(fence, node)
	g.says(fence, node, "PermanentNodeDeletionExpected", "True")
	g.Eventually("the check knows", func() error {
		if !g.toldOf(func(p api.RemediationProgress) bool { return p.PermanentNodeDeletionExpected }) {
			return errors.New("it was not told")
		}
		return nil
	})
	fresh := g.DeleteNode(node)
	g.until("the node is gone", func(s api.HealthStatus) bool { return s.ObservedNodes == 2 })
	g.Always("the object stays", 3*time.Second, func() error {
		o, err := g.object(fence, node, "", "", nil)
		if err == nil && o.GetDeletionTimestamp() != nil {
			err = errors.New("it is being deleted")
		}
		return err
	})
	patch := `{"status":{"conditions":[{"type":"PermanentNodeDeletionExpected","status":"True","reason":"Test","message":""},
		{"type":"Succeeded","status":"True","reason":"Test","message":""}]}}`
	if _, err := g.object(fence, node, "status", "patch", []byte(strings.ReplaceAll(patch, "\n", " "))); err != nil {
		g.Fatal(err)
	}
	g.released(fence, node)
	g.CreateNode(fresh)
	g.well()
	if _, err := g.Kube.CoreV1().Nodes().Get(g.Ctx, node, metav1.GetOptions{}); err != nil {
		g.Error(err)
	}
}

// toldOf reports whether a remediation has told the check something.
func (g *group) toldOf(is func(api.RemediationProgress) bool) bool {
	g.Helper()
	history := g.Temporal.GetWorkflowHistory(g.Ctx, api.HealthCheckID(g.Cluster, g.name), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			g.Fatal(err)
		}
		signalled := event.GetWorkflowExecutionSignaledEventAttributes()
		if signalled.GetSignalName() != api.SignalRemediationProgress {
			continue
		}
		var p api.RemediationProgress
		if err := json.Unmarshal(signalled.GetInput().GetPayloads()[0].GetData(), &p); err != nil {
			g.Fatal(err)
		}
		if is(p) {
			return true
		}
	}
	return false
}
