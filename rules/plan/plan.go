// Package plan decides which nodes of a maintenance plan go next: the plan's input, its rules and the decision. Values
// in, values out.
package plan

import (
	"encoding/json"

	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
)

// Plan is the input of the MaintenancePlan workflow after defaults: many nodes under one intent.
//
// The comments of its fields are their documentation everywhere, as those of spec.Maintenance are.
type Plan struct {
	Selection
	// Requestor is who asks for the maintenances: if absent, `plan-<name>`, or `plans` with strategy allAtOnce.
	Requestor string `json:"requestor,omitempty" jsonschema:"format=requestor"`
	// Maintenance is any part of [a maintenance's input](#a-maintenances-input) but `node` and `requestor`. With allAtOnce it
	// is also none of what the plan says for all of its nodes. A `notBefore` that is over when a node is begun has had its effect.
	Maintenance json.RawMessage `json:"maintenance,omitempty"`
	// Strategy is the order and the pace of the plan.
	Strategy Strategy `json:"strategy"`
	// Stage is the stage to begin in, with `--strategy all-at-once` (`allAtOnce`).
	Stage Stage `json:"stage,omitempty" jsonschema:"enum=Idle,enum=Cordon,enum=Drain,default=Idle" jsonschema_extras:"x-flag=stage"`
	// DrainPlan are the tiers in which the pods leave, with strategy allAtOnce, as [`drain.plan`](#the-drain). If absent, they are the standard
	// tiers of all pod types. They never change.
	DrainPlan *spec.Plan `json:"drainPlan,omitempty"`
	// Windows are names of [windows](#windows) of the worker's configuration: nodes are taken out of service only while all of them are open.
	Windows []string `json:"windows,omitempty" jsonschema:"maxItems=10,uniqueItems=true,format=label"`
	// Reason is why, of the plan, and of its maintenances if they have none of their own.
	Reason string `json:"reason,omitempty" jsonschema:"maxLength=1024"`
	// Ticket is the ticket of the change, of the plan, and of its maintenances if they have none of their own.
	Ticket string `json:"ticket,omitempty" jsonschema:"maxLength=1024"`
	// Owner is who answers for the work, of the plan, and of its maintenances if they have none of their own.
	Owner string `json:"owner,omitempty" jsonschema:"maxLength=1024"`
	// Notify are the channels that are sent what happens to the plan, and to its maintenances where those name none. If absent, they are the
	// worker's default ones.
	Notify *[]string `json:"notify,omitempty" jsonschema:"format=label"`
	// ReportTo is a workflow of the same namespace that the plan and its maintenances report to: see [a maintenance reports to a
	// workflow](#a-maintenance-reports-to-a-workflow). It is of strategy rolling.
	ReportTo *spec.ReportTo `json:"reportTo,omitempty"`
	// Object is the Kubernetes object that asked for the plan; `drydock-bridge` starts such plans, nobody does by hand.
	Object *spec.Object `json:"object,omitempty"`
}

// Strategy is the order and the pace of a plan. All but Type is of Rolling.
type Strategy struct {
	// Type is how the nodes go: `rolling` one after the other, `allAtOnce` all together through [stages](#stages), as KEP-4212 has it. All
	// other fields of the strategy are of `rolling`.
	Type string `json:"type" jsonschema:"enum=rolling,enum=allAtOnce" jsonschema_extras:"x-flag=strategy"`
	// MaxParallel is how many nodes are worked on at a time, or a percentage of the plan's, rounded up. It is 500 at most,
	// and the cluster's limits hold besides. A node that is held takes no place.
	MaxParallel schedule.Amount `json:"maxParallel,omitzero" jsonschema_extras:"x-flag=max-parallel"`
	// Canary are nodes that go first and alone. If absent, there are none.
	Canary *Canary `json:"canary,omitempty"`
	// MaxFailures is how many nodes may fail, or a percentage of them, rounded up, before the plan pauses. Nodes that wait for a decision
	// count, those that had failed when somebody resumed the plan do not.
	MaxFailures schedule.Amount `json:"maxFailures,omitzero" jsonschema_extras:"x-flag=max-failures"`
	// PauseBetween is the time between the end of one node and the beginning of the next.
	PauseBetween spec.Duration `json:"pauseBetween,omitzero" jsonschema:"default=0s" jsonschema_extras:"x-flag=pause-between"`
	// BeginWithin is how long after the plan's start nodes are begun, without it there is no end; those that run then are finished, and the
	// plan ends. That goes for
	// maintenances that still wait for a slot or an approval too. The plan ends `Incomplete` where nodes are left.
	BeginWithin spec.Duration `json:"beginWithin,omitzero" jsonschema_extras:"x-flag=begin-within"`
	// Order is which nodes go first: `name` as people count, `worker-2` before `worker-10`; `zone` one zone after the other;
	// `fewestPods` those with the fewest pods to move.
	Order string `json:"order,omitempty" jsonschema:"enum=name,enum=zone,enum=fewestPods" jsonschema_extras:"x-flag=order"`
	// OnBlocked is what becomes of a node that does not empty: `wait` leaves it to the maintenance's `drain.escalation`, `skip` gives it
	// back and comes back to it, `abort` gives it back and ends the plan.
	OnBlocked string `json:"onBlocked,omitempty" jsonschema:"enum=wait,enum=skip,enum=abort" jsonschema_extras:"x-flag=on-blocked"`
	// BlockedAfter is how long after its cordon a node counts as blocked, with onBlocked `skip` and `abort`. It takes the place of `drain.escalation`.
	BlockedAfter spec.Duration `json:"blockedAfter,omitzero" jsonschema:"default=30m" jsonschema_extras:"x-flag=blocked-after"`
	// ComeBackAfter is when to come back to a node that was blocked, with onBlocked `skip`.
	ComeBackAfter spec.Duration `json:"comeBackAfter,omitzero" jsonschema:"default=10m" jsonschema_extras:"x-flag=come-back-after"`
	// Tries is how often a node is tried before it has failed, with onBlocked `skip`.
	Tries int `json:"tries,omitempty" jsonschema:"minimum=0,maximum=100,default=3" jsonschema_extras:"x-flag=tries"`
}

// Canary are the first nodes of a plan. The others follow when all of them are back, Soak later, and where Approval is set
// when somebody approved. One that fails pauses the plan.
type Canary struct {
	// Nodes is how many nodes go first and alone; one of them that fails pauses the plan.
	Nodes int `json:"nodes" jsonschema:"required,minimum=1,maximum=1000" jsonschema_extras:"x-flag=canary"`
	// Soak is how long to wait after the canary's end before the others go.
	Soak spec.Duration `json:"soak,omitzero" jsonschema:"default=0s" jsonschema_extras:"x-flag=canary-soak"`
	// Approval waits for `drydock plan approve` before the other nodes go, once the canary is done and its soak over.
	Approval bool `json:"approval,omitempty" jsonschema_extras:"x-flag=canary-approval"`
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
