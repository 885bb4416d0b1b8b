package maintenanceoperator

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/rules/spec"
)

// path are the reasons of Ready, each of which every object has once, in this order. Clients miss a Ready that comes without the others.
var path = []string{objects.Pending, objects.Scheduled, objects.Cordon, objects.Waiting, objects.Draining, objects.Ready}

// reasons are those of phases; a phase that has none leaves the reason as it was.
var reasons = map[api.Phase]string{
	api.AwaitingApproval: objects.Pending, api.Pending: objects.Pending, api.Scheduled: objects.Scheduled, api.Cordoning: objects.Cordon,
	api.Cordoned: objects.Waiting, api.WaitingForPods: objects.Waiting, api.Draining: objects.Draining, api.Ready: objects.Ready, api.RequestorFailed: objects.RequestorFailed,
}

// reason is that of the condition Ready, empty if there is none.
func (o *mirrored) reason() string { return reasonOf(o.object) }

func reasonOf(o *objects.NodeMaintenance) string {
	if c := meta.FindStatusCondition(o.Status.Conditions, objects.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// following is the reason that follows another on the way to a third; empty if they are the same, or if the way back is not to be shown.
func following(from, to string, phases []api.Transition) string {
	if to == objects.RequestorFailed && from != objects.Ready && from != to {
		to = objects.Ready
	}
	at, end := slices.Index(path, from), slices.Index(path, to)
	if from == objects.RequestorFailed {
		at = len(path) - 1
	}
	switch {
	case to == "" || from == to:
		return ""
	case at < 0 || end < 0 || from == objects.RequestorFailed && to == objects.Ready: // to RequestorFailed and back
		return to
	case end > at:
		return path[at+1]
	case slices.ContainsFunc(phases, func(t api.Transition) bool { return slices.Index(path, reasons[t.Phase]) >= at }):
		return to // the node was given back, and is tried again
	}
	return "" // maintenance-operator was further, before the bridge took over
}

// show has the object show the maintenance.
func (o *mirrored) show(ctx context.Context) error {
	phase := o.view.Phase()
	if o.isDeleted() {
		// The reason stays what it was, except while the node is validated: clients do not see that a Ready object is deleted.
		if phase == api.Validating && o.reason() == objects.Ready {
			return o.become(ctx, objects.Draining)
		}
		return nil
	}
	if o.reason() == objects.RequestorFailed && phase == api.Ready && meta.IsStatusConditionTrue(o.object.Status.Conditions, objects.RequestorFailed) {
		if _, said := failedBy(o.view.Status); !said {
			return nil // talk tells the maintenance next
		}
	}
	for {
		if err := o.arrive(ctx); err != nil {
			return err
		}
		next := following(o.reason(), reasons[phase], o.view.Status.Transitions)
		if next == "" {
			return nil
		}
		if err := o.become(ctx, next); err != nil {
			return err
		}
	}
}

// arrive writes what belongs to the present reason.
func (o *mirrored) arrive(ctx context.Context) error {
	reason, now := o.reason(), time.Now().UTC().Format(time.RFC3339)
	annotated := func(key, value string) error {
		if o.object.Annotations[key] != "" {
			return nil
		}
		return o.patch(ctx, func(m *objects.NodeMaintenance) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value) })
	}
	switch {
	case reason == objects.Pending:
		return nil
	case !o.has(objects.Finalizer):
		return o.patch(ctx, func(m *objects.NodeMaintenance) { controllerutil.AddFinalizer(m, objects.Finalizer) })
	case reason == objects.Cordon && o.object.Spec.Cordons() && o.view.Status.CordonedAt != nil:
		was := "false"
		if o.view.Status.FoundCordoned {
			was = "true"
		}
		return annotated(objects.InitialState, was)
	case reason == objects.Waiting && o.object.Spec.WaitForPodCompletion != nil:
		if err := annotated(objects.WaitStart, now); err != nil || o.view.Phase() != api.WaitingForPods || o.view.Status.Drain == nil {
			return err
		}
		waits := names(o.view.Status.Drain.Blockers)
		return o.patchStatus(ctx, func(s *objects.NodeMaintenanceStatus) { s.WaitForCompletion = waits })
	case reason == objects.Draining && o.object.Spec.DrainSpec != nil:
		return o.count(ctx)
	case reason == objects.Ready:
		return annotated(objects.ReadyTime, now)
	}
	return nil
}

// count shows how far the drain is.
func (o *mirrored) count(ctx context.Context) error {
	p := o.view.Status.Drain
	if p == nil || !p.Looked() || o.view.Phase() == api.WaitingForPods {
		return nil
	}
	d := &objects.DrainStatus{TotalPods: int32(p.Total + p.Skipped), EvictionPods: int32(p.Total), DrainProgress: 100} //nolint:gosec // pods of one node
	if p.Total > 0 {
		d.DrainProgress = int32(100 * (p.Total - p.Remaining) / p.Total) //nolint:gosec // at most 100
	}
	d.WaitForEviction = names(p.Blockers)
	return o.patchStatus(ctx, func(s *objects.NodeMaintenanceStatus) { s.Drain = d })
}

// names are the pods that something is waited for.
func names(blockers []api.Blocker) (pods []string) {
	for _, b := range blockers {
		pods = append(pods, b.Pod)
	}
	return pods
}

// become gives the object the next reason, and records the event of it.
func (o *mirrored) become(ctx context.Context, reason string) error {
	err := o.patchStatus(ctx, func(s *objects.NodeMaintenanceStatus) {
		meta.SetStatusCondition(&s.Conditions, mirror.Condition(objects.ConditionReady, reason == objects.Ready, reason, ""))
		c := meta.FindStatusCondition(s.Conditions, objects.ConditionReady)
		c.ObservedGeneration = o.object.Generation
		if reason != objects.Waiting {
			s.WaitForCompletion = nil
		}
	})
	if err == nil {
		o.Events.Eventf(o.object, nil, corev1.EventTypeNormal, "ConditionChanged", reason, "%s", reason) // events of one action become a series
	}
	return err
}

// own has the object go with its node. The node's UID is known once the maintenance holds it.
func (o *mirrored) own(ctx context.Context) error {
	var uid types.UID
	if o.view.Status != nil {
		uid = types.UID(o.view.Status.NodeUID)
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: o.object.Spec.NodeName, UID: uid}
	run := o.view.FirstRunID
	return o.patch(ctx, func(m *objects.NodeMaintenance) {
		if !o.ran() {
			mirror.Remember(m, run)
		}
		if uid == "" || m.DeletionTimestamp != nil {
			return
		}
		m.OwnerReferences = slices.DeleteFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Kind == owner.Kind && r.Name == owner.Name && r.UID != uid
		})
		if !slices.ContainsFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == uid }) {
			m.OwnerReferences = append(m.OwnerReferences, owner)
		}
	})
}

// letGo has the API server remove an object that is deleted: its node is given back.
func (o *mirrored) letGo(ctx context.Context) error {
	if err := o.patch(ctx, func(m *objects.NodeMaintenance) { delete(m.Annotations, objects.InitialState) }); err != nil {
		return kube.IgnoreNotFound(err)
	}
	return kube.IgnoreNotFound(o.patch(ctx, release))
}

func release(m *objects.NodeMaintenance) {
	controllerutil.RemoveFinalizer(m, objects.Finalizer)
	controllerutil.RemoveFinalizer(m, spec.ObjectFinalizer)
}

// leave has an object of which nothing becomes any more say that its node is not out of service for it. Maintenance-operator has no such end:
// the reason is the one that clients know for an object that waits.
func (o *mirrored) leave(ctx context.Context, why string) error {
	if !o.isDeleted() && (o.reason() != objects.Pending || o.has(spec.ObjectFinalizer)) {
		o.warn("Ended", why)
		if err := o.become(ctx, objects.Pending); err != nil {
			return kube.IgnoreNotFound(err)
		}
	}
	return o.letGo(ctx)
}

func (o *mirrored) patch(ctx context.Context, change func(*objects.NodeMaintenance)) error {
	return mirror.Patch(ctx, o.Kube, o.object, change)
}

func (o *mirrored) patchStatus(ctx context.Context, change func(*objects.NodeMaintenanceStatus)) error {
	before := o.object.DeepCopy()
	change(&o.object.Status)
	if equality.Semantic.DeepEqual(before, o.object) {
		return nil
	}
	return o.Kube.Status().Patch(ctx, o.object, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{}), kube.FieldOwner(spec.Bridge))
}
