package mirror

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
)

// world is an API server with one object, and the workflow that it asks for.
type world struct {
	*testing.T
	*Reconciler
	asked  *fakeAsked
	events *events.FakeRecorder
}

func newWorld(t *testing.T, o *v1alpha1.NodeMaintenance, asked *fakeAsked) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.NodeMaintenance{}).WithObjects(o).Build()
	recorder := events.NewFakeRecorder(100)
	return &world{t, &Reconciler{Kind: fakeKind{asked}, Kube: c, Live: c, Events: recorder, Approvals: true}, asked, recorder}
}

// reconcile reconciles the object, which is nil where it is gone then.
func (w *world) reconcile() (*v1alpha1.NodeMaintenance, reconcile.Result, error) {
	w.Helper()
	w.asked.did = nil
	key := types.NamespacedName{Name: "kernel"}
	result, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: key})
	o := &v1alpha1.NodeMaintenance{}
	switch failed := w.Kube.Get(w.Context(), key, o); {
	case apierrors.IsNotFound(failed):
		return nil, result, err
	case failed != nil:
		w.Fatal(failed)
	}
	return o, result, err
}

func (w *world) did(want ...string) {
	w.Helper()
	if !slices.Equal(w.asked.did, want) {
		w.Errorf("it did %q, want %q", w.asked.did, want)
	}
}

func begun() *v1alpha1.NodeMaintenance {
	o := anObject()
	o.Finalizers, o.Status.RunID, o.Status.ObservedGeneration, o.Status.Phase = []string{spec.ObjectFinalizer}, "first", 1, api.Draining
	return o
}

func TestAnObjectHasItsWorkflowStartedOnce(t *testing.T) {
	w := newWorld(t, anObject(), &fakeAsked{view: View{Running: true}})
	o, result, err := w.reconcile()
	w.did("start") // nobody can have started it before the finalizer was on
	if err != nil || result.RequeueAfter != lookAgain || o.Status.RunID != "first" || o.Status.ObservedGeneration != 1 || !slices.Contains(o.Finalizers, spec.ObjectFinalizer) {
		t.Errorf("%v, %v: %+v", result, err, o)
	}
	written := o.ResourceVersion
	o, _, err = w.reconcile()
	w.did("known")
	if err != nil || o.ResourceVersion != written {
		t.Errorf("%v: it was written again: %+v", err, o)
	}
	// One that was started before the bridge could write that is found. The spec may have changed meanwhile.
	held := anObject()
	held.Finalizers = []string{spec.ObjectFinalizer}
	w = newWorld(t, held, &fakeAsked{view: View{Running: true}, found: true})
	o, _, err = w.reconcile()
	w.did("find", "change")
	if err != nil || o.Status.RunID != "first" {
		t.Errorf("%v: %+v", err, o)
	}
}

func TestWhatKeepsAWorkflowFromBeginning(t *testing.T) {
	for name, c := range map[string]struct {
		asked     fakeAsked
		condition string
		reason    string
		again     time.Duration
	}{
		"a wrong spec":     {fakeAsked{wrong: errors.New("node: required")}, v1alpha1.Stalled, reasonInvalid, 0},
		"another workflow": {fakeAsked{start: &OccupiedError{"another runs"}}, v1alpha1.Reconciling, reasonOccupied, occupied},
		"no worker":        {fakeAsked{start: &client.NoWorkerError{TaskQueue: "drydock"}}, v1alpha1.Reconciling, reasonNoWorker, AskAgain},
	} {
		w := newWorld(t, anObject(), &c.asked)
		o, result, err := w.reconcile()
		is := meta.FindStatusCondition(o.Status.Conditions, c.condition)
		if err != nil || result.RequeueAfter != c.again || is == nil || is.Status != "True" || is.Reason != c.reason || o.Status.RunID != "" {
			t.Errorf("%s: %v, %v: %+v", name, result, err, o.Status)
		}
	}
}

func TestALostWorkflowIsNotStartedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		known  error
		reason string
	}{"lost": {ErrLost, reasonLost}, "foreign": {ErrForeign, reasonForeign}} {
		w := newWorld(t, begun(), &fakeAsked{known: c.known})
		o, _, err := w.reconcile()
		w.did("known")
		if is := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.Stalled); err != nil || is == nil || is.Reason != c.reason || o.Status.Phase != api.Draining {
			t.Errorf("%s: %v: %+v", name, err, o.Status)
		}
	}
}

// deleted is a world whose object was deleted.
func deleted(t *testing.T, o *v1alpha1.NodeMaintenance, asked *fakeAsked) *world {
	t.Helper()
	w := newWorld(t, o, asked)
	if err := w.Kube.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestADeletedObjectEndsItsWorkflow(t *testing.T) {
	const by = "by kubernetes: nodemaintenances.drydock.dev kernel: the object was deleted"
	w := deleted(t, begun(), &fakeAsked{view: View{Running: true, End: []string{"pause", "cancel"}}})
	o, _, err := w.reconcile()
	w.did("known", "pause "+by, "cancel "+by)
	if err != nil || o == nil {
		t.Fatalf("%v: it is gone before its workflow has ended: %v", err, o == nil)
	}
	// What refuses to end is asked again, and the object says why.
	w.asked.say = &client.RefusedError{By: "the plan", Message: "cancel", Reason: "a node is worked on"}
	o, result, err := w.reconcile()
	w.did("known", "pause "+by)
	if err != nil || result.RequeueAfter != occupied || !strings.Contains(o.Status.Message, "a node is worked on") {
		t.Errorf("%v, %v: %+v", result, err, o.Status)
	}
	w.asked.view = View{Over: true, Status: in(api.Cancelled)}
	if o, _, err = w.reconcile(); err != nil || o != nil {
		t.Errorf("%v: it is not gone at the end: %+v", err, o)
	}
	for name, c := range map[string]*fakeAsked{
		"it was never started": {}, "lost": {known: ErrLost}, "a wrong spec": {wrong: errors.New("node: required")},
	} {
		o := begun()
		if c.known == nil {
			o.Status.RunID = ""
		}
		if o, _, err := deleted(t, o, c).reconcile(); err != nil || o != nil {
			t.Errorf("%s: %v: it is not gone: %+v", name, err, o)
		}
	}
}

func TestAnnotationsAreSaidOnce(t *testing.T) {
	o := begun()
	o.Annotations = map[string]string{v1alpha1.Annotation("done"): "flashed", v1alpha1.Annotation("done") + byName: "agent", v1alpha1.Annotation("deny"): "no such message", "other": "x"}
	w := newWorld(t, o, &fakeAsked{view: View{Running: true}})
	o, _, err := w.reconcile()
	w.did("known", "done by kubernetes: agent: flashed")
	if _, other := o.Annotations["other"]; err != nil || len(o.Annotations) != 2 || !other {
		t.Errorf("%v: it still has %v", err, o.Annotations)
	}
	if event := <-w.events.Events; !strings.Contains(event, "done by kubernetes: agent: so be it") {
		t.Errorf("event %s", event)
	}
}

// Workers read in the status who has approved, so that has to be there first.
func TestAnApprovalIsWrittenDownBeforeItIsSaid(t *testing.T) {
	o := begun()
	o.Annotations = map[string]string{v1alpha1.Annotation("approve"): "reviewed", v1alpha1.Annotation("approve") + byName: "amy"}
	w := newWorld(t, o, &fakeAsked{view: View{Running: true}, say: errors.New("no answer")})
	want := v1alpha1.Decision{Message: "approve", By: "amy", Comment: "reviewed"}
	o, _, err := w.reconcile()
	if err == nil || o.Status.Decision == nil || *o.Status.Decision != want {
		t.Errorf("%v: %+v", err, o.Status.Decision)
	}
	w.asked.say = nil
	o, _, err = w.reconcile()
	w.did("known", "approve by kubernetes: amy: reviewed")
	if err != nil || len(o.Annotations) > 0 || *o.Status.Decision != want {
		t.Errorf("%v: %v, %+v", err, o.Annotations, o.Status.Decision)
	}
	// Without the admission policies nobody knows who has written it.
	o = begun()
	o.Annotations = map[string]string{v1alpha1.Annotation("approve"): "reviewed"}
	w = newWorld(t, o, &fakeAsked{view: View{Running: true}})
	w.Approvals = false
	if _, _, err = w.reconcile(); err != nil {
		t.Error(err)
	}
	w.did("known")
}

func TestAChangedSpecIsFollowed(t *testing.T) {
	o := begun()
	o.Generation = 2
	w := newWorld(t, o, &fakeAsked{view: View{Running: true}, change: errors.New("no answer")})
	// What is not known to have come about is tried again.
	o, _, err := w.reconcile()
	w.did("known", "change")
	if err == nil || o.Status.ObservedGeneration != 1 {
		t.Errorf("%v: %+v", err, o.Status)
	}
	w.asked.change = &RefusedError{"not now"}
	o, _, err = w.reconcile()
	stalled := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.Stalled)
	if err != nil || o.Status.ObservedGeneration != 2 || stalled.Reason != reasonRefused || stalled.Message != "not now" {
		t.Errorf("%v: %+v", err, o.Status)
	}
	w.asked.change = nil
	o, _, err = w.reconcile()
	w.did("known", "change not now")
	if err != nil || meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.Stalled) {
		t.Errorf("%v: %+v", err, o.Status)
	}
	if _, _, err = w.reconcile(); err != nil {
		t.Error(err)
	}
	w.did("known")
}
