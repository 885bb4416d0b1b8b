package health

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/k8s"
	rules "drydock.dev/drydock/rules/health"
)

// Marks on remediation objects, as medik8s has them.
const (
	timedOutAnnotation = "remediation.medik8s.io/nhc-timed-out"
	delayAnnotation    = "remediation.medik8s.io/healthy-delay"
	oldAnnotation      = "nodehealthcheck.medik8s.io/old-remediation-cr-flag"
	oldFlag            = "flagon"
	// oldAfter is when a remediation object is old.
	oldAfter = 48 * time.Hour
)

// MarkObjects writes marks on remediation objects. It may be repeated: a mark that is there is left as it is.
func (a *Activities) MarkObjects(ctx context.Context, in MarkInput) (MarkedObjects, error) {
	marked := MarkedObjects{Gone: make([]bool, len(in.Objects))}
	for i, r := range in.Objects {
		o, kind, err := a.readOwn(ctx, in.Check, r)
		if err != nil {
			return MarkedObjects{}, failure.Translate(ctx, a.Objects.Kube(), err)
		}
		if marked.Gone[i] = o == nil; o == nil {
			continue
		}
		annotations := in.marks(o, time.Now())
		if len(annotations) == 0 {
			continue
		}
		patch := map[string]any{"metadata": map[string]any{"uid": o.GetUID(), "annotations": annotations}}
		_, err = a.Objects.Patch(ctx, kind, r.Namespace, r.Name, patch)
		if apierrors.IsInvalid(err) { // so it is where another object has the name: the UID cannot be changed
			again, _, reading := a.readOwn(ctx, in.Check, r)
			if reading == nil && again == nil {
				marked.Gone[i] = true
				continue
			}
		}
		switch {
		case apierrors.IsNotFound(err):
			marked.Gone[i] = true
		case err != nil:
			return MarkedObjects{}, failure.Translate(ctx, a.Objects.Kube(), fmt.Errorf("marking %s %s: %w", r.Kind, r.Name, err))
		case annotations[oldAnnotation] != nil:
			marked.Flagged++
		}
	}
	return marked, nil
}

// marks are the annotations to change; nil removes one.
func (in MarkInput) marks(o *unstructured.Unstructured, now time.Time) map[string]any {
	there, marks := o.GetAnnotations(), map[string]any{}
	set := func(key, value string) {
		if _, is := there[key]; !is {
			marks[key] = value
		}
	}
	if in.TimedOut != nil && conditionOf(o.Object, "Succeeded").status != "True" {
		set(timedOutAnnotation, in.TimedOut.UTC().Format(time.RFC3339))
	}
	if in.Old && now.Sub(o.GetCreationTimestamp().Time) > oldAfter {
		set(oldAnnotation, oldFlag)
	}
	if in.HealthySince != nil {
		// What somebody else has written, or an earlier recovery, is not since when the node is healthy.
		if since := in.HealthySince.UTC().Format(time.RFC3339); there[delayAnnotation] != since {
			marks[delayAnnotation] = since
		}
	}
	if _, is := there[delayAnnotation]; is && in.Relapsed && in.HealthySince == nil {
		marks[delayAnnotation] = nil
	}
	return marks
}

// RemoveObjects deletes remediation objects, upon which their remediators clean up; once they are gone it gives the lease back and
// takes off the node's confirmation. It waits for finalizers for some seconds only.
func (a *Activities) RemoveObjects(ctx context.Context, in RemoveInput) (Removed, error) {
	removed, err := a.remove(ctx, in)
	return removed, failure.Translate(ctx, a.Objects.Kube(), err)
}

func (a *Activities) remove(ctx context.Context, in RemoveInput) (Removed, error) {
	removed, err := a.removeObjects(ctx, in)
	if err != nil || !removed.Done {
		return removed, err
	}
	if !in.KeepLease {
		if err := a.leases().GiveBack(ctx, in.Node, LeaseHolder(in.Check)); err != nil {
			return Removed{}, err
		}
		// The activity of a terminated remediation may have made an object since the first list. If it makes one from now on, it finds that
		// the lease is gone, and deletes the object itself.
		again, err := a.removeObjects(ctx, RemoveInput{Check: in.Check, Node: in.Node, Templates: in.Templates})
		if err != nil {
			return Removed{}, err
		}
		if removed.Done = again.Done; !again.Done {
			return removed, nil
		}
	}
	if in.KeepConfirmation {
		return removed, nil
	}
	return removed, a.takeConfirmation(ctx, in.Node)
}

// removeObjects deletes the objects, and waits for finalizers for some seconds.
func (a *Activities) removeObjects(ctx context.Context, in RemoveInput) (removed Removed, err error) {
	named := len(in.Objects)
	for _, template := range in.Templates {
		own, err := a.findOwn(ctx, in.Check, in.Node, template)
		if err != nil {
			return Removed{}, err
		}
		in.Objects = append(in.Objects, own...)
	}
	removed.Gone = make([]bool, len(in.Objects))
	defer func() { removed.Gone = removed.Gone[:min(named, len(removed.Gone))] }()
	for i, r := range in.Objects {
		gone, err := a.delete(ctx, in.Check, r)
		if err != nil {
			return Removed{}, err
		}
		removed.Gone[i] = gone
	}
	for until := time.Now().Add(graceOfDelete); ; {
		removed.Done = true
		for i, r := range in.Objects {
			if !removed.Gone[i] {
				o, _, err := a.readOwn(ctx, in.Check, r)
				if err != nil {
					return Removed{}, err
				}
				removed.Gone[i] = o == nil
			}
			removed.Done = removed.Done && removed.Gone[i]
		}
		if removed.Done || time.Now().After(until) {
			return removed, nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return Removed{}, ctx.Err()
		}
	}
}

// delete deletes an object that is still the one, and the check's; gone: it is not there any more.
func (a *Activities) delete(ctx context.Context, check string, r rules.Resource) (gone bool, err error) {
	o, kind, err := a.readOwn(ctx, check, r)
	if err != nil || o == nil {
		return o == nil && err == nil, err
	}
	err = a.Objects.Delete(ctx, kind, r.Namespace, r.Name, o.GetUID())
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err):
		return false, nil // the object was replaced or has changed: the next look shows which
	case err != nil:
		return false, fmt.Errorf("deleting %s %s: %w", r.Kind, r.Name, err)
	}
	return false, nil
}

// takeConfirmation takes off a node that a person has found it healthy: it was about this remediation.
func (a *Activities) takeConfirmation(ctx context.Context, name string) error {
	nodes := a.Objects.Kube().CoreV1().Nodes()
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading node %s: %w", name, err)
	}
	if _, there := node.Annotations[k8s.ConfirmedAnnotation]; !there {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, k8s.ConfirmedAnnotation)
	if _, err := nodes.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking the confirmation off node %s: %w", name, err)
	}
	return nil
}
