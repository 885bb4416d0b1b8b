// Package objects are the Kubernetes objects of NVIDIA's maintenance-operator, as its clients write and read them.
package objects

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// GroupVersion is that of maintenance-operator's objects.
var GroupVersion = schema.GroupVersion{Group: "maintenance.nvidia.com", Version: "v1alpha1"}

// Resource and ConfigResource are what the objects are, as kubectl has it.
const (
	Resource       = "nodemaintenances.maintenance.nvidia.com"
	ConfigResource = "maintenanceoperatorconfigs.maintenance.nvidia.com"
)

// AddToScheme registers the objects' types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &NodeMaintenance{}, &NodeMaintenanceList{}, &MaintenanceOperatorConfig{}, &MaintenanceOperatorConfigList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// What maintenance-operator and its clients read of an object beside its fields.
const (
	// Finalizer is on an object from when it has its slot.
	Finalizer = "maintenance.nvidia.com/finalizer"
	// InitialState is the annotation of what the node was before it was cordoned: "true" is unschedulable.
	InitialState = "maintenance.nvidia.com/node-initial-state.unschedulable"
	// WaitStart and ReadyTime are annotations of when the wait for pods began, and of when the object was Ready.
	WaitStart = "maintenance.nvidia.com/wait-pod-completion-start-time"
	ReadyTime = "maintenance.nvidia.com/ready-time"
	// Keeps is the annotation of an object that is not deleted for its age.
	Keeps = "maintenance.nvidia.com/garbage-collector.ignore"
)

// Conditions, and the reasons of Ready in the order in which an object has them.
const (
	ConditionReady  = "Ready"
	RequestorFailed = "RequestorFailed"

	Pending   = "Pending"
	Scheduled = "Scheduled"
	Cordon    = "Cordon"
	Waiting   = "WaitForPodCompletion"
	Draining  = "Draining"
	Ready     = "Ready"
)

// NodeMaintenance asks for a node to be taken out of service.
type NodeMaintenance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   NodeMaintenanceSpec   `json:"spec"`
	Status NodeMaintenanceStatus `json:"status,omitzero"`
}

// NodeMaintenanceSpec is what is asked for.
type NodeMaintenanceSpec struct {
	RequestorID          string       `json:"requestorID"`
	AdditionalRequestors []string     `json:"additionalRequestors,omitempty"`
	NodeName             string       `json:"nodeName"`
	Cordon               *bool        `json:"cordon,omitempty"`
	WaitForPodCompletion *WaitForPods `json:"waitForPodCompletion,omitempty"`
	DrainSpec            *DrainSpec   `json:"drainSpec,omitempty"`
}

// Cordons reports whether the node is to be unschedulable.
func (s NodeMaintenanceSpec) Cordons() bool { return s.Cordon == nil || *s.Cordon }

// WaitForPods are pods that are to complete before the drain.
type WaitForPods struct {
	PodSelector    string `json:"podSelector,omitempty"`
	TimeoutSeconds int32  `json:"timeoutSeconds,omitempty"`
}

// DrainSpec says how the node is emptied. Its timeout is that of one attempt, after which the peer begins another: it ends nothing.
type DrainSpec struct {
	Force              bool             `json:"force,omitempty"`
	PodSelector        string           `json:"podSelector,omitempty"`
	TimeoutSeconds     int32            `json:"timeoutSeconds,omitempty"`
	DeleteEmptyDir     bool             `json:"deleteEmptyDir,omitempty"`
	PodEvictionFilters []EvictionFilter `json:"podEvictionFilters,omitempty"`
}

// EvictionFilter selects pods by the resources that they request.
type EvictionFilter struct {
	ByResourceNameRegex *string `json:"byResourceNameRegex,omitempty"`
}

// NodeMaintenanceStatus is how far it is.
type NodeMaintenanceStatus struct {
	Conditions        []metav1.Condition `json:"conditions,omitempty"`
	WaitForCompletion []string           `json:"waitForCompletion,omitempty"`
	Drain             *DrainStatus       `json:"drain,omitempty"`
}

// DrainStatus counts the pods of a drain.
type DrainStatus struct {
	TotalPods       int32    `json:"totalPods"`
	EvictionPods    int32    `json:"evictionPods"`
	DrainProgress   int32    `json:"drainProgress"`
	WaitForEviction []string `json:"waitForEviction,omitempty"`
}

// MaintenanceOperatorConfig has the limits of the cluster. The one named default in the operator's namespace counts.
type MaintenanceOperatorConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec ConfigSpec `json:"spec,omitzero"`
}

// ConfigSpec are its limits.
type ConfigSpec struct {
	MaxParallelOperations         *intstr.IntOrString `json:"maxParallelOperations,omitempty"`
	MaxUnavailable                *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	MaxNodeMaintenanceTimeSeconds *int32              `json:"maxNodeMaintenanceTimeSeconds,omitempty"`
}

// NodeMaintenanceList is a list of them.
type NodeMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NodeMaintenance `json:"items"`
}

// MaintenanceOperatorConfigList is a list of them.
type MaintenanceOperatorConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []MaintenanceOperatorConfig `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (m *NodeMaintenance) DeepCopyObject() runtime.Object {
	if m == nil {
		return nil
	}
	return m.DeepCopy()
}

// DeepCopy is an object of its own.
func (m *NodeMaintenance) DeepCopy() *NodeMaintenance {
	c := &NodeMaintenance{TypeMeta: m.TypeMeta, ObjectMeta: *m.ObjectMeta.DeepCopy(), Spec: m.Spec, Status: m.Status}
	c.Spec.AdditionalRequestors = slices.Clone(m.Spec.AdditionalRequestors)
	c.Spec.Cordon, c.Spec.WaitForPodCompletion, c.Spec.DrainSpec = copied(m.Spec.Cordon), copied(m.Spec.WaitForPodCompletion), copied(m.Spec.DrainSpec)
	if drain := c.Spec.DrainSpec; drain != nil {
		drain.PodEvictionFilters = slices.Clone(drain.PodEvictionFilters)
		for i, filter := range drain.PodEvictionFilters {
			drain.PodEvictionFilters[i].ByResourceNameRegex = copied(filter.ByResourceNameRegex)
		}
	}
	c.Status.Conditions, c.Status.WaitForCompletion = slices.Clone(m.Status.Conditions), slices.Clone(m.Status.WaitForCompletion)
	if c.Status.Drain = copied(m.Status.Drain); c.Status.Drain != nil {
		c.Status.Drain.WaitForEviction = slices.Clone(c.Status.Drain.WaitForEviction)
	}
	return c
}

func copied[T any](of *T) *T {
	if of == nil {
		return nil
	}
	return new(*of)
}

// DeepCopyObject implements runtime.Object.
func (l *NodeMaintenanceList) DeepCopyObject() runtime.Object {
	c := &NodeMaintenanceList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return c
}

// DeepCopyObject implements runtime.Object.
func (c *MaintenanceOperatorConfig) DeepCopyObject() runtime.Object {
	if c == nil {
		return nil
	}
	return c.DeepCopy()
}

// DeepCopy is an object of its own.
func (c *MaintenanceOperatorConfig) DeepCopy() *MaintenanceOperatorConfig {
	return &MaintenanceOperatorConfig{TypeMeta: c.TypeMeta, ObjectMeta: *c.ObjectMeta.DeepCopy(), Spec: ConfigSpec{
		MaxParallelOperations: copied(c.Spec.MaxParallelOperations), MaxUnavailable: copied(c.Spec.MaxUnavailable),
		MaxNodeMaintenanceTimeSeconds: copied(c.Spec.MaxNodeMaintenanceTimeSeconds),
	}}
}

// DeepCopyObject implements runtime.Object.
func (l *MaintenanceOperatorConfigList) DeepCopyObject() runtime.Object {
	c := &MaintenanceOperatorConfigList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return c
}
