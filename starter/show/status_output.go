package show

import (
	"time"

	"drydock/api"
	"drydock/client"
	"drydock/rules/record"
	"drydock/rules/spec"
	"drydock/rules/validation"
)

// Maintenance is all that is known of a maintenance, for programs. What a list or an audit record says too has the same
// name here.
type Maintenance struct {
	Summary
	// Failure says what failed, where somebody has to decide what becomes of the node.
	Failure string `json:"failure,omitempty"`
	// Specification is the maintenance's input with all defaults.
	Specification *spec.Maintenance `json:"specification,omitempty"`
	// Requestors are all who share it.
	Requestors []api.RequestorStatus `json:"requestors"`
	// Lockstep is how far the plans that share it have told it to go.
	Lockstep *api.LockstepStatus `json:"lockstep,omitempty"`
	Approval *api.ApprovalStatus `json:"approval,omitempty"`
	// Starter is who started it, as far as it is known.
	Starter *api.Sender     `json:"starter,omitempty"`
	Slot    *api.SlotStatus `json:"slot,omitempty"`
	NodeUID string          `json:"nodeUid,omitempty"`
	Groups  []string        `json:"groups,omitempty"`
	// NextAttemptAt is when a node that was given back is tried again.
	NextAttemptAt *time.Time `json:"nextAttemptAt,omitempty"`
	CordonedAt    *time.Time `json:"cordonedAt,omitempty"`
	// WorkStartedAt is when the work on the node began.
	WorkStartedAt *time.Time `json:"workStartedAt,omitempty"`
	ReadyDeadline *time.Time `json:"readyDeadline,omitempty"`
	// Phases are the changes of phase; an entry with the phase of the one before is something noteworthy in it. MorePhases
	// were left out after the first ones.
	Phases     []api.Transition `json:"phases"`
	MorePhases int              `json:"morePhases,omitempty"`
	Drained
	Told
	// Validation are the results of the last look at the node, ValidationState is where it stands.
	Validation      []validation.Result `json:"validation,omitempty"`
	ValidationState validation.State    `json:"validationState,omitempty"`
	// ValidationOverruled: somebody declared the node validated whatever the looks said.
	ValidationOverruled bool          `json:"validationOverruled,omitempty"`
	Hooks               []api.HookRun `json:"hooks,omitempty"`
	// OpenHooks are those under way.
	OpenHooks []string `json:"openHooks,omitempty"`
	// Work are the latest attempts at the work that the specification names.
	Work []api.WorkRun `json:"work,omitempty"`
}

// Drained is how the node is emptied.
type Drained struct {
	// Drain is the present one.
	Drain *api.DrainProgress `json:"drain,omitempty"`
	// Force is what the drain may do: absent, bypassBudget or kill.
	Force string `json:"force,omitempty"`
	// SkippedPods are those that an operator asked to leave on the node.
	SkippedPods []string `json:"skippedPods,omitempty"`
	// Consents are those that were given to the drain since it began.
	Consents []api.ConsentGiven `json:"consents,omitempty"`
	// Blockers are the pods that were in the way at some time, and until when; MoreBlockers counts those not kept.
	Blockers     []record.Blocker `json:"blockers,omitempty"`
	MoreBlockers int              `json:"moreBlockers,omitempty"`
	// Escalations are the rungs taken in the present attempt.
	Escalations []api.RungTaken `json:"escalations,omitempty"`
	// EarlierPods, EarlierEscalations and EarlierDrains are what earlier attempts did.
	EarlierPods        []api.EndedPod    `json:"earlierPods,omitempty"`
	EarlierEscalations []api.RungTaken   `json:"earlierEscalations,omitempty"`
	EarlierDrains      api.EarlierDrains `json:"earlierDrains,omitzero"`
	// Arrived are pods that came to the node after it was drained, the first of them; MoreArrived counts the rest.
	Arrived     []api.ArrivedPod `json:"arrived,omitempty"`
	MoreArrived int              `json:"moreArrived,omitempty"`
}

// Told is what the maintenance was told, and what it has told others.
type Told struct {
	// Messages are the latest that arrived, with what became of each.
	Messages []api.Received `json:"messages,omitempty"`
	// States are those of NotifyMaintenance, and notices beside them, in the order in which the outside was told.
	States []api.LifecycleState `json:"states,omitempty"`
	// Channels are the names of those that are told; Notifications are the latest events for them.
	Channels      []string          `json:"channels,omitempty"`
	Notifications []api.ChannelTold `json:"notifications,omitempty"`
	// Occupied are workflow IDs of the maintenance's own that something else had taken, and what was done about it.
	Occupied []string `json:"occupied,omitempty"`
}

// StatusOf is the workflow's own answer, or as much of it as is known without a worker.
func StatusOf(v client.View) Maintenance {
	m := Maintenance{Summary: SummaryOf(v)}
	m.Phases = v.Transitions()
	s := v.Status
	if s == nil {
		return m
	}
	m.Starter = s.Starter
	m.Failure, m.Requestors, m.Approval, m.Slot, m.NodeUID, m.Groups = s.Failure, s.Requestors, s.Approval, s.Slot, s.NodeUID, s.Groups
	if s.Spec.Node != "" {
		m.Specification = &s.Spec
	}
	m.NextAttemptAt, m.CordonedAt, m.WorkStartedAt, m.ReadyDeadline = s.NextAttemptAt, s.CordonedAt, s.StartedAt, s.ReadyDeadline
	m.MorePhases, m.Hooks, m.OpenHooks = s.TransitionsDropped, s.Hooks, s.OpenHooks
	m.Work, m.Lockstep = s.Work, s.Lockstep
	m.Drained = Drained{
		Drain: s.Drain, Force: s.Force, SkippedPods: s.SkippedPods, Consents: s.Consents, Blockers: s.BlockersSeen, MoreBlockers: s.MoreBlockersSeen,
		Escalations: s.Escalation, EarlierPods: s.EarlierPods, EarlierEscalations: s.EarlierRungs, EarlierDrains: s.EarlierDrains,
		Arrived: s.Arrived, MoreArrived: s.MoreArrived,
	}
	m.Told = Told{Messages: s.Messages, States: s.States, Channels: s.Tells, Notifications: s.Channels, Occupied: s.Occupied}
	if val := s.Validation; val != nil {
		m.Validation, m.ValidationState, m.ValidationOverruled = val.Results, val.State, val.Overruled
	}
	return m
}
