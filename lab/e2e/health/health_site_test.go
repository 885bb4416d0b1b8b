package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/health"
)

// The kinds of testdata/remediators.yaml, and where they are.
const (
	fence = "fence-agents-remediation.medik8s.io/v1alpha1 FenceAgentsRemediation"
	self  = "self-node-remediation.medik8s.io/v1alpha1 SelfNodeRemediation"

	remediatorsNamespace = "remediators"
	leasesNamespace      = "medik8s-leases"
	// broken is the type of the condition that makes a node ill, as a node-problem-detector sets it.
	broken = "Broken"
	// ward is the label by which a check selects its nodes.
	ward = "e2e.drydock.dev/ward"
)

// Annotations and labels of medik8s'.
const (
	timedOutAnnotation  = "remediation.medik8s.io/nhc-timed-out"
	multipleAnnotation  = "remediation.medik8s.io/multiple-templates-support"
	confirmedAnnotation = "remediation.medik8s.io/manually-confirmed-healthy"
	excludeLabel        = "remediation.medik8s.io/exclude-from-remediation"
)

// clinic is a site with remediators, and with a control plane of its own whose nodes the parts of a test have for themselves:
// each has a check that selects its nodes by a label.
type clinic struct {
	*site.Site
	beds *beds
	// parts are those under way.
	parts sync.WaitGroup
}

// beds are the nodes that no part has taken yet.
type beds struct {
	mu   sync.Mutex
	free []string
}

func newClinic(t *testing.T, nodes int, config string) *clinic {
	t.Helper()
	t.Parallel()
	c := &clinic{Site: site.PrepareOf(t, site.OwnLane(t, nodes), site.Shared.Temporal, config), beds: &beds{}}
	for _, file := range []string{"../../../deploy/kubernetes/rbac-health.yaml", "../testdata/remediators.yaml"} {
		c.apply(file)
	}
	if _, err := c.Kube.CoreV1().Namespaces().Create(c.Ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: remediatorsNamespace},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Nodes() {
		c.beds.free = append(c.beds.free, n.Name)
	}
	c.Eventually("the worker's account may make remediation objects", func() error {
		role, err := c.Kube.RbacV1().ClusterRoles().Get(c.Ctx, "drydock-worker-remediators", metav1.GetOptions{})
		if err == nil && len(role.Rules) == 0 {
			err = errors.New("nothing is aggregated yet")
		}
		return err
	})
	return c
}

// apply creates the objects of a file, and waits until kinds are served.
func (c *clinic) apply(file string) {
	c.Helper()
	for _, o := range c.Manifests(file) {
		c.create(o)
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		version, _, _ := unstructured.NestedString(versions[0].(map[string]any), "name")
		c.Eventually(plural+" are served", func() error {
			return c.Kube.CoreV1().RESTClient().Get().AbsPath("/apis", group, version, plural).Do(c.Ctx).Error()
		})
	}
}

// pathOf is where objects of a kind are.
func pathOf(apiVersion, kind, namespace string) []string {
	path := []string{"/apis", apiVersion}
	if !strings.Contains(apiVersion, "/") {
		path[0] = "/api"
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, strings.ToLower(kind)+"s")
}

func (c *clinic) create(o *unstructured.Unstructured) {
	c.Helper()
	text, err := o.MarshalJSON()
	if err == nil {
		err = c.Kube.CoreV1().RESTClient().Post().AbsPath(pathOf(o.GetAPIVersion(), o.GetKind(), o.GetNamespace())...).
			Body(text).SetHeader("Content-Type", "application/json").Do(c.Ctx).Error()
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		c.Fatalf("creating %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// part begins a part of the test. All parts run at once, however many tests may: they mostly wait for the same control plane.
// The test has to wait for them before it returns.
func (c *clinic) part(name string, run func(c *clinic)) {
	c.parts.Go(func() {
		c.Run(name, func(t *testing.T) {
			one := *c.Site
			one.T = t
			run(&clinic{Site: &one, beds: c.beds})
		})
	})
}

// template creates a template of a remediator's kind and returns what a check calls it by.
func (c *clinic) template(kind, name string, annotations map[string]string) string {
	c.Helper()
	version, kind, _ := strings.Cut(kind, " ")
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind + "Template",
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"strategy": name, "retries": int64(3)}}},
	}}
	o.SetName(name)
	o.SetNamespace(remediatorsNamespace)
	o.SetAnnotations(annotations)
	c.create(o)
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"%sTemplate","namespace":%q,"name":%q}`, version, kind, remediatorsNamespace, name)
}

func (c *clinic) object(kind, name, suffix string, what string, patch []byte) (*unstructured.Unstructured, error) {
	version, kind, _ := strings.Cut(kind, " ")
	path := append(pathOf(version, kind, remediatorsNamespace), name)
	if suffix != "" {
		path = append(path, suffix)
	}
	client := c.Kube.CoreV1().RESTClient()
	request := client.Get()
	switch what {
	case "delete":
		request = client.Delete()
	case "patch":
		request = client.Patch(types.MergePatchType).Body(patch)
	}
	text, err := request.AbsPath(path...).Do(c.Ctx).Raw()
	if err != nil {
		return nil, err
	}
	var o unstructured.Unstructured
	return &o, o.UnmarshalJSON(text)
}

// objectsFor are the remediation objects of a kind for a node, the oldest first.
func (c *clinic) objectsFor(kind, node string) []unstructured.Unstructured {
	c.Helper()
	version, kind, _ := strings.Cut(kind, " ")
	text, err := c.Kube.CoreV1().RESTClient().Get().AbsPath(pathOf(version, kind, remediatorsNamespace)...).Do(c.Ctx).Raw()
	var list unstructured.UnstructuredList
	if err == nil {
		err = list.UnmarshalJSON(text)
	}
	if err != nil {
		c.Fatal(err)
	}
	mine := slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool {
		return o.GetAnnotations()["remediation.medik8s.io/node-name"] != node
	})
	slices.SortStableFunc(mine, func(a, b unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	return mine
}

// remediated waits for a node's only remediation object of a kind.
func (c *clinic) remediated(kind, node string) *unstructured.Unstructured {
	c.Helper()
	var found []unstructured.Unstructured
	c.Eventually("node "+node+" is remediated", func() error {
		if found = c.objectsFor(kind, node); len(found) != 1 {
			return fmt.Errorf("there are %d objects of %s; %s", len(found), kind, c.told(node))
		}
		return nil
	})
	return &found[0]
}

// released waits until nothing of a node's remediation is left.
func (c *clinic) released(kind, node string) {
	c.Helper()
	c.Eventually("nothing of the remediation of "+node+" is left", func() error {
		if left := c.objectsFor(kind, node); len(left) > 0 {
			return fmt.Errorf("there is %s %s; %s", left[0].GetKind(), left[0].GetName(), c.told(node))
		}
		if lease := c.lease(node); lease != nil {
			return fmt.Errorf("its lease is held by %q; %s", *lease.Spec.HolderIdentity, c.told(node))
		}
		return nil
	})
}

// told is what the node's check says of it, for the message of a test that fails.
func (c *clinic) told(node string) string {
	n, err := c.Kube.CoreV1().Nodes().Get(c.Ctx, node, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	value, err := c.Temporal.QueryWorkflow(c.Ctx, api.HealthCheckID(c.Cluster, n.Labels[ward]), "", api.QueryExplain, api.ExplainRequest{Node: node})
	if err != nil {
		return err.Error()
	}
	var told api.HealthExplanation
	if err := value.Get(&told); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("check %s says %s, %q, blocked by %q, next %q", n.Labels[ward], told.State, told.Summary, told.Blocks, told.Next)
}

// finalizer keeps a remediation object, as a remediator does; an empty one lets it go.
func (c *clinic) finalizer(kind, name, finalizer string) {
	c.Helper()
	list := []string{}
	if finalizer != "" {
		list = append(list, finalizer)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": list}})
	if err == nil {
		_, err = c.object(kind, name, "", "patch", patch)
	}
	if err != nil {
		c.Fatal(err)
	}
}

// says has a remediator say something of an object.
func (c *clinic) says(kind, name, condition, status string) {
	c.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Test","message":"as the test has it"}]}}`, condition, status)
	if _, err := c.object(kind, name, "status", "patch", []byte(patch)); err != nil {
		c.Fatal(err)
	}
}

// lease is that of a node, nil if nobody has it.
func (c *clinic) lease(node string) *coordinationv1.Lease {
	c.Helper()
	lease, err := c.Kube.CoordinationV1().Leases(leasesNamespace).Get(c.Ctx, "node-"+node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "") {
		return nil
	}
	if err != nil {
		c.Fatal(err)
	}
	return lease
}

// group is the nodes of one check, and the check.
type group struct {
	*clinic
	name  string
	nodes []string
}

// take gives a part some nodes.
func (c *clinic) take(name string, nodes int) *group {
	c.Helper()
	c.beds.mu.Lock()
	defer c.beds.mu.Unlock()
	if len(c.beds.free) < nodes {
		c.Fatal("the clinic has too few nodes")
	}
	g := &group{clinic: c, name: name, nodes: c.beds.free[:nodes:nodes]}
	c.beds.free = c.beds.free[nodes:]
	for _, node := range g.nodes {
		c.PatchNode(node, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, ward, name))
	}
	return g
}

// check gives a part nodes and starts a check of them by the command line; fields are the check's besides the selector and the
// conditions, by which a node is ill that has been Broken for 2 s.
func (c *clinic) check(name string, nodes int, fields string) *group {
	c.Helper()
	g := c.take(name, nodes)
	g.start(fields)
	return g
}

func (g *group) start(fields string) {
	g.Helper()
	g.Exits(g.Drydock("health", "start", "--file", g.specFile(fields), "--by", "ops"), 0, "started")
	g.until("it has counted its nodes", func(s api.HealthStatus) bool { return s.ObservedNodes == len(g.nodes) })
}

func (g *group) specFile(fields string) string {
	g.Helper()
	conditions := ""
	if !strings.Contains(fields, "unhealthyConditions") {
		conditions = fmt.Sprintf(`"unhealthyConditions":[{"type":%q,"status":"True","duration":"2s"}],`, broken)
	}
	return g.File(g.name+".json", fmt.Sprintf(`{"name":%q,"selector":{"matchLabels":{%q:%q}},%s%s}`, g.name, ward, g.name, conditions, fields))
}

func (g *group) status() (api.HealthStatus, error) {
	var status api.HealthStatus
	value, err := g.Temporal.QueryWorkflow(g.Ctx, api.HealthCheckID(g.Cluster, g.name), "", api.QueryStatus, api.HealthStatusRequest{})
	if err != nil {
		return status, err
	}
	return status, value.Get(&status)
}

// until waits for the check to say something of itself.
func (g *group) until(what string, is func(api.HealthStatus) bool) api.HealthStatus {
	g.Helper()
	var status api.HealthStatus
	g.Eventually("check "+g.name+": "+what, func() (err error) {
		if status, err = g.status(); err != nil {
			return err
		}
		if !is(status) {
			return fmt.Errorf("it is %s (%s), %d of %d healthy, %d under remediation, waits for %q, blocked by %q, nodes %+v",
				status.Phase, status.Reason, status.HealthyNodes, status.ObservedNodes, status.Remediating, status.WaitingFor, status.Blocked, status.UnhealthyNodes)
		}
		return nil
	})
	return status
}

// well waits until all nodes are healthy, and nothing goes on.
func (g *group) well() {
	g.Helper()
	g.until("all is well", func(s api.HealthStatus) bool {
		return s.Phase == health.PhaseEnabled && s.HealthyNodes == len(g.nodes) && s.Remediating == 0 && len(s.UnhealthyNodes) == 0
	})
}

// explains waits until the check says something of a node.
func (g *group) explains(node string, says ...string) {
	g.Helper()
	g.Eventually("check "+g.name+" explains "+node, func() error {
		r := g.Drydock("health", "explain", node)
		for _, text := range says {
			if !strings.Contains(r.Out(), text) {
				return fmt.Errorf("exit status %d, want %q in\n%s", r.Status, text, r.Out())
			}
		}
		return nil
	})
}

// happened reports whether the check has an event about a node; empty is any node.
func (g *group) happened(reason, node string) int {
	g.Helper()
	status, err := g.status()
	if err != nil {
		g.Fatal(err)
	}
	count := 0
	for _, e := range status.Events {
		if e.Reason == reason && (node == "" || e.Node == node) {
			count++
		}
	}
	return count
}

// breaks makes a node ill, and returns since when it is.
func (c *clinic) breaks(node string) time.Time { return c.condition(node, broken, "True") }

// breakAtOnce makes nodes ill that the check is to see together, however long the API server takes for each.
func (g *group) breakAtOnce(nodes []string) {
	g.Helper()
	g.Exits(g.Drydock("health", "pause", g.name, "--comment", "several nodes break at once", "--by", "test"), 0)
	for _, node := range nodes {
		g.breaks(node)
	}
	g.until("it knows of all that are ill", func(s api.HealthStatus) bool { return s.Unhealthy == len(nodes) })
	g.Exits(g.Drydock("health", "resume", g.name, "--by", "test"), 0)
}

func (c *clinic) mends(node string) { c.condition(node, broken, "False") }

// condition sets a condition of a node, as of now.
func (c *clinic) condition(node, kind, status string) time.Time {
	c.Helper()
	since := time.Now().Truncate(time.Second).UTC()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Test","message":"as the test has it","lastTransitionTime":%q}]}}`,
		kind, status, since.Format(time.RFC3339))
	if _, err := c.Kube.CoreV1().Nodes().Patch(c.Ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		c.Fatal(err)
	}
	return since
}

// creations are the remediation objects that the worker has made in all the test for a node, as the API server recorded it: those
// of names that are made up begin with the node's.
func (c *clinic) creations(node string) int {
	c.Helper()
	return len(c.Requests(`"namespace":"`+remediatorsNamespace+`"`, func(r site.Request) bool {
		return r.Verb == "create" && r.Status.Code < 300 && (r.Object.Name == node || strings.HasPrefix(r.Object.Name, node+"-"))
	}))
}
