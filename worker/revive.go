package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock/api"
)

// reviver starts a workflow anew where somebody has ended it. It is one that others start when they need it, that ends by itself
// when nobody does any more, and for whose word all of them wait until then.
type reviver struct {
	temporal client.Client
	logger   *slog.Logger
	// kind is the workflow's type, what its name for people.
	kind, what string
	id, queue  string
	failures   failures
	// waiting is the type of the workflows that wait for it and say so once only; empty is that whoever needs it starts it. asked
	// is when it was looked last whether there are some.
	waiting string
	asked   time.Time
	// always: it is to run whenever this worker does.
	always bool
}

// askEvery is how often it is looked whether somebody waits for what does not run.
const askEvery = 5 * time.Minute

// revivers are those of a cluster. Plans, and the maintenances that they share, wait for the lockstep: a maintenance whose plans have
// ended too is given back by nobody else. Health checks wait for their watch, and while all is well speak to it of nothing.
func revivers(o Options, temporal client.Client, queue string) []*reviver {
	lockstep := &reviver{kind: api.LockstepType, what: "the lockstep of plans", id: api.LockstepID(o.Config.Cluster)}
	watch := &reviver{kind: api.HealthWatchType, what: "the watch of health checks", id: api.HealthWatchID(o.Config.Cluster)}
	all := []*reviver{lockstep, watch}
	watch.waiting = api.HealthCheckType
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
	case err != nil, status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED: // somebody may have deleted it, or told it that nobody was left
		if needed, err := k.needed(ctx); !needed || err != nil {
			return err
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

// needed reports whether somebody waits for it.
func (k *reviver) needed(ctx context.Context) (bool, error) {
	if k.always {
		return true, nil
	}
	if k.waiting == "" || time.Since(k.asked) < askEvery {
		return false, nil
	}
	k.asked = time.Now()
	counted, err := k.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: fmt.Sprintf(
		`WorkflowType="%s" AND TaskQueue="%s" AND ExecutionStatus="Running"`, k.waiting, k.queue)})
	if err != nil {
		return false, fmt.Errorf("counting who waits for %s: %w", k.what, err)
	}
	return counted.GetCount() > 0, nil
}
