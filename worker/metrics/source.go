package metrics

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
)

// Source is where the state is read.
type Source struct {
	Temporal  client.Client
	Namespace string
	// Cluster and TaskQueue are those of the maintenances that are counted.
	Cluster, TaskQueue string
}

// reading is what was found out at one time.
type reading struct {
	summary api.Summary
	// maintenances run, awaiting of them await approval.
	maintenances, awaiting int
	// plans are those that run, by phase.
	plans map[api.PlanPhase]int
	// checks are health checks that run, and remediations those of theirs that do.
	checks, remediations int
}

// read asks the scheduler for its summary, and Temporal's lists for counts: a few requests, and none that grows with what
// is counted.
func (s Source) read(ctx context.Context) (r reading, err error) {
	value, err := s.Temporal.QueryWorkflow(ctx, api.SchedulerID(s.Cluster), "", api.QuerySummary)
	if err == nil {
		err = value.Get(&r.summary)
	}
	if err != nil {
		return r, fmt.Errorf("asking the scheduler: %w", err)
	}
	if r.maintenances, err = s.count(ctx, api.NodeMaintenanceType, ""); err != nil {
		return r, err
	}
	if r.awaiting, err = s.count(ctx, api.NodeMaintenanceType, string(api.AwaitingApproval)); err != nil {
		return r, err
	}
	paused, err := s.count(ctx, api.MaintenancePlanType, string(api.PlanPaused))
	if err != nil {
		return r, err
	}
	plans, err := s.count(ctx, api.MaintenancePlanType, "")
	if err != nil {
		return r, err
	}
	r.plans = map[api.PlanPhase]int{api.PlanPaused: paused, api.PlanRunning: max(0, plans-paused)}
	if r.checks, err = s.count(ctx, api.HealthCheckType, ""); err != nil {
		return r, err
	}
	r.remediations, err = s.count(ctx, api.NodeRemediationType, "")
	return r, err
}

// count counts running workflows, of a phase where one is named. A namespace without Drydock's search attributes knows no
// phases, and counts none.
func (s Source) count(ctx context.Context, workflowType, phase string) (int, error) {
	query := fmt.Sprintf("WorkflowType = '%s' AND TaskQueue = '%s' AND ExecutionStatus = 'Running'", workflowType, s.TaskQueue)
	if phase != "" {
		query += fmt.Sprintf(" AND %s = '%s'", api.AttributePhase.GetName(), phase)
	}
	answer, err := s.Temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: s.Namespace, Query: query})
	var unknown *serviceerror.InvalidArgument
	if phase != "" && errors.As(err, &unknown) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("counting %s: %w", workflowType, err)
	}
	return int(answer.GetCount()), nil
}
