package caller

import (
	"context"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
)

// addressee reports whether a workflow may have a signal sent to the workflow of an ID.
type addressee func(who Identity, to string) bool

// starts are the types of the workflows that a signal may start.
var starts = map[string]string{
	api.SignalCollect: api.NotificationType, api.SignalPlanIntent: api.LockstepType,
}

func theCaller(who Identity, to string) bool { return to == who.WorkflowID }
func scheduler(who Identity, to string) bool { return to == api.SchedulerID(who.Cluster) }
func lockstep(who Identity, to string) bool  { return to == api.LockstepID(who.Cluster) }

func plan(who Identity, to string) bool {
	cluster, _, err := api.ParsePlanID(to)
	return err == nil && cluster == who.Cluster
}

func maintenance(who Identity, to string) bool {
	cluster, _, _, err := api.ParseMaintenanceID(to)
	return err == nil && cluster == who.Cluster
}

func sharedMaintenance(who Identity, to string) bool {
	cluster, _, requestor, err := api.ParseMaintenanceID(to)
	return err == nil && cluster == who.Cluster && requestor == api.PlansRequestor
}

// lockstepOfShared is the lockstep, for the maintenances that plans share.
func lockstepOfShared(who Identity, to string) bool {
	return sharedMaintenance(who, who.WorkflowID) && lockstep(who, to)
}

// itsRepair is the maintenance by which a remediation repairs its node.
func itsRepair(who Identity, to string) bool {
	cluster, check, node, err := api.ParseRemediationID(who.WorkflowID)
	return err == nil && cluster == who.Cluster && to == api.MaintenanceID(cluster, node, api.RemediationRequestor(check))
}

// itsProfileMaintenance is the maintenance of a transition's profile and node; Profiles ends those of every profile.
func itsProfileMaintenance(who Identity, to string) bool {
	if who.WorkflowID == api.ProfilesID(who.Cluster) {
		cluster, _, requestor, err := api.ParseMaintenanceID(to)
		return err == nil && cluster == who.Cluster && strings.HasPrefix(requestor, api.ProfileRequestorPrefix)
	}
	cluster, profile, node, err := api.ParseProfileTransitionID(who.WorkflowID)
	return err == nil && cluster == who.Cluster && to == api.MaintenanceID(cluster, node, api.ProfileRequestor(profile))
}

// itsCollector reports whether an ID is that of the workflow that collects events for the channel of a notification.
func itsCollector(who Identity, to string) bool {
	channel, ok := strings.CutPrefix(to, api.CollectorID(who.Cluster, ""))
	return ok && channel != "" && !strings.Contains(channel, "/") && strings.HasPrefix(who.WorkflowID, to+"/")
}

// MaySignal refuses a signal that the activity may not send for the workflow that called it. An activity whose effects cannot be
// undone asks before it begins. Errors: ForeignCaller.
func MaySignal(ctx context.Context, to, signal string) error {
	info := activity.GetInfo(ctx)
	return identityOf(info).MaySignal(info.ActivityType.Name, to, signal)
}

// MaySignal refuses a signal that an activity of that name may not send for the workflow. Errors: ForeignCaller.
func (who Identity) MaySignal(activity, to, signal string) error {
	name, _, _ := strings.Cut(signal, "/") // behind it is what makes a signal the only one of its name
	entitled := table[activity].sends[name]
	if entitled == nil {
		return refuse("activity %s sends no signal %.100q", activity, signal)
	}
	if !entitled(who, to) {
		return refuse("activity %s does not send signal %s to workflow %.300q for workflow %.300q", activity, signal, to, who.WorkflowID)
	}
	return nil
}

// Signal sends a signal for the workflow that called the activity. All signals of activities go through Signal and SignalWithStart.
// An empty run is the one that runs. Errors: ForeignCaller.
func Signal(ctx context.Context, temporal client.Client, to, runID, signal string, payload any) error {
	if err := MaySignal(ctx, to, signal); err != nil {
		return err
	}
	return temporal.SignalWorkflow(ctx, to, runID, signal, payload)
}

// SignalWithStart is Signal, and starts the workflow on the activity's task queue where it does not run. Errors: ForeignCaller.
func SignalWithStart(ctx context.Context, temporal client.Client, to, signal string, payload any, input ...any) error {
	if err := MaySignal(ctx, to, signal); err != nil {
		return err
	}
	kind, ok := starts[signal]
	if !ok {
		return refuse("signal %s starts no workflow", signal)
	}
	_, err := temporal.SignalWithStartWorkflow(ctx, to, signal, payload, client.StartWorkflowOptions{
		ID: to, TaskQueue: activity.GetInfo(ctx).TaskQueue, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, kind, input...)
	return err
}
