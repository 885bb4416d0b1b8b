package spec

import (
	"cmp"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/drainplan"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/validation"
	"slices"
	"time"
)

// Maintenance is the input of the NodeMaintenance workflow after defaults. Only Node is required of the input.
type Maintenance struct {
	// Node is the name of the node to take out of service.
	Node string `json:"node"`
	// Requestor is the domain-style name of whoever asks, 2 to 63 characters. Node and requestor are the
	// identity of a maintenance.
	Requestor string `json:"requestor"`
	// AdditionalRequestors share this maintenance: the node is released when all of them are done.
	AdditionalRequestors []string `json:"additionalRequestors,omitempty"`
	// Reason, Ticket, Owner and Type are shown everywhere. Owner is who answers for the node or the work on it, Type is
	// Planned or Unplanned.
	Reason string `json:"reason,omitempty"`
	Ticket string `json:"ticket,omitempty"`
	Owner  string `json:"owner,omitempty"`
	Type   string `json:"type"`
	// Approval waits for somebody's "approve" before anything else; ApprovalReminder is how often the channels are
	// reminded meanwhile: 24 h where it is absent, 0 is never.
	Approval         bool     `json:"approval,omitempty"`
	ApprovalReminder Duration `json:"approvalReminder,omitzero"`
	// NotBefore is the earliest time at which a slot is asked for: until then the maintenance is announced only.
	NotBefore *time.Time `json:"notBefore,omitempty"`
	// Priority ranks requests for a slot: higher goes first.
	Priority int `json:"priority"`
	// Cordon marks the node unschedulable.
	Cordon bool `json:"cordon"`
	// WaitForPodCompletion lets pods finish by themselves before the drain; absent waits for none.
	WaitForPodCompletion *WaitForPods `json:"waitForPodCompletion,omitempty"`
	Drain                Drain        `json:"drain"`
	// Preflight looks, before a slot is asked for, at what would stop the drain: PreflightOff, PreflightWait or
	// PreflightFail.
	Preflight string `json:"preflight"`
	// ReadyTimeout is how long the requestor may hold the node; 0 is for ever.
	ReadyTimeout Duration `json:"readyTimeout"`
	// OnReadyTimeout is FailOnTimeout or ReleaseOnTimeout.
	OnReadyTimeout string `json:"onReadyTimeout"`
	// OnNodeReplaced is AdoptReplacement or EndOnReplacement.
	OnNodeReplaced string `json:"onNodeReplaced"`
	// SLA is the time in which the node is to be empty; absent sets none.
	SLA *SLA `json:"sla,omitempty"`
	// Hooks are called on the way; Validation is what must hold before the node returns to production, absent checks
	// nothing.
	Hooks      validation.Hooks       `json:"hooks,omitzero"`
	Validation *validation.Validation `json:"validation,omitempty"`
	// Notify are the names of the channels that are told; absent are the worker's default ones, empty tells nobody.
	Notify *[]string `json:"notify,omitempty"`
}

// SLA is the time that workloads were promised. Its end is an event of its own (NotifyMaintenance, SLAExpired).
type SLA struct {
	// After is the time since the cordon, on the clock of the escalation.
	After Duration `json:"after"`
	// Do is the rung that is taken then; empty only tells.
	Do string `json:"do,omitempty"`
}

// WaitForPods selects pods that have to complete before the drain. Completed pods do not count, nor do the pods
// that stay on a drained node: those of DaemonSets and static pods.
type WaitForPods struct {
	// PodSelector is a label selector; empty selects every pod.
	PodSelector string `json:"podSelector"`
	// Timeout is how long to wait before going on regardless; 0 is for ever.
	Timeout Duration `json:"timeout"`
}

// Drain says how the node is emptied.
type Drain struct {
	Mode string `json:"mode"`
	// PodSelector and PodEvictionFilters choose the pods, before any question of consent.
	PodSelector        string           `json:"podSelector,omitempty"`
	PodEvictionFilters []EvictionFilter `json:"podEvictionFilters,omitempty"`
	// Namespaces are those whose pods leave; the pods of others stay on the node.
	Namespaces Namespaces `json:"namespaces,omitzero"`
	// Force consents to the loss of pods that no controller re-creates.
	Force bool `json:"force,omitempty"`
	// DeleteEmptyDir consents to the loss of the data in emptyDir volumes.
	DeleteEmptyDir bool `json:"deleteEmptyDir,omitempty"`
	// GracePeriodSeconds replaces the pods' own grace period; absent keeps it.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// Plan are the tiers in which the pods leave; absent is one tier of all Default pods.
	Plan *Plan `json:"plan,omitempty"`
	// Via is ViaEviction or ViaEvictionRequest.
	Via string `json:"via"`
	// ProtectedFor is how long after the cordon pods are left alone that ask not to be disrupted, by the cluster
	// autoscaler's safe-to-evict=false or karpenter's do-not-disrupt; 0 ignores their wish.
	ProtectedFor Duration `json:"protectedFor"`
	// OnNodeNotReady says what a pod that was told to end means on a node whose kubelet does not answer: it is waited
	// for (WaitForKubelet), or ignored once its grace period is over (IgnoreStuck).
	OnNodeNotReady string `json:"onNodeNotReady"`
	// WaitForVolumeDetach waits, once the pods are gone, until their volumes are detached from the node.
	WaitForVolumeDetach bool `json:"waitForVolumeDetach,omitempty"`
	// Escalation is what happens when the node does not empty, on one clock from the cordon. Empty waits for ever.
	Escalation []Rung `json:"escalation"`
}

// Namespaces choose namespaces by their names.
type Namespaces struct {
	// Include are the only ones; absent is all. Exclude are left out of them.
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
}

// Plan are the tiers of a drain (KEP-4212, drainPlan). The KEP's own form, a list of entries, is accepted in its
// place and includes all pod types.
type Plan struct {
	Tiers []drainplan.Entry `json:"tiers,omitempty"`
	// Include are the pod types whose standard entries are added to the tiers, so that none of their pods is left.
	Include []drainplan.PodType `json:"include"`
	// Static is what a tier of static pods does, which cannot be evicted: SkipStatic reports them, WaitForStatic waits
	// until somebody takes them off the node.
	Static string `json:"static"`
}

// EvictionFilter selects pods that request a resource whose name matches; entries are joined by OR
// (maintenance-operator, drainSpec.podEvictionFilters).
type EvictionFilter struct {
	ByResourceNameRegex string `json:"byResourceNameRegex"`
}

// Rung is one step of the escalation.
type Rung struct {
	// After is the time since the cordon.
	After Duration `json:"after"`
	// Do is Notify, BypassBudget, Kill, GiveBack or Fail.
	Do string `json:"do"`
}

// The values of the enumerated fields.
const (
	Planned   = "planned"
	Unplanned = "unplanned"

	// ModeEvict evicts the pods, ModeWait lets the cordoned node empty by itself, ModeExternal waits for somebody
	// else's "drained", ModeNone leaves the pods alone.
	ModeEvict    = "evict"
	ModeWait     = "wait"
	ModeExternal = "external"
	ModeNone     = "none"

	FailOnTimeout    = "fail"
	ReleaseOnTimeout = "release"

	AdoptReplacement = "adopt"
	EndOnReplacement = "end"

	// PreflightOff does not look, PreflightWait waits until nothing would stop the drain, PreflightFail ends the
	// maintenance as failed where something would.
	PreflightOff  = "off"
	PreflightWait = "wait"
	PreflightFail = "fail"

	// ViaEviction uses the eviction subresource, ViaEvictionRequest the alpha API lifecycle.k8s.io (KEP-4563), and
	// the subresource where nobody answers.
	ViaEviction        = "eviction"
	ViaEvictionRequest = "evictionRequest"

	WaitForKubelet = "wait"
	IgnoreStuck    = "ignore"

	SkipStatic    = "skip"
	WaitForStatic = "wait"

	// Notify says on the node that it does not empty; BypassBudget deletes what budgets protect, Kill ends pods
	// without their grace period; GiveBack uncordons the node and asks for a new slot after a backoff, Fail ends the
	// maintenance as failed. No rung consents to the loss of bare pods or of emptyDir data.
	Notify       = "notify"
	BypassBudget = "bypassBudget"
	Kill         = "kill"
	GiveBack     = "giveBack"
	Fail         = "fail"

	// ExpireSLA is the rung that tells that the SLA is over; it stands in a ladder where Maintenance.SLA puts it.
	ExpireSLA = "expireSLA"
)

// Defaults are merged under the worker's defaults, and those under the input.
const Defaults = `{
	"requestor": "manual",
	"type": "planned",
	"priority": 0,
	"cordon": true,
	"drain": {"mode": "evict", "via": "eviction", "protectedFor": "30m", "onNodeNotReady": "wait", "escalation": [{"after": "1h", "do": "giveBack"}]},
	"readyTimeout": "1h",
	"preflight": "off",
	"onReadyTimeout": "fail",
	"onNodeReplaced": "adopt"
}`

// Requestors are all who share the maintenance, the first being its identity.
func (m Maintenance) Requestors() []string {
	all := []string{m.Requestor}
	for _, name := range m.AdditionalRequestors {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// Judged is the drain as whoever judges it beforehand has to see it: with the SLA in its escalation.
func (m Maintenance) Judged() Drain {
	d := m.Drain
	d.Escalation = m.Ladder()
	return d
}

// Ladder is the escalation with the SLA in its place, so that one clock decides. What would come after a rung that ends
// the drain is left out.
func (m Maintenance) Ladder() []Rung {
	rungs := slices.Clone(m.Drain.Escalation)
	if m.SLA != nil {
		at, _ := slices.BinarySearchFunc(rungs, m.SLA.After, func(r Rung, after Duration) int { return cmp.Compare(r.After, after) })
		steps := []Rung{{After: m.SLA.After, Do: ExpireSLA}}
		if m.SLA.Do != "" {
			steps = append(steps, Rung{After: m.SLA.After, Do: m.SLA.Do})
		}
		rungs = slices.Insert(rungs, at, steps...)
	}
	if end := slices.IndexFunc(rungs, func(r Rung) bool { return EndsDrain(r.Do) }); end >= 0 {
		rungs = rungs[:end+1]
	}
	return rungs
}
