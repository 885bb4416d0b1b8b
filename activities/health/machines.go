package health

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"drydock.dev/drydock/k8s/clusterapi"
	"drydock.dev/drydock/k8s/objects"
)

// machineGroups are the APIs that have MachineHealthChecks: OpenShift's and Cluster API's.
var machineGroups = []string{"machine.openshift.io", "cluster.x-k8s.io"}

// machineChecks are the MachineHealthChecks of a cluster.
type machineChecks struct {
	// there: there is one, of any sort.
	there bool
	// nodes are those that one takes care of, by name. Machines of another cluster may name a node of the same name.
	nodes map[string][]caredFor
	// checks are those that take care of machines, by their versions: with the same the nodes are looked for once in a while only.
	checks string
	digest string
}

// caredFor is a node of a Machine that MachineHealthCheck Check, "namespace/name", selects.
type caredFor struct {
	Check string
	Node  clusterapi.NodeOf
}

// conflict names a MachineHealthCheck and the first node, by name, that both take care of.
func (m machineChecks) conflict(selected map[string]selectedNode) string {
	for _, node := range slices.Sorted(maps.Keys(m.nodes)) {
		ours, both := selected[node]
		if !both {
			continue
		}
		for _, cared := range m.nodes[node] {
			if !cared.Node.IsAnother(ours.node) {
				return fmt.Sprintf("MachineHealthCheck %s takes care of node %s too: delete it, or select other nodes", cared.Check, node)
			}
		}
	}
	return ""
}

// machineChecks finds the MachineHealthChecks, and the nodes of the machines that they select. Those are looked for anew where the
// checks have changed, and where machines says so.
func (a *Activities) machineChecks(ctx context.Context, known machineChecks, machines bool) (machineChecks, error) {
	found := machineChecks{nodes: map[string][]caredFor{}}
	type owner struct {
		machines objects.Kind
		check    unstructured.Unstructured
	}
	var owners []owner
	var versions []string
	for _, group := range machineGroups {
		version, err := a.Objects.Preferred(ctx, group)
		if err != nil {
			return known, err
		}
		if version == "" {
			continue
		}
		checks, machine, err := a.listMachineChecks(ctx, group+"/"+version)
		if err != nil {
			return known, err
		}
		for _, check := range checks {
			found.there = true
			if !isTerminatingOnly(check) {
				owners = append(owners, owner{machine, check})
				versions = append(versions, string(check.GetUID())+"/"+check.GetResourceVersion())
			}
		}
	}
	slices.Sort(versions)
	found.checks = hashOf(versions)
	if found.checks == known.checks && found.there == known.there && !machines {
		return known, nil
	}
	for _, o := range owners {
		if err := a.nodesOf(ctx, o.machines, o.check, found.nodes); err != nil {
			return known, err
		}
	}
	found.digest = hashOf([]any{found.there, found.checks, found.nodes})
	return found, nil
}

// listMachineChecks lists those of a version of a group, and returns the kind of its machines.
func (a *Activities) listMachineChecks(ctx context.Context, apiVersion string) (checks []unstructured.Unstructured, machines objects.Kind, err error) {
	kind, err := a.Objects.Resolve(ctx, apiVersion, "MachineHealthCheck")
	if err == nil {
		machines, err = a.Objects.Resolve(ctx, apiVersion, "Machine")
	}
	switch {
	case errors.Is(err, objects.ErrNoKind):
		return nil, machines, nil
	case err == nil:
		checks, err = a.Objects.List(ctx, kind, metav1.NamespaceAll, "")
	}
	if apierrors.IsNotFound(err) {
		return nil, machines, nil // it was served a moment ago
	}
	return checks, machines, err
}

// isTerminatingOnly reports whether a check only looks for machines that their cloud takes away, and no health check of ours does.
func isTerminatingOnly(check unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(check.Object, "spec", "unhealthyConditions")
	if err != nil || len(conditions) != 1 {
		return false
	}
	one, ok := conditions[0].(map[string]any)
	return ok && one["type"] == string(terminating)
}

// nodesOf adds the nodes of the machines that a check selects.
func (a *Activities) nodesOf(ctx context.Context, kind objects.Kind, check unstructured.Unstructured, into map[string][]caredFor) error {
	selector := labels.Everything()
	if said, ok, err := unstructured.NestedMap(check.Object, "spec", "selector"); err == nil && ok {
		var read metav1.LabelSelector
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(said, &read); err != nil {
			return fmt.Errorf("MachineHealthCheck %s/%s: selector: %w", check.GetNamespace(), check.GetName(), err)
		}
		if selector, err = metav1.LabelSelectorAsSelector(&read); err != nil {
			return fmt.Errorf("MachineHealthCheck %s/%s: selector: %w", check.GetNamespace(), check.GetName(), err)
		}
	}
	machines, err := a.Objects.List(ctx, kind, check.GetNamespace(), selector.String())
	if err != nil {
		return fmt.Errorf("listing the machines of MachineHealthCheck %s/%s: %w", check.GetNamespace(), check.GetName(), err)
	}
	cluster, _, err := unstructured.NestedString(check.Object, "spec", "clusterName")
	if err != nil {
		return fmt.Errorf("MachineHealthCheck %s/%s: %w", check.GetNamespace(), check.GetName(), err)
	}
	for _, machine := range machines {
		of, _, _ := unstructured.NestedString(machine.Object, "spec", "clusterName") //nolint:errcheck // OpenShift's have none
		if node := nodeOf(&machine); node.Name != "" && of == cluster {              // a Machine may have no node yet
			into[node.Name] = append(into[node.Name], caredFor{check.GetNamespace() + "/" + check.GetName(), node})
		}
	}
	return nil
}
