package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"drydock.dev/drydock/api"
)

// Object is an object of any kind.
type Object interface {
	metav1.Object
	runtime.Object
	// Asks is its spec, and Shows its status.
	Asks() Spec
	Shows() Status
}

// Status points to the status of an object of any kind.
type Status interface {
	// Common is the part that all kinds have.
	Common() *Shared
	// State is the phase in words. It is empty until something is known of the workflow.
	State() string
	// Ended reports whether nothing becomes of the workflow any more.
	Ended() bool
	// Begin sets the phase of a workflow that was started and has not said yet where it is.
	Begin()
	// Copy is a status of its own.
	Copy() Status
}

// Common implements Status.
func (s *Shared) Common() *Shared { return s }

// Asks implements Object.
func (m *NodeMaintenance) Asks() Spec { return m.Spec }

// Shows implements Object.
func (m *NodeMaintenance) Shows() Status { return &m.Status }

// State implements Status.
func (s *NodeMaintenanceStatus) State() string { return string(s.Phase) }

// Ended implements Status.
func (s *NodeMaintenanceStatus) Ended() bool { return s.Phase.Ended() }

// Begin implements Status.
func (s *NodeMaintenanceStatus) Begin() { s.Phase = api.Pending }

// Copy implements Status.
func (s *NodeMaintenanceStatus) Copy() Status { return new(s.DeepCopy()) }

// Asks implements Object.
func (p *MaintenancePlan) Asks() Spec { return p.Spec }

// Shows implements Object.
func (p *MaintenancePlan) Shows() Status { return &p.Status }

// State implements Status.
func (s *MaintenancePlanStatus) State() string { return string(s.Phase) }

// Ended implements Status.
func (s *MaintenancePlanStatus) Ended() bool { return s.Phase.Ended() || s.Phase == api.PlanFailed }

// Begin implements Status.
func (s *MaintenancePlanStatus) Begin() { s.Phase = api.PlanRunning }

// Copy implements Status.
func (s *MaintenancePlanStatus) Copy() Status { return new(s.DeepCopy()) }

// Asks implements Object.
func (c *HealthCheck) Asks() Spec { return c.Spec }

// Shows implements Object.
func (c *HealthCheck) Shows() Status { return &c.Status }

// State implements Status.
func (s *HealthCheckStatus) State() string { return string(s.Phase) }

// Ended implements Status.
func (s *HealthCheckStatus) Ended() bool { return s.Phase == HealthCheckEnded }

// Begin implements Status: a check has no phase before it has seen its nodes.
func (s *HealthCheckStatus) Begin() {}

// Copy implements Status.
func (s *HealthCheckStatus) Copy() Status { return new(s.DeepCopy()) }
