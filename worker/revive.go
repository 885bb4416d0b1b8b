package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
)

// reviver starts a workflow anew where somebody has ended it. Other workflows start it when they need it, and wait for its signals; it ends
// by itself once nobody needs it.
type reviver struct {
	temporal client.Client
	logger   *slog.Logger
	// kind is the workflow's type, what its name for people.
	kind, what string
	id, queue  string
	failures   failures
	// always: it is to run whenever this worker does.
	always bool
}

// revivers are those of a cluster. Plans, and the maintenances that they share, wait for the lockstep. Nothing else ends a maintenance
// whose plans have ended.
func revivers(o Options, temporal client.Client, queue string) []*reviver {
	lockstep := &reviver{kind: api.LockstepType, what: "the lockstep of plans", id: api.LockstepID(o.Config.Cluster)}
	all := []*reviver{lockstep}
	if o.Config.Profiles.File != "" {
		all = append(all, &reviver{kind: api.ProfilesType, what: "the evaluation of profiles", id: api.ProfilesID(o.Config.Cluster), always: true})
	}
	for _, r := range all {
		r.temporal, r.logger, r.queue = temporal, o.Logger, queue
	}
	return all
}

func (k *reviver) ensure(ctx context.Context) error {
	found, err := k.temporal.DescribeWorkflowExecution(ctx, k.id, "")
	var notFound *serviceerror.NotFound
	if err != nil && !errors.As(err, &notFound) {
		return err
	}
	info := found.GetWorkflowExecutionInfo()
	switch status := info.GetStatus(); {
	case status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, status == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return nil
	case err != nil, status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED: // somebody may have deleted it, or it ended because nobody needed it
		if !k.always {
			return nil
		}
	case k.failures.wait(info, time.Now()):
		k.logger.Error(k.what+" failed at once again and again: see its failure in Temporal; it is started again later",
			"workflow", k.id, "inARow", k.failures.inARow, "next", k.failures.retryAt)
		return nil
	}
	run, err := k.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: k.id, TaskQueue: k.queue, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, k.kind)
	if err != nil {
		return err
	}
	k.logger.Info(k.what+" was started anew", "workflow", k.id, "run", run.GetRunID(), "previous", info.GetExecution().GetRunId())
	return nil
}
