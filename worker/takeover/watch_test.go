package takeover

import (
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drydock.dev/drydock/api"
)

var started = time.Date(2026, 11, 3, 9, 0, 0, 0, time.UTC)

const dead, ours = "1@drydock-0@drydock@11111111", "1@drydock-0@drydock@22222222"

// attempt is one of a watch of health checks that a worker carried out which has died since.
func attempt(change func(a *workflowpb.PendingActivityInfo)) *workflowpb.PendingActivityInfo {
	a := &workflowpb.PendingActivityInfo{
		ActivityId: "7", ActivityType: &commonpb.ActivityType{Name: "WatchHealth"}, State: enums.PENDING_ACTIVITY_STATE_STARTED, Attempt: 1,
		LastStartedTime: timestamppb.New(started.Add(-time.Minute)), LastWorkerIdentity: dead,
	}
	if change != nil {
		change(a)
	}
	return a
}

func named(name string) func(a *workflowpb.PendingActivityInfo) {
	return func(a *workflowpb.PendingActivityInfo) { a.ActivityType.Name = name }
}

func in(state enums.PendingActivityState) func(a *workflowpb.PendingActivityInfo) {
	return func(a *workflowpb.PendingActivityInfo) { a.State = state }
}

func begunAt(at time.Time) func(a *workflowpb.PendingActivityInfo) {
	return func(a *workflowpb.PendingActivityInfo) { a.LastStartedTime = timestamppb.New(at) }
}

func TestWhichAttemptsAreTaken(t *testing.T) {
	tests := []struct {
		name, workflow string
		change         func(a *workflowpb.PendingActivityInfo)
		want           bool
	}{
		{"health checks", api.HealthCheckType, nil, true},
		{"the cluster", api.SchedulerType, named("WatchCluster"), true},
		{"what remediates a node", api.NodeRemediationType, named("WatchRemediation"), true},
		{"the end of a repair", api.NodeRemediationType, named("AwaitEnds"), true},
		{"a plan's nodes", api.MaintenancePlanType, named("AwaitPlanNodes"), true},
		{"the ends of a plan's maintenances", api.MaintenancePlanType, named("AwaitEnds"), true},
		{"the end of a plan", api.PlanRunType, named("AwaitEnds"), true},
		{"plans that meet", api.LockstepType, named("WatchShared"), true},
		{"profiles", api.ProfilesType, named("EvaluateProfiles"), true},
		{"a later attempt", api.HealthCheckType, func(a *workflowpb.PendingActivityInfo) { a.Attempt = 40 }, true},

		{"a drain", api.NodeMaintenanceType, named("Drain"), false},
		{"a remediation's act", api.NodeRemediationType, named("EnsureObject"), false},
		{"a watch's name in another workflow", api.NodeMaintenanceType, nil, false},
		{"a foreign workflow", "Theirs", nil, false},
		{"not begun", api.HealthCheckType, in(enums.PENDING_ACTIVITY_STATE_SCHEDULED), false},
		{"being cancelled", api.HealthCheckType, in(enums.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED), false},
		{"being paused", api.HealthCheckType, in(enums.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED), false},
		{"paused", api.HealthCheckType, func(a *workflowpb.PendingActivityInfo) { a.Paused = true }, false},
		{"the last attempt", api.HealthCheckType, func(a *workflowpb.PendingActivityInfo) { a.Attempt, a.MaximumAttempts = 3, 3 }, false},
		{"the last but one", api.HealthCheckType, func(a *workflowpb.PendingActivityInfo) { a.Attempt, a.MaximumAttempts = 2, 3 }, true},
		{"our own", api.HealthCheckType, func(a *workflowpb.PendingActivityInfo) { a.LastWorkerIdentity = ours }, false},
		{"begun since by another", api.HealthCheckType, begunAt(started.Add(time.Minute)), false},
		{"begun a moment before", api.HealthCheckType, begunAt(started), true},
		{"begun before, by a server whose clock is ahead", api.HealthCheckType, begunAt(started.Add(clockSkew)), true},
		{"no time", api.HealthCheckType, func(a *workflowpb.PendingActivityInfo) { a.LastStartedTime = nil }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := attempt(test.change)
			if got := allWatches().mayBegin(test.workflow, a) && (newcomer{ours, started}).covers(a); got != test.want {
				t.Errorf("begun anew: %t", got)
			}
		})
	}
}

func TestAProcessHasAnIdentityOfItsOwn(t *testing.T) {
	// A container that is started again in its pod has process ID and host name of the one that died.
	if a, b := Identity("", "drydock"), Identity("", "drydock"); a == b {
		t.Errorf("two processes are both %s", a)
	}
	if a, b := Identity("given", "drydock"), Identity("given", "drydock"); a == b {
		t.Errorf("two processes are both %s", a)
	}
}
