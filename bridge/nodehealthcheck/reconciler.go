// Package nodehealthcheck has medik8s' NodeHealthCheck objects drive Drydock's health checks, in the place of their operator. Each object asks
// for the check of its name, and its status has the operator's fields. What is otherwise is in docs/tasks/from-node-healthcheck.md.
package nodehealthcheck

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"drydock.dev/drydock/api"
	bridgehealth "drydock.dev/drydock/bridge/health"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/health/nhc"
	"drydock.dev/drydock/rules/spec"
)

const (
	// Resource is what the objects are, as kubectl has it.
	Resource = "nodehealthchecks." + nhc.Group

	// maxNodes bounds the unhealthy nodes of a status.
	maxNodes = 1000
)

// Pauses before an object is looked at again without being called for: while its check runs, while it remediates, because a call tells of the
// first nodes alone, and while something is refused or in the way.
const (
	lookAgain = 10 * time.Minute
	busyAgain = time.Minute
	refused   = 15 * time.Second
)

// New is an object without content.
func New() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(nhc.APIVersion)
	o.SetKind(nhc.Kind)
	return o
}

// Reconciler reconciles the objects with the health checks that they ask for.
type Reconciler struct {
	Kube kube.Client
	// Live reads objects without a cache.
	Live   kube.Reader
	Events recorder.EventRecorder
	// Drydock is how workflows are reached.
	Drydock *client.Client
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := New()
	if err := r.Kube.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, kube.IgnoreNotFound(err)
	}
	o := &mirrored{Reconciler: r, object: object, check: bridgehealth.Of(Resource, object, r.Drydock)}
	o.check.Nodes = maxNodes
	again, err := o.reconcile(ctx)
	var occupied *mirror.OccupiedError
	if soon, is := mirror.Soon(err); is {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	if errors.As(err, &occupied) {
		return reconcile.Result{RequeueAfter: refused}, o.show(ctx, disabled(err.Error()))
	}
	if err != nil {
		o.event(corev1.EventTypeWarning, "Error", err.Error())
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// mirrored is an object that is being reconciled, with the check that it asks for.
type mirrored struct {
	*Reconciler
	object *unstructured.Unstructured
	check  *bridgehealth.Asked
}

func (o *mirrored) foreign() mirror.Foreign {
	return mirror.Foreign{Resource: Resource, Object: o.object}
}

func (o *mirrored) event(kind, reason, text string) {
	o.Events.Eventf(o.object, nil, kind, reason, "Check", "%s", bounds.Cut(text, bounds.Text))
}

// reconcile returns when to look again.
func (o *mirrored) reconcile(ctx context.Context) (time.Duration, error) {
	wrong := o.check.Ask(inputOf(o.object))
	found, err := o.find(ctx)
	deleted := o.object.GetDeletionTimestamp() != nil
	switch {
	case errors.Is(err, mirror.ErrLost) && deleted:
		return 0, o.finalize(ctx, controllerutil.RemoveFinalizer)
	case errors.Is(err, mirror.ErrLost):
		return 0, o.show(ctx, disabled(err.Error()))
	case err != nil:
		return 0, err
	case !found && deleted:
		return 0, o.finalize(ctx, controllerutil.RemoveFinalizer)
	case deleted:
		return o.end(ctx)
	case !found && wrong != nil:
		if err := o.finalize(ctx, controllerutil.RemoveFinalizer); err != nil {
			return 0, err
		}
		return 0, o.show(ctx, disabled(wrong.Error()))
	case !found:
		if err := o.start(ctx); err != nil {
			return 0, err
		}
	}
	if err := o.remember(ctx); err != nil {
		return 0, err
	}
	return o.follow(ctx)
}

// find looks for the check of the object. The error is mirror.ErrLost where the one that was started is not there any more.
func (o *mirrored) find(ctx context.Context) (found bool, err error) {
	run, begun := mirror.RunOf(o.object)
	if !begun && !controllerutil.ContainsFinalizer(o.object, spec.ObjectFinalizer) { // none was started before that was on
		return false, nil
	}
	look := o.check.Look(ctx)
	var none *client.NoneError
	switch {
	case !begun:
		return look.Found(Resource, o.object)
	case errors.As(look.Err, &none), look.Err == nil && look.FirstRunID != run:
		return false, fmt.Errorf("its health check has ended, or Temporal has lost it: %w", mirror.ErrLost)
	}
	return look.Err == nil, look.Err
}

// remember writes which check is the object's.
func (o *mirrored) remember(ctx context.Context) error {
	return mirror.Patch(ctx, o.Kube, o.object, func(n *unstructured.Unstructured) { mirror.Remember(n, o.check.Seen().FirstRunID) })
}

// inputOf is the input of the check.
func inputOf(o *unstructured.Unstructured) (input client.Input, err error) {
	checks, err := nhc.Read(o.Object)
	if err == nil {
		err = json.Unmarshal(checks[0].Spec, &input)
	}
	if err == nil {
		mirror.AskFor(input, Resource, o, "")
	}
	return input, err
}

// finalize changes the finalizers of the object as it was read, or nothing.
func (o *mirrored) finalize(ctx context.Context, change func(kube.Object, string) bool) error {
	return kube.IgnoreNotFound(mirror.Patch(ctx, o.Kube, o.object, func(n *unstructured.Unstructured) { change(n, spec.ObjectFinalizer) }))
}

// start starts the check.
func (o *mirrored) start(ctx context.Context) error {
	if err := o.finalize(ctx, controllerutil.AddFinalizer); err != nil {
		return err
	}
	if err := o.foreign().Unchanged(ctx, o.Live, New()); err != nil {
		return err
	}
	return o.check.Start(ctx)
}

// follow has the check follow the spec, and the object show the check. One that was ended stays so: Drydock shows why.
func (o *mirrored) follow(ctx context.Context) (time.Duration, error) {
	view := o.check.View()
	if !view.Running {
		known := o.check.Seen().Known()
		why := cmp.Or(known.Message, "somebody removed it")
		return 0, o.show(ctx, disabled("its health check has ended ("+why+"): "+mirror.ErrLost.Error()))
	}
	again := cmp.Or(view.Again, lookAgain)
	err := o.check.Change(ctx, "")
	if why, is := mirror.Refused(err); is {
		o.event(corev1.EventTypeWarning, "ChangeRefused", why)
		again, err = refused, nil
	}
	if err != nil {
		return 0, err
	}
	seen := o.check.Seen().Status
	if seen == nil || seen.WaitingFor != "" {
		return mirror.AskAgain, nil // it does not know its nodes yet
	}
	if seen.Remediating > 0 {
		again = min(again, busyAgain)
	}
	return again, o.show(ctx, nhc.Show(o.object.GetName(), seen.Spec, seen.Status).Status)
}

// end ends the check of an object that is deleted. While nodes are remediated it is paused.
func (o *mirrored) end(ctx context.Context) (time.Duration, error) {
	view := o.check.View()
	if !view.Running {
		return 0, o.finalize(ctx, controllerutil.RemoveFinalizer)
	}
	for _, message := range view.End {
		_, err := o.check.Say(ctx, message, api.Message{
			ID: fmt.Sprintf("%s/deleted/%s", o.object.GetUID(), message), By: mirror.Principal(Resource, o.object, ""), Comment: "the object was deleted",
		})
		if why, is := mirror.Refused(err); is {
			return refused, o.showEnding(ctx, why)
		}
		if err != nil && !errors.Is(err, client.ErrEnded) {
			return 0, err
		}
	}
	return cmp.Or(view.Again, mirror.AskAgain), nil
}

// showEnding shows a check that does not end yet, with the reason.
func (o *mirrored) showEnding(ctx context.Context, why string) error {
	seen := o.check.Seen().Status
	if seen == nil {
		return nil
	}
	status := nhc.Show(o.object.GetName(), seen.Spec, seen.Status).Status
	status.Reason = why
	return o.show(ctx, status)
}

// disabled is the status of an object whose check decides nothing.
func disabled(why string) nhc.Status {
	return nhc.Status{Phase: health.PhaseDisabled, Reason: bounds.Cut(why, bounds.Text)}
}

// show writes the status where it is another. When it was last changed counts as no change.
func (o *mirrored) show(ctx context.Context, status nhc.Status) error {
	status.LastUpdateTime = nil
	next, err := fieldsOf(status)
	if err != nil {
		return err
	}
	was, _, err := unstructured.NestedMap(o.object.Object, "status")
	if err != nil {
		was = nil // it is no object, and is replaced
	}
	delete(was, "lastUpdateTime")
	same, err := equal(was, next)
	if err != nil || same {
		return err
	}
	before, _ := was["phase"].(string)
	for field := range was {
		if _, stays := next[field]; !stays {
			next[field] = nil // a merge patch takes it out
		}
	}
	next["lastUpdateTime"] = time.Now().UTC().Format(time.RFC3339)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.object.GetUID()}, "status": next})
	if err != nil {
		return err
	}
	if err := o.Kube.Status().Patch(ctx, o.object, kube.RawPatch(types.MergePatchType, patch), kube.FieldOwner(spec.Bridge)); err != nil {
		return kube.IgnoreNotFound(err)
	}
	if phase := string(status.Phase); phase != before {
		kind := corev1.EventTypeNormal
		if status.Phase == health.PhaseDisabled {
			kind = corev1.EventTypeWarning
		}
		o.event(kind, phase, cmp.Or(status.Reason, "the health check is "+phase))
	}
	return nil
}

func fieldsOf(value any) (fields map[string]any, err error) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	return fields, err
}

func equal(a, b map[string]any) (bool, error) {
	one, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	other, err := json.Marshal(b)
	return bytes.Equal(one, other), err
}
