package roles

// Who may do what of Drydock. A test of Drydock's package api compares the names with those of the product: a new message or workflow
// type needs a row.

// startable says who may start and cancel workflows of a type, and how their IDs begin, behind the name of a cluster: nobody takes the ID of
// another kind of workflow.
type startable struct {
	by Roles
	id string
}

// types has the workflow types. A worker may start all, with any ID.
var types = map[string]startable{
	"NodeMaintenance":    {Starter | Operator, "node-maintenance"},
	"MaintenancePlan":    {Starter | Operator, "maintenance-plan"},
	"MaintenancePlanRun": {Starter | Operator, "maintenance-plan-run"},
	"Preflight":          {Starter | Operator, "preflight"},
	"Permissions":        {Starter | Operator, "permissions"},
	"Windows":            {Starter | Operator, "windows"},
	"ProfileReport":      {Starter | Operator, "profile-report"},

	"HealthCheck": {Operator, "health-check"},
	"Doctor":      {Operator, "drydock-doctor"},

	"Scheduler":         {Worker, "drydock-scheduler"},
	"Notification":      {Worker, "notification"},
	"AuditRecord":       {Worker, "audit-record"},
	"Lockstep":          {Worker, "drydock-plans"},
	"NodeRemediation":   {Worker, "node-remediation"},
	"Profiles":          {Worker, "drydock-profiles"},
	"ProfileTransition": {Worker, "profile-transition"},
	"NexusOperation":    {Worker, "nexus-operation"},
}

// apis has the calls that change something. A call of the server's that is not here, and does not only read, is refused.
var apis = map[string]rule{
	"StartWorkflowExecution":           mayStart,
	"SignalWorkflowExecution":          maySignal,
	"SignalWithStartWorkflowExecution": maySignalWithStart,
	"UpdateWorkflowExecution":          mayUpdate,
	"ExecuteMultiOperation":            mayDoAll,
	"RequestCancelWorkflowExecution":   mayCancel,

	"CreateSchedule": mayCreateSchedule,
	"UpdateSchedule": mayUpdateSchedule,
	"PatchSchedule":  only(Operator),
	"DeleteSchedule": only(Operator),

	"TerminateWorkflowExecution": only(Operator),
	"DeleteWorkflowExecution":    only(Operator),
	"ResetWorkflowExecution":     mayReset,
	"StartBatchOperation":        mayBatch,
	"StopBatchOperation":         only(Operator),

	"PollWorkflowTaskQueue":            only(Worker),
	"RespondWorkflowTaskCompleted":     only(Worker),
	"RespondWorkflowTaskFailed":        only(Worker),
	"RespondQueryTaskCompleted":        only(Worker),
	"PollActivityTaskQueue":            only(Worker),
	"RecordActivityTaskHeartbeat":      only(Worker),
	"RecordActivityTaskHeartbeatById":  only(Worker),
	"RespondActivityTaskCompleted":     only(Worker),
	"RespondActivityTaskCompletedById": only(Worker),
	"RespondActivityTaskFailed":        only(Worker),
	"RespondActivityTaskFailedById":    only(Worker),
	"RespondActivityTaskCanceled":      only(Worker),
	"RespondActivityTaskCanceledById":  only(Worker),
	"PollNexusTaskQueue":               only(Worker),
	"RespondNexusTaskCompleted":        only(Worker),
	"RespondNexusTaskFailed":           only(Worker),
	"ResetStickyTaskQueue":             only(Worker),
	"RecordWorkerHeartbeat":            only(Worker),
	"ShutdownWorker":                   only(Worker),
}

// clusterWide are the calls that name no namespace and that each role may make.
var clusterWide = map[string]bool{"GetClusterInfo": true, "GetSearchAttributes": true}
