// Package pika has NVIDIA's NotifyMaintenance objects drive Drydock, in the place of PIKA: its clients see the same states, conditions,
// annotations and finalizer in the same order. Drydock is the scheduler besides: it cordons the node, and makes it schedulable again. What is
// otherwise is in docs/tasks/from-pika.md.
package pika

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
)

// Pauses before an object is looked at again without being called for: while its maintenance runs, and while that refuses a message.
const (
	lookAgain = 10 * time.Minute
	refused   = 10 * time.Second
)

// Reconciler reconciles the objects with the maintenances that they ask for.
type Reconciler struct {
	Kube kube.Client
	// Live reads objects without a cache.
	Live   kube.Reader
	Events recorder.EventRecorder
	// Drydock is how workflows are reached.
	Drydock *client.Client
	Options Options
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := New()
	if err := r.Kube.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, kube.IgnoreNotFound(err)
	}
	o := &mirrored{Reconciler: r, object: object}
	again, err := o.reconcile(ctx)
	if soon, is := mirror.Soon(err); is {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	if err != nil {
		o.warn("Error", err.Error())
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// mirrored is an object that is being reconciled, with the maintenance that it asks for.
type mirrored struct {
	*Reconciler
	object *unstructured.Unstructured
	asks   specOf
	status statusOf
	view   client.View
}

func (o *mirrored) warn(reason, text string) {
	o.Events.Eventf(o.object, nil, corev1.EventTypeWarning, reason, "Maintain", "%s", bounds.Cut(text, bounds.Text))
}

func (o *mirrored) foreign() mirror.Foreign {
	return mirror.Foreign{Resource: Resource, Object: o.object}
}

func (o *mirrored) isDeleted() bool { return o.object.GetDeletionTimestamp() != nil }

// reconcile returns when to look again.
func (o *mirrored) reconcile(ctx context.Context) (again time.Duration, err error) {
	if o.asks, o.status, err = read(o.object); err != nil {
		o.warn("InvalidObject", err.Error())
		return 0, nil
	}
	held := isHeld(o.object)
	begun := isBefore(notices.MaintenanceScheduled, o.status.MaintenanceStatus)
	if _, ran := mirror.RunOf(o.object); !held && (o.isDeleted() || begun || ran) {
		return 0, nil // it has ended
	}
	if !o.isDeleted() {
		if err := o.schedule(ctx); err != nil {
			return 0, err
		}
	}
	var found bool
	o.view, found, err = o.foreign().Find(ctx, o.Drydock, o.asks.NodeObject, o.asks.MaintenanceID)
	switch {
	case errors.Is(err, mirror.ErrLost) && o.isDeleted():
		return 0, o.letGo(ctx)
	case errors.Is(err, mirror.ErrLost):
		o.warn("Lost", err.Error())
		return 0, nil
	case err != nil:
		return 0, err
	case !found && o.isDeleted() && !begun:
		return 0, o.letGo(ctx)
	case !found:
		if started, err := o.start(ctx); err != nil || !started {
			return 0, err
		}
	}
	if err := o.patch(ctx, func(n *unstructured.Unstructured) { mirror.Remember(n, o.view.FirstRunID) }); err != nil {
		return 0, err
	}
	return o.follow(ctx)
}

// schedule puts the finalizer and the label on, and then the state.
func (o *mirrored) schedule(ctx context.Context) error {
	err := o.patch(ctx, func(n *unstructured.Unstructured) {
		controllerutil.AddFinalizer(n, finalizer)
		labels := n.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[idLabel+o.asks.MaintenanceID] = ""
		n.SetLabels(labels)
	})
	if err != nil {
		return err
	}
	was := o.status
	o.status.into(notices.MaintenanceScheduled, time.Now())
	return o.write(ctx, was)
}

func (o *mirrored) patch(ctx context.Context, change func(*unstructured.Unstructured)) error {
	return mirror.Patch(ctx, o.Kube, o.object, change)
}

func (o *mirrored) letGo(ctx context.Context) error {
	return kube.IgnoreNotFound(o.patch(ctx, func(n *unstructured.Unstructured) { controllerutil.RemoveFinalizer(n, finalizer) }))
}

// write writes the status where it is another.
func (o *mirrored) write(ctx context.Context, was statusOf) error {
	if equality.Semantic.DeepEqual(was, o.status) {
		return nil
	}
	version := map[string]any{"uid": o.object.GetUID(), "resourceVersion": o.object.GetResourceVersion()}
	patch, err := json.Marshal(map[string]any{"metadata": version, "status": o.status})
	if err != nil {
		return err
	}
	return o.Kube.Status().Patch(ctx, o.object, kube.RawPatch(types.MergePatchType, patch), kube.FieldOwner(spec.Bridge))
}

// start starts the maintenance. Where no maintenance can do what the object asks for, an Event says so, and nothing is started.
func (o *mirrored) start(ctx context.Context) (started bool, err error) {
	input, err := o.Options.inputOf(o.object, o.asks, o.status)
	if err != nil {
		o.warn("InvalidSpec", err.Error())
		if o.isDeleted() { // the scheduler that cordoned the node has to give it back
			return false, o.letGo(ctx)
		}
		return false, nil
	}
	if err := o.foreign().Unchanged(ctx, o.Live, New()); err != nil {
		return false, kube.IgnoreNotFound(err)
	}
	if topic := o.asks.AdditionalMessageChannels.AmazonSNSTopicARN; topic != "" && o.Options.Channels[topic] == "" {
		o.warn("UnknownTopic", "nothing is sent to "+topic+": have the bridge told its channel, by --pika-channel")
	}
	o.view, _, err = o.Drydock.Start(ctx, input)
	return err == nil, err
}

// follow has the maintenance do what the object says, and the object show it.
func (o *mirrored) follow(ctx context.Context) (time.Duration, error) {
	if !o.view.Running() || o.view.Phase().Ended() {
		if o.view.Phase() == api.Failed && !o.isDeleted() {
			return 0, o.fail(ctx)
		}
		return 0, o.letGo(ctx)
	}
	if o.view.Status == nil || o.view.Status.Spec.Type == "" {
		return mirror.AskAgain, nil
	}
	if err := o.show(ctx); err != nil {
		return 0, err
	}
	if o.isDeleted() && isBefore(notices.MaintenanceScheduled, o.status.MaintenanceStatus) {
		if err := o.patch(ctx, func(n *unstructured.Unstructured) { mirror.Annotate(n, terminated, "") }); err != nil {
			return 0, err
		}
	}
	if o.isDeleted() && (o.view.Phase() == api.RequestorFailed || o.view.IsUndecided()) {
		o.warn("WaitsForDecision", "the node is given back once somebody decides: "+o.view.Message())
	}
	said, err := o.talk(ctx)
	if _, is := mirror.Refused(err); is || errors.Is(err, client.ErrEnded) {
		return refused, nil
	}
	if said {
		return mirror.AskAgain, err // there may be more to say
	}
	if at := o.status.SLAExpires; at != nil && !o.isDeleted() && o.status.MaintenanceStatus == notices.MaintenanceStarted {
		return min(lookAgain, max(time.Until(at.Time), time.Second)), err
	}
	return lookAgain, err
}

// fail shows a maintenance that has failed, and has given the node back.
func (o *mirrored) fail(ctx context.Context) error {
	was := o.status
	if !o.status.into(notices.MaintenanceIncomplete, time.Now()) {
		return nil
	}
	o.warn("MaintenanceFailed", o.view.Message())
	return o.write(ctx, was)
}

// show has the object come into each state that the maintenance has come into, one after the other, so that who watches it misses none.
func (o *mirrored) show(ctx context.Context) error {
	was := o.status
	was.Conditions, was.TransitionTimestamps = cloned(was.Conditions), cloned(was.TransitionTimestamps)
	o.status.mirrorAnnotations(o.object.GetAnnotations(), time.Now())
	if err := o.write(ctx, was); err != nil {
		return err
	}
	if o.view.Status == nil || o.isDeleted() { // as in PIKA it stays in the state in which it was deleted
		return nil
	}
	if at := o.status.SLAExpires; o.status.MaintenanceStatus == notices.MaintenanceStarted && at != nil && time.Now().After(at.Time) {
		was := o.status
		o.status.into(notices.SLAExpired, at.Time) // the clock of a maintenance that took the object over began later
		if err := o.write(ctx, was); err != nil {
			return err
		}
	}
	for _, reached := range o.view.Status.States {
		if reached.State == notices.ObjectsDrained && isBefore(o.status.MaintenanceStatus, notices.ObjectsDrained) {
			if err := o.patch(ctx, func(n *unstructured.Unstructured) { mirror.Annotate(n, readyAnnotation, "true") }); err != nil {
				return err
			}
			o.status.mirrorAnnotations(o.object.GetAnnotations(), time.Now())
		}
		was := o.status
		was.Conditions, was.TransitionTimestamps = cloned(was.Conditions), cloned(was.TransitionTimestamps)
		if !o.status.into(reached.State, reached.At) {
			continue
		}
		if reached.State == notices.MaintenanceStarted && o.status.SLAExpires == nil && o.view.Status.Spec.SLA != nil {
			o.status.SLAExpires = mirror.At(reached.At.Add(time.Duration(o.view.Status.Spec.SLA.After)))
		}
		if err := o.write(ctx, was); err != nil {
			return err
		}
	}
	return nil
}

func cloned[T any](all []T) []T { return append([]T(nil), all...) }
