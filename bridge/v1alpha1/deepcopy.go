package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy is a part of its own.
func (s Shared) DeepCopy() Shared {
	s.Decision, s.Conditions = pointed(s.Decision), slices.Clone(s.Conditions)
	return s
}

// DeepCopy is an object of its own.
func (m *NodeMaintenance) DeepCopy() *NodeMaintenance {
	return &NodeMaintenance{TypeMeta: m.TypeMeta, ObjectMeta: *m.ObjectMeta.DeepCopy(), Spec: m.Spec.DeepCopy(), Status: m.Status.DeepCopy()}
}

// DeepCopy is a status of its own.
func (s NodeMaintenanceStatus) DeepCopy() NodeMaintenanceStatus {
	s.Since, s.Requestors, s.Drain = s.Since.DeepCopy(), slices.Clone(s.Requestors), pointed(s.Drain)
	s.Shared = s.Shared.DeepCopy()
	return s
}

// DeepCopy is an object of its own.
func (p *MaintenancePlan) DeepCopy() *MaintenancePlan {
	return &MaintenancePlan{TypeMeta: p.TypeMeta, ObjectMeta: *p.ObjectMeta.DeepCopy(), Spec: p.Spec.DeepCopy(), Status: p.Status.DeepCopy()}
}

// DeepCopy is a status of its own.
func (s MaintenancePlanStatus) DeepCopy() MaintenancePlanStatus {
	s.Since, s.Counts, s.Tier, s.Drain = s.Since.DeepCopy(), pointed(s.Counts), pointed(s.Tier), pointed(s.Drain)
	s.Shared = s.Shared.DeepCopy()
	return s
}

// DeepCopy is an object of its own.
func (c *HealthCheck) DeepCopy() *HealthCheck {
	return &HealthCheck{TypeMeta: c.TypeMeta, ObjectMeta: *c.ObjectMeta.DeepCopy(), Spec: c.Spec.DeepCopy(), Status: c.Status.DeepCopy()}
}

// DeepCopy is a status of its own.
func (s HealthCheckStatus) DeepCopy() HealthCheckStatus {
	s.Counts, s.Shared = pointed(s.Counts), s.Shared.DeepCopy()
	return s
}

// DeepCopyObject implements runtime.Object.
func (m *NodeMaintenance) DeepCopyObject() runtime.Object { return m.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (p *MaintenancePlan) DeepCopyObject() runtime.Object { return p.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (c *HealthCheck) DeepCopyObject() runtime.Object { return c.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *NodeMaintenanceList) DeepCopyObject() runtime.Object {
	return &NodeMaintenanceList{l.TypeMeta, *l.ListMeta.DeepCopy(), copied(l.Items, func(m NodeMaintenance) NodeMaintenance { return *m.DeepCopy() })}
}

// DeepCopyObject implements runtime.Object.
func (l *MaintenancePlanList) DeepCopyObject() runtime.Object {
	return &MaintenancePlanList{l.TypeMeta, *l.ListMeta.DeepCopy(), copied(l.Items, func(p MaintenancePlan) MaintenancePlan { return *p.DeepCopy() })}
}

// DeepCopyObject implements runtime.Object.
func (l *HealthCheckList) DeepCopyObject() runtime.Object {
	return &HealthCheckList{l.TypeMeta, *l.ListMeta.DeepCopy(), copied(l.Items, func(c HealthCheck) HealthCheck { return *c.DeepCopy() })}
}

// copied is a list of its own, with copies of its elements.
func copied[T any](all []T, copyOf func(T) T) []T {
	if all == nil {
		return nil
	}
	copies := make([]T, len(all))
	for i := range all {
		copies[i] = copyOf(all[i])
	}
	return copies
}

// pointed points to a copy of a value that holds no pointers.
func pointed[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
