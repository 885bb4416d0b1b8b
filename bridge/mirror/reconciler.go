package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/spec"
)

// Pauses before an object is looked at again without being called for: AskAgain where nobody could answer, occupied where another workflow
// has the place of its own or something is refused for now, lookAgain in any case while its own runs.
const (
	AskAgain  = 5 * time.Second
	occupied  = 15 * time.Second
	lookAgain = 10 * time.Minute
	// staleAgain is how soon an object is read again that has changed since it was read.
	staleAgain = 200 * time.Millisecond
)

// Reconciler reconciles the objects of a kind.
type Reconciler struct {
	Kind Kind
	Kube kube.Client
	// Live reads objects without a cache.
	Live   kube.Reader
	Events recorder.EventRecorder
	// Approvals lets annotations approve and deny. It needs the admission policies: without them anyone who may patch an object can approve it
	// in any name.
	Approvals bool
	// Temporal and Drydock are how Drydock's workflows are reached. Drydock.By is set for each object.
	Temporal temporalclient.Client
	Drydock  client.Options
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := r.Kind.New()
	if err := r.Kube.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, kube.IgnoreNotFound(err)
	}
	o := &mirrored{Reconciler: r, object: object}
	if o.isOver() {
		return reconcile.Result{}, nil
	}
	result, err := o.follow(ctx)
	var (
		noWorker *client.NoWorkerError
		occupant *OccupiedError
	)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: staleAgain}, nil
	case errors.As(err, &occupant):
		return reconcile.Result{RequeueAfter: occupied}, o.show(ctx, o.waiting(reasonOccupied, err.Error()))
	case errors.As(err, &noWorker):
		return reconcile.Result{RequeueAfter: AskAgain}, o.show(ctx, o.waiting(reasonNoWorker, err.Error()))
	case err != nil:
		o.Events.Eventf(o.object, nil, corev1.EventTypeWarning, "Error", "Reconcile", "%s", bounds.Cut(err.Error(), bounds.Text))
	}
	return result, err
}

// mirrored is an object that is being reconciled, with the workflow that it asks for.
type mirrored struct {
	*Reconciler
	object v1alpha1.Object
	asked  Asked
	// wrong is what is wrong with the object's spec.
	wrong error
	// behind: the workflow does not follow the generation of the object, and has not refused it.
	behind bool
}

// follow has the object show its workflow, which it starts or ends where that is to be done. An object whose spec this release does not
// read is followed all the same once its workflow was started.
func (o *mirrored) follow(ctx context.Context) (reconcile.Result, error) {
	o.behind = o.shown().RunID != "" && o.shown().ObservedGeneration != o.object.GetGeneration()
	options := o.Drydock
	options.By = o.principal(o.object.Asks().RequestedBy())
	o.asked, o.wrong = o.Kind.Read(o.object, client.New(o.Temporal, options))
	return o.reconcile(ctx)
}

func (o *mirrored) principal(user string) string { return Principal(o.Kind.Resource(), o.object, user) }

func (o *mirrored) shown() *v1alpha1.Shared { return o.object.Shows().Common() }

func (o *mirrored) isDeleted() bool { return !o.object.GetDeletionTimestamp().IsZero() }

// isOver reports whether the object shows the end of its workflow, after which nothing changes.
func (o *mirrored) isOver() bool {
	return o.object.Shows().Ended() && o.shown().ObservedGeneration == o.object.GetGeneration() &&
		!controllerutil.ContainsFinalizer(o.object, spec.ObjectFinalizer)
}

// hold puts the finalizer on, and letGo takes it off. A cache may be late: what is patched is the object as it was read, or nothing.
func (o *mirrored) hold(ctx context.Context) error {
	return o.finalize(ctx, controllerutil.AddFinalizer)
}

func (o *mirrored) letGo(ctx context.Context) error {
	return kube.IgnoreNotFound(o.finalize(ctx, controllerutil.RemoveFinalizer))
}

func (o *mirrored) finalize(ctx context.Context, change func(kube.Object, string) bool) error {
	return Patch(ctx, o.Kube, kube.Object(o.object), func(now kube.Object) { change(now, spec.ObjectFinalizer) })
}

func (o *mirrored) reconcile(ctx context.Context) (reconcile.Result, error) {
	found, err := o.find(ctx)
	deleted := o.isDeleted()
	// A spec may have changed between the start of its workflow and the first status.
	o.behind = o.behind || found && o.shown().RunID == ""
	switch {
	case errors.Is(err, ErrLost) && deleted:
		return reconcile.Result{}, o.letGo(ctx)
	case errors.Is(err, ErrLost):
		return reconcile.Result{}, o.show(ctx, o.refused(reasonLost, err.Error()))
	case errors.Is(err, ErrForeign):
		return reconcile.Result{}, o.show(ctx, o.refused(reasonForeign, err.Error()))
	case err != nil:
		return reconcile.Result{}, err
	case !found && deleted:
		return reconcile.Result{}, o.letGo(ctx)
	case !found && o.wrong != nil:
		if err := o.letGo(ctx); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, o.show(ctx, o.refused(reasonInvalid, o.wrong.Error()))
	case !found:
		if err := o.start(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	said, err := o.talk(ctx)
	view := o.asked.View()
	if err := errors.Join(o.show(ctx, said.on(view.Status)), err); err != nil {
		return reconcile.Result{}, err
	}
	if view.Over || !view.Running {
		return reconcile.Result{}, o.letGo(ctx)
	}
	return reconcile.Result{RequeueAfter: cmp.Or(said.again, view.Again, lookAgain)}, nil
}

// find finds the workflow that was started for the object. None was started before the finalizer was put on: where it is not on, Temporal is
// not searched, which takes long where many objects come at once.
func (o *mirrored) find(ctx context.Context) (found bool, err error) {
	if o.shown().RunID == "" {
		if !controllerutil.ContainsFinalizer(o.object, spec.ObjectFinalizer) {
			return false, nil
		}
		return o.asked.Find(ctx)
	}
	err = o.asked.Known(ctx)
	return err == nil, err
}

// start starts the workflow.
func (o *mirrored) start(ctx context.Context) error {
	if err := o.hold(ctx); err != nil {
		return err
	}
	// The cache may not know yet that the object was deleted, or that its workflow was started.
	now := o.Kind.New()
	if err := o.Live.Get(ctx, kube.ObjectKeyFromObject(o.object), now); err != nil {
		return err
	}
	if now.GetUID() != o.object.GetUID() || !now.GetDeletionTimestamp().IsZero() || now.Shows().Common().RunID != "" {
		return apierrors.NewConflict(schema.ParseGroupResource(o.Kind.Resource()), o.object.GetName(), errors.New("it has changed"))
	}
	return o.asked.Start(ctx)
}

// talk sends a workflow that runs what is to be said to it. An error keeps the object from showing nothing.
func (o *mirrored) talk(ctx context.Context) (answer, error) {
	view := o.asked.View()
	if !view.Running {
		o.behind = false
		return answer{}, nil
	}
	err := o.hear(ctx)
	var (
		said   answer
		failed error
	)
	if o.isDeleted() {
		said, failed = o.end(ctx, view)
	} else {
		said, failed = o.change(ctx)
	}
	return said, errors.Join(err, failed)
}

// change has the workflow follow a spec that has changed, or was refused before.
func (o *mirrored) change(ctx context.Context) (answer, error) {
	before := ""
	if stalled := meta.FindStatusCondition(o.shown().Conditions, v1alpha1.Stalled); stalled != nil && stalled.Reason == reasonRefused && !o.behind {
		before = stalled.Message
	}
	if !o.behind && before == "" {
		return answer{}, nil
	}
	said, err := refusal(o.asked.Change(ctx, before))
	said.stalls = said.refused != ""
	o.behind = err != nil
	return said, err
}

// end ends the workflow of an object that is deleted. A node that was left half way is not given back unseen.
func (o *mirrored) end(ctx context.Context, view View) (answer, error) {
	for _, message := range view.End {
		_, err := o.asked.Say(ctx, message, api.Message{
			ID: fmt.Sprintf("%s/deleted/%s", o.object.GetUID(), message), By: o.principal(""), Comment: "the object was deleted",
		})
		if said, err := refusal(err); err != nil || said.refused != "" {
			said.again = occupied
			return said, err
		}
	}
	return answer{}, nil
}

// answer is what a workflow has said to a message.
type answer struct {
	// refused is why it was refused, and stalls: that stays so until somebody changes something.
	refused string
	stalls  bool
	again   time.Duration
}

// refusal has an error of a message be an answer where the workflow has refused it.
func refusal(err error) (answer, error) {
	if errors.Is(err, client.ErrEnded) {
		return answer{}, nil
	}
	if why, is := Refused(err); is {
		return answer{refused: why}, nil
	}
	return answer{}, err
}

// Refused reports whether an error says that a workflow does not take a message, or a spec that has changed, and why.
func Refused(err error) (why string, is bool) {
	var (
		refused *client.RefusedError
		own     *RefusedError
	)
	if errors.As(err, &refused) || errors.As(err, &own) || errors.Is(err, client.ErrInvalid) {
		return bounds.Cut(err.Error(), bounds.Text), true
	}
	return "", false
}

// on is a status that says what was refused.
func (a answer) on(is v1alpha1.Status) v1alpha1.Status {
	if a.refused == "" {
		return is
	}
	is.Common().Message = a.refused
	if a.stalls {
		stall(is, reasonRefused, a.refused)
	}
	return is
}
