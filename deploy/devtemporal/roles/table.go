package roles

// Who may do what of Drydock. A test of Drydock's package api compares the names with those of the product: a new message or workflow
// type needs a row.

// messages has, for each signal and update, the roles that may send it. A worker may send all but approvals, and those that this table
// does not know too: a newer worker must not hang on an older table, and anyone who polls the task queue can send them anyway.
var messages = map[string]Roles{
	"approve": Approver,
	"deny":    Approver,

	"done":              Starter | Operator,
	"failed":            Starter | Operator,
	"cancel":            Starter | Operator,
	"extend":            Starter | Operator,
	"started":           Starter | Operator,
	"drained":           Starter | Operator,
	"join":              Starter | Operator,
	"leave":             Starter | Operator,
	"reschedule":        Starter | Operator,
	"validated":         Starter | Operator,
	"validation-failed": Starter | Operator,
	"hook-done":         Starter | Operator,

	"retry":     Operator,
	"retry-now": Operator,
	"escalate":  Operator,
	"skip-pod":  Operator,
	"consent":   Operator,
	"skip-hook": Operator,

	"pause":        Operator,
	"resume":       Operator,
	"skip":         Operator,
	"set-stage":    Operator,
	"set-selector": Operator,

	"configure": Operator,
	"confirm":   Operator,
	"remove":    Operator,

	"set-limits": Operator,
	"freeze":     Operator,
	"thaw":       Operator,

	"slot-granted":         Worker,
	"slot-pending":         Worker,
	"slot-refused":         Worker,
	"slot-request":         Worker,
	"slot-release":         Worker,
	"node-changed":         Worker,
	"node-news":            Worker,
	"node-progress":        Worker,
	"hold":                 Worker,
	"drain-blocked":        Worker,
	"own-principal":        Worker,
	"event":                Worker,
	"collect":              Worker,
	"windows-changed":      Worker,
	"plan-intent":          Worker,
	"plan-progress":        Worker,
	"target":               Worker,
	"remediation-order":    Worker,
	"remediation-progress": Worker,
}

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
