package bridge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/e2e/site"
)

// manifests has the shipped files of the bridge.
const manifests = "../../../deploy/kubernetes/"

// bridged is a site with the objects' definitions and a bridge, which has the shipped account.
type bridged struct {
	*site.Site
	kubeconfig string
	// account is a client with the rights of the bridge.
	account kubernetes.Interface
	bridge  *devstack.Bridge
	starts  int
	// args are further flags of the bridge.
	args []string
}

func newBridged(t *testing.T, config string) *bridged {
	t.Helper()
	b := prepare(t, config)
	b.startBridge()
	b.untilTheEnd()
	return b
}

// prepare makes one whose bridge is not started yet.
func prepare(t *testing.T, config string) *bridged {
	t.Helper()
	b := &bridged{Site: site.New(t, config)}
	for _, k := range kinds {
		b.install(manifests + "crds/drydock.dev_" + k.plural + ".yaml")
	}
	b.roles(manifests + "bridge/rbac.yaml")
	b.roles(manifests + "rbac-objects.yaml")
	for _, name := range []string{operatorNamespace, healthNamespace, pikaNamespace} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := site.CreateRole(b.Ctx, b.Kube, ns); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for _, of := range []string{"maintenance-operator", "node-healthcheck", "pika", "kep"} {
		b.roles(manifests + of + "/rbac.yaml")
	}
	b.kubeconfig = b.Options.Dir + "/bridge.kubeconfig"
	if err := site.WriteKubeconfig(b.Ctx, b.Lane.Cluster, "drydock", "drydock-bridge", b.kubeconfig); err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		b.Eventually(k.plural+" are served", func() error { return b.send(k.plural, "get", "", nil, nil) })
	}
	var err error
	if b.account, err = site.ClientOf(b.kubeconfig); err != nil {
		t.Fatal(err)
	}
	b.Eventually("the account of the bridge has its rights", func() error { return site.ShippedAccounts["bridge"].HasAll(b.Ctx, b.account) })
	return b
}

// untilTheEnd holds the bridge to what it may, and stops it, when the test ends.
func (b *bridged) untilTheEnd() {
	b.Cleanup(func() {
		b.didWhatItMay()
		if b.Failed() {
			log, err := os.ReadFile(b.bridge.Log)
			b.Logf("the bridge's log: %v\n%s", err, log)
		}
		site.Stop(b.bridge.Process)
	})
}

// roles creates the roles of a shipped file, which a test of the same control plane may have created before.
func (b *bridged) roles(file string) {
	b.Helper()
	roles, err := site.ObjectsOf(file)
	if err != nil {
		b.Fatal(err)
	}
	for _, role := range roles {
		if err := site.CreateRole(b.Ctx, b.Kube, role); err != nil && !apierrors.IsAlreadyExists(err) {
			b.Fatal(err)
		}
	}
}

// didWhatItMay holds the requests of the bridge to its account: each is the account's, none was refused, and none is about nodes or pods.
func (b *bridged) didWhatItMay() {
	b.Helper()
	all := b.RequestsBy("drydock-bridge", "", func(r site.Request) bool { return r.Answered() })
	if len(all) == 0 {
		b.Error("the audit log has nothing of the bridge")
	}
	for _, r := range all {
		refused := r.User.Name != site.ShippedAccounts["bridge"].User || r.Status.Code == http.StatusForbidden || r.Status.Code == http.StatusUnauthorized
		if refused || r.Object.Resource == "nodes" || r.Object.Resource == "pods" {
			b.Errorf("%s did %s %s/%s %s: %d", r.User.Name, r.Verb, r.Object.Resource, r.Object.Subresource, r.Object.Name, r.Status.Code)
		}
	}
}

// resources are those of the kinds of shipped files.
var resources = map[string]string{
	"CustomResourceDefinition": "customresourcedefinitions", "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
	"MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings", "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
	"ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}

// uninstall deletes them.
func (b *bridged) uninstall(file string) {
	b.Helper()
	for _, o := range b.Manifests(file) {
		err := b.Kube.CoreV1().RESTClient().Delete().AbsPath("/apis", o.GetAPIVersion(), resources[o.GetKind()], o.GetName()).Do(b.Ctx).Error()
		if err != nil {
			b.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// install creates the objects of a shipped file, which a test of the same control plane may have created before.
func (b *bridged) install(file string) {
	b.Helper()
	for _, o := range b.Manifests(file) {
		text, err := o.MarshalJSON()
		if err != nil {
			b.Fatal(err)
		}
		err = b.Kube.CoreV1().RESTClient().Post().AbsPath("/apis", o.GetAPIVersion(), resources[o.GetKind()]).
			Body(text).SetHeader("Content-Type", "application/json").Do(b.Ctx).Error()
		if err != nil && !apierrors.IsAlreadyExists(err) {
			b.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func (b *bridged) startBridge() {
	b.Helper()
	b.starts++
	bridge, err := devstack.StartBridge(b.Ctx, devstack.BridgeOptions{
		Dir: b.Options.Dir, Name: fmt.Sprintf("bridge-%d", b.starts), Kubeconfig: b.kubeconfig, Temporal: site.Shared.Temporal,
		Args: append([]string{"--cluster", b.Cluster, "--lease-namespace", "drydock", "--approvals"}, b.args...),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.bridge = bridge
}

// objects sends a request about the NodeMaintenance of a name, or about all.
func (b *bridged) objects(verb, name string, body, answer any) error {
	return b.send("nodemaintenances", verb, name, body, answer)
}

// versionOf is the version of a resource, and its name without the group. Without one it is of Drydock's.
func versionOf(resource string) (version, plural string) {
	plural, group, _ := strings.Cut(resource, ".")
	return cmp.Or(group, v1alpha1.GroupVersion.Group) + "/" + v1alpha1.GroupVersion.Version, plural
}

// send sends a request about the object of a name, or about all of a kind.
func (b *bridged) send(resource, verb, name string, body, answer any) error {
	rest := b.Kube.CoreV1().RESTClient()
	version, plural := versionOf(resource)
	path := []string{"/apis", version, plural}
	if name != "" && verb != "create" {
		path = append(path, name)
	}
	request := rest.Get()
	switch verb {
	case "create":
		request = rest.Post()
	case "patch":
		request = rest.Patch(types.MergePatchType)
	case "delete":
		request = rest.Delete()
	}
	request = request.AbsPath(path...)
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		request = request.Body(text)
		if verb != "patch" {
			request = request.SetHeader("Content-Type", "application/json")
		}
	}
	got, err := request.Do(b.Ctx).Raw()
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(got, answer)
}

// ask creates an object whose spec is given in YAML.
func (b *bridged) ask(name, spec string) {
	b.Helper()
	b.askFor(kinds[0], name, spec)
}

// askFor creates an object of a kind.
func (b *bridged) askFor(k kind, name, spec string) {
	b.Helper()
	if err := b.send(k.plural, "create", name, b.objectOf(k, name, spec), nil); err != nil {
		b.Fatal(err)
	}
}

// tryFor reports whether an object would be created.
func (b *bridged) tryFor(k kind, name, spec string) error {
	b.Helper()
	version, plural := versionOf(k.plural)
	text, err := json.Marshal(b.objectOf(k, name, spec))
	if err != nil {
		return err
	}
	return b.Kube.CoreV1().RESTClient().Post().AbsPath("/apis", version, plural).Param("dryRun", "All").
		Body(text).SetHeader("Content-Type", "application/json").Do(b.Ctx).Error()
}

func (b *bridged) objectOf(k kind, name, spec string) map[string]any {
	b.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		b.Fatal(err)
	}
	version, _ := versionOf(k.plural)
	return map[string]any{"apiVersion": version, "kind": k.name, "metadata": map[string]any{"name": name}, "spec": fields}
}

func (b *bridged) get(name string) (o v1alpha1.NodeMaintenance, err error) {
	err = b.objects("get", name, nil, &o)
	return o, err
}

// shows waits until a condition of an object is true for a reason.
func (b *bridged) shows(name, condition, reason string) v1alpha1.NodeMaintenance {
	b.Helper()
	var o v1alpha1.NodeMaintenance
	b.Eventually(name+" is "+condition+" for "+reason, func() (err error) {
		if o, err = b.get(name); err != nil {
			return err
		}
		is := meta.FindStatusCondition(o.Status.Conditions, condition)
		if is == nil || is.Status != metav1.ConditionTrue || is.Reason != reason {
			return fmt.Errorf("%+v", o.Status)
		}
		return nil
	})
	return o
}

// isGone waits until there is no such object.
func (b *bridged) isGone(name string) {
	b.Helper()
	b.Eventually(name+" is gone", func() error {
		o, err := b.get(name)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		default:
			return fmt.Errorf("%+v", o.Status)
		}
	})
}

func (b *bridged) delete(name string) {
	b.Helper()
	if err := b.objects("delete", name, nil, nil); err != nil {
		b.Fatal(err)
	}
}

func (b *bridged) run(o v1alpha1.NodeMaintenance) temporalclient.WorkflowRun {
	return b.Temporal.GetWorkflow(b.Ctx, o.Status.WorkflowID, o.Status.RunID)
}

func TestAnObjectIsMaintained(t *testing.T) {
	b := newBridged(t, "scheduler: {maxParallel: 2}")
	before := b.Imprint("worker-01")
	b.ask("kernel", "{node: worker-01, reason: a new kernel}")
	o := b.shows("kernel", v1alpha1.Ready, string(api.Ready))
	if want := api.MaintenanceID(b.Cluster, "worker-01", "kernel"); o.Status.WorkflowID != want || o.Status.RunID == "" {
		t.Errorf("workflow %s, run %q; want %s", o.Status.WorkflowID, o.Status.RunID, want)
	}
	status := b.Until(b.run(o), api.Ready)
	if status.Spec.Reason != "a new kernel" || status.Spec.Object == nil || status.Spec.Object.UID != string(o.UID) {
		t.Errorf("the maintenance is asked to be %+v", status.Spec)
	}
	b.MustBeHeld("worker-01", status.RunID)

	// Whoever has Temporal's rights says done, and the object shows the end.
	b.Exits(b.Drydock("done", "worker-01", "--requestor", "kernel", "--yes"), 0)
	o = b.shows("kernel", v1alpha1.Succeeded, string(api.Completed))
	if c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.Reconciling); c.Status != metav1.ConditionFalse {
		t.Errorf("at its end the object has conditions %+v", o.Status.Conditions)
	}
	b.Eventually("the object can go", func() error {
		o, err := b.get("kernel")
		if err == nil && len(o.Finalizers) > 0 {
			err = fmt.Errorf("finalizers %v", o.Finalizers)
		}
		return err
	})
	if after := b.Imprint("worker-01"); after != before {
		t.Errorf("node before: %s, after: %s", before, after)
	}
	// Each change is written once: the phases, and beside them what a drain and its requestors do.
	written := b.RequestsBy("drydock-bridge", "nodemaintenances", func(r site.Request) bool {
		return r.Answered() && r.Verb == "patch" && r.Object.Name == "kernel" && r.Status.Code < 300
	})
	phases := len(b.MustEnd(b.run(o), api.Completed).Transitions)
	t.Logf("%d writes for %d phases", len(written), phases)
	if len(written) < 3 || len(written) > phases+3 {
		t.Errorf("the object was written %d times, and its maintenance went through %d phases", len(written), phases)
	}
	b.delete("kernel")
	b.isGone("kernel")

	// The same name again is another maintenance.
	b.ask("kernel", "{node: worker-01}")
	again := b.shows("kernel", v1alpha1.Ready, string(api.Ready))
	if again.Status.RunID == o.Status.RunID {
		t.Error("the second object of the name shows the first one's maintenance")
	}
	// A deleted object gives its node back.
	b.delete("kernel")
	b.isGone("kernel")
	b.MustEnd(b.run(again), api.Completed)
	b.MustBeFree("worker-01")
}

func TestADeletedObjectCancelsADrain(t *testing.T) {
	b := newBridged(t, "")
	ns := b.Namespace()
	b.Guarded(ns, "guarded", "worker-02")
	b.ask("blocked", "{node: worker-02}")
	b.shows("blocked", v1alpha1.Reconciling, string(api.Draining))
	o, err := b.get("blocked")
	if err != nil {
		t.Fatal(err)
	}
	b.delete("blocked")
	b.isGone("blocked")
	if result, _ := b.End(b.run(o)); result.Phase != api.Cancelled {
		t.Errorf("the maintenance ended %s: %s", result.Phase, result.Message)
	}
	b.MustBeFree("worker-02")
}

func TestAnObjectThatCannotBeMaintainedSaysSo(t *testing.T) {
	b := newBridged(t, "")
	// The API server does not know the syntax of selectors.
	b.ask("invalid", `{node: worker-01, drain: {podSelector: "app in"}}`)
	o := b.shows("invalid", v1alpha1.Stalled, "InvalidSpec")
	if !strings.Contains(o.Status.Message, "drain.podSelector") || o.Status.WorkflowID != "" {
		t.Errorf("it shows %+v", o.Status)
	}
	b.delete("invalid")
	b.isGone("invalid")

	// Only the worker knows its windows.
	b.ask("window", "{node: worker-01, windows: [nightly]}")
	o = b.shows("window", v1alpha1.Failed, string(api.Failed))
	if !strings.Contains(o.Status.Message, "nightly") {
		t.Errorf("it shows %+v", o.Status)
	}
	b.delete("window")
	b.isGone("window")

	// Somebody else's maintenance of the same node and requestor comes first.
	other := b.Start("worker-01", "shared", `{"node":"worker-01","requestor":"shared"}`)
	b.Until(other, api.Ready)
	b.ask("second", "{node: worker-01, requestor: shared}")
	b.shows("second", v1alpha1.Reconciling, "Occupied")
	b.Done(other)
	o = b.shows("second", v1alpha1.Ready, string(api.Ready))
	b.delete("second")
	b.isGone("second")
	b.MustEnd(b.run(o), api.Completed)
}

// The next bridge waits until the killed one's Lease is over.
func TestSlowABridgeThatWasKilledGoesOn(t *testing.T) {
	b := newBridged(t, "scheduler: {maxParallel: 5}")
	nodes := []string{"worker-01", "worker-02", "worker-03", "worker-04"}
	ask := func(suffix string) {
		for _, node := range nodes {
			b.ask(node+suffix, fmt.Sprintf("{node: %s}", node))
		}
	}
	ask("-one")
	b.askFor(plans, "fleet", "{nodes: [worker-05], maintenance: {readyTimeout: 4h}}")
	// Killed at once: it may have started none of them, some, or all, and have written nothing of it.
	b.bridge.Kill()
	b.startBridge()
	runs := map[string]bool{}
	for _, node := range nodes {
		o := b.shows(node+"-one", v1alpha1.Ready, string(api.Ready))
		runs[o.Status.RunID] = true
	}
	fleet := b.untilPlan("fleet", "works on its node", func(p v1alpha1.MaintenancePlan) bool { return p.Status.Counts != nil && p.Status.Counts.Running == 1 })
	b.Until(b.inPlan("worker-05", "fleet"), api.Ready)
	// What happens without a bridge is seen by the next.
	b.bridge.Kill()
	for _, node := range nodes {
		b.Exits(b.Drydock("done", node, "--requestor", node+"-one", "--yes"), 0)
	}
	b.Exits(b.Drydock("done", "worker-05", "--requestor", "plan-fleet", "--yes"), 0)
	b.startBridge()
	for _, node := range nodes {
		o := b.shows(node+"-one", v1alpha1.Succeeded, string(api.Completed))
		if !runs[o.Status.RunID] {
			t.Errorf("%s shows run %s, which is another than before", o.Name, o.Status.RunID)
		}
		b.delete(o.Name)
	}
	if p := b.planIs("fleet", v1alpha1.Succeeded, string(api.PlanCompleted)); p.Status.RunID != fleet.Status.RunID {
		t.Errorf("the plan shows run %s, which is another than before", p.Status.RunID)
	}
	for _, node := range nodes {
		b.isGone(node + "-one")
		b.MustBeFree(node)
	}
	drydock := client.New(b.Temporal, client.Options{Cluster: b.Cluster, By: "test"})
	b.Eventually("there is one maintenance for each object, and one of the plan", func() error {
		all, err := drydock.List(b.Ctx, client.ListOptions{})
		if err == nil && len(all) != len(nodes)+1 {
			err = fmt.Errorf("there are %d", len(all))
		}
		return err
	})
}
