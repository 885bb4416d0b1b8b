package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/spec"
)

// Reasons of conditions that are no phases.
const (
	// reasonInvalid: the object asks for what no workflow can do.
	reasonInvalid = "InvalidSpec"
	// reasonRefused: the workflow does not take the spec that the object has now.
	reasonRefused = "ChangeRefused"
	// reasonOccupied: another workflow has the place of the object's.
	reasonOccupied = "Occupied"
	// reasonNoWorker: nobody answers for the workflow.
	reasonNoWorker = "NoWorker"
	// reasonLost: Temporal has the workflow no more.
	reasonLost = "Lost"
	// reasonForeign: the status names the workflow of something else.
	reasonForeign = "Foreign"
)

// refused is the status of an object for which nothing is done until somebody changes something.
func (o *mirrored) refused(reason, why string) v1alpha1.Status {
	o.behind = false
	is := o.Kind.New().Shows()
	stall(is, reason, bounds.Cut(why, bounds.Text))
	return is
}

// waiting is that of an object whose workflow cannot be started or looked at yet.
func (o *mirrored) waiting(reason, why string) v1alpha1.Status {
	is := o.Kind.New().Shows()
	wait(is, reason, bounds.Cut(why, bounds.Text))
	return is
}

// Silent has a status say that no worker answers for the workflow. Why is nil where it has not been asked yet.
func Silent(is v1alpha1.Status, why error) {
	text := "no worker has said yet how far it is"
	if why != nil {
		text = why.Error()
	}
	wait(is, reasonNoWorker, bounds.Cut(text, bounds.Text))
}

func wait(is v1alpha1.Status, reason, why string) { put(is, true, false, reason, why) }

func stall(is v1alpha1.Status, reason, why string) { put(is, false, true, reason, why) }

// put sets the message and the conditions of kstatus.
func put(is v1alpha1.Status, reconciling, stalled bool, reason, message string) {
	s := is.Common()
	s.Message = message
	for _, c := range []metav1.Condition{
		Condition(v1alpha1.Reconciling, reconciling, reason, message), Condition(v1alpha1.Stalled, stalled, reason, message),
	} {
		if there := meta.FindStatusCondition(s.Conditions, c.Type); there != nil {
			*there = c
		} else {
			s.Conditions = append(s.Conditions, c)
		}
	}
}

// after is a status that follows another: what says the same as before keeps its time. Where nothing new is known of the workflow, only
// the message is another, that of Reconciling too: nobody is to take a node that is Ready for one that is not.
func after(was, is v1alpha1.Status, now time.Time) v1alpha1.Status {
	before := was.Common()
	is.Common().Decision = cmp.Or(is.Common().Decision, before.Decision)
	if is.State() == "" && was.State() != "" {
		words := is.Common()
		if !meta.IsStatusConditionTrue(words.Conditions, v1alpha1.Stalled) {
			words.Conditions = nil
		}
		for _, c := range before.Conditions {
			if meta.FindStatusCondition(words.Conditions, c.Type) == nil {
				if c.Type == v1alpha1.Reconciling {
					c.Message = words.Message
				}
				words.Conditions = append(words.Conditions, c)
			}
		}
		is = was.Copy()
		next := is.Common()
		next.ObservedGeneration, next.Message, next.Decision, next.Conditions = words.ObservedGeneration, words.Message, words.Decision, words.Conditions
	}
	next := is.Common()
	if is.State() == "" && next.RunID != "" {
		is.Begin()
	}
	for i := range next.Conditions {
		c := &next.Conditions[i]
		c.ObservedGeneration, c.LastTransitionTime = next.ObservedGeneration, metav1.NewTime(now.UTC().Truncate(time.Second))
		if same := meta.FindStatusCondition(before.Conditions, c.Type); same != nil && same.Status == c.Status {
			c.LastTransitionTime = same.LastTransitionTime
		}
	}
	return is
}

func same(a, b v1alpha1.Status) bool { return equality.Semantic.DeepEqual(a, b) }

// show writes the status where it is another, and an event where the phase is.
func (o *mirrored) show(ctx context.Context, is v1alpha1.Status) error {
	was := o.object.Shows().Copy()
	is.Common().ObservedGeneration = o.object.GetGeneration()
	if o.behind {
		is.Common().ObservedGeneration = was.Common().ObservedGeneration
	}
	if is = after(was, is, time.Now()); same(was, is) {
		return nil
	}
	kind, err := o.Kube.GroupVersionKindFor(o.object)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind,
		"metadata": map[string]any{"name": o.object.GetName(), "uid": o.object.GetUID(), "resourceVersion": o.object.GetResourceVersion()},
		"status":   is,
	})
	if err != nil {
		return err
	}
	err = o.Kube.Status().Patch(ctx, o.object, kube.RawPatch(types.ApplyPatchType, patch), kube.FieldOwner(spec.Bridge), kube.ForceOwnership)
	if err != nil {
		return kube.IgnoreNotFound(err)
	}
	o.record(was, is)
	return nil
}

// record writes an Event where the object has come into another phase, or has become stalled.
func (o *mirrored) record(was, is v1alpha1.Status) {
	now := meta.FindStatusCondition(is.Common().Conditions, v1alpha1.Stalled)
	before := meta.FindStatusCondition(was.Common().Conditions, v1alpha1.Stalled)
	if now == nil { // somebody else has written the status, and nothing is known that corrects it
		return
	}
	stalls := now.Status == metav1.ConditionTrue
	if was.State() == is.State() && (before != nil && before.Status == now.Status && before.Reason == now.Reason || before == nil && !stalls) {
		return
	}
	kind := corev1.EventTypeNormal
	if stalls {
		kind = corev1.EventTypeWarning
	}
	o.Events.Eventf(o.object, nil, kind, now.Reason, "Maintain", "%s", cmp.Or(is.Common().Message, fmt.Sprintf("%s is %s", o.object.GetName(), is.State())))
}
