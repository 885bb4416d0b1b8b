package caller

import "drydock.dev/drydock/api"

// rights are what an activity may do: the types of the workflows that may call it, and the signals that it may send for them, and to whom.
type rights struct {
	from  []string
	sends to
}

// from are the rights of an activity that sends no signals.
func from(types ...string) rights { return rights{from: types} }

// sending adds the signals that the activity may send. The worker's rights in the namespace are not those of the callers of its activities:
// what an input names and its row does not have is refused.
func (r rights) sending(signals to) rights {
	r.sends = signals
	return r
}

// to has, for each signal, whom it may be sent to.
type to = map[string]addressee

// table has all activities. A test holds it to what workflows call, and to the signals that activities send.
var table = map[string]rights{
	"AbandonChecks":     from(api.NodeMaintenanceType),
	"AbandonHook":       from(api.NodeMaintenanceType),
	"AdoptNode":         from(api.NodeMaintenanceType),
	"AnnouncePhase":     from(api.NodeMaintenanceType, api.SchedulerType),
	"AskFate":           from(api.SchedulerType),
	"AskSlot":           from(api.NodeMaintenanceType),
	"AwaitEnds":         from(api.MaintenancePlanType, api.PlanRunType, api.NodeRemediationType),
	"AwaitOutOfService": from(api.NodeMaintenanceType).sending(to{api.SignalDrainBlocked: theCaller}),
	"AwaitPlanNodes":    from(api.MaintenancePlanType),
	"AwaitPreflight":    from(api.NodeMaintenanceType).sending(to{api.SignalDrainBlocked: theCaller}),
	"AwaitWork":         from(api.NodeMaintenanceType),
	"BeginRepair":       from(api.NodeRemediationType),
	"BeginShared":       from(api.LockstepType),
	"BeginWork":         from(api.NodeMaintenanceType),
	"CallHook":          from(api.NodeMaintenanceType),
	"CarryTransition":   from(api.ProfileTransitionType),
	"CheckPermissions":  from(api.PermissionsType),
	"CheckPlans":        from(api.LockstepType),
	"CheckPreflight":    from(api.PreflightType, api.NodeMaintenanceType),
	"CheckReleases":     from(api.NodeMaintenanceType),
	"Collect":           from(api.NotificationType).sending(to{api.SignalCollect: itsCollector}),
	"ComputeOpenings":   from(api.SchedulerType),
	"Deliver":           from(api.HealthCheckType, api.NotificationType, api.MaintenancePlanType),
	"Drain": from(api.NodeMaintenanceType, api.ProfileTransitionType).sending(to{
		api.SignalDrainBlocked: theCaller, api.SignalNodeProgress: lockstepOfShared,
	}),
	"EndProfileMaintenance": from(api.ProfilesType, api.ProfileTransitionType).sending(to{
		api.MsgCancel: itsProfileMaintenance, api.MsgDone: itsProfileMaintenance,
	}),
	"EndRepair":        from(api.NodeRemediationType).sending(to{api.MsgCancel: itsRepair, api.MsgDone: itsRepair}),
	"EndShared":        from(api.LockstepType).sending(to{api.MsgCancel: sharedMaintenance, api.MsgDone: sharedMaintenance}),
	"EndWork":          from(api.NodeMaintenanceType),
	"EnsureObject":     from(api.NodeRemediationType),
	"EvaluateProfiles": from(api.ProfilesType),
	"FindBegun":        from(api.MaintenancePlanType),
	"FindObjects":      from(api.NodeRemediationType),
	"FindPod":          from(api.NodeMaintenanceType),
	"FindRemediations": from(api.HealthCheckType),
	"FindRepair":       from(api.NodeRemediationType),
	"FindShared":       from(api.LockstepType),
	"FindTransitions":  from(api.ProfilesType),
	"Gather":           from(api.NotificationType),
	"GiveUpTransition": from(api.ProfileTransitionType),
	"GlanceNodes":      from(api.SchedulerType),
	"Heal": from(api.DoctorType).sending(to{
		api.SignalSlotRequest: scheduler, api.SignalSlotRelease: scheduler, api.SignalNodeChanged: maintenance,
	}),
	"HoldNode":           from(api.NodeMaintenanceType),
	"JudgeAmendment":     from(api.NodeMaintenanceType),
	"JudgeApproval":      from(api.NodeMaintenanceType),
	"KeepRecord":         from(api.AuditRecordType).sending(to{api.SignalOwn: theCaller}),
	"ListPlanNodes":      from(api.MaintenancePlanType),
	"ListWindows":        from(api.WindowsType),
	"Look":               from(api.DoctorType),
	"MaintainForProfile": from(api.ProfileTransitionType),
	"MarkObjects":        from(api.NodeRemediationType),
	"ObserveNodes":       from(api.SchedulerType),
	"Prepare":            from(api.HealthCheckType, api.NodeMaintenanceType, api.MaintenancePlanType, api.PermissionsType, api.PreflightType),
	"Query":              from(api.NodeMaintenanceType, api.SchedulerType),
	"ReadEvents":         from(api.NotificationType),
	"RecordNodeEvents":   from(api.HealthCheckType),
	"ReleaseNode":        from(api.NodeMaintenanceType, api.SchedulerType).sending(to{api.SignalSlotRelease: scheduler, api.SignalNodeNews: plan}),
	"RemoveObjects":      from(api.NodeRemediationType),
	"ReportProfiles":     from(api.ProfileReportType),
	"Run":                from(api.NodeMaintenanceType),
	"RunTriggerJob":      from(api.ProfileTransitionType),
	"Same":               from(api.NodeMaintenanceType),
	"SeeGivenBack":       from(api.SchedulerType),
	"SeeLeftWork":        from(api.SchedulerType, api.NodeRemediationType),
	"SendGrants":         from(api.SchedulerType).sending(to{api.SignalSlotGranted: maintenance}),
	"SendIntent":         from(api.MaintenancePlanType).sending(to{api.SignalPlanIntent: lockstep}),
	"SendProfileNotice":  from(api.ProfilesType),
	"ShowConditions":     from(api.NodeMaintenanceType),
	"SteerShared":        from(api.LockstepType).sending(to{api.SignalTarget: sharedMaintenance}),
	"TakeInventory":      from(api.SchedulerType),
	"TakeLease":          from(api.NodeRemediationType),
	"TakeOutOfService":   from(api.NodeMaintenanceType),
	"ThisRun": from(
		api.HealthCheckType, api.LockstepType, api.MaintenancePlanType, api.PlanRunType,
		api.ProfilesType, api.NodeRemediationType, api.SchedulerType,
	),
	"Untaint":          from(api.NodeMaintenanceType),
	"Validate":         from(api.NodeMaintenanceType).sending(to{api.SignalDrainBlocked: theCaller}),
	"WaitForPods":      from(api.NodeMaintenanceType).sending(to{api.SignalDrainBlocked: theCaller}),
	"WatchCluster":     from(api.SchedulerType).sending(to{api.SignalNodeChanged: maintenance}),
	"WatchHealth":      from(api.HealthCheckType),
	"WatchRemediation": from(api.NodeRemediationType),
	"WatchShared":      from(api.LockstepType),
}

// Allowed are the types of the workflows that may call an activity: none for one without a row.
func Allowed(activity string) []string { return table[activity].from }
