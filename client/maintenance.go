package client

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"drydock.dev/drydock/api"
)

// Maintenance is one maintenance of a node for a requestor, running or ended: a run of its workflow.
type Maintenance struct {
	Node, Requestor   string
	WorkflowID, RunID string
	// FirstRunID is the first of its runs, which identifies the maintenance: RunID is another one once it was reset, or was continued as a
	// new run.
	FirstRunID string
	Started    time.Time
	// Closed is when it ended; zero while it runs.
	Closed time.Time
	// Execution is how Temporal has it: running, or how it ended.
	Execution enumspb.WorkflowExecutionStatus
}

// Running reports whether it has not ended.
func (m Maintenance) Running() bool {
	return m.Execution == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// maintenanceOf is false for workflows that are no maintenances.
func maintenanceOf(info *workflowpb.WorkflowExecutionInfo) (Maintenance, bool) {
	run := runOf("", info)
	_, node, requestor, err := api.ParseMaintenanceID(run.WorkflowID)
	if err != nil {
		return Maintenance{}, false
	}
	return Maintenance{
		Node: node, Requestor: requestor, WorkflowID: run.WorkflowID, RunID: run.RunID, FirstRunID: run.FirstRunID,
		Started: run.Started, Closed: run.Ended, Execution: run.Execution,
	}, true
}
