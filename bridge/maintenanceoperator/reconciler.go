// Package maintenanceoperator has the objects of NVIDIA's maintenance-operator drive Drydock, as that operator would: its clients see the
// same conditions, reasons, annotations, finalizer, owner reference and events in the same order. The specification is what the operator
// does at commit e15d07b. The differences are listed in docs/tasks/from-maintenance-operator.md.
package maintenanceoperator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/spec"
)

// Pauses before an object is looked at again without being called for: while its workflow runs, while pods leave the node, and while its
// workflow refuses a message.
const (
	lookAgain  = 10 * time.Minute
	countAgain = 10 * time.Second
	refused    = 15 * time.Second
)

// Reconciler reconciles NodeMaintenance objects with the maintenances that they ask for.
type Reconciler struct {
	Kube kube.Client
	// Live reads objects without a cache.
	Live   kube.Reader
	Events recorder.EventRecorder
	// Maintenances is how Drydock is reached.
	Maintenances mirror.Maintenances
	// Input is a JSON merge patch for the input of each maintenance; empty changes nothing.
	Input json.RawMessage
	// Limits says after what time objects are deleted.
	Limits *Limits
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &objects.NodeMaintenance{}
	if err := r.Kube.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, kube.IgnoreNotFound(err)
	}
	o := &mirrored{Reconciler: r, object: object}
	result, err := o.reconcile(ctx)
	if soon, is := mirror.Soon(err); is {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	if err != nil {
		o.warn("Error", err.Error())
	}
	return result, err
}

// mirrored is an object that is being reconciled, with the maintenance that it asks for.
type mirrored struct {
	*Reconciler
	object *objects.NodeMaintenance
	view   client.View
}

func (o *mirrored) warn(reason, text string) {
	o.Events.Eventf(o.object, nil, corev1.EventTypeWarning, reason, "Maintain", "%s", bounds.Cut(text, bounds.Text))
}

func (o *mirrored) foreign() mirror.Foreign {
	return mirror.Foreign{Resource: objects.Resource, Object: o.object}
}

// ran reports whether a maintenance was started for the object.
func (o *mirrored) ran() bool {
	_, begun := mirror.RunOf(o.object)
	return begun
}

func (o *mirrored) isDeleted() bool { return !o.object.GetDeletionTimestamp().IsZero() }

func (o *mirrored) has(finalizer string) bool {
	return controllerutil.ContainsFinalizer(o.object, finalizer)
}

func (o *mirrored) reconcile(ctx context.Context) (reconcile.Result, error) {
	if o.reason() == "" {
		if err := o.become(ctx, objects.Pending); err != nil {
			return reconcile.Result{}, err
		}
	}
	found, err := o.find(ctx)
	switch {
	case errors.Is(err, mirror.ErrLost):
		return reconcile.Result{}, o.leave(ctx, err.Error())
	case err != nil:
		return reconcile.Result{}, err
	case !found && o.isDeleted() && !o.isCordoned() && !o.isShared():
		return reconcile.Result{}, o.letGo(ctx)
	case !found && o.ran():
		return reconcile.Result{}, nil // it has ended, and the object shows that
	case !found:
		if started, err := o.start(ctx); err != nil || !started {
			return reconcile.Result{}, err
		}
	}
	return o.follow(ctx)
}

func (o *mirrored) isCordoned() bool { return isCordoned(o.object) }

// isCordoned reports whether an object says that its node was made unschedulable for it, which maintenance-operator may have done before the
// bridge took over.
func isCordoned(o *objects.NodeMaintenance) bool {
	return o.Annotations[objects.InitialState] == "false"
}

// isShared reports whether others work on the node, which is not given back before they are done. Before Ready nobody does.
func (o *mirrored) isShared() bool {
	reason := o.reason()
	return (reason == objects.Ready || reason == objects.RequestorFailed) && len(o.object.Spec.AdditionalRequestors) > 0
}

// find finds the maintenance that was started for the object. None was before a finalizer was put on.
func (o *mirrored) find(ctx context.Context) (found bool, err error) {
	_, begun := mirror.RunOf(o.object)
	if !begun && !o.has(spec.ObjectFinalizer) && !o.has(objects.Finalizer) {
		return false, nil
	}
	o.view, found, err = o.foreign().Find(ctx, o.Maintenances, o.object.Spec.NodeName, o.object.Spec.RequestorID)
	if err != nil || !found || o.view.Running() {
		return found, err
	}
	if o.view.Transitions() == nil { // it was terminated, and has no result
		if o.view.Status, err = o.Maintenances.LastStatus(ctx, o.view.Maintenance); err != nil {
			return false, err
		}
	}
	return begun || !o.leaves(o.view.Transitions()), nil
}

// leaves reports whether a maintenance that has ended left the cordon on the node that maintenance-operator had set for an object which is
// deleted by now: another one takes it over, and lifts it.
func (o *mirrored) leaves(phases []api.Transition) bool {
	return o.isDeleted() && o.isCordoned() && !slices.ContainsFunc(phases, func(t api.Transition) bool { return t.Phase == api.Cordoning })
}

// start starts the maintenance. An object that asks for what no maintenance can do is said to, and nothing is started.
func (o *mirrored) start(ctx context.Context) (started bool, err error) {
	input, _, err := inputOf(o.object, o.Input)
	if err != nil {
		o.warn("InvalidSpec", err.Error())
		return false, nil
	}
	err = o.patch(ctx, func(m *objects.NodeMaintenance) {
		if m.DeletionTimestamp == nil { // otherwise the API server takes none
			controllerutil.AddFinalizer(m, spec.ObjectFinalizer)
		}
	})
	if err != nil {
		return false, err
	}
	if err := o.foreign().Unchanged(ctx, o.Live, &objects.NodeMaintenance{}); err != nil {
		return false, kube.IgnoreNotFound(err)
	}
	o.view, _, err = o.Maintenances.Start(ctx, input)
	return err == nil, err
}

// follow has the maintenance do what the object says, and the object show it.
func (o *mirrored) follow(ctx context.Context) (reconcile.Result, error) {
	if err := o.own(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if !o.view.Running() || o.view.Phase().Ended() {
		switch {
		case o.leaves(o.view.Transitions()):
			err := o.patch(ctx, func(m *objects.NodeMaintenance) { delete(m.Annotations, spec.RunAnnotation) })
			return reconcile.Result{RequeueAfter: time.Second}, err
		case o.isDeleted():
			return reconcile.Result{}, o.letGo(ctx)
		}
		return reconcile.Result{}, o.leave(ctx, fmt.Sprintf("the maintenance has ended %s before the object was deleted: %s", o.view.Phase(), o.view.Message()))
	}
	if o.view.Status == nil || o.view.Status.Spec.Type == "" {
		return reconcile.Result{RequeueAfter: mirror.AskAgain}, nil
	}
	if err := o.show(ctx); err != nil {
		return reconcile.Result{}, err
	}
	err := o.talk(ctx)
	var said *client.RefusedError
	if errors.As(err, &said) || errors.Is(err, client.ErrEnded) {
		return reconcile.Result{RequeueAfter: refused}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if phase := o.view.Phase(); phase == api.Draining || phase == api.WaitingForPods {
		return reconcile.Result{RequeueAfter: countAgain}, nil
	}
	return o.collect(ctx)
}

// talk sends the maintenance what the object says: that its requestor is done or has given up is its deletion, that the requestor failed a
// condition.
func (o *mirrored) talk(ctx context.Context) error {
	phase := o.view.Phase()
	failed := meta.FindStatusCondition(o.object.Status.Conditions, objects.RequestorFailed)
	fails := failed != nil && failed.Status == "True"
	held := phase == api.Ready || phase == api.RequestorFailed
	switch {
	case o.isDeleted() && o.isShared():
		return nil
	case o.isDeleted() && held:
		return o.say(ctx, api.MsgDone, "deleted", "the object was deleted")
	case o.isDeleted() && o.isCordoned() && o.view.Status.CordonedAt == nil && o.view.Status.Spec.Drain.Mode == spec.ModeNone:
		return nil // it takes the cordon of maintenance-operator over, and gives the node back
	case o.isDeleted() && phase != api.Validating && phase != api.Releasing:
		return o.say(ctx, api.MsgCancel, "deleted", "the object was deleted")
	case o.isDeleted():
		return nil
	case phase == api.Ready && fails:
		return o.say(ctx, api.MsgFailed, failed.LastTransitionTime.UTC().Format(time.RFC3339), failed.Message)
	case phase == api.RequestorFailed && !fails && o.saidFailed():
		return o.say(ctx, api.MsgRetry, fmt.Sprint(len(o.view.Status.Transitions)+o.view.Status.TransitionsDropped), "the requestor has not failed any more")
	}
	return nil
}

// saidFailed reports whether the maintenance failed by the object's condition, and not because somebody else has said so.
func (o *mirrored) saidFailed() bool {
	by, failed := failedBy(o.view.Status)
	return failed && by == o.foreign().Principal()
}

// failedBy is who said last that the requestor had failed.
func failedBy(s *api.Status) (by string, failed bool) {
	for _, m := range slices.Backward(s.Messages) {
		if m.Name == api.MsgFailed && m.Outcome == api.Applied {
			return m.By, true
		}
	}
	return "", false
}

func (o *mirrored) say(ctx context.Context, name, id, comment string) error {
	return o.foreign().Say(ctx, o.Maintenances, o.view, name, id, comment)
}

// collect deletes an object that was Ready long ago, as maintenance-operator does: its node is given back then, unless others work on it.
func (o *mirrored) collect(ctx context.Context) (reconcile.Result, error) {
	ready, err := time.Parse(time.RFC3339, o.object.Annotations[objects.ReadyTime])
	if err != nil || o.isDeleted() || o.object.Annotations[objects.Keeps] == "true" {
		return reconcile.Result{RequeueAfter: lookAgain}, nil //nolint:nilerr // without a time it is not collected
	}
	age, err := o.Limits.keepsFor(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	left := time.Until(ready.Add(age))
	if left > 0 {
		return reconcile.Result{RequeueAfter: min(left, lookAgain)}, nil
	}
	uid, version := o.object.UID, o.object.ResourceVersion
	return reconcile.Result{}, kube.IgnoreNotFound(o.Kube.Delete(ctx, o.object, kube.Preconditions{UID: &uid, ResourceVersion: &version}))
}
