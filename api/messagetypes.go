package api

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/spec"
)

// Messages of people and scripts, each as a signal and as an update of the same name. MessageTypes says which workflow takes them.
const (
	MsgDone    = "done"
	MsgFailed  = "failed"
	MsgRetry   = "retry"
	MsgCancel  = "cancel"
	MsgExtend  = "extend"
	MsgStarted = "started"
	MsgDrained = "drained"
	MsgJoin    = "join"
	MsgLeave   = "leave"

	MsgEscalate = "escalate"
	MsgSkipPod  = "skip-pod"
	MsgConsent  = "consent"
	MsgRetryNow = "retry-now"

	MsgApprove          = "approve"
	MsgDeny             = "deny"
	MsgReschedule       = "reschedule"
	MsgValidated        = "validated"
	MsgValidationFailed = "validation-failed"
	MsgHookDone         = "hook-done"
	MsgSkipHook         = "skip-hook"
	MsgNote             = "note"
	MsgReportTo         = "report-to"

	MsgPause       = "pause"
	MsgResume      = "resume"
	MsgSkip        = "skip"
	MsgSetPace     = "set-pace"
	MsgSetStage    = "set-stage"
	MsgSetSelector = "set-selector"

	MsgConfigure = "configure"
	MsgConfirm   = "confirm"
	MsgRemove    = "remove"
)

// Role is who may send a message where Temporal authenticates callers (docs/concepts/trust.md, "An authorizer with Drydock's
// roles").
type Role string

// The roles. Drydock itself has the role of a worker.
const (
	RoleStarter  Role = "Starter"
	RoleOperator Role = "Operator"
	RoleApprover Role = "Approver"
	RoleWorker   Role = "Worker"
)

// MessageType declares a message to a workflow. The reference, the roles of the authorizer and the descriptions in Temporal's UI are
// made of these declarations.
type MessageType struct {
	// Name is that of the signal, and of the update where people send it.
	Name string
	// To is the type of the workflow that takes it.
	To string
	// From are the roles that may send it.
	From []Role
	// Payload is a zero value of what it carries; nil if nobody reads it.
	Payload any
	// Effect says in Markdown what it does. It is empty if From is RoleWorker: the payload's documentation says it.
	Effect string
}

var (
	requestors = []Role{RoleStarter, RoleOperator}
	operators  = []Role{RoleOperator}
	approvers  = []Role{RoleApprover}
	drydock    = []Role{RoleWorker}
)

// MessageTypes are all messages, in the order in which the reference lists them.
var MessageTypes = []MessageType{
	{MsgApprove, NodeMaintenanceType, approvers, Simple{}, "AwaitingApproval only, and once: the maintenance goes on. Anyone who may send it may approve, " +
		"the one who asked included, unless the worker's [policy](#policy-and-quotas) refuses it"},
	{MsgDeny, NodeMaintenanceType, approvers, Simple{}, "AwaitingApproval only, and once: the maintenance ends Cancelled"},
	{MsgDone, NodeMaintenanceType, requestors, Done{}, "this requestor has finished; counts in Ready and RequestorFailed only"},
	{MsgFailed, NodeMaintenanceType, requestors, FailedMessage{}, "Ready to RequestorFailed"},
	{MsgRetry, NodeMaintenanceType, operators, Simple{}, "RequestorFailed to Ready. Validating, once it has failed: what failed is tried again"},
	{MsgCancel, NodeMaintenanceType, requestors, Cancel{}, "before Ready: undo all. Ready: RequestorFailed. With `release: true`, which RequestorFailed " +
		"and Validating need, the node is given back; with `beforeReady: true` nothing changes from Ready on, as where a plan ends"},
	{MsgExtend, NodeMaintenanceType, requestors, Extend{}, "hold the node until `for` from now, if that is later than the deadline; default: `readyTimeout`"},
	{MsgStarted, NodeMaintenanceType, requestors, Started{}, "recorded; with `claim` it is refused if somebody has begun, so that of two who would " +
		"work on the node one does"},
	{MsgDrained, NodeMaintenanceType, requestors, Simple{}, "mode `external`: the node is empty"},
	{MsgJoin, NodeMaintenanceType, requestors, Membership{}, "share the maintenance"},
	{MsgLeave, NodeMaintenanceType, requestors, Membership{}, "share the maintenance no longer"},
	{MsgEscalate, NodeMaintenanceType, operators, Escalate{}, "Draining only: take the next rung of the escalation now, or the one that `do` names, which need " +
		"not be in the plan (the plan then goes on as it was). If it is not the rung that `expect` names, none is taken"},
	{MsgSkipPod, NodeMaintenanceType, operators, SkipPod{}, "Draining only: the drain neither evicts this pod, `namespace/name`, nor waits for it. The pod is " +
		"looked for first: until then the effect is `it is being judged`, and one that is not on the node is not skipped"},
	{MsgConsent, NodeMaintenanceType, operators, Consent{}, "Draining in mode `evict` only: from now on the drain may lose what `drain.force` and " +
		"`drain.deleteEmptyDir` stand for; where `pods` are named, `namespace/name`, theirs only. `by` and `comment` are required. It holds for later attempts too"},
	{MsgReschedule, NodeMaintenanceType, requestors, Reschedule{}, "while it waits for approval or for its time: `notBefore` is this time now, later or " +
		"earlier, and the channels are told `MaintenanceScheduled` again"},
	{MsgRetryNow, NodeMaintenanceType, operators, Simple{}, "Draining: try refused evictions again now. Pending after a give-back: ask for the next slot now. " +
		"Ignored anywhere else"},
	{MsgValidated, NodeMaintenanceType, requestors, Simple{}, "Validating, with `validation.signal` or once it has failed. With the signal: what is looked at " +
		"must hold besides. Once it has failed: the node is good all the same (`overruled`)"},
	{MsgValidationFailed, NodeMaintenanceType, requestors, Simple{}, "Validating, with `validation.signal` and not failed yet: the validation has failed"},
	{MsgHookDone, NodeMaintenanceType, requestors, HookMessage{}, "a hook of kind `signal` that is waited for is done; with `failed: true` it has failed. So is " +
		"[work](#work-on-a-node) of kind `signal`"},
	{MsgSkipHook, NodeMaintenanceType, operators, HookMessage{}, "go on without a hook that is under way: see [hooks and closings](#hooks-and-closings)"},
	{MsgNote, NodeMaintenanceType, requestors, Simple{}, "`comment`, which is required, goes on record: the status, the history and the audit record have it. " +
		"Nothing else changes"},
	{MsgReportTo, NodeMaintenanceType, requestors, ReportTo{}, "[reports](#a-maintenance-reports-to-a-workflow) go to this workflow of the namespace from now on, as " +
		"this signal, and one goes at once. Refused where they go to another workflow, unless with `replace: true`"},

	{MsgPause, MaintenancePlanType, operators, Simple{}, "nothing more is begun; what runs goes on"},
	{MsgResume, MaintenancePlanType, operators, Simple{}, "it goes on; failures that are known by then do not pause it again"},
	{MsgApprove, MaintenancePlanType, approvers, Simple{}, "it goes on after the canary, and may be said before that is done"},
	{MsgSkip, MaintenancePlanType, operators, NodeOfPlan{}, "the node is left out. One that is not Ready yet is given back, one that is Ready is finished"},
	{MsgRetry, MaintenancePlanType, operators, NodeOfPlan{}, "a node that failed or was skipped begins again in its turn, unless " +
		"`beginWithin` is over; the maintenance of a held node gets `retry`"},
	{MsgSetPace, MaintenancePlanType, operators, SetPace{}, "so many nodes at a time from now on; what runs goes on"},
	{MsgSetStage, MaintenancePlanType, operators, SetStage{}, "with `allAtOnce`: it goes on to that stage. As an update it hears whether the stage is refused"},
	{MsgSetSelector, MaintenancePlanType, operators, SetSelector{}, "with `allAtOnce`: its nodes are chosen so from now on; those that it holds stay until it is " +
		"completed"},
	{MsgReportTo, MaintenancePlanType, requestors, ReportTo{}, "with `rolling`: [reports](maintenance.md#a-maintenance-reports-to-a-workflow) of the plan, and of maintenances " +
		"that begin from now on, go to this workflow, as those of a maintenance"},
	{MsgCancel, MaintenancePlanType, requestors, Cancel{}, "nodes that are not Ready are given back, those that are Ready are finished; then the plan ends. With " +
		"`allAtOnce` it runs stage `Complete`"},

	{MsgPause, HealthCheckType, operators, HealthMessage{}, "no remediation and no further step begins until the same `by` resumes"},
	{MsgResume, HealthCheckType, operators, ResumeHealth{}, "withdraws the pause of `by`, of somebody else, or of everybody. A `pauseRequests` of the input is " +
		"withdrawn by `configure`"},
	{MsgConfigure, HealthCheckType, operators, ConfigureHealth{}, "another input. While the check remediates, `selector`, `remediationTemplate`, `maintenance` and " +
		"`escalatingRemediations` have to stay"},
	{MsgConfirm, HealthCheckType, operators, ConfirmHealthy{}, "the node has recovered: its remediation is removed now, whatever `healthyDelay` says. `by` and " +
		"`comment` are required"},
	{MsgRemove, HealthCheckType, operators, HealthMessage{}, "ends the check; refused while it remediates"},

	{UpdateSetLimits, SchedulerType, operators, SetLimits{}, "replaces the limits. `ifRevision` is the `revision` of the state that was read: the message is refused " +
		"if the limits have changed since"},
	{UpdateFreeze, SchedulerType, operators, FreezeRequest{}, "nothing is granted until the same `by` thaws; with `running` what runs stands still too"},
	{UpdateThaw, SchedulerType, operators, ThawRequest{}, "takes back the freeze of `by`, or of everybody with `all`"},

	{SignalSlotGranted, NodeMaintenanceType, drydock, SlotAnswer{}, ""},
	{SignalSlotPending, NodeMaintenanceType, drydock, SlotAnswer{}, ""},
	{SignalSlotRefused, NodeMaintenanceType, drydock, SlotAnswer{}, ""},
	{SignalNodeChanged, NodeMaintenanceType, drydock, NodeChange{}, ""},
	{SignalHold, NodeMaintenanceType, drydock, FreezeNotice{}, ""},
	{SignalDrainBlocked, NodeMaintenanceType, drydock, DrainProgress{}, ""},
	{SignalTarget, NodeMaintenanceType, drydock, NodeTarget{}, ""},
	{SignalOwn, NodeMaintenanceType, drydock, nil, ""},
	{SignalSlotRequest, SchedulerType, drydock, SlotRequest{}, ""},
	{SignalSlotRelease, SchedulerType, drydock, SlotRelease{}, ""},
	{SignalWindowsChanged, SchedulerType, drydock, WindowsChanged{}, ""},
	{SignalEvent, NotificationType, drydock, Moment{}, ""},
	{SignalCollect, NotificationType, drydock, EventReference{}, ""},
	{SignalNodeNews, MaintenancePlanType, drydock, NodeNews{}, ""},
	{SignalPlanProgress, MaintenancePlanType, drydock, PlanProgress{}, ""},
	{SignalPlanIntent, LockstepType, drydock, PlanIntent{}, ""},
	{SignalNodeProgress, LockstepType, drydock, NodeProgress{}, ""},
	{SignalRemediationOrder, NodeRemediationType, drydock, RemediationOrder{}, ""},
	{SignalSlotGranted, NodeRemediationType, drydock, SlotAnswer{}, ""},
	{SignalSlotPending, NodeRemediationType, drydock, SlotAnswer{}, ""},
	{SignalRemediationProgress, HealthCheckType, drydock, RemediationProgress{}, ""},
	{SignalSlotGranted, ProfileTransitionType, drydock, SlotAnswer{}, ""},
	{SignalSlotPending, ProfileTransitionType, drydock, SlotAnswer{}, ""},
	{SignalSlotRefused, ProfileTransitionType, drydock, SlotAnswer{}, ""},
	{SignalDrainBlocked, ProfileTransitionType, drydock, DrainProgress{}, ""},
}

// OfPeople reports whether people and scripts send it, as a signal or as an update.
func (m MessageType) OfPeople() bool { return !slices.Equal(m.From, drydock) }

// BySignal reports whether people send it as a signal, although it is an update too. An approval is: where the server verifies who calls
// it, the event of a signal says so and that of an update does not, and the policy judges approvals by it.
func (m MessageType) BySignal() bool {
	return m.To == NodeMaintenanceType && slices.Equal(m.From, approvers)
}

// MessagesTo are the messages that people and scripts send to workflows of a type.
func MessagesTo(workflowType string) (names []string) {
	for _, m := range MessageTypes {
		if m.To == workflowType && m.OfPeople() {
			names = append(names, m.Name)
		}
	}
	return names
}

// EffectOf is what a message to a workflow of a type does; empty if people do not send it.
func EffectOf(workflowType, name string) string {
	m, _ := MessageOf(workflowType, name)
	return m.Effect
}

// MessageOf is the declaration of a message that people send to workflows of a type.
func MessageOf(workflowType, name string) (m MessageType, found bool) {
	i := slices.IndexFunc(MessageTypes, func(m MessageType) bool { return m.To == workflowType && m.Name == name && m.OfPeople() })
	if i < 0 {
		return m, false
	}
	return MessageTypes[i], true
}

// Complete fills in what a payload of the message lacks of its ID, its sender and the run that it is meant for, as far as messages of this
// kind have these. A nil payload is an empty one. It returns the payload with the message's ID.
func (m MessageType) Complete(payload any, said Message, run string) (complete any, id string, err error) {
	filled := reflect.New(reflect.TypeOf(m.Payload)).Elem()
	if payload != nil {
		if reflect.TypeOf(payload) != filled.Type() {
			return nil, "", fmt.Errorf("%s: the payload is a %s, and not a %T", m.Name, filled.Type(), payload)
		}
		filled.Set(reflect.ValueOf(payload))
	}
	for field, text := range map[string]string{"ID": said.ID, "By": said.By, "Comment": said.Comment, "Run": run} {
		if f := filled.FieldByName(field); f.IsValid() && f.IsZero() {
			f.SetString(text)
		}
	}
	if has, ok := filled.Interface().(interface{ Said() Message }); ok {
		said = has.Said()
	}
	return filled.Interface(), said.ID, nil
}

// RunOf is the run that a payload is meant for; empty for any.
func RunOf(payload any) string {
	if run := reflect.ValueOf(payload).FieldByName("Run"); run.IsValid() {
		return run.String()
	}
	return ""
}

// said are the fields that all messages of people have; run is none of join and leave.
var said = []string{"id", "by", "comment", "run"}

// Fields are the JSON names of the payload's fields but id, by, comment and run.
func (m MessageType) Fields() (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeOf(m.Payload)) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && !slices.Contains(said, name) {
			names = append(names, name)
		}
	}
	return names
}

// CheckReportTo refuses names to which no maintenance reports. A signal with the name of one of Drydock's own messages is refused: the worker
// sends it, and whoever asked for the maintenance may not be allowed to.
func CheckReportTo(to spec.ReportTo) error {
	if err := to.Validate(); err != nil {
		return err
	}
	if slices.ContainsFunc(MessageTypes, func(m MessageType) bool { return m.Name == to.Signal }) {
		return fmt.Errorf("signal: %q is one of Drydock's own: choose another name", to.Signal)
	}
	return nil
}

// CheckReportToOf is CheckReportTo for the reportTo of an input, which may be absent.
func CheckReportToOf(to *spec.ReportTo) error {
	if to == nil {
		return nil
	}
	if err := CheckReportTo(*to); err != nil {
		return fmt.Errorf("reportTo.%w", err)
	}
	return nil
}
