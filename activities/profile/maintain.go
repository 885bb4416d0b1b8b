package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/profile/job"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/rules/bounds"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/trigger"
)

// WorkInput is a trigger that takes its time: the one at Next.
type WorkInput struct {
	CarryInput
}

// Worked is what became of it.
type Worked struct {
	// Failed says why it was not carried out; then the transition is not.
	Failed string `json:"failed,omitempty"`
}

// maintainEvery is how often is looked how the maintenance is.
const maintainEvery = 2 * time.Second

// RunTriggerJob runs the Job of a trigger on the node, and waits for its end.
func (a *Activities) RunTriggerJob(ctx context.Context, in WorkInput) (Worked, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	found, failed, err := triggerAt[trigger.Job](a, in)
	if failed != "" || err != nil {
		return Worked{Failed: failed}, err
	}
	node, data, refused, err := a.read(ctx, in.ProfileTransitionInput)
	if err == nil && refused == "" {
		refused = mayNot(in.ProfileTransitionInput, data)
	}
	if err != nil || refused != "" {
		return Worked{Failed: refused}, failure.Translate(ctx, a.Nodes.Client(), err)
	}
	err = job.Run(ctx, a.Nodes.Client(), found, node, in.jobKey(in.Next))
	if errors.Is(err, checks.ErrJobFailed) || errors.Is(err, checks.ErrMisconfigured) {
		return Worked{Failed: bounds.Cut(err.Error(), bounds.Text)}, nil
	}
	return Worked{}, failure.Translate(ctx, a.Nodes.Client(), failure.OrCause(ctx, err))
}

// triggerAt is the trigger at Next.
func triggerAt[T trigger.Trigger](a *Activities, in WorkInput) (of T, failed string, err error) {
	config, err := a.config()
	if err != nil {
		return of, "", err
	}
	if in.Next < 0 || in.Next >= len(in.Triggers) {
		return of, "there is no such trigger", nil
	}
	name := in.Triggers[in.Next]
	found, _ := config.Trigger(name)
	of, is := found.Of.(T)
	if !is {
		return of, fmt.Sprintf("trigger %.80q is another by now, or not in the configuration any more", name), nil
	}
	return of, "", nil
}

// removeJob removes the Job of a trigger, if it is one: it is done, or is not to go on.
func (a *Activities) removeJob(ctx context.Context, config *rules.Config, in CarryInput, at int) error {
	if at < 0 || at >= len(in.Triggers) {
		return nil
	}
	found, _ := config.Trigger(in.Triggers[at])
	of, is := found.Of.(trigger.Job)
	if !is {
		return nil
	}
	return job.Remove(ctx, a.Nodes.Client(), of, in.jobKey(at))
}

// jobKey names the Job of a trigger.
func (in CarryInput) jobKey(at int) string { return fmt.Sprintf("%s/%d", in.RunID, at) }

// MaintainForProfile begins the maintenance of a trigger, or takes the one of the profile that runs, and waits until it is Ready.
func (a *Activities) MaintainForProfile(ctx context.Context, in WorkInput) (Worked, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	found, failed, err := triggerAt[trigger.Maintenance](a, in)
	if failed != "" || err != nil {
		return Worked{Failed: failed}, err
	}
	id := api.MaintenanceID(api.ClusterOf(activity.GetInfo(ctx).TaskQueue), in.Node, api.ProfileRequestor(in.Profile))
	run, err := a.beginMaintenance(ctx, id, found, in)
	if err != nil {
		return Worked{}, failure.OrCause(ctx, err)
	}
	look := time.NewTicker(maintainEvery)
	defer look.Stop()
	var seen int64
	for {
		worked, over, err := a.lookAtMaintenance(ctx, id, run, &seen)
		if err != nil || over {
			return worked, failure.OrCause(ctx, err)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return Worked{}, context.Cause(ctx)
		}
	}
}

// beginMaintenance starts the maintenance, or finds the one that runs. It returns the first run of its chain.
func (a *Activities) beginMaintenance(ctx context.Context, id string, of trigger.Maintenance, in WorkInput) (string, error) {
	fields := map[string]json.RawMessage{}
	if len(of.Input) > 0 {
		if err := json.Unmarshal(of.Input, &fields); err != nil {
			return "", temporal.NewNonRetryableApplicationError("maintenance: "+err.Error(), api.ErrorInvalidSpec, nil)
		}
	}
	text := func(value string) json.RawMessage {
		quoted, _ := json.Marshal(value) // a text
		return quoted
	}
	fields["node"], fields["requestor"] = text(in.Node), text(api.ProfileRequestor(in.Profile))
	if fields["reason"] == nil {
		fields["reason"] = text(fmt.Sprintf("profile %s goes to %s", in.Profile, in.To))
	}
	run, err := a.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: activity.GetInfo(ctx).TaskQueue,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            "maintenance of " + in.Node + " for profile " + in.Profile,
		Memo:                                     map[string]any{MemoProfile: in.Profile, api.MemoBegun: true},
	}, api.NodeMaintenanceType, fields)
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return run.GetRunID(), nil
	case !errors.As(err, &running):
		return "", fmt.Errorf("beginning the maintenance of %s: %w", in.Node, err)
	}
	info, err := a.describe(ctx, id)
	if err == nil && !isOfProfile(info) {
		return "", temporal.NewNonRetryableApplicationError("workflow "+id+" runs, and no profile has begun it", api.ErrorConflict, nil)
	}
	return info.GetFirstRunId(), err
}

// MemoProfile is in the memo of a maintenance that a profile has begun.
const MemoProfile = "drydockProfile"

func isOfProfile(info *workflowpb.WorkflowExecutionInfo) bool {
	_, is := info.GetMemo().GetFields()[MemoProfile]
	return is
}

func (a *Activities) describe(ctx context.Context, id string) (*workflowpb.WorkflowExecutionInfo, error) {
	d, err := a.Temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, fmt.Errorf("describing workflow %s: %w", id, err)
	}
	return d.GetWorkflowExecutionInfo(), nil
}

// lookAtMaintenance reports whether the maintenance is Ready, or has ended. It is asked only where its history has grown.
func (a *Activities) lookAtMaintenance(ctx context.Context, id, run string, seen *int64) (worked Worked, over bool, err error) {
	info, err := a.describe(ctx, id)
	if err != nil {
		return worked, false, err
	}
	if info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING || info.GetFirstRunId() != run {
		return Worked{Failed: "its maintenance has ended before it was Ready: see workflow " + id}, true, nil
	}
	if info.GetHistoryLength() == *seen {
		return worked, false, nil
	}
	var status api.Status
	answer, err := a.Temporal.QueryWorkflow(ctx, id, "", api.QueryStatus)
	if err == nil {
		err = answer.Get(&status)
	}
	if err != nil {
		return worked, false, fmt.Errorf("asking workflow %s how it is: %w", id, err)
	}
	*seen = info.GetHistoryLength()
	return worked, status.Phase == api.Ready, nil
}

// EndMaintenanceInput is a maintenance of a profile that has left its state.
type EndMaintenanceInput struct {
	Left
	Why string `json:"why"`
}

// About implements caller.Input. The run is the maintenance's.
func (in EndMaintenanceInput) About() caller.Subject {
	return caller.Subject{Node: in.Node, Requestor: in.Requestor}
}

// EndProfileMaintenance signals a maintenance to end. It leaves alone one that does not run, and one that no profile has begun.
func (a *Activities) EndProfileMaintenance(ctx context.Context, in EndMaintenanceInput) error {
	id := api.MaintenanceID(api.ClusterOf(activity.GetInfo(ctx).TaskQueue), in.Node, in.Requestor)
	info, err := a.describe(ctx, id)
	var none *serviceerror.NotFound
	switch {
	case errors.As(err, &none):
		return nil
	case err != nil:
		return err
	case !isOfProfile(info) || info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return nil
	}
	said := api.Message{By: in.Requestor, Comment: bounds.Cut(in.Why, bounds.Text)}
	return execution.SignalEnd(ctx, a.Temporal, id, in.RunID, said, in.Done)
}
