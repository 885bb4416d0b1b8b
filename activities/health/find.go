package health

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/k8s"
)

// FindObjects finds the objects that a check has made for a node: an earlier remediation may have made one and not reported it. Objects
// that are being deleted are left out.
func (a *Activities) FindObjects(ctx context.Context, in FindInput) (FoundObjects, error) {
	var found FoundObjects
	for i, ref := range in.Templates {
		own, makes, err := a.listOwn(ctx, in.Check, in.Node, ref)
		if err != nil {
			return FoundObjects{}, failure.Translate(ctx, a.Objects.Kube(), err)
		}
		for _, o := range own {
			if o.GetDeletionTimestamp() == nil {
				found.Objects = append(found.Objects, FoundObject{
					Template: i, Resource: *resourceOf(makes, &o), StartedAt: o.GetCreationTimestamp().UTC(),
				})
			}
		}
	}
	return found, nil
}

// find looks for the object that is there already: the step's own after a lost answer, or that of an earlier remediation of the same
// node from the same template. Where the name is free for all, somebody else's for the node and template stands in the way, too.
func (a *Activities) find(ctx context.Context, in ObjectInput, from template) (EnsuredObject, error) {
	candidates, err := a.candidates(ctx, in, from)
	if err != nil {
		return EnsuredObject{}, err
	}
	var found EnsuredObject
	for i := range candidates {
		if found = in.judge(from, &candidates[i]); found.Resource != nil {
			return found, nil
		}
	}
	return found, nil
}

// candidates are the objects that may be the step's, or stand in its way.
func (a *Activities) candidates(ctx context.Context, in ObjectInput, from template) ([]unstructured.Unstructured, error) {
	if from.multiple {
		all, err := a.Objects.ListMetadata(ctx, from.makes, from.namespace, "")
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", from.makes.Resource, err)
		}
		return slices.DeleteFunc(all, func(o unstructured.Unstructured) bool { return !in.isFor(&o) }), nil
	}
	object, err := a.Objects.Get(ctx, from.makes, from.namespace, in.Node)
	switch {
	case err == nil:
		return []unstructured.Unstructured{*object}, nil
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading %s %s: %w", from.makes.Kind, in.Node, err)
	}
	// It has another name where it was made while its template allowed several, or while the object of an earlier step had the node's.
	own, _, err := a.listOwn(ctx, in.Check, in.Node, in.Template)
	if k8s.Denied(ctx, a.Objects.Kube(), err) { // no remediator of objects with the node's name needs it
		return nil, nil
	}
	return own, err
}

// findNamed finds what has the name that an object was to get: that which another run of the remediation has made at the same time, or
// what stands in the way.
func (a *Activities) findNamed(ctx context.Context, in ObjectInput, from template, name string) (EnsuredObject, error) {
	o, err := a.Objects.Get(ctx, from.makes, from.namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return EnsuredObject{Waiting: fmt.Sprintf("%s %s has just been deleted", from.makes.Kind, name)}, nil
	case err != nil:
		return EnsuredObject{}, fmt.Errorf("reading %s %s: %w", from.makes.Kind, name, err)
	}
	return in.judge(from, o), nil
}

// judge reports whether an object is the step's, or why it stands in the way.
func (in ObjectInput) judge(from template, o *unstructured.Unstructured) EnsuredObject {
	kind, name := from.makes.Kind, o.GetName()
	switch {
	case !in.owns(o):
		return EnsuredObject{NotOwned: fmt.Sprintf("%s %s is somebody else's: %s", kind, name, whose(o))}
	case o.GetDeletionTimestamp() != nil:
		return EnsuredObject{Waiting: fmt.Sprintf("%s %s of an earlier remediation is being deleted", kind, name)}
	case !in.isFor(o):
		return EnsuredObject{NotOwned: fmt.Sprintf("%s %s is from template %s", kind, name, o.GetAnnotations()[templateNameAnnotation])}
	default:
		return EnsuredObject{Resource: resourceOf(from, o), StartedAt: o.GetCreationTimestamp().UTC(), Found: true}
	}
}
