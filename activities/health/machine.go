package health

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"drydock.dev/drydock/k8s/clusterapi"
	rules "drydock.dev/drydock/rules/health"
)

const (
	// machineAnnotation on a node names its Machine of OpenShift, "namespace/name". Everybody who may write to the node may
	// write it.
	machineAnnotation = "machine.openshift.io/machine"
	// deletesMachines is the template whose remediator deletes the Machine that the annotation names, wherever it is.
	deletesMachines = "MachineDeletionRemediationTemplate"
)

// machineOf is the Machine that a node is, for templates whose remediators act on it: those in its namespace, and those that delete
// Machines. A remediator would act on another node's Machine, so unproven says why the annotation of the node is not believed.
func (a *Activities) machineOf(ctx context.Context, from rules.TemplateRef, node *corev1.Node) (owner *metav1.OwnerReference, unproven string, err error) {
	namespace, name, ok := strings.Cut(node.Annotations[machineAnnotation], "/")
	owned := namespace == from.Namespace
	if !ok || !owned && from.Kind != deletesMachines {
		return nil, "", nil
	}
	version, err := a.Objects.Preferred(ctx, machineGroups[0])
	if err != nil || version == "" {
		return nil, "", err
	}
	kind, err := a.Objects.Resolve(ctx, machineGroups[0]+"/"+version, "Machine")
	if err != nil {
		return nil, "", err
	}
	machine, err := a.Objects.Get(ctx, kind, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("there is no machine %s/%s, which annotation %s of the node names: correct or remove the annotation",
			namespace, name, machineAnnotation), nil
	case err != nil:
		return nil, "", fmt.Errorf("reading machine %s/%s of node %s: %w", namespace, name, node.Name, err)
	}
	if !nodeOf(machine).Is(node) {
		return nil, fmt.Sprintf("machine %s/%s, which annotation %s of the node names, does not name the node, neither by UID nor by name and "+
			"providerID: correct or remove the annotation", namespace, name, machineAnnotation), nil
	}
	if !owned {
		return nil, "", nil
	}
	return &metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: name, UID: machine.GetUID()}, "", nil
}

// nodeOf is what a Machine says of its node.
func nodeOf(machine *unstructured.Unstructured) clusterapi.NodeOf {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(machine.Object, path...) //nolint:errcheck // one of another type names no node
		return value
	}
	return clusterapi.NodeOf{
		UID: text("status", "nodeRef", "uid"), Name: text("status", "nodeRef", "name"), ProviderID: text("spec", "providerID"),
	}
}
