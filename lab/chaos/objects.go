package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

// objectsPath is where the API server has the objects by which the maintenances of a lane may be asked for, objectsDefinition the name of
// their definition.
const (
	objectsPath       = "/apis/drydock.dev/v1alpha1/nodemaintenances"
	objectsDefinition = "nodemaintenances.drydock.dev"
)

// objectsSteps are those of the bridge, which has objects drive maintenances.
var objectsSteps = []step{
	{name: "hold-object", what: "the patch that puts the finalizer on an object", requests: patchesObject(`"finalizers":[`), objects: true},
	{name: "read-object", what: "the look at an object before its maintenance is started", requests: readsObject, objects: true},
	{name: "start-for-object", what: "the bridge starts the maintenance", call: ofMethod("StartWorkflowExecution"), objects: true},
	{name: "reconcile-object", what: "activity ReconcileObject, by which a maintenance calls the bridge", task: "ReconcileObject", requests: showsObject, objects: true},
	{name: "show-object", what: "the patch of an object's status", requests: showsObject, objects: true},
	{name: "say-for-object", what: "the bridge sends what an annotation says", call: ofMethod("UpdateWorkflowExecution"), objects: true},
	{name: "take-annotation-off", what: "the patch that takes the annotation off", requests: patchesObject(`"op":"remove"`), objects: true},
	{name: "let-object-go", what: "the patch that takes the finalizer off", requests: patchesObject(`"finalizers":null`), objects: true},
	{name: "renew-bridge", what: "the bridge renews its lease", requests: renewsBridge, objects: true},
}

func ofMethod(method string) func(call) bool { return func(c call) bool { return c.method == method } }

func oneObject(r *request) bool { return strings.HasPrefix(r.path, objectsPath+"/") }

func allObjects(r *request) bool { return r.method == http.MethodGet && r.path == objectsPath }

func readsObject(r *request) bool { return r.method == http.MethodGet && oneObject(r) }

func showsObject(r *request) bool {
	return r.method == http.MethodPatch && oneObject(r) && strings.HasSuffix(r.path, "/status")
}

func patchesObject(with string) func(*request) bool {
	return func(r *request) bool {
		return r.method == http.MethodPatch && oneObject(r) && !showsObject(r) && strings.Contains(string(r.body), with)
	}
}

func renewsBridge(r *request) bool {
	return r.method == http.MethodPut && strings.Contains(r.path, "/leases/"+bridgeLease)
}

// bridgeLease is the lease of bridges that serve Drydock's own objects.
const bridgeLease = "drydock-bridge"

// canHappenToObjects reports whether there is something in a step of the bridge to which the fault can happen.
func (c cell) canHappenToObjects() bool {
	switch k := c.kind; {
	case !c.step.objects:
		return false
	case k.onAPI():
		return c.step.requests != nil
	case k.deletes(): // there may be none yet
		return c.step.name != "renew-bridge"
	case k == resetMaintenance: // before there is none
		return !slices.Contains([]string{"hold-object", "read-object", "renew-bridge"}, c.step.name) && (c.step.name != "start-for-object" || c.when == after)
	default:
		return slices.Contains([]kind{killWorker, killBridge, cutTemporal, restartTemporal, resetScheduler, expireCredentials, loseLease}, k)
	}
}

// mirrored is an attempt whose maintenances objects ask for.
type mirrored struct{ *attempt }

// startBridge starts the lane's bridge, which reaches Temporal and the API server through the lane's proxies.
func (l *lane) startBridge(ctx context.Context) error {
	l.bridges++
	b, err := devstack.StartBridge(ctx, devstack.BridgeOptions{
		Dir: filepath.Join(l.dir, l.name), Name: fmt.Sprintf("bridge-%d", l.bridges), Kubeconfig: l.kubefile, Temporal: l.temporal,
		Environment: []string{"TEMPORAL_ADDRESS=" + l.calls.address}, Args: []string{"--cluster", l.cluster, "--lease-namespace", l.name},
	})
	l.bridge = b
	return err
}

// hitBridge kills the bridge, or has it lose its lease, after which it has to end.
func (m mirrored) hitBridge(ctx context.Context) (strike, recovery func() error) {
	hit := m.bridge
	recovery = func() error { return nil }
	if m.cell.kind == killBridge {
		return func() error { hit.Kill(); return nil }, recovery
	}
	return func() error { return m.takeLease(ctx) }, func() error {
		select {
		case <-hit.Exited():
			return nil
		case <-time.After(patience):
			return errors.New("the bridge goes on without its lease")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *lane) stopBridge() {
	if l.bridge != nil && l.bridge.Process != nil {
		l.bridge.Kill()
	}
	l.bridge = nil
}

// keepBridge starts another bridge where the last one has ended, as a Deployment does. It may end by the fault alone.
func (m mirrored) keepBridge(ctx context.Context) error {
	select {
	case <-m.bridge.Exited():
	default:
		return nil
	}
	if m.cell.kind != killBridge && m.cell.kind != loseLease && m.cell.step.name != "renew-bridge" {
		return fmt.Errorf("the bridge ended by itself: %s", m.bridge.Tail())
	}
	return m.startBridge(ctx)
}

// takeLease has somebody else hold the bridge's lease, for longer than a bridge tries to have it back.
func (l *lane) takeLease(ctx context.Context) error {
	leases := l.kube.CoordinationV1().Leases(l.name)
	return world.Eventually(ctx, patience, "taking the bridge's lease", func() error {
		lease, err := leases.Get(ctx, bridgeLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.NowMicro()
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("chaos"), LeaseDurationSeconds: new(int32(30)), AcquireTime: &now, RenewTime: &now}
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
}

// asked is an object that asks for a maintenance. Deletes: its deletion says that the work is done, and not an annotation.
type asked struct {
	*maintained
	name    string
	deletes bool
	said    bool
}

func (m mirrored) objectName(node string) string {
	return fmt.Sprintf("%s-%d-%s", m.name, m.runs, node)
}

// ask has objects ask for the maintenances of both nodes, and waits until both have had theirs.
func (m mirrored) ask(ctx context.Context, fields string) error {
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	requestor := fmt.Sprintf("%s-%d", chaosRequestor, m.runs)
	var open []*asked
	for i, node := range m.nodes {
		open = append(open, &asked{maintained: m.expect(node, requestor), name: m.objectName(node), deletes: i == 1})
	}
	var last error
	for len(open) > 0 {
		if err := m.keepBridge(ctx); err != nil {
			return err
		}
		for i := len(open) - 1; i >= 0; i-- {
			ended, err := m.follow(ctx, open[i], fields)
			switch {
			case ended && err != nil:
				return fmt.Errorf("object %s: %w", open[i].name, err)
			case ended:
				open = slices.Delete(open, i, i+1)
			case err != nil:
				last = fmt.Errorf("object %s: %w", open[i].name, err)
			}
		}
		if world.Sleep(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("the maintenance of %s did not end: %s: %w", open[0].node, m.statusOf(open[0].id), last)
		}
	}
	return nil
}

// follow does for an object what its requestor does, and reports whether it has had its maintenance. One that somebody else has deleted is
// created again.
func (m mirrored) follow(ctx context.Context, o *asked, fields string) (ended bool, err error) {
	got, err := m.objects.Get(ctx, o.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && o.deletes && o.said:
		return true, m.hasEnded(ctx, o)
	case apierrors.IsNotFound(err):
		o.said = false
		return false, m.create(ctx, o, fields)
	case err != nil:
		return false, err
	}
	phase, _, err := unstructured.NestedString(got.Object, "status", "phase")
	switch {
	case err != nil:
		return false, err
	case api.Phase(phase) == api.Completed && len(got.GetFinalizers()) == 0:
		return true, m.objects.Delete(ctx, o.name, metav1.DeleteOptions{})
	case api.Phase(phase) != api.Ready || o.said || got.GetDeletionTimestamp() != nil:
		return false, nil
	case o.deletes:
		err = m.objects.Delete(ctx, o.name, metav1.DeleteOptions{})
	default:
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"chaos"}}}`, v1alpha1.Annotation(api.MsgDone))
		_, err = m.objects.Patch(ctx, o.name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	o.said = err == nil
	return false, err
}

// hasEnded returns an error where an object is gone before its maintenance has ended.
func (m mirrored) hasEnded(ctx context.Context, o *asked) error {
	var status api.Status
	err := world.Eventually(ctx, patience, "the maintenance says how it stands", func() (err error) {
		status, err = world.Ask[api.Status](ctx, m.temporal.Client, o.id, api.QueryStatus)
		return err
	})
	if err == nil && !status.Phase.Ended() {
		err = fmt.Errorf("it is gone, and its maintenance is %s", status.Phase)
	}
	return err
}

func (m mirrored) create(ctx context.Context, o *asked, fields string) error {
	var spec map[string]any
	if err := json.Unmarshal(fmt.Appendf(nil, `{"node":%q,"requestor":%q%s}`, o.node, o.requestor, fields), &spec); err != nil {
		return err
	}
	object := world.Maintenance(o.name, spec)
	object.SetLabels(map[string]string{laneLabel: m.name})
	_, err := m.objects.Create(ctx, object, metav1.CreateOptions{})
	return err
}

// deleteFirst deletes the first node's object, whatever it has come to. It may be about to be created.
func (m mirrored) deleteFirst(ctx context.Context) error {
	return world.Eventually(ctx, 15*time.Second, "deleting the first object", func() error {
		return m.objects.Delete(ctx, m.objectName(m.nodes[0]), metav1.DeleteOptions{})
	})
}

// forgetObjects removes what is left of a lane's objects.
func (l *lane) forgetObjects(ctx context.Context) error {
	if l.objects == nil {
		return nil
	}
	list, err := l.objects.List(ctx, metav1.ListOptions{LabelSelector: laneLabel + "=" + l.name})
	if err != nil {
		return gone(err) // another lane may have deleted the definition
	}
	var problems []error
	for _, o := range list.Items {
		_, err := l.objects.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		problems = append(problems, gone(err), gone(l.objects.Delete(ctx, o.GetName(), metav1.DeleteOptions{})))
	}
	return errors.Join(problems...)
}

// gone is an error of a request, none where the object is gone.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// definition is that of the objects, which all lanes share. A fault that deletes it has it for itself.
type definition struct {
	sync.RWMutex
	kube dynamic.Interface
}

// use keeps the definition from other lanes, or from being deleted by them, as a fault needs it.
func (d *definition) use(c cell) (done func()) {
	switch {
	case c.kind == deleteDefinition:
		d.Lock()
		return d.Unlock
	case c.step.objects:
		d.RLock()
		return d.RUnlock
	default:
		return func() {}
	}
}

// hit deletes the definition, and restores it.
func (d *definition) hit(ctx context.Context) (strike, recovery func() error) {
	strike = func() error { return world.Definitions(d.kube).Delete(ctx, objectsDefinition, metav1.DeleteOptions{}) }
	return strike, func() error { return d.restore(ctx) }
}

// settle restores the definition where a fault that has failed has left it deleted.
func (d *definition) settle(ctx context.Context) error {
	definition, err := world.Definitions(d.kube).Get(ctx, objectsDefinition, metav1.GetOptions{})
	if err == nil && definition.GetDeletionTimestamp() == nil {
		return nil
	}
	return d.restore(ctx)
}

// restore waits until the bridge has let all objects go, so that the definition is gone, and has the API server serve them again.
func (d *definition) restore(ctx context.Context) error {
	err := world.Eventually(ctx, endsWithin, "the definition is gone", func() error {
		_, err := world.Definitions(d.kube).Get(ctx, objectsDefinition, metav1.GetOptions{})
		if err == nil {
			return errors.New("it is not")
		}
		return gone(err)
	})
	if err == nil {
		_, err = world.DefineMaintenances(ctx, d.kube)
	}
	return err
}

// defineObjects has the API server serve the objects.
func (s *stack) defineObjects(ctx context.Context) error {
	kube, err := world.Dynamic(s.cluster.Kubeconfig)
	if err != nil {
		return err
	}
	s.definition.kube = kube
	s.objects, err = world.DefineMaintenances(ctx, kube)
	return err
}
