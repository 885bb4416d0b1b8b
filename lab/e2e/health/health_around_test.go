package health

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/health"
)

// TestSlowWhatGoesOnAroundNodesKeepsThemFromBeingRemediated has an upgrade of the cluster, a MachineHealthCheck and etcd's budget stand in
// the way of health checks, and a node fall ill again.
func TestSlowWhatGoesOnAroundNodesKeepsThemFromBeingRemediated(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	c := newClinic(t, 9, fmt.Sprintf("audit: {file: {path: %q}}\n", audit))
	defer c.parts.Wait()
	c.apply("../testdata/openshift.yaml")
	c.StartWorker()
	fields := `"minHealthy":1,"remediationTemplate":` + c.template(fence, "fence", nil)
	upgraded(c, fields) // nothing begins meanwhile, in any part
	c.part("a MachineHealthCheck", func(c *clinic) { machinesChecked(c, fields) })
	c.part("etcd's budget", func(c *clinic) { etcdSays(c, fields) })
	c.part("flapping", func(c *clinic) { flaps(c, audit) })
}

// patched patches an object of any kind.
func (c *clinic) patched(apiVersion, kind, namespace, name, patch string) {
	c.Helper()
	path := append(pathOf(apiVersion, kind, namespace), name)
	if err := c.Kube.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(path...).Body([]byte(patch)).Do(c.Ctx).Error(); err != nil {
		c.Fatal(err)
	}
}

func (c *clinic) createFrom(text string) {
	c.Helper()
	var o unstructured.Unstructured
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		c.Fatal(err)
	}
	c.create(&o)
}

// upgraded has OpenShift say that the cluster is being upgraded: nothing begins until that is over.
func upgraded(c *clinic, fields string) {
	g := c.check("upgraded", 3, fields)
	node := g.nodes[0]
	status := func(progressing string) string {
		return fmt.Sprintf(`{"status":{"conditions":[{"type":"Progressing","status":%q,"message":"Working towards 4.20.1"}]}}`, progressing)
	}
	c.createFrom(`{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"},` + strings.TrimPrefix(status("True"), "{"))
	g.until("it knows of the upgrade", func(s api.HealthStatus) bool { return strings.Contains(s.Upgrading, "Working towards 4.20.1") })
	g.breaks(node)
	g.explains(node, "Working towards 4.20.1")
	g.until("the node is unhealthy", func(s api.HealthStatus) bool { return s.Unhealthy == 1 && s.Blocked != "" })
	if made := g.creations(node); made != 0 {
		g.Errorf("%d objects were made", made)
	}
	c.patched("config.openshift.io/v1", "ClusterVersion", "", "version", status("False"))
	g.remediated(fence, node)
	g.mends(node)
	g.released(fence, node)
	g.well()
}

// machinesChecked has a MachineHealthCheck take care of the machine of one of the check's nodes: the check is disabled until that is
// deleted.
func machinesChecked(c *clinic, fields string) {
	g := c.check("machines", 2, fields)
	node := g.nodes[0]
	const version = "machine.openshift.io/v1beta1"
	c.createFrom(fmt.Sprintf(`{"apiVersion":%q,"kind":"Machine","metadata":{"name":"m1","namespace":%q,"labels":{"role":"worker"}},"status":{"nodeRef":{"name":%q}}}`,
		version, remediatorsNamespace, node))
	c.createFrom(fmt.Sprintf(`{"apiVersion":%q,"kind":"MachineHealthCheck","metadata":{"name":"theirs","namespace":%q},"spec":{"selector":{"matchLabels":{"role":"worker"}},
		"unhealthyConditions":[{"type":"Ready","status":"False","timeout":"300s"}]}}`, version, remediatorsNamespace))
	g.until("it is disabled", func(s api.HealthStatus) bool {
		return s.Phase == health.PhaseDisabled && strings.Contains(s.Reason, "theirs")
	})
	g.breaks(node)
	g.until("the node is unhealthy", func(s api.HealthStatus) bool { return s.Unhealthy == 1 })
	if made := g.creations(node); made != 0 {
		g.Errorf("%d objects were made", made)
	}
	path := append(pathOf(version, "MachineHealthCheck", remediatorsNamespace), "theirs")
	if err := c.Kube.CoreV1().RESTClient().Delete().AbsPath(path...).Do(c.Ctx).Error(); err != nil {
		c.Fatal(err)
	}
	g.remediated(fence, node)
	g.mends(node)
	g.released(fence, node)
	g.well()
}

// etcdSays has the budget of etcd's guards let none go: a node of the control plane whose guard is up waits.
func etcdSays(c *clinic, fields string) {
	ns := c.Namespace()
	g := c.take("etcd", 2)
	node := g.nodes[0]
	for _, name := range g.nodes {
		g.PatchNode(name, `{"metadata":{"labels":{"`+site.ControlPlaneLabel+`":""}}}`)
	}
	guard := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "guard", Labels: map[string]string{"app": "guard"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "guard", Image: "guard"}}},
	}
	if _, err := c.Kube.CoreV1().Pods(ns).Create(c.Ctx, guard, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	c.Budget(ns, "guard", 1)
	g.start(fmt.Sprintf(`%s,"etcd":{"namespace":%q,"budget":"guard"}`, fields, ns))
	g.breaks(node)
	g.explains(node, "allows no disruption, and pod guard on the node is not down")
	if made := g.creations(node); made != 0 {
		g.Errorf("%d objects were made", made)
	}
	if err := c.Kube.PolicyV1().PodDisruptionBudgets(ns).Delete(c.Ctx, "guard", metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
	g.explains(node, "has 0 budgets for etcd")
	c.Budget(ns, "guard", 0)
	g.remediated(fence, node)
	g.mends(node)
	g.released(fence, node)
	g.well()
	for _, name := range g.nodes {
		g.PatchNode(name, `{"metadata":{"labels":{"`+site.ControlPlaneLabel+`":null}}}`)
	}
}

// flaps has a node fall ill again soon: what has helped only for a moment is not tried again.
func flaps(c *clinic, audit string) {
	steps := fmt.Sprintf(`"minHealthy":1,"flapping":{"within":"1h"},"escalatingRemediations":[{"order":1,"timeout":"5m","remediationTemplate":%s},
		{"order":2,"timeout":"5m","remediationTemplate":%s}]`, c.template(fence, "flaps", nil), c.template(self, "flaps", nil))
	g := c.check("flaps", 2, steps)
	node := g.nodes[0]
	for _, kind := range []string{fence, self} {
		g.breaks(node)
		g.remediated(kind, node)
		g.mends(node)
		g.released(kind, node)
		g.well()
		described, err := g.Temporal.DescribeWorkflowExecution(g.Ctx, g.remediation(node).GetID(), "")
		if err != nil {
			g.Fatal(err)
		}
		kept := g.RecordOf(audit, described.GetWorkflowExecutionInfo().GetExecution().GetRunId())
		if r := kept.Remediation; kept.Node != node || kept.Phase != string(api.Completed) || r == nil || r.Check != "flaps" || !r.Recovered || len(r.Steps) != 1 ||
			!strings.HasSuffix(kind, " "+strings.Fields(r.Steps[0].What)[0]) {
			g.Errorf("its record is %+v", kept)
		}
	}
	if made := g.creations(node); made != 2 {
		g.Errorf("%d objects were made", made)
	}
}
