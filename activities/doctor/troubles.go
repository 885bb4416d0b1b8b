package doctor

import (
	"context"
	"fmt"

	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/doctor"
)

// troubledLooked bounds the workflows of a type that are queried for what fails.
const troubledLooked = 200

// troubled are the workflows that say what fails, by their types, with the query that asks them.
var troubled = []struct{ workflow, query string }{
	{api.HealthCheckType, api.QueryStatus},
	{api.NodeRemediationType, api.QueryStatus},
	{api.ProfilesType, api.QueryState},
	{api.MaintenancePlanType, api.QueryStatus},
	{api.LockstepType, api.QueryState},
}

// statusOf is an empty status of a workflow of one of these types, and where it says what fails.
func statusOf(kind string) (status any, troubles *[]api.Trouble) {
	switch kind {
	case api.HealthCheckType:
		s := &api.HealthStatus{}
		return s, &s.Troubles
	case api.NodeRemediationType:
		s := &api.RemediationStatus{}
		return s, &s.Troubles
	case api.ProfilesType:
		s := &api.ProfilesState{}
		return s, &s.Troubles
	case api.MaintenancePlanType:
		s := &api.PlanStatus{}
		return s, &s.Troubles
	default:
		s := &api.LockstepState{}
		return s, &s.Troubles
	}
}

// troubles asks workflows that decide what fails and is tried again. What one does not answer is no finding of theirs.
func (d *Activities) troubles(ctx context.Context, in EvaluateInput, facts *doctor.Facts) error {
	for _, one := range troubled {
		page, err := d.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: d.Namespace, PageSize: troubledLooked,
			Query: fmt.Sprintf("WorkflowType = '%s' AND TaskQueue = '%s' AND ExecutionStatus = 'Running'", one.workflow, in.Listed.TaskQueue),
		})
		if err != nil {
			return fmt.Errorf("listing workflows of type %s: %w", one.workflow, err)
		}
		if len(page.NextPageToken) > 0 {
			facts.Unchecked = append(facts.Unchecked, fmt.Sprintf("only the first %d workflows of type %s were asked what fails", troubledLooked, one.workflow))
		}
		found := make([][]doctor.Trouble, len(page.Executions))
		group, asking := errgroup.WithContext(ctx)
		group.SetLimit(execution.QueriesAtOnce)
		for i, info := range page.Executions {
			group.Go(func() (err error) {
				found[i], err = d.runs().troubles(asking, one.workflow, info.Execution.WorkflowId, info.Execution.RunId, one.query)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		for _, some := range found {
			facts.Troubles = append(facts.Troubles, some...)
		}
	}
	return nil
}

// troubles are what one run says that fails.
func (r runs) troubles(ctx context.Context, kind, workflowID, runID, query string) ([]doctor.Trouble, error) {
	status, troubles := statusOf(kind)
	unanswered, err := r.ask(ctx, workflowID, runID, query, status)
	if err != nil || unanswered != "" {
		return nil, err
	}
	var all []doctor.Trouble
	for _, t := range *troubles {
		all = append(all, doctor.Trouble{WorkflowID: workflowID, RunID: runID, What: t.What, Why: t.Why, Since: t.Since})
	}
	return all, nil
}
