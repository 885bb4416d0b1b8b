// Package spec is what a node maintenance is asked to be: the workflow's JSON input, its defaults and its rules.
package spec

import (
	"cmp"
	"slices"
	"time"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/validation"
)

// Maintenance is the input of the NodeMaintenance workflow after defaults. Only Node is required of the input.
//
// The comments of its fields are their documentation everywhere: in docs/reference, in the JSON schema, in `drydock explain`, and, up
// to the first full stop, in the help of the flag that x-flag names.
type Maintenance struct {
	// Node is the name of the node to take out of service.
	Node string `json:"node" jsonschema:"format=node" jsonschema_extras:"x-required=true"`
	// Requestor is who asks; node and requestor are the identity of a maintenance. It has 2 to 63 letters, digits, `-`, `_`, `.`, and is a
	// part of the workflow ID, `node-maintenance/<node>/<requestor>`. The command line says your user name.
	Requestor string `json:"requestor" jsonschema:"format=requestor" jsonschema_extras:"x-flag=requestor"`
	// AdditionalRequestors are others who share the maintenance; the node is released when all are done.
	AdditionalRequestors []string `json:"additionalRequestors,omitempty" jsonschema:"maxItems=63,format=requestor" jsonschema_extras:"x-flag=additional-requestor"`
	// Reason is why, shown everywhere. It has at most 1024 bytes, as ticket and owner have.
	Reason string `json:"reason,omitempty" jsonschema:"maxLength=1024" jsonschema_extras:"x-flag=reason"`
	// Ticket is the ticket of the change, shown everywhere.
	Ticket string `json:"ticket,omitempty" jsonschema:"maxLength=1024" jsonschema_extras:"x-flag=ticket"`
	// Owner is who answers for the node or the work on it, shown everywhere.
	Owner string `json:"owner,omitempty" jsonschema:"maxLength=1024" jsonschema_extras:"x-flag=owner"`
	// Type is whether the maintenance was planned, `planned` or `unplanned`, shown everywhere.
	Type string `json:"type" jsonschema:"enum=planned,enum=unplanned" jsonschema_extras:"x-flag=type"`
	// Approval waits for somebody's `approve` before anything else. `deny` ends the maintenance Cancelled.
	Approval bool `json:"approval,omitempty" jsonschema_extras:"x-flag=approval"`
	// ApprovalReminder is how often the channels are sent `ApprovalReminder` while it waits; 0s is never.
	ApprovalReminder Duration `json:"approvalReminder,omitzero" jsonschema:"default=24h"`
	// NotBefore is the time, such as `2026-03-01T22:00:00Z`, before which no slot is requested; until then the maintenance is announced
	// only. The channels are sent `MaintenanceScheduled`; a preflight comes before that notice. A time that was over by more than a
	// minute at the start is refused; `reschedule` moves it. The flag also takes how long from now.
	NotBefore *time.Time `json:"notBefore,omitempty" jsonschema_extras:"x-flag=not-before"`
	// Windows are names of [windows](#windows) of the worker's configuration: the slot is granted only while all of them are open. Those of
	// the scheduler's limits count besides. It has at most 10 names; `[]` takes a default back, which is `--window none`.
	Windows []string `json:"windows,omitempty" jsonschema:"maxItems=10,uniqueItems=true,format=label" jsonschema_extras:"x-flag=window"`
	// ExpectedDuration is how long the maintenance takes once it has its slot: it gets one only if that ends before the windows close. It
	// is compared to the minute, and at most 7d. Nothing ends a maintenance that takes longer.
	ExpectedDuration Duration `json:"expectedDuration,omitzero" jsonschema_extras:"x-flag=expected-duration"`
	// IgnoreWindows lets no window count, neither the maintenance's own nor one of the limits. A [policy](#policy-and-quotas) may forbid it.
	IgnoreWindows *IgnoreWindows `json:"ignoreWindows,omitempty"`
	// Priority ranks those that wait for a slot: higher goes first.
	Priority int `json:"priority" jsonschema:"minimum=-1000000000,maximum=1000000000" jsonschema_extras:"x-flag=priority"`
	// Cordon makes the node unschedulable. Without it the node is marked as held all the same.
	Cordon bool `json:"cordon" jsonschema_extras:"x-flag=no-cordon"`
	// WaitForPodCompletion lets pods complete by themselves before the drain.
	WaitForPodCompletion *WaitForPods `json:"waitForPodCompletion,omitempty"`
	// Drain says how the node is emptied.
	Drain Drain `json:"drain"`
	// Preflight is what happens where something would stop the drain, which is checked before a slot is requested: `wait` waits until
	// nothing would, `fail` ends the maintenance, `off` does not check. See [preflight](#preflight).
	Preflight string `json:"preflight" jsonschema:"enum=off,enum=wait,enum=fail" jsonschema_extras:"x-flag=preflight"`
	// ReadyTimeout is how long the requestor may hold the node, such as `4h` or `2d`; 0s is for ever.
	ReadyTimeout Duration `json:"readyTimeout" jsonschema_extras:"x-flag=ready-timeout"`
	// OnReadyTimeout is what follows a ready timeout: with `fail` the node stays out of service until somebody decides, with `release` it
	// is given back.
	OnReadyTimeout string `json:"onReadyTimeout" jsonschema:"enum=fail,enum=release" jsonschema_extras:"x-flag=on-ready-timeout"`
	// OnNodeReplaced is what becomes of a node that is deleted and created again while the requestor holds it: `adopt` holds it anew, `end`
	// ends the maintenance NodeGone.
	OnNodeReplaced string `json:"onNodeReplaced" jsonschema:"enum=adopt,enum=end" jsonschema_extras:"x-flag=on-node-replaced"`
	// SLA is the time in which the node is to be empty.
	SLA *SLA `json:"sla,omitempty" jsonschema_extras:"x-flag=sla"`
	// Hooks are names of the worker's [hooks](#hooks), called on the way in their order: see [hooks and closings](#hooks-and-closings).
	Hooks validation.Hooks `json:"hooks,omitzero" jsonschema_extras:"x-flag=hook"`
	// Work is a [work](#work) of the worker's configuration: the worker does it to the node once it is Ready, and is done or failed by its
	// result. See [work on a
	// node](#work-on-a-node). `""` takes a default back.
	Work string `json:"work,omitempty" jsonschema:"format=labelOrNone" jsonschema_extras:"x-flag=work"`
	// Lockstep says that plans share the maintenance: they begin such maintenances, nobody does by hand. See [a maintenance that plans
	// share](#a-maintenance-that-plans-share). Its requestor is `plans`, and nobody else's is.
	Lockstep bool `json:"lockstep,omitempty"`
	// Remediation names the health check for which the maintenance repairs the node. It takes a slot of a separate kind: see
	// [remediations](#remediations). Its requestor is `health-<check>` and its type `unplanned`; `drain.onNodeNotReady` is then `ignore`
	// unless the input says otherwise.
	Remediation *Remediation `json:"remediation,omitempty"`
	// Object is the Kubernetes object that asked for the maintenance; `drydock-bridge` starts such maintenances, nobody does by hand.
	Object *Object `json:"object,omitempty"`
	// ReportTo is a workflow of the same namespace that is sent a signal when the node is Ready, when it is not any more, and at the end: see
	// [a maintenance reports to a workflow](#a-maintenance-reports-to-a-workflow). `report-to` names another one.
	ReportTo *ReportTo `json:"reportTo,omitempty" jsonschema_extras:"x-flag=signal"`
	// OutOfService taints the node `node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`, once `work` has proven that it is off,
	// until its pods are gone and its volumes detached. Kubernetes then moves them elsewhere: see [a node that is off](#a-node-that-is-off).
	// It needs `work`.
	OutOfService bool `json:"outOfService,omitempty"`
	// Validation is what must hold before the node returns to production: see [validation](#validation). Without any of its fields up to
	// `signal` nothing is checked.
	Validation *validation.Validation `json:"validation,omitempty"`
	// Notify are names of the worker's [channels](#channels) that are sent what happens. `[]` sends nothing to anybody, which is `--notify
	// none`. If absent, the worker's default channels are.
	Notify *[]string `json:"notify,omitempty" jsonschema:"format=label" jsonschema_extras:"x-flag=notify"`
}

// SLA is the time that workloads were promised. Its end is an event of its own (NotifyMaintenance, SLAExpired).
type SLA struct {
	// After is the time in which the node is to be empty, on the clock of the escalation; then `SLAExpired` is sent.
	After Duration `json:"after" jsonschema:"required"`
	// Do is the rung that is taken then. If absent, only the channels are notified.
	Do string `json:"do,omitempty" jsonschema:"enum=notify,enum=bypassBudget,enum=kill,enum=giveBack,enum=fail"`
}

// WaitForPods selects pods that have to complete before the drain. Completed pods do not count, nor do the pods
// that stay on a drained node: those of DaemonSets and static pods.
type WaitForPods struct {
	// PodSelector is a label selector of the pods that have to complete before the drain. The empty one selects every pod.
	PodSelector string `json:"podSelector" jsonschema_extras:"x-flag=wait-for-pods"`
	// Timeout is how long to wait for these pods before going on regardless; 0s is for ever.
	Timeout Duration `json:"timeout" jsonschema:"default=0s" jsonschema_extras:"x-flag=wait-for-pods-timeout"`
}

// Drain says how the node is emptied.
type Drain struct {
	// Mode is who empties the node: `evict` evicts its pods, `wait` lets the cordoned node empty by itself, `external` waits for somebody
	// else who drains it and says `drained`, `none` leaves the pods alone.
	Mode string `json:"mode" jsonschema:"enum=evict,enum=wait,enum=external,enum=none" jsonschema_extras:"x-flag=drain-mode"`
	// PodSelector is a label selector of the pods to drain; if absent, all are. The others stay on the node, and nobody is asked to consent to
	// losing them.
	PodSelector string `json:"podSelector,omitempty" jsonschema_extras:"x-flag=pod-selector"`
	// PodEvictionFilters choose the pods to drain by the resources that they request: a pod that any of them matches. If absent, all pods are
	// drained.
	PodEvictionFilters []EvictionFilter `json:"podEvictionFilters,omitempty" jsonschema_extras:"x-flag=eviction-filter"`
	// Namespaces are those whose pods leave. The pods of others stay on the node, and the drain does not wait for them; preflight lists
	// them (reason `Namespace`), and `status` in `drain.stays`.
	Namespaces Namespaces `json:"namespaces,omitzero"`
	// Force consents to the loss of pods that no controller re-creates.
	Force bool `json:"force,omitempty" jsonschema_extras:"x-flag=force"`
	// DeleteEmptyDir consents to the loss of the data in emptyDir volumes.
	DeleteEmptyDir bool `json:"deleteEmptyDir,omitempty" jsonschema_extras:"x-flag=delete-emptydir-data"`
	// GracePeriodSeconds is how long a pod gets to terminate, in seconds, in place of the pod's own grace period.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty" jsonschema:"minimum=0" jsonschema_extras:"x-flag=grace-period"`
	// Plan are the tiers in which the pods leave: see [the drain](#the-drain). If absent, all pods of type Default leave at once. KEP-4212's
	// own form, a list of tiers, is taken too, and includes all pod types.
	Plan *Plan `json:"plan,omitempty"`
	// Via is how pods are asked to leave: `eviction` by the subresource, `evictionRequest` by the alpha API lifecycle.k8s.io (KEP-4563),
	// and the subresource if nobody answers. See [EvictionRequest](#evictionrequest).
	Via string `json:"via" jsonschema:"enum=eviction,enum=evictionRequest" jsonschema_extras:"x-flag=via"`
	// ProtectedFor is how long after the cordon pods are left alone that ask not to be disrupted; 0s ignores their wish. They ask by
	// `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"` or `karpenter.sh/do-not-disrupt: "true"`. The rungs bypassBudget and kill
	// end it early.
	ProtectedFor Duration `json:"protectedFor" jsonschema_extras:"x-flag=protected-for"`
	// OnNodeNotReady is what happens on a node whose kubelet does not answer: `wait` waits for terminating pods, `ignore` waits no longer
	// than their grace period. Such a node has the condition Ready Unknown. A kubelet that says of itself that it is not Ready still ends
	// pods, and they are waited for.
	OnNodeNotReady string `json:"onNodeNotReady" jsonschema:"enum=wait,enum=ignore" jsonschema_extras:"x-flag=on-node-not-ready"`
	// SkipWaitForDeleteTimeout is how long after its deletion a pod is still waited for, as `kubectl drain` counts it: from the end of its
	// grace period. A pod that takes longer stays on the node, and may still run when the node is Ready. 0s waits for every pod.
	SkipWaitForDeleteTimeout Duration `json:"skipWaitForDeleteTimeout,omitzero" jsonschema:"default=0s" jsonschema_extras:"x-flag=skip-wait-for-delete-timeout"`
	// WaitForVolumeDetach waits, when the pods are gone, until their volumes are detached from the node.
	WaitForVolumeDetach bool `json:"waitForVolumeDetach,omitempty" jsonschema_extras:"x-flag=wait-for-volumes"`
	// Escalation is what is done when the node does not empty, on one clock from the cordon: see [the escalation](#the-escalation). `[]`
	// waits for ever.
	Escalation []Rung `json:"escalation" jsonschema_extras:"x-flag=escalation"`
}

// Namespaces choose namespaces by their names.
type Namespaces struct {
	// Include are the only namespaces whose pods are drained, at most 64; if absent, those of all are.
	Include []string `json:"include,omitempty" jsonschema:"minItems=1,maxItems=64,uniqueItems=true,format=label" jsonschema_extras:"x-flag=include-namespace"`
	// Exclude are namespaces whose pods stay on the node, at most 64.
	Exclude []string `json:"exclude,omitempty" jsonschema:"maxItems=64,uniqueItems=true,format=label" jsonschema_extras:"x-flag=exclude-namespace"`
}

// IsZero leaves out of JSON what names no namespace.
func (n Namespaces) IsZero() bool { return len(n.Include)+len(n.Exclude) == 0 }

// Has reports whether a namespace is among them.
func (n Namespaces) Has(name string) bool {
	return (len(n.Include) == 0 || slices.Contains(n.Include, name)) && !slices.Contains(n.Exclude, name)
}

// Plan are the tiers of a drain (KEP-4212, drainPlan). The KEP's own form, a list of entries, is accepted in its
// place and includes all pod types.
type Plan struct {
	// Tiers are pods that leave one tier after the other: each entry those of its pod type, its priority or less, and its selector.
	Tiers []drainplan.Entry `json:"tiers,omitempty"`
	// Include are the pod types whose standard entries are added to the tiers, so that none of their pods is left.
	Include []drainplan.PodType `json:"include" jsonschema:"enum=Default,enum=DaemonSet,enum=Static"`
	// Static is what a tier of static pods does, which cannot be evicted: `skip` reports them, `wait` waits until somebody takes them off
	// the node.
	Static string `json:"static" jsonschema:"enum=skip,enum=wait"`
}

// EvictionFilter selects pods that request a resource whose name matches; entries are joined by OR
// (maintenance-operator, drainSpec.podEvictionFilters).
type EvictionFilter struct {
	// ByResourceNameRegex is a regular expression that the name of a resource matches which the pod requests.
	ByResourceNameRegex string `json:"byResourceNameRegex" jsonschema:"required,minLength=1"`
}

// Rung is one step of the escalation.
type Rung struct {
	// After is the time since the cordon.
	After Duration `json:"after" jsonschema:"required"`
	// Do is the rung that is taken then.
	Do string `json:"do" jsonschema:"required,enum=notify,enum=bypassBudget,enum=kill,enum=giveBack,enum=fail"`
}

// LateNotice is how long a notBefore may be over when it is given: clocks differ, and to type it takes time.
const LateNotice = time.Minute

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

	// ExpireSLA is the rung that reports that the SLA is over. It stands at the end of the SLA in the ladder, not in an input.
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

// Judged is the drain as a preflight checks it: with the SLA in its escalation, and with the wait for volumes of a node
// that is out of service.
func (m Maintenance) Judged() Drain {
	d := m.Drain
	d.WaitForVolumeDetach = d.WaitForVolumeDetach || m.OutOfService
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

func (m Maintenance) checkWork() error {
	if m.Work == "" {
		return nil
	}
	return validation.Name(m.Work)
}
