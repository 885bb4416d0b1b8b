// Package lease reads and writes Leases, each change to the very version that was read.
package lease

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/k8s/objects"
)

var (
	kind     = objects.Kind{GroupVersionKind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), Resource: "leases", Namespaced: true}
	resource = coordinationv1.Resource("leases")
)

// Client reads and writes Leases.
type Client struct{ Objects *objects.Client }

// Clock is the time by the API server's clock, as an answer says it: a worker whose own clock is wrong must not take a Lease that
// lasts, nor write one that nobody believes. The answer has whole seconds: the time is not before Earliest and not after Latest.
type Clock struct{ Earliest, Latest time.Time }

func clockAt(date time.Time) Clock {
	if date.IsZero() { // the answer did not say
		now := time.Now()
		return Clock{now, now}
	}
	return Clock{date, date.Add(time.Second)}
}

// Get reads a Lease. The time is known also where there is none.
func (c Client) Get(ctx context.Context, namespace, name string) (*coordinationv1.Lease, Clock, error) {
	var date time.Time
	object, err := c.Objects.Get(kube.NoteServerTime(ctx, &date), kind, namespace, name)
	if err != nil {
		return nil, clockAt(date), err
	}
	lease, err := typed(object)
	return lease, clockAt(date), err
}

// List reads the Leases of a namespace.
func (c Client) List(ctx context.Context, namespace string) ([]*coordinationv1.Lease, Clock, error) {
	var date time.Time
	found, err := c.Objects.List(kube.NoteServerTime(ctx, &date), kind, namespace, "")
	if err != nil {
		return nil, clockAt(date), err
	}
	var all []*coordinationv1.Lease
	for i := range found {
		lease, err := typed(&found[i])
		if err != nil {
			return nil, clockAt(date), err
		}
		all = append(all, lease)
	}
	return all, clockAt(date), nil
}

// Create writes a Lease. Somebody may be faster: that is a conflict.
func (c Client) Create(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(lease)
	if err != nil {
		return nil, fmt.Errorf("lease %s: %w", lease.Name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	created, err := c.Objects.Create(ctx, kind, object)
	if apierrors.IsAlreadyExists(err) {
		return nil, apierrors.NewConflict(resource, lease.Name, err)
	}
	if err != nil {
		return nil, err
	}
	return typed(created)
}

// Change writes fields of the specification into the very version of a Lease that was read.
func (c Client) Change(ctx context.Context, found *coordinationv1.Lease, spec map[string]any) (*coordinationv1.Lease, error) {
	changed, err := c.Objects.Patch(ctx, kind, found.Namespace, found.Name, map[string]any{
		"metadata": map[string]any{"resourceVersion": found.ResourceVersion}, "spec": spec,
	})
	if err != nil {
		return nil, err
	}
	return typed(changed)
}

// Delete deletes the very Lease that was read.
func (c Client) Delete(ctx context.Context, found *coordinationv1.Lease) error {
	return c.Objects.Delete(ctx, kind, found.Namespace, found.Name, found.UID)
}

func typed(object *unstructured.Unstructured) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, lease); err != nil {
		return nil, fmt.Errorf("reading lease %s: %w", object.GetName(), err)
	}
	return lease, nil
}

// Holder is who has a Lease, empty if nobody does.
func Holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// Renewed is when a Lease was renewed, zero if it does not say.
func Renewed(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

// For is how long a Lease lasts from when it was renewed, 0 where it does not say.
func For(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return 0
	}
	return time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}
