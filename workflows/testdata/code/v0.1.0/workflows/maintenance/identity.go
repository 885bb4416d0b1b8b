package maintenance

import (
	"cmp"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/settings"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/checks"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"fmt"
	"go.temporal.io/sdk/workflow"
)

// identity is what a maintenance is: fixed once its input is read.
type identity struct {
	// cluster is the name in front of IDs, empty where there is one cluster only.
	cluster    string
	workflowID string
	// runID is the first run of the chain: neither a reset nor a continue-as-new changes who a maintenance is. original is
	// the run that this one is, or was a copy of when somebody reset it.
	runID, original string
	spec            spec.Maintenance
	// prepared is what the worker's configuration makes of the input.
	prepared settings.Prepared
}

func identityOf(ctx workflow.Context) *identity {
	info := workflow.GetInfo(ctx)
	// The run's own ID is not for decisions: it is another one when a reset run replays what the run before it did.
	original := cmp.Or(info.OriginalRunID, info.WorkflowExecution.RunID)
	return &identity{
		cluster:    api.ClusterOf(info.TaskQueueName),
		workflowID: info.WorkflowExecution.ID, runID: cmp.Or(info.FirstRunID, original), original: original,
	}
}

// summary is one line about the maintenance, for lists and events.
func (i *identity) summary() string {
	text := fmt.Sprintf("maintenance of %s by %s", i.spec.Node, i.spec.Requestor)
	if i.spec.Reason != "" {
		text += ": " + i.spec.Reason
	}
	if i.spec.Ticket != "" {
		text += " [" + i.spec.Ticket + "]"
	}
	return text
}

// subject is what hooks and checks are told of the maintenance.
func (i *identity) subject() checks.Subject {
	return checks.Subject{
		Node: i.spec.Node, Requestor: i.spec.Requestor, Reason: i.spec.Reason, Ticket: i.spec.Ticket, Cluster: i.cluster,
		WorkflowID: i.workflowID, RunID: i.runID,
	}
}

// thisRun refuses a message that was meant for an earlier maintenance of the node.
func (i *identity) thisRun(run string) error {
	if run != "" && run != i.runID && run != i.original {
		return fmt.Errorf("it is meant for run %s, and this is run %s", run, i.runID)
	}
	return nil
}
