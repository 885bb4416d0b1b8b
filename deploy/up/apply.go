package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/deploy/kubernetes"
)

// applier applies manifests to a cluster, as the user.
type applier struct {
	client dynamic.Interface
	// changed means that something was applied.
	changed bool
}

func newApplier(c *cluster) (*applier, error) {
	config, err := clientcmd.NewDefaultClientConfig(c.whole, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout, config.QPS = answersWithin, -1
	client, err := dynamic.NewForConfig(config)
	return &applier{client: client}, err
}

// resources are those of the kinds that the manifests have.
var resources = map[string]string{
	"ServiceAccount": "serviceaccounts", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
	"Role": "roles", "RoleBinding": "rolebindings", "CustomResourceDefinition": "customresourcedefinitions",
	"MutatingAdmissionPolicy": "mutatingadmissionpolicies", "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
	"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}

func (a *applier) of(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	resource, ok := resources[object.GetKind()]
	if !ok {
		return nil, fmt.Errorf("a manifest has a %s", object.GetKind())
	}
	kind := object.GroupVersionKind()
	to := a.client.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: resource})
	if object.GetNamespace() == "" {
		return to, nil
	}
	return to.Namespace(object.GetNamespace()), nil
}

// lacking are the manifests with those objects that the cluster does not have as they are.
func (a *applier) lacking(ctx context.Context, manifests []kubernetes.Manifest) (lacking []kubernetes.Manifest, err error) {
	for _, m := range manifests {
		missing := kubernetes.Manifest{File: m.File}
		for _, object := range m.Objects {
			same, err := a.has(ctx, object)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %s %s: %w", kubernetes.Folder, m.File, object.GetKind(), object.GetName(), err)
			}
			if !same {
				missing.Objects = append(missing.Objects, object)
			}
		}
		if len(missing.Objects) > 0 {
			lacking = append(lacking, missing)
		}
	}
	return lacking, nil
}

// has reports whether applying an object would change nothing.
func (a *applier) has(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	to, err := a.of(object)
	if err != nil {
		return false, err
	}
	is, err := to.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return false, ignoreNotFound(err)
	}
	would, err := to.Apply(ctx, object.GetName(), applied(object), metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return false, err
	}
	return reflect.DeepEqual(content(is), content(would)), nil
}

// apply applies the objects of manifests.
func (a *applier) apply(ctx context.Context, manifests []kubernetes.Manifest) error {
	for _, m := range manifests {
		for _, object := range m.Objects {
			to, err := a.of(object)
			if err == nil {
				a.changed = true
				_, err = to.Apply(ctx, object.GetName(), applied(object), metav1.ApplyOptions{FieldManager: manager, Force: true})
			}
			if err != nil {
				return fmt.Errorf("applying %s/%s: %s %s: %w", kubernetes.Folder, m.File, object.GetKind(), object.GetName(), err)
			}
		}
	}
	return nil
}

// tryObject creates an object without keeping it. The error is why the API server does not go by the policies yet; who may not create one
// at all does not learn that.
func (a *applier) tryObject(ctx context.Context) error {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "drydock.dev/v1alpha1", "kind": "NodeMaintenance", "metadata": map[string]any{"name": manager}, "spec": map[string]any{"node": manager},
	}}
	tried, err := a.client.Resource(schema.GroupVersionResource{Group: "drydock.dev", Version: "v1alpha1", Resource: "nodemaintenances"}).
		Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return err
	}
	if by, _, _ := unstructured.NestedString(tried.Object, "spec", "requestedBy"); by == "" {
		return errors.New("the policies are not in force")
	}
	return nil
}

// manager is the field manager of what is applied.
const manager = "drydock-up"

// applied is an object as it is applied: the rules of a role that adds up others are the control plane's.
func applied(object *unstructured.Unstructured) *unstructured.Unstructured {
	if _, adds := object.Object["aggregationRule"]; !adds {
		return object
	}
	object = object.DeepCopy()
	delete(object.Object, "rules")
	return object
}

// content is an object without what the API server keeps of its own.
func content(object *unstructured.Unstructured) map[string]any {
	all := object.DeepCopy().Object
	delete(all, "status")
	all["metadata"] = map[string]any{"labels": object.GetLabels(), "annotations": object.GetAnnotations()}
	return all
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
