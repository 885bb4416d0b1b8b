package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/plan"
)

// Shared is the part of a status that the objects of all kinds have.
type Shared struct {
	// ObservedGeneration is the generation of the spec that the status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// WorkflowID is the ID of the workflow that the object asks for.
	WorkflowID string `json:"workflowID,omitempty"`
	// RunID is the first run of the workflow.
	RunID string `json:"runID,omitempty"`
	// Message says in words what the workflow waits for, or how it ended.
	Message string `json:"message,omitempty"`
	// Decision is the last approval or denial that an annotation said.
	Decision *Decision `json:"decision,omitempty"`
	// Conditions are those that the kind has of Ready, Drained, Succeeded and Failed, and Reconciling and Stalled as kstatus has them.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeMaintenance asks for a node to be taken out of service, and shows how far that is.
type NodeMaintenance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is the input of the maintenance. It does not change once the object is there.
	Spec Spec `json:"spec"`
	// Status is how far the maintenance is.
	Status NodeMaintenanceStatus `json:"status,omitzero"`
}

// NodeMaintenanceStatus is how far a maintenance is, as its workflow says.
type NodeMaintenanceStatus struct {
	Shared
	// Phase is where the maintenance is, such as Draining.
	Phase api.Phase `json:"phase,omitempty"`
	// Since is when it came into its phase.
	Since *metav1.Time `json:"since,omitempty"`
	// Requestors are those who share the maintenance; the node is given back when all are done.
	Requestors []Requestor `json:"requestors,omitempty"`
	// Drain counts the pods of the drain; absent before there is one.
	Drain *Drain `json:"drain,omitempty"`
}

// Requestor is one of those who share a maintenance.
type Requestor struct {
	// Name is that of the requestor.
	Name string `json:"name" jsonschema:"required"`
	// Done reports whether the requestor has finished.
	Done bool `json:"done,omitempty"`
}

// Decision is an approval or a denial.
type Decision struct {
	// Message is what was said: approve or deny.
	Message string `json:"message" jsonschema:"required"`
	// By is the Kubernetes user who said it.
	By string `json:"by" jsonschema:"required"`
	// Comment is what they wrote.
	Comment string `json:"comment,omitempty"`
}

// Drain counts the pods of a drain.
type Drain struct {
	// Ended counts the pods that were evicted or deleted.
	Ended int32 `json:"ended"`
	// Remaining counts those that are still on the node.
	Remaining int32 `json:"remaining"`
	// Blocked counts those of them that something keeps there, such as a budget.
	Blocked int32 `json:"blocked"`
}

// MaintenancePlan asks for the maintenance of many nodes, and shows how far that is.
type MaintenancePlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is the input of the plan.
	Spec Spec `json:"spec"`
	// Status is how far the plan is.
	Status MaintenancePlanStatus `json:"status,omitzero"`
}

// MaintenancePlanStatus is how far a plan is, as its workflow says.
type MaintenancePlanStatus struct {
	Shared
	// Phase is where the plan is, such as Running.
	Phase api.PlanPhase `json:"phase,omitempty"`
	// Since is when it came into its phase.
	Since *metav1.Time `json:"since,omitempty"`
	// Counts are the nodes of the plan by their states; total is how many it matches.
	Counts *plan.Counts `json:"counts,omitempty"`
	// Stage is the stage that a plan of strategy allAtOnce is in.
	Stage api.Stage `json:"stage,omitempty"`
	// Tier is the tier of its drain plan that it is at, counted from 0, and the number of tiers where all of its nodes are drained.
	Tier *int `json:"tier,omitempty"`
	// Drain counts the nodes that it holds, by how far their drain is.
	Drain *api.DrainCounts `json:"drain,omitempty"`
}

// HealthCheck asks for nodes to be watched and repaired, and shows what becomes of that.
type HealthCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is the input of the check.
	Spec Spec `json:"spec"`
	// Status is how the check stands.
	Status HealthCheckStatus `json:"status,omitzero"`
}

// HealthCheckStatus is how a check stands, as its workflow says.
type HealthCheckStatus struct {
	Shared
	// Phase is where the check is, such as Remediating; Ended is where its workflow has ended, and the object has not asked for that.
	Phase health.Phase `json:"phase,omitempty"`
	// Counts are the nodes of the check.
	Counts *api.HealthCounts `json:"counts,omitempty"`
}

// HealthCheckEnded is the phase of a check whose workflow has ended.
const HealthCheckEnded health.Phase = "Ended"

// NodeMaintenanceList is a list of them.
type NodeMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NodeMaintenance `json:"items"`
}

// MaintenancePlanList is a list of them.
type MaintenancePlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []MaintenancePlan `json:"items"`
}

// HealthCheckList is a list of them.
type HealthCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []HealthCheck `json:"items"`
}
