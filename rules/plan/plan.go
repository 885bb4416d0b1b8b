// Package plan decides which nodes of a maintenance plan go next: the plan's input, its rules and the decision. Values
// in, values out.
package plan

import (
	"encoding/json"

	"drydock/rules/schedule"
	"drydock/rules/spec"
)

// Plan is the input of the MaintenancePlan workflow after defaults: many nodes under one intent.
type Plan struct {
	Selection
	// Requestor is that of the maintenances; absent it is "plan-" and the plan's name, and "plans" with strategy allAtOnce.
	Requestor string `json:"requestor,omitempty"`
	// Maintenance is any part of a NodeMaintenance's input but node and requestor, and with AllAtOnce but what the plan says
	// for all of its nodes.
	Maintenance json.RawMessage `json:"maintenance,omitempty"`
	Strategy    Strategy        `json:"strategy"`
	// Stage is the one that a plan of strategy AllAtOnce begins in, and DrainPlan the tiers in which the pods of its nodes
	// leave; it never changes.
	Stage     Stage      `json:"stage,omitempty"`
	DrainPlan *spec.Plan `json:"drainPlan,omitempty"`
	// Windows are names of the worker's configuration: nodes are taken out of service only while all of them are open.
	Windows []string `json:"windows,omitempty"`
	// Reason, Ticket and Owner are those of the maintenances too, where they have none of their own.
	Reason string `json:"reason,omitempty"`
	Ticket string `json:"ticket,omitempty"`
	Owner  string `json:"owner,omitempty"`
	// Notify are the channels that are told of the plan, and of its maintenances where those name none; absent are the
	// worker's default ones.
	Notify *[]string `json:"notify,omitempty"`
}

// Strategy is the order and the pace of a plan. All but Type is of Rolling.
type Strategy struct {
	// Type is Rolling or AllAtOnce.
	Type string `json:"type"`
	// MaxParallel is how many nodes are worked on at a time, or a percentage of the plan's nodes, rounded up.
	MaxParallel schedule.Amount `json:"maxParallel,omitzero"`
	// Canary goes first and alone; absent there is none.
	Canary *Canary `json:"canary,omitempty"`
	// MaxFailures is how many nodes may fail, or a percentage of them, before the plan pauses: 0 pauses with the first.
	MaxFailures schedule.Amount `json:"maxFailures,omitzero"`
	// PauseBetween is the time between the end of one node and the beginning of the next.
	PauseBetween spec.Duration `json:"pauseBetween,omitzero"`
	// BeginWithin is how long after the plan's start nodes are begun; maintenances that run then are finished, and the plan ends.
	// Absent there is no such time.
	BeginWithin spec.Duration `json:"beginWithin,omitzero"`
	// Order is ByName, ByZone or FewestPods.
	Order string `json:"order,omitempty"`
	// OnBlocked says what becomes of a node that is not empty BlockedAfter its cordon: WaitBlocked, SkipBlocked or
	// AbortBlocked. A node that was skipped comes back ComeBackAfter that, until it was tried Tries times.
	OnBlocked     string        `json:"onBlocked,omitempty"`
	BlockedAfter  spec.Duration `json:"blockedAfter,omitzero"`
	ComeBackAfter spec.Duration `json:"comeBackAfter,omitzero"`
	Tries         int           `json:"tries,omitempty"`
}

// Canary are the first nodes of a plan. The others follow when all of them are back, Soak later, and where Approval is set
// when somebody approved. One that fails pauses the plan.
type Canary struct {
	Nodes    int           `json:"nodes"`
	Soak     spec.Duration `json:"soak,omitzero"`
	Approval bool          `json:"approval,omitempty"`
}

// The values of the enumerated fields.
const (
	// Rolling takes the nodes one after the other. AllAtOnce takes them together through stages (KEP-4212).
	Rolling   = "rolling"
	AllAtOnce = "allAtOnce"

	// ByName takes the nodes in the order of their names, ByZone zone by zone and one zone at a time, FewestPods first
	// those with the fewest pods to move.
	ByName     = "name"
	ByZone     = "zone"
	FewestPods = "fewestPods"

	// WaitBlocked leaves a blocked node to the maintenance's own escalation; SkipBlocked gives it back and comes back to
	// it; AbortBlocked gives it back and ends the plan.
	WaitBlocked  = "wait"
	SkipBlocked  = "skip"
	AbortBlocked = "abort"
)

// Defaults are merged under a plan's input.
const Defaults = `{
	"strategy": {"type": "rolling", "maxParallel": 1, "maxFailures": 0, "order": "name", "onBlocked": "wait"}
}`

// togetherDefaults are merged under the input of a plan of strategy AllAtOnce in place of Defaults.
const togetherDefaults = `{
	"strategy": {"type": "allAtOnce"}, "stage": "Idle",
	"drainPlan": {"include": ["Default", "DaemonSet", "Static"], "static": "skip"}
}`

// blockedDefaults are merged under the strategy of a plan that does not wait for blocked nodes.
const blockedDefaults = `{"strategy": {"blockedAfter": "30m", "comeBackAfter": "10m", "tries": 3}}`
