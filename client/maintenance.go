package client

import (
	"cmp"
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
	_, node, requestor, err := api.ParseMaintenanceID(info.GetExecution().GetWorkflowId())
	if err != nil {
		return Maintenance{}, false
	}
	m := Maintenance{
		Node: node, Requestor: requestor, WorkflowID: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId(),
		FirstRunID: cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId()),
		Started:    info.GetStartTime().AsTime(), Execution: info.GetStatus(),
	}
	if closed := info.GetCloseTime(); closed != nil {
		m.Closed = closed.AsTime()
	}
	return m, true
}
