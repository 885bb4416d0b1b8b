package starter

import (
	"context"
	"errors"
	"fmt"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

// TestAProfileIsShownWhereNoMaintenanceRuns, and does not hide that several do, or that nobody knows.
func TestAProfileIsShownWhereNoMaintenanceRuns(t *testing.T) {
	running := client.Maintenance{Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
	ended := client.Maintenance{Execution: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED}
	for name, c := range map[string]struct {
		found client.Maintenance
		err   error
		want  bool
	}{
		"one runs":         {running, nil, false},
		"one has ended":    {ended, nil, true},
		"there was none":   {client.Maintenance{}, exit.Hint(&client.NotFoundError{Node: "n"}, "Running: m."), true},
		"several run":      {client.Maintenance{}, exit.Hint(&client.NotFoundError{Node: "n", Others: []client.Maintenance{running, running}}, "Pass --requestor."), false},
		"Temporal is away": {client.Maintenance{}, fmt.Errorf("looking: %w", errors.New("unavailable")), false},
	} {
		if got := noneRuns(c.found, c.err); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// listing is a Temporal that lists the running maintenances of a node by their requestors, or cannot.
type listing struct {
	temporalclient.Client
	requestors []string
	err        error
}

func (l listing) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	answer := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, requestor := range l.requestors {
		answer.Executions = append(answer.Executions, &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: api.MaintenanceID("", "n", requestor)}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		})
	}
	return answer, l.err
}

func TestCommandsNameTheRequestorWhereANodeHasSeveral(t *testing.T) {
	for name, c := range map[string]struct {
		temporal listing
		named    string
		want     bool
	}{
		"it is the only one":          {listing{requestors: []string{"ops"}}, "", false},
		"the list does not know it":   {listing{}, "", false},
		"others run":                  {listing{requestors: []string{"net", "ops"}}, "", true},
		"the list knows another only": {listing{requestors: []string{"net"}}, "", true},
		"nobody knows":                {listing{err: errors.New("unavailable")}, "", true},
		"the user has named it":       {listing{requestors: []string{"ops"}}, "ops", true},
	} {
		o := &statusOptions{requestor: c.named}
		conn := &invocation.Connection{Client: client.New(c.temporal, client.Options{})}
		if got := o.mustName(t.Context(), conn, client.Maintenance{Node: "n", Requestor: "ops"}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
