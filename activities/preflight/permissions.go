package preflight

import (
	"cmp"
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/k8s/nodelease"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
)

// PermissionsInput is what is about to be started.
type PermissionsInput struct {
	// HealthCheck: the caller is a health check.
	HealthCheck bool `json:"healthCheck,omitempty"`
	// Drains are the drains of the maintenances that the caller begins.
	Drains []PlannedDrain `json:"drains,omitempty"`
}

// PlannedDrain is the drain of a maintenance.
type PlannedDrain struct {
	Drain        spec.Drain `json:"drain"`
	WaitsForPods bool       `json:"waitsForPods,omitempty"`
}

// CheckPermissions returns which permissions the worker's account lacks. It asks the API server, and changes nothing.
func (p *Activities) CheckPermissions(ctx context.Context, in PermissionsInput) (api.PermissionsReport, error) {
	var needs []preflight.Need
	if in.HealthCheck {
		needs = preflight.HealthNeeds(cmp.Or(p.LeaseNamespace, nodelease.DefaultNamespace))
	}
	for _, planned := range in.Drains {
		needs = append(needs, preflight.Needs(planned.Drain, planned.WaitsForPods)...)
	}
	denied, err := Lacks(ctx, p.Client, preflight.Required(needs))
	switch {
	case apierrors.IsForbidden(err): // nobody can confirm it
		return api.PermissionsReport{Missing: []preflight.Finding{}, Unchecked: err.Error()}, nil
	case err != nil:
		return api.PermissionsReport{}, err
	}
	return api.PermissionsReport{Missing: preflight.Missing(denied)}, nil
}

// Lacks asks the API server which of some permissions the client's account lacks.
func Lacks(ctx context.Context, client kube.Interface, needs []preflight.Need) (denied []preflight.Need, err error) {
	requests := make([]authorizationv1.ResourceAttributes, len(needs))
	for i, need := range needs {
		requests[i] = need.ResourceAttributes
	}
	allowed, err := k8s.MayDo(ctx, client, requests)
	if err != nil {
		return nil, err
	}
	for i, need := range needs {
		if !allowed[i] {
			denied = append(denied, need)
		}
	}
	return denied, nil
}
