package doctor

import (
	"context"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/doctor"
)

// troubledServer is a Temporal in which a workflow of each type runs that says what fails, under its type's name.
type troubledServer struct {
	client.Client
	says map[string]map[string]any
}

func (s troubledServer) ListWorkflow(_ context.Context, in *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	page := &workflowservice.ListWorkflowExecutionsResponse{}
	for kind := range s.says {
		if strings.Contains(in.Query, "'"+kind+"'") {
			page.Executions = append(page.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: kind, RunId: "run"}})
		}
	}
	return page, nil
}

func (s troubledServer) QueryWorkflow(_ context.Context, id, _, query string, _ ...any) (converter.EncodedValue, error) {
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(s.says[id][query])
	return client.NewValue(payloads), err
}

// Every workflow that shows what fails is asked for it.
func TestWhateverSaysWhatFailsIsAsked(t *testing.T) {
	of := func(kind string) []api.Trouble {
		return []api.Trouble{{What: kind + " cannot", Why: "grant it with rbac.yaml"}}
	}
	says := map[string]map[string]any{
		api.HealthCheckType:     {api.QueryStatus: api.HealthStatus{Troubles: of(api.HealthCheckType)}},
		api.NodeRemediationType: {api.QueryStatus: api.RemediationStatus{Troubles: of(api.NodeRemediationType)}},
		api.ProfilesType:        {api.QueryState: api.ProfilesState{Troubles: of(api.ProfilesType)}},
		api.MaintenancePlanType: {api.QueryStatus: api.PlanStatus{Troubles: of(api.MaintenancePlanType)}},
		api.LockstepType:        {api.QueryState: api.LockstepState{Troubles: of(api.LockstepType)}},
	}
	var facts doctor.Facts
	if err := (&Activities{Temporal: troubledServer{says: says}}).troubles(t.Context(), EvaluateInput{}, &facts); err != nil {
		t.Fatal(err)
	}
	reported := map[string]bool{}
	for _, one := range facts.Troubles {
		reported[one.WorkflowID] = one.What == one.WorkflowID+" cannot" && one.Why == "grant it with rbac.yaml"
	}
	for kind := range says {
		if !reported[kind] {
			t.Errorf("nothing is reported of %s: %+v", kind, facts.Troubles)
		}
	}
}
