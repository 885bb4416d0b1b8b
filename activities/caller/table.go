package caller

import (
	"maps"
	"slices"

	"drydock/api"
)

// table has, for each activity, the types of the workflows that may call it. A test holds it to what workflows call.
var table = map[string][]string{
	"AbandonChecks":         {api.NodeMaintenanceType},
	"AbandonHook":           {api.NodeMaintenanceType},
	"AdoptNode":             {api.NodeMaintenanceType},
	"AnnouncePhase":         {api.NodeMaintenanceType, api.SchedulerType},
	"AskFate":               {api.SchedulerType},
	"AskSlot":               {api.NodeMaintenanceType},
	"AwaitEnds":             {api.MaintenancePlanType, api.PlanRunType, api.NodeRemediationType},
	"AwaitOutOfService":     {api.NodeMaintenanceType},
	"AwaitPlanNodes":        {api.MaintenancePlanType},
	"AwaitPreflight":        {api.NodeMaintenanceType},
	"AwaitWork":             {api.NodeMaintenanceType},
	"BeginRepair":           {api.NodeRemediationType},
	"BeginShared":           {api.LockstepType},
	"BeginWork":             {api.NodeMaintenanceType},
	"CallHook":              {api.NodeMaintenanceType},
	"CarryTransition":       {api.ProfileTransitionType},
	"CheckPlans":            {api.LockstepType},
	"CheckPreflight":        {api.PreflightType, api.NodeMaintenanceType},
	"Collect":               {api.NotificationType},
	"ComputeOpenings":       {api.SchedulerType},
	"Deliver":               {api.HealthCheckType, api.NotificationType, api.MaintenancePlanType},
	"Drain":                 {api.NodeMaintenanceType, api.ProfileTransitionType},
	"EndProfileMaintenance": {api.ProfilesType, api.ProfileTransitionType},
	"EndRepair":             {api.NodeRemediationType},
	"EndShared":             {api.LockstepType},
	"EndWork":               {api.NodeMaintenanceType},
	"EnsureObject":          {api.NodeRemediationType},
	"EvaluateProfiles":      {api.ProfilesType},
	"FindBegun":             {api.MaintenancePlanType},
	"FindChecks":            {api.HealthWatchType},
	"FindPod":               {api.NodeMaintenanceType},
	"FindRepair":            {api.NodeRemediationType},
	"FindTransitions":       {api.ProfilesType},
	"Gather":                {api.NotificationType},
	"GiveUpTransition":      {api.ProfileTransitionType},
	"GlanceNodes":           {api.SchedulerType},
	"Heal":                  {api.DoctorType},
	"HoldNode":              {api.NodeMaintenanceType},
	"JudgeAmendment":        {api.NodeMaintenanceType},
	"JudgeApproval":         {api.NodeMaintenanceType},
	"KeepRecord":            {api.AuditRecordType},
	"ListPlanNodes":         {api.MaintenancePlanType},
	"ListWindows":           {api.WindowsType},
	"Look":                  {api.DoctorType},
	"MaintainForProfile":    {api.ProfileTransitionType},
	"MarkObjects":           {api.NodeRemediationType},
	"ObserveNodes":          {api.SchedulerType},
	"Prepare":               {api.HealthCheckType, api.NodeMaintenanceType, api.MaintenancePlanType, api.PreflightType},
	"Query":                 {api.NodeMaintenanceType, api.SchedulerType},
	"ReadEvents":            {api.NotificationType},
	"RecordNodeEvents":      {api.HealthCheckType},
	"ReleaseNode":           {api.NodeMaintenanceType, api.SchedulerType},
	"RemoveObjects":         {api.NodeRemediationType},
	"ReportProfiles":        {api.ProfileReportType},
	"Run":                   {api.NodeMaintenanceType},
	"RunTriggerJob":         {api.ProfileTransitionType},
	"Same":                  {api.NodeMaintenanceType},
	"SeeGivenBack":          {api.SchedulerType},
	"SendHealthIntent":      {api.HealthCheckType},
	"SendIntent":            {api.MaintenancePlanType},
	"SendProfileNotice":     {api.ProfilesType},
	"ShowConditions":        {api.NodeMaintenanceType},
	"SteerShared":           {api.LockstepType},
	"StockRemediations":     {api.HealthCheckType},
	"TakeInventory":         {api.SchedulerType},
	"TakeLease":             {api.NodeRemediationType},
	"TakeOutOfService":      {api.NodeMaintenanceType},
	"TakeStock":             {api.LockstepType},
	"TellChecks":            {api.HealthWatchType},
	"TellGranted":           {api.SchedulerType},
	"ThisRun": {
		api.HealthCheckType, api.HealthWatchType, api.LockstepType, api.MaintenancePlanType, api.PlanRunType, api.ProfilesType,
		api.NodeRemediationType, api.SchedulerType,
	},
	"Untaint":          {api.NodeMaintenanceType},
	"Validate":         {api.NodeMaintenanceType},
	"WaitForPods":      {api.NodeMaintenanceType},
	"WatchCluster":     {api.SchedulerType},
	"WatchHealth":      {api.HealthWatchType},
	"WatchRemediation": {api.NodeRemediationType},
	"WatchShared":      {api.LockstepType},
}

// Allowed are the types of the workflows that may call an activity: none for one without a row.
func Allowed(activity string) []string { return table[activity] }

// Activities are the names of all activities that have a row, sorted.
func Activities() []string { return slices.Sorted(maps.Keys(table)) }
