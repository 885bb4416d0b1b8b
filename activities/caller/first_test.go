package caller

import (
	"context"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"drydock.dev/drydock/api"
)

// chain is a server that knows the runs of one workflow, by run ID.
type chain map[string]server

func (c chain) DescribeWorkflowExecution(_ context.Context, _, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	known, ok := c[run]
	if !ok {
		return nil, serviceerror.NewNotFound("no such run")
	}
	described := known.response()
	described.WorkflowExecutionInfo.FirstRunId = "r-0"
	return described, nil
}

// TestAChainThatSomebodyElseBeganCallsNothing: his worker has continued it as new here, with a state that he made up.
func TestAChainThatSomebodyElseBeganCallsNothing(t *testing.T) {
	ours := server{kind: api.NodeMaintenanceType, queue: "drydock"}
	for name, c := range map[string]struct {
		runs    chain
		refused bool
	}{
		"ours":                  {chain{"r-0": ours, "r-1": ours}, false},
		"forgotten":             {chain{"r-1": ours}, false},
		"on a queue of his own": {chain{"r-0": {kind: api.NodeMaintenanceType, queue: "evil"}, "r-1": ours}, true},
		"as a type of his own":  {chain{"r-0": {kind: "Evil", queue: "drydock"}, "r-1": ours}, true},
	} {
		t.Run(name, func(t *testing.T) {
			callers := New(c.runs, "drydock")
			for range 2 {
				if err := callers.check(t.Context(), call("CallHook", api.NodeMaintenanceType)); isForeign(err) != c.refused || !c.refused && err != nil {
					t.Errorf("got %v, want refused: %v", err, c.refused)
				}
			}
		})
	}
}
