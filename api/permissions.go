package api

import (
	"encoding/json"

	"drydock.dev/drydock/rules/preflight"
)

// PermissionsInput is the input of Permissions: what is about to be started.
type PermissionsInput struct {
	// Maintenance is the input of a maintenance, as a plan starts it too.
	Maintenance json.RawMessage `json:"maintenance,omitempty"`
	// HealthCheck is the specification of a health check.
	HealthCheck json.RawMessage `json:"healthCheck,omitempty"`
}

// PermissionsReport is what the worker's account lacks for it; each finding names the command that grants it.
type PermissionsReport struct {
	Missing []preflight.Finding `json:"missing"`
	// Unchecked says why it could not be found out; empty if it could.
	Unchecked string `json:"unchecked,omitempty"`
}
