// Package objects has the object of KEP-4212.
package objects

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
)

// GroupVersion is that of the objects. The KEP names no group.
var GroupVersion = schema.GroupVersion{Group: "kep4212.drydock.dev", Version: "v1alpha1"}

// Resource is what the objects are, as kubectl has it.
const Resource = "nodemaintenances.kep4212.drydock.dev"

// AddToScheme has a scheme know the objects.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &NodeMaintenance{}, &NodeMaintenanceList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// NodeMaintenance is KEP-4212's object of that name.
type NodeMaintenance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   v1alpha1.Spec `json:"spec"`
	Status Status        `json:"status,omitzero"`
}

// Status is NodeMaintenanceStatus, with what all objects have that the bridge serves.
type Status struct {
	v1alpha1.Shared
	// Phase is that of the plan that the object asks for.
	Phase api.PlanPhase `json:"phase,omitempty"`
	// StageStatuses are the stages that have begun.
	StageStatuses []StageStatus `json:"stageStatuses,omitempty"`
	// NodeStatuses are the nodes, those first with which something is the matter; MoreNodes counts those that are left out.
	NodeStatuses []api.KEPNode `json:"nodeStatuses,omitempty"`
	MoreNodes    int           `json:"moreNodes,omitempty"`
}

// StageStatus is a stage that has begun.
type StageStatus struct {
	Name           api.Stage    `json:"name"`
	StartTimestamp *metav1.Time `json:"startTimestamp,omitempty"`
}

// NodeMaintenanceList is a list of them.
type NodeMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NodeMaintenance `json:"items"`
}

// Asks implements v1alpha1.Object.
func (m *NodeMaintenance) Asks() v1alpha1.Spec { return m.Spec }

// Shows implements v1alpha1.Object.
func (m *NodeMaintenance) Shows() v1alpha1.Status { return &m.Status }

// State implements v1alpha1.Status.
func (s *Status) State() string { return string(s.Phase) }

// Ended implements v1alpha1.Status.
func (s *Status) Ended() bool { return s.Phase.Ended() || s.Phase == api.PlanFailed }

// Begin implements v1alpha1.Status.
func (s *Status) Begin() { s.Phase = api.PlanRunning }

// Copy implements v1alpha1.Status.
func (s *Status) Copy() v1alpha1.Status { return new(s.DeepCopy()) }

// DeepCopy is a status of its own.
func (s Status) DeepCopy() Status {
	s.Shared, s.StageStatuses, s.NodeStatuses = s.Shared.DeepCopy(), slices.Clone(s.StageStatuses), slices.Clone(s.NodeStatuses)
	for i := range s.StageStatuses {
		s.StageStatuses[i].StartTimestamp = s.StageStatuses[i].StartTimestamp.DeepCopy()
	}
	for i := range s.NodeStatuses {
		targets := slices.Clone(s.NodeStatuses[i].DrainTargets)
		for j := range targets {
			targets[j].PodSelector = targets[j].PodSelector.DeepCopy()
		}
		s.NodeStatuses[i].DrainTargets = targets
	}
	return s
}

// DeepCopy is an object of its own.
func (m *NodeMaintenance) DeepCopy() *NodeMaintenance {
	return &NodeMaintenance{TypeMeta: m.TypeMeta, ObjectMeta: *m.ObjectMeta.DeepCopy(), Spec: m.Spec.DeepCopy(), Status: m.Status.DeepCopy()}
}

// DeepCopyObject implements runtime.Object.
func (m *NodeMaintenance) DeepCopyObject() runtime.Object { return m.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *NodeMaintenanceList) DeepCopyObject() runtime.Object {
	copied := &NodeMaintenanceList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopy())
	}
	return copied
}
