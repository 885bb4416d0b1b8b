package k8s

import (
	corev1 "k8s.io/api/core/v1"
)

// The lifecycle conditions of a node (KEP-5683).
const (
	MaintenancePlanned    corev1.NodeConditionType = "MaintenancePlanned"
	MaintenanceInProgress corev1.NodeConditionType = "MaintenanceInProgress"
	DrainInProgress       corev1.NodeConditionType = "DrainInProgress"
	Drained               corev1.NodeConditionType = "Drained"
)

// Condition is a lifecycle condition to show.
type Condition struct {
	Type    corev1.NodeConditionType `json:"type"`
	True    bool                     `json:"true"`
	Reason  string                   `json:"reason"`
	Message string                   `json:"message,omitempty"`
}
