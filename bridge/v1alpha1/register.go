// Package v1alpha1 has the Kubernetes objects that ask for Drydock's workflows and show them: NodeMaintenance, MaintenancePlan and HealthCheck
// of drydock.dev/v1alpha1. Their CustomResourceDefinitions, in deploy/kubernetes/crds, are made of these types and of those of the inputs.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the objects.
var GroupVersion = schema.GroupVersion{Group: "drydock.dev", Version: "v1alpha1"}

// AddToScheme has a scheme know the objects.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&NodeMaintenance{}, &NodeMaintenanceList{},
		&MaintenancePlan{}, &MaintenancePlanList{},
		&HealthCheck{}, &HealthCheckList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Types of conditions. Reconciling and Stalled are those of kstatus, by which tools know when an object is as it is to be.
const (
	// Ready is true while the node is handed to those who asked for it, and while a health check decides.
	Ready = "Ready"
	// Drained is true while none of the pods that a plan of strategy allAtOnce drains is left on its nodes (KEP-4212).
	Drained = "Drained"
	// Succeeded and Failed say how it ended.
	Succeeded = "Succeeded"
	Failed    = "Failed"
	// Reconciling is true while something is still to happen by itself.
	Reconciling = "Reconciling"
	// Stalled is true where nothing happens before somebody does something.
	Stalled = "Stalled"
)
