package maintenanceoperator

import (
	"context"
	"slices"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
)

// fakeMaintenances has one maintenance at most.
type fakeMaintenances struct {
	view client.View
	did  []string
}

func (f *fakeMaintenances) Latest(context.Context, string, string) (client.Maintenance, bool, error) {
	return f.view.Maintenance, f.view.FirstRunID != "", nil
}

func (f *fakeMaintenances) LastStatus(context.Context, client.Maintenance) (*api.Status, error) {
	return f.view.Status, nil
}

func (f *fakeMaintenances) Observe(context.Context, client.Maintenance) (client.View, error) {
	return f.view, nil
}

func (f *fakeMaintenances) Start(_ context.Context, in client.Input) (client.View, bool, error) {
	f.did = append(f.did, "start")
	asked, err := in.Decode()
	f.is(api.Pending, func(s *api.Status) { s.Spec = asked })
	return f.view, false, err
}

func (f *fakeMaintenances) Send(_ context.Context, _ client.Maintenance, name string, _ any, _ string) (client.Sent, error) {
	f.did = append(f.did, name)
	return client.Sent{}, nil
}

// is brings the maintenance into a phase.
func (f *fakeMaintenances) is(phase api.Phase, change func(*api.Status)) {
	f.view.FirstRunID, f.view.Execution = "run-1", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	if f.view.Status == nil {
		f.view.Status = &api.Status{Spec: spec.Maintenance{Type: "planned", Object: &spec.Object{Resource: objects.Resource, Namespace: "default", Name: "nvidia-operator-worker-01", UID: "uid-1"}}}
	}
	f.view.Status.Phase = phase
	f.view.Status.Transitions = append(f.view.Status.Transitions, api.Transition{Phase: phase})
	if change != nil {
		change(f.view.Status)
	}
}

func (f *fakeMaintenances) held(phase api.Phase) {
	f.is(phase, func(s *api.Status) { s.CordonedAt, s.NodeUID = new(time.Now()), "node-1" })
}

// place is an API server with one object, and the maintenance that it asks for.
type place struct {
	*testing.T
	*Reconciler
	fake *fakeMaintenances
	key  kube.ObjectKey
}

func newPlace(t *testing.T, o *objects.NodeMaintenance) *place {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := objects.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&objects.NodeMaintenance{}).WithObjects(o).Build()
	f := &fakeMaintenances{}
	r := &Reconciler{Kube: c, Live: c, Events: events.NewFakeRecorder(100), Maintenances: f, Limits: &Limits{Kube: c, Namespace: "operators"}}
	return &place{t, r, f, kube.ObjectKeyFromObject(o)}
}

// reconcile reconciles the object, which is nil if it is gone then, and returns what was done to its maintenance.
func (p *place) reconcile() (*objects.NodeMaintenance, []string) {
	p.Helper()
	p.fake.did = nil
	if _, err := p.Reconcile(p.Context(), reconcile.Request{NamespacedName: p.key}); err != nil {
		p.Fatal(err)
	}
	o := &objects.NodeMaintenance{}
	switch err := p.Kube.Get(p.Context(), p.key, o); {
	case apierrors.IsNotFound(err):
		return nil, p.fake.did
	case err != nil:
		p.Fatal(err)
	}
	return o, p.fake.did
}

// ready brings the object and its maintenance to Ready.
func (p *place) ready() *objects.NodeMaintenance {
	p.Helper()
	p.reconcile()
	p.fake.is(api.Cordoning, nil)
	p.fake.held(api.Ready)
	o, _ := p.reconcile()
	if o == nil || reasonOf(o) != objects.Ready {
		p.Fatalf("%+v", o)
	}
	return o
}

func (p *place) delete() {
	p.Helper()
	if err := p.Kube.Delete(p.Context(), &objects.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: p.key.Namespace, Name: p.key.Name}}); err != nil {
		p.Fatal(err)
	}
}

func (p *place) fails(o *objects.NodeMaintenance, status metav1.ConditionStatus) {
	p.Helper()
	meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{Type: objects.RequestorFailed, Status: status, Reason: "FailedMaintenance"})
	if err := p.Kube.Status().Update(p.Context(), o); err != nil {
		p.Fatal(err)
	}
}

func TestAnObjectShowsItsMaintenance(t *testing.T) {
	p := newPlace(t, anObject(nil))
	o, did := p.reconcile()
	if !slices.Equal(did, []string{"start"}) || reasonOf(o) != objects.Pending || !slices.Equal(o.Finalizers, []string{spec.ObjectFinalizer}) || o.Annotations[spec.RunAnnotation] != "uid-1 run-1" {
		t.Errorf("%q: %+v", did, o)
	}
	// The node is not cordoned yet: what it was before is not known.
	p.fake.is(api.Cordoning, nil)
	if o, _ = p.reconcile(); reasonOf(o) != objects.Cordon || o.Annotations[objects.InitialState] != "" || !slices.Contains(o.Finalizers, objects.Finalizer) {
		t.Errorf("%+v", o)
	}
	p.fake.held(api.Ready)
	o, did = p.reconcile()
	if len(did) > 0 || reasonOf(o) != objects.Ready || o.Annotations[objects.InitialState] != "false" || o.Annotations[objects.ReadyTime] == "" || len(o.OwnerReferences) != 1 {
		t.Errorf("%q: %+v", did, o)
	}
	version := o.ResourceVersion
	if o, _ = p.reconcile(); o.ResourceVersion != version {
		t.Error("it was written although nothing had changed")
	}
}

func TestADeletionIsDoneOrCancels(t *testing.T) {
	p := newPlace(t, anObject(nil))
	p.reconcile()
	p.delete()
	if _, did := p.reconcile(); !slices.Equal(did, []string{api.MsgCancel}) {
		t.Errorf("while it waits: %q", did)
	}

	p = newPlace(t, anObject(func(o *objects.NodeMaintenance) { o.Spec.AdditionalRequestors = []string{"any.other"} }))
	p.ready()
	p.delete()
	o, did := p.reconcile()
	if len(did) > 0 || reasonOf(o) != objects.Ready {
		t.Errorf("others work on the node: %q, %+v", did, o)
	}
	o.Spec.AdditionalRequestors = nil
	if err := p.Kube.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, did := p.reconcile(); !slices.Equal(did, []string{api.MsgDone}) {
		t.Errorf("nobody does any more: %q", did)
	}
	p.fake.is(api.Releasing, nil)
	if o, did := p.reconcile(); o == nil || len(did) > 0 {
		t.Errorf("%q: %+v", did, o)
	}
	p.fake.is(api.Completed, nil)
	if o, _ := p.reconcile(); o != nil {
		t.Errorf("it is not gone: %+v", o)
	}
}

// leftDraining is an object that maintenance-operator left in the middle of its drain.
func leftDraining() *objects.NodeMaintenance {
	return anObject(func(o *objects.NodeMaintenance) {
		o.Finalizers, o.Annotations = []string{objects.Finalizer}, map[string]string{objects.InitialState: "false"}
		o.Spec.DrainSpec = &objects.DrainSpec{}
		meta.SetStatusCondition(&o.Status.Conditions, mirror.Condition(objects.ConditionReady, false, objects.Draining, ""))
	})
}

// Nothing is drained for an object that is deleted while it waits to be taken over, and the operator's cordon does not stay.
func TestAnObjectThatIsDeletedWhileItWaitsToBeTakenOver(t *testing.T) {
	p := newPlace(t, leftDraining())
	if o, did := p.reconcile(); !slices.Equal(did, []string{"start"}) || reasonOf(o) != objects.Draining {
		t.Fatalf("%q: %+v", did, o)
	}
	p.delete()
	if _, did := p.reconcile(); !slices.Equal(did, []string{api.MsgCancel}) {
		t.Fatalf("%q", did)
	}
	p.fake.is(api.Cancelled, nil)
	p.fake.view.Execution = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	if o, _ := p.reconcile(); o == nil || o.Annotations[spec.RunAnnotation] != "" {
		t.Fatalf("%+v", o)
	}
	p.fake.view.Status.Transitions = nil
	if _, did := p.reconcile(); !slices.Equal(did, []string{"start"}) || p.fake.view.Status.Spec.Drain.Mode != spec.ModeNone || !p.fake.view.Status.Spec.Object.Cordoned {
		t.Fatalf("%q: %+v", did, p.fake.view.Status.Spec)
	}
	p.fake.is(api.Cordoning, nil)
	if _, did := p.reconcile(); len(did) > 0 {
		t.Errorf("%q", did)
	}
	p.fake.held(api.Ready)
	if _, did := p.reconcile(); !slices.Equal(did, []string{api.MsgDone}) {
		t.Errorf("%q", did)
	}
}

func TestARequestorFailsAndWorksAgain(t *testing.T) {
	p := newPlace(t, anObject(nil))
	p.fails(p.ready(), metav1.ConditionTrue)
	if _, did := p.reconcile(); !slices.Equal(did, []string{api.MsgFailed}) {
		t.Errorf("%q", did)
	}
	by := func(who string) func(*api.Status) {
		return func(s *api.Status) {
			s.Messages = append(s.Messages, api.Received{Name: api.MsgFailed, Outcome: api.Applied, By: who})
		}
	}
	ours := (&mirrored{object: anObject(nil)}).foreign().Principal()
	p.fake.is(api.RequestorFailed, by(ours))
	o, did := p.reconcile()
	if len(did) > 0 || reasonOf(o) != objects.RequestorFailed {
		t.Errorf("%q: %+v", did, o)
	}
	p.fails(o, metav1.ConditionFalse)
	if _, did := p.reconcile(); !slices.Equal(did, []string{api.MsgRetry}) {
		t.Errorf("it works again: %q", did)
	}
	// What a person has said is not taken back.
	p.fake.is(api.RequestorFailed, by("ann"))
	if _, did := p.reconcile(); len(did) > 0 {
		t.Errorf("somebody else said so: %q", did)
	}
}

func TestAMaintenanceThatEndedOrIsLostIsNotStartedAgain(t *testing.T) {
	for name, ends := range map[string]func(*fakeMaintenances){
		"it was cancelled":    func(f *fakeMaintenances) { f.is(api.Cancelled, nil) },
		"Temporal has lost":   func(f *fakeMaintenances) { f.view.FirstRunID = "" },
		"another has come by": func(f *fakeMaintenances) { f.view.FirstRunID = "run-2" },
	} {
		p := newPlace(t, anObject(nil))
		p.ready()
		ends(p.fake)
		o, did := p.reconcile()
		if len(did) > 0 || reasonOf(o) != objects.Pending || len(o.Finalizers) > 0 || meta.IsStatusConditionTrue(o.Status.Conditions, "Ready") {
			t.Errorf("%s: %q, %+v", name, did, o)
		}
		if _, did := p.reconcile(); len(did) > 0 {
			t.Errorf("%s: then %q", name, did)
		}
	}
}

func TestAnOldObjectIsDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		ago   time.Duration
		keeps string
		// age is that of the configuration; 0 if there is none.
		age  int32
		gone bool
	}{
		"not so old": {30 * time.Minute, "", 0, false}, "old": {2 * time.Hour, "", 0, true}, "old, and kept": {2 * time.Hour, "true", 0, false},
		"old, and a configuration keeps it": {2 * time.Hour, "", 10800, false}, "a configuration does not": {30 * time.Minute, "", 60, true},
	} {
		p := newPlace(t, anObject(nil))
		if c.age > 0 {
			config := &objects.MaintenanceOperatorConfig{
				ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: configName}, Spec: objects.ConfigSpec{MaxNodeMaintenanceTimeSeconds: &c.age},
			}
			if err := p.Kube.Create(t.Context(), config); err != nil {
				t.Fatal(err)
			}
		}
		o := p.ready()
		o.Annotations[objects.ReadyTime] = time.Now().Add(-c.ago).UTC().Format(time.RFC3339)
		o.Annotations[objects.Keeps] = c.keeps
		if err := p.Kube.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if o, _ := p.reconcile(); o.DeletionTimestamp.IsZero() == c.gone {
			t.Errorf("%s: deleted %v", name, o.DeletionTimestamp)
		}
	}
}
