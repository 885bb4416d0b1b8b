package mirror

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/spec"
)

// Maintenances are the maintenances of Drydock, which client.Client has.
type Maintenances interface {
	Latest(ctx context.Context, node, requestor string) (client.Maintenance, bool, error)
	LastStatus(ctx context.Context, m client.Maintenance) (*api.Status, error)
	Observe(ctx context.Context, m client.Maintenance) (client.View, error)
	Start(ctx context.Context, in client.Input) (v client.View, adopted bool, err error)
	Send(ctx context.Context, to client.Maintenance, name string, payload any, comment string) (client.Sent, error)
}

// clocks is how far the clocks of the API server and of Temporal may be apart.
const clocks = 5 * time.Minute

// Foreign is an object of another system, which the bridge serves in the place of that system's operator. Its annotation spec.RunAnnotation
// names the workflow that was started for it.
type Foreign struct {
	// Resource is what it is, as kubectl has it.
	Resource string
	Object   kube.Object
}

// Soon reports whether an error says no more than that the object is to be looked at again, and after what time: it has changed since it was
// read, no worker answers, or another maintenance has the place of its own.
func Soon(err error) (again time.Duration, is bool) {
	var (
		noWorker  *client.NoWorkerError
		different *client.DifferentError
		releasing *client.ReleasingError
	)
	switch {
	case apierrors.IsConflict(err):
		return staleAgain, true
	case errors.As(err, &noWorker):
		return AskAgain, true
	case errors.As(err, &different), errors.As(err, &releasing):
		return occupied, true
	}
	return 0, false
}

// Patch changes an object, if the change is one. A cache may be late: what is patched is the object as it was read, or nothing, so that
// nobody's change is overwritten.
func Patch[O kube.Object](ctx context.Context, to kube.Client, o O, change func(O)) error {
	before, _ := o.DeepCopyObject().(O) // a copy has the type of what it is copied from
	change(o)
	if equality.Semantic.DeepEqual(before, o) {
		return nil
	}
	return to.Patch(ctx, o, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{}), kube.FieldOwner(spec.Bridge))
}

// Annotate sets an annotation.
func Annotate(o metav1.Object, key, value string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	o.SetAnnotations(annotations)
}

// RunOf is the first run of the workflow that was started for the object. One that has ended, or that Temporal has lost, is not started again.
func RunOf(o metav1.Object) (run string, begun bool) {
	return strings.CutPrefix(o.GetAnnotations()[spec.RunAnnotation], string(o.GetUID())+" ")
}

// Remember writes into the object which run of a workflow was started for it.
func Remember(o metav1.Object, run string) {
	Annotate(o, spec.RunAnnotation, string(o.GetUID())+" "+run)
}

// Find finds the maintenance of a node by a requestor that was started for the object. The error is ErrLost where it is not there any more.
func (f Foreign) Find(ctx context.Context, all Maintenances, node, requestor string) (view client.View, found bool, err error) {
	latest, found, err := all.Latest(ctx, node, requestor)
	run, begun := RunOf(f.Object)
	switch {
	case err != nil:
		return view, false, err
	case begun && (!found || latest.FirstRunID != run):
		return view, false, fmt.Errorf("node %s has no maintenance %s for %s any more: %w", node, run, requestor, ErrLost)
	case !found, !begun && !latest.Running() && latest.Started.Before(f.Object.GetCreationTimestamp().Add(-clocks)):
		return view, false, nil
	case !begun:
		status, err := all.LastStatus(ctx, latest)
		if err != nil {
			return view, false, err
		}
		if latest.Running() && status.Spec.Type == "" { // it has not read its input yet, and may be the object's
			return view, false, &client.NoWorkerError{}
		}
		if !Owns(f.Resource, f.Object, status.Spec.Object) {
			return view, false, nil
		}
	}
	view, err = all.Observe(ctx, latest)
	return view, err == nil, err
}

// Unchanged returns a conflict where the object has been deleted or given a workflow since it was read, which a cache may not know yet. Now is
// an object of its type without content.
func (f Foreign) Unchanged(ctx context.Context, live kube.Reader, now kube.Object) error {
	if err := live.Get(ctx, kube.ObjectKeyFromObject(f.Object), now); err != nil {
		return err
	}
	wasDeleted, isDeleted := f.Object.GetDeletionTimestamp() != nil, now.GetDeletionTimestamp() != nil
	if _, begun := RunOf(now); begun || now.GetUID() != f.Object.GetUID() || wasDeleted != isDeleted {
		return apierrors.NewConflict(schema.ParseGroupResource(f.Resource), f.Object.GetName(), errors.New("it has changed"))
	}
	return nil
}

// Principal is who speaks by the object.
func (f Foreign) Principal() string { return Principal(f.Resource, f.Object, "") }

// Say sends the maintenance a message for the object. Messages of one ID are one message.
func (f Foreign) Say(ctx context.Context, all Maintenances, to client.View, name, id, comment string) error {
	payload, err := Complete(api.NodeMaintenanceType, name, nil, api.Message{
		ID: fmt.Sprintf("%s/%s/%s", f.Object.GetUID(), name, id), By: f.Principal(), Comment: bounds.Cut(comment, bounds.Text),
	}, to.FirstRunID)
	if err != nil {
		return err
	}
	_, err = all.Send(ctx, to.Maintenance, name, payload, comment)
	return err
}
