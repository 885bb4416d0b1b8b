package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
	"drydock.dev/drydock/lab/e2e/site"
)

// operatorNamespace is the namespace that maintenance-operator is installed in.
const operatorNamespace = "maintenance-operator"

// ofMaintenanceOperator is what its objects showed.
var ofMaintenanceOperator = recording{"maintenance-operator", os.Getenv("DRYDOCK_MAINTENANCE_OPERATOR"), "testdata/maintenance-operator-e15d07b.json"}

// see adds what a version of an object shows.
func (s strands) see(o objects.NodeMaintenance) {
	if c := meta.FindStatusCondition(o.Status.Conditions, "Ready"); c != nil {
		s.add("ready", fmt.Sprintf("%s %s", c.Status, c.Reason))
	}
	on := "off"
	if slices.Contains(o.Finalizers, objects.Finalizer) {
		on = "on"
	}
	s.add("finalizer", on)
	owners := []string{}
	for _, r := range o.OwnerReferences {
		owners = append(owners, r.Kind+" "+r.Name)
	}
	s.add("owners", strings.Join(owners, ", "))
	for _, key := range slices.Sorted(maps.Keys(o.Annotations)) {
		name, ours := strings.CutPrefix(key, "maintenance.nvidia.com/")
		value := o.Annotations[key]
		if strings.HasSuffix(key, "-time") {
			value = "a time"
		}
		if ours {
			s.add(name, value)
		}
	}
	if _, there := o.Annotations["maintenance.nvidia.com/node-initial-state.unschedulable"]; !there && len(s["node-initial-state.unschedulable"]) > 0 {
		s.add("node-initial-state.unschedulable", "none")
	}
	s.add("waits", fmt.Sprint(apps(o.Status.WaitForCompletion)))
}

// apps are the apps of pods: their own names are random.
func apps(pods []string) (all []string) {
	for _, pod := range pods {
		_, name, _ := strings.Cut(pod, "/")
		app, _, _ := strings.Cut(name, "-")
		all = append(all, app)
	}
	return all
}

// peer is a cluster with the objects' definitions, and either maintenance-operator or a bridge in its place.
type peer struct {
	*bridged
	mu   sync.Mutex
	seen map[string]strands
	// final are the last counts of each drain.
	drains map[string]objects.DrainStatus
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	p := preparePeer(t)
	p.serve()
	return p
}

// preparePeer makes one whose objects nobody serves yet.
func preparePeer(t *testing.T) *peer {
	t.Helper()
	b := prepare(t, "scheduler: {maxParallel: 1}")
	b.args = []string{"--maintenance-operator", operatorNamespace}
	b.install(manifests + "maintenance-operator/crds.yaml")
	p := &peer{bridged: b, seen: map[string]strands{}, drains: map[string]objects.DrainStatus{}}
	b.Eventually("the objects are served", func() error { return p.send("get", "nodemaintenances", "", nil, nil) })
	p.follow()
	return p
}

// serve has the objects served.
func (p *peer) serve() {
	p.Helper()
	if ofMaintenanceOperator.program == "" {
		p.startBridge()
		p.untilTheEnd()
		return
	}
	ofMaintenanceOperator.start(p.bridged, []string{"ENABLE_WEBHOOKS=false", "OPERATOR_NAMESPACE=" + operatorNamespace}, "--metrics-bind-address", "0")
}

// path is that of the objects, or of one of them, or of one's subresource.
func (p *peer) path(resource string, name ...string) []string {
	return append([]string{"/apis", objects.GroupVersion.String(), "namespaces", operatorNamespace, resource}, name...)
}

func (p *peer) send(verb, resource, name string, body, answer any) error {
	rest := p.Kube.CoreV1().RESTClient()
	request := rest.Get()
	switch verb {
	case "create":
		request = rest.Post()
	case "patch", "status":
		request = rest.Patch(types.MergePatchType)
	case "delete":
		request = rest.Delete()
	}
	path := p.path(resource)
	if name != "" && verb != "create" {
		path = append(path, name)
	}
	if verb == "status" {
		path = append(path, "status")
	}
	request = request.AbsPath(path...)
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		request = request.Body(text)
		if verb == "create" {
			request = request.SetHeader("Content-Type", "application/json")
		}
	}
	got, err := request.Do(p.Ctx).Raw()
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(got, answer)
}

// follow watches the objects from now on.
func (p *peer) follow() {
	p.Helper()
	p.watch(func(kind string, version []byte) {
		var o objects.NodeMaintenance
		if json.Unmarshal(version, &o) != nil || o.Name == "" {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.seen[o.Name] == nil {
			p.seen[o.Name] = strands{}
		}
		p.seen[o.Name].see(o)
		if kind == "DELETED" {
			p.seen[o.Name].add("ready", "gone")
		}
		if o.Status.Drain != nil {
			p.drains[o.Name] = *o.Status.Drain
		}
	}, p.path("nodemaintenances")...)
}

func (p *peer) ask(name, node string, spec map[string]any) {
	p.Helper()
	all := map[string]any{"requestorID": "any." + name, "nodeName": node}
	maps.Copy(all, spec)
	p.create("nodemaintenances", "NodeMaintenance", map[string]any{"name": name}, all)
}

// create creates an object. When the test ends, it is gone.
func (p *peer) create(resource, kind string, metadata, spec map[string]any) {
	p.Helper()
	name := metadata["name"].(string)
	err := p.send("create", resource, name, map[string]any{"apiVersion": objects.GroupVersion.String(), "kind": kind, "metadata": metadata, "spec": spec}, nil)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		err := errors.Join(
			p.send("patch", resource, name, map[string]any{"metadata": map[string]any{"finalizers": nil}}, nil), p.send("delete", resource, name, nil, nil),
		)
		if err != nil && !apierrors.IsNotFound(err) {
			p.Logf("%s %s is left: %v", resource, name, err)
		}
	})
}

func (p *peer) annotation(name, key string) string {
	p.Helper()
	var o objects.NodeMaintenance
	if err := p.send("get", "nodemaintenances", name, nil, &o); err != nil {
		p.Fatal(err)
	}
	return o.Annotations[key]
}

// shows waits until the object has a reason, and at Ready the time of that, which is written after it.
func (p *peer) shows(name, reason string) {
	p.Helper()
	p.has(name, reason, func(s objects.NodeMaintenanceStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, "Ready")
		return c != nil && c.Reason == reason && (reason != objects.Ready || p.annotation(name, objects.ReadyTime) != "")
	})
}

// has waits until the status of an object shows something.
func (p *peer) has(name, what string, is func(objects.NodeMaintenanceStatus) bool) {
	p.Helper()
	p.Within(90*time.Second, name+" shows "+what, func() error {
		var o objects.NodeMaintenance
		if err := p.send("get", "nodemaintenances", name, nil, &o); err != nil {
			return err
		}
		if !is(o.Status) {
			return fmt.Errorf("%+v", o.Status)
		}
		return nil
	})
}

func (p *peer) isCordoned(node string) {
	p.Helper()
	if !p.Node(node).Spec.Unschedulable {
		p.Errorf("%s is schedulable", node)
	}
}

func (p *peer) delete(name string) {
	p.Helper()
	if err := p.send("delete", "nodemaintenances", name, nil, nil); err != nil {
		p.Fatal(err)
	}
}

func (p *peer) isGone(name string) {
	p.Helper()
	p.Eventually(name+" is gone", func() error {
		var o objects.NodeMaintenance
		err := p.send("get", "nodemaintenances", name, nil, &o)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("%+v", o)
	})
}

// fails sets the condition of a requestor that has failed.
func (p *peer) fails(name, status string) {
	p.Helper()
	p.Eventually(name+" says RequestorFailed "+status, func() error {
		var o objects.NodeMaintenance
		if err := p.send("get", "nodemaintenances", name, nil, &o); err != nil {
			return err
		}
		meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{Type: "RequestorFailed", Status: metav1.ConditionStatus(status), Reason: "FailedMaintenance"})
		return p.send("status", "nodemaintenances", name, map[string]any{
			"metadata": map[string]any{"resourceVersion": o.ResourceVersion}, "status": map[string]any{"conditions": o.Status.Conditions},
		}, nil)
	})
}

// events are those of an object, in their order.
func (p *peer) events(name string) []string {
	p.Helper()
	list, err := p.Kube.CoreV1().Events(operatorNamespace).List(p.Ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		p.Fatal(err)
	}
	// The recorder writes each event in a goroutine of its own, so that their versions may be in another order than the events.
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var all []string
	for _, e := range list.Items {
		if text := e.Type + " " + e.Reason + " " + e.Message; !slices.Contains(all, text) { // the same again is counted
			all = append(all, text)
		}
	}
	return all
}

// record is what was seen of an object, with its events and its last drain.
func (p *peer) record(name string) strands {
	p.Helper()
	events := p.events(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	all := maps.Clone(p.seen[name])
	all["events"] = events
	if d, drained := p.drains[name]; drained {
		all["drain"] = []string{fmt.Sprintf("%d of %d pods, %d %%, waits for %v", d.EvictionPods, d.TotalPods, d.DrainProgress, apps(d.WaitForEviction))}
	}
	return all
}

// The clients of maintenance-operator know nothing but its API. Each case is what some do, and its objects show what they showed when the
// operator itself served them.
func TestMaintenanceOperatorsClientsSeeWhatTheyKnow(t *testing.T) {
	p := newPeer(t)
	seen := map[string]strands{}
	for _, c := range operatorCases {
		before := p.Imprint(c.node)
		c.does(p, c.name)
		p.isGone(c.name)
		p.Eventually(c.name+"'s node is as it was", func() error {
			if now := p.Imprint(c.node); !c.changes && now != before {
				return fmt.Errorf("%s, want %s", now, before)
			}
			return nil
		})
		seen[c.name] = p.record(c.name)
	}
	ofMaintenanceOperator.holds(p.bridged, seen)
}

// operatorCase is what a client does with an object until it is gone.
type operatorCase struct {
	name, node string
	// changes: the node is not as before.
	changes bool
	does    func(p *peer, name string)
}

var operatorCases = []operatorCase{
	{name: "plain", node: "worker-01", does: func(p *peer, name string) {
		p.ask(name, "worker-01", nil)
		p.shows(name, "Ready")
		p.isCordoned("worker-01")
		p.delete(name)
	}},
	{name: "drained", node: "worker-01", does: func(p *peer, name string) {
		ns := p.Namespace()
		p.Deployment(ns, "web", 2, site.On("worker-01"))
		p.ask(name, "worker-01", map[string]any{"drainSpec": map[string]any{"force": true, "podSelector": "app=web"}})
		p.shows(name, "Ready")
		p.delete(name)
	}},
	{name: "waits", node: "worker-01", does: func(p *peer, name string) {
		ns := p.Namespace()
		p.Job(ns, "training", "worker-01", "1h")
		p.ask(name, "worker-01", map[string]any{"waitForPodCompletion": map[string]any{"podSelector": "app=training"}})
		p.has(name, "its pods", func(s objects.NodeMaintenanceStatus) bool { return len(s.WaitForCompletion) > 0 })
		// Maintenance-operator waits until the pods are gone, and not only until they have completed.
		if err := p.Kube.BatchV1().Jobs(ns).Delete(p.Ctx, "training", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
			p.Fatal(err)
		}
		p.shows(name, "Ready")
		p.delete(name)
	}},
	{name: "failed", node: "worker-01", does: func(p *peer, name string) {
		p.ask(name, "worker-01", nil)
		p.shows(name, "Ready")
		p.fails(name, "True")
		p.shows(name, "RequestorFailed")
		p.fails(name, "False")
		p.shows(name, "Ready")
		p.fails(name, "True")
		p.shows(name, "RequestorFailed")
		p.delete(name)
	}},
	{name: "shared", node: "worker-01", does: func(p *peer, name string) {
		p.ask(name, "worker-01", map[string]any{"additionalRequestors": []string{"any.second"}})
		p.shows(name, "Ready")
		p.delete(name)
		p.shows(name, "Ready")
		p.isCordoned("worker-01")
		if err := p.send("patch", "nodemaintenances", name, map[string]any{"spec": map[string]any{"additionalRequestors": []string{}}}, nil); err != nil {
			p.Fatal(err)
		}
	}},
	{name: "blocked", node: "worker-01", does: func(p *peer, name string) {
		p.Guarded(p.Namespace(), "guarded", "worker-01")
		p.ask(name, "worker-01", map[string]any{"drainSpec": map[string]any{"podSelector": "app=guarded"}})
		p.has(name, "its drain", func(s objects.NodeMaintenanceStatus) bool { return s.Drain != nil && len(s.Drain.WaitForEviction) > 0 })
		p.delete(name)
	}},
	{name: "cordoned", node: "worker-02", does: func(p *peer, name string) {
		p.PatchNode("worker-02", `{"spec":{"unschedulable":true}}`)
		p.ask(name, "worker-02", nil)
		p.shows(name, "Ready")
		p.delete(name)
		p.isGone(name)
		p.isCordoned("worker-02")
	}, changes: true},
}
