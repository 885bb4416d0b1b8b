// Package health decides which nodes are ill and which of them are remediated, and when: values in, values out. Decode
// reads a check, State.Observe and State.Report take in what was seen, Decide says what is to be done and when to ask again,
// Look and Explain say how things stand.
package health

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
)

// Spec is a health check, with the fields of medik8s' NodeHealthCheck and some beside them. Exactly one of
// RemediationTemplate, Maintenance and EscalatingRemediations is set.
//
// The comments of its fields are their documentation everywhere, as those of spec.Maintenance are.
type Spec struct {
	// Selector is a LabelSelector of the nodes. An empty one is refused.
	Selector metav1.LabelSelector `json:"selector" jsonschema:"required"`
	// UnhealthyConditions are what makes a node ill, any of them, at most 50. If absent, a node is ill that has been Ready `False` or Ready
	// `Unknown` for more than 300s.
	UnhealthyConditions []UnhealthyCondition `json:"unhealthyConditions,omitempty" jsonschema:"maxItems=50"`
	// MinHealthy is how many of the selected nodes have to be healthy for a remediation to begin; equality is enough. It is a number, digits in
	// quotes, or a percentage, rounded up. It is 51% where neither it nor `maxUnhealthy` is given.
	MinHealthy schedule.Amount `json:"minHealthy,omitzero"`
	// MaxUnhealthy is how many of the selected nodes may be unhealthy, in place of `minHealthy`. A percentage is rounded up, which allows
	// more. A number greater than that of the nodes is no limit. It is refused beside `minHealthy`, and with
	// `MachineDeletionRemediationTemplate`.
	MaxUnhealthy schedule.Amount `json:"maxUnhealthy,omitzero"`
	// Groups adds a threshold for each group of the nodes. Both have to hold.
	Groups *GroupThreshold `json:"groups,omitempty"`
	// StormCooldownDuration is how long nothing begins once enough nodes are healthy again.
	StormCooldownDuration *period.Duration `json:"stormCooldownDuration,omitempty"`
	// HealthyDelay is how long a recovered node has to stay healthy before its remediation is removed. A negative one waits until somebody
	// confirms it.
	HealthyDelay SignedDuration `json:"healthyDelay,omitzero" jsonschema:"default=0s"`
	// RemediationTemplate is what a remediation object is made of: one step, without a timeout. Exactly one of it, `maintenance` and
	// `escalatingRemediations` is given.
	RemediationTemplate *TemplateRef `json:"remediationTemplate,omitempty"`
	// Maintenance is a maintenance of ours that remediates a node, in place of an object of `remediationTemplate`.
	Maintenance *Repair `json:"maintenance,omitempty"`
	// EscalatingRemediations are several steps, at most 20, each a `remediationTemplate` or a `maintenance`.
	EscalatingRemediations []Escalation `json:"escalatingRemediations,omitempty" jsonschema:"maxItems=20"`
	// PauseRequests are reasons why nothing new begins, as long as there is one.
	PauseRequests []string `json:"pauseRequests,omitempty" jsonschema:"maxItems=50,maxLength=1024,format=words"`
	// Flapping has a node that falls ill again go on with the next step.
	Flapping *Flapping `json:"flapping,omitempty"`
	// Notify are names of [channels](#channels) that are sent what happens. If absent, they are the worker's default ones.
	Notify *[]string `json:"notify,omitempty" jsonschema:"format=label"`
	// Etcd is where etcd's PodDisruptionBudget is: a control-plane node is remediated only while that lets go.
	Etcd *Etcd `json:"etcd,omitempty"`
	// ControlPlane says when a control-plane node is remediated, one at a time in any case. If absent, it is `allow: healthy`.
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	// Object is the Kubernetes object that asked for the check; `drydock-bridge` starts such checks, nobody does by hand.
	Object *spec.Object `json:"object,omitempty"`
}

// GroupThreshold is a threshold that each group of the selected nodes has to meet for a remediation within it: nodes with
// the same values of the labels By are one. Exactly one of MinHealthy and MaxUnhealthy is set; percentages are of the group.
type GroupThreshold struct {
	// By are label keys, such as that of a zone. Nodes without one are a group of their own.
	By []string `json:"by" jsonschema:"required,minItems=1,maxItems=8,format=key"`
	// MinHealthy is how many nodes of a group have to be healthy for a remediation in it.
	MinHealthy schedule.Amount `json:"minHealthy,omitzero"`
	// MaxUnhealthy is how many nodes of a group may be unhealthy, in place of `minHealthy`.
	MaxUnhealthy schedule.Amount `json:"maxUnhealthy,omitzero"`
}

// TemplateRef names the object that remediation objects are made from.
type TemplateRef struct {
	// APIVersion is the API version of the template.
	APIVersion string `json:"apiVersion" jsonschema:"required,minLength=1,maxLength=316,format=apiVersion"`
	// Kind is the kind of the template, which ends in `Template`.
	Kind string `json:"kind" jsonschema:"required,maxLength=316,format=template"`
	// Namespace is the namespace of the template.
	Namespace string `json:"namespace,omitempty" jsonschema:"maxLength=316"`
	// Name is the name of the template.
	Name string `json:"name" jsonschema:"required,minLength=1,maxLength=316"`
}

// Repair is a remediation by a NodeMaintenance of ours.
type Repair struct {
	// Input is any part of [a maintenance's input](#a-maintenances-input) but `node`, `requestor`, `additionalRequestors`, `type`, `approval`
	// and `notBefore`.
	Input json.RawMessage `json:"input,omitempty"`
	// OutOfService sets the taint `node.kubernetes.io/out-of-service` once the maintenance's work has proven the node to be off.
	OutOfService bool `json:"outOfService,omitempty"`
}

// Escalation is a step of several. Exactly one of RemediationTemplate and Maintenance is set.
type Escalation struct {
	// RemediationTemplate is what the step's remediation object is made of.
	RemediationTemplate *TemplateRef `json:"remediationTemplate,omitempty"`
	// Maintenance is a maintenance of ours, in place of an object of `remediationTemplate`.
	Maintenance *Repair `json:"maintenance,omitempty"`
	// Order is the place among the steps; those of one order go as they are listed.
	Order int `json:"order"`
	// Timeout is how long the step has, 1m or more. The next one begins after it, and as soon as the step fails.
	Timeout period.Duration `json:"timeout" jsonschema:"required"`
}

// Remediation is a step as it is carried out: of a check without escalation there is one, whose Timeout is 0, which is none.
// Exactly one of Template and Maintenance is set.
type Remediation struct {
	Template    *TemplateRef    `json:"template,omitempty"`
	Maintenance *Repair         `json:"maintenance,omitempty"`
	Timeout     period.Duration `json:"timeout,omitempty"`
}

// Flapping is how a node that falls ill again is taken.
type Flapping struct {
	// Within is how long after its remediation's end a node that is ill again has its next one begin with the step after the
	// one that was at work.
	Within period.Duration `json:"within" jsonschema:"required"`
}

// Etcd says where etcd's disruption budget is.
type Etcd struct {
	// Namespace is the namespace of etcd's PodDisruptionBudget.
	Namespace string `json:"namespace" jsonschema:"required,minLength=1,maxLength=316"`
	// Budget is the name of etcd's PodDisruptionBudget. If absent, it is the only one in the namespace.
	Budget string `json:"budget,omitempty" jsonschema:"maxLength=316"`
}

// EtcdQuestion is how etcd is asked about a control-plane node.
type EtcdQuestion struct {
	Etcd
	// Allow is that of ControlPlane.
	Allow string `json:"allow,omitempty"`
}

// What ControlPlane.Allow may be.
const (
	AllowHealthy = "healthy"
	AllowAlways  = "always"
)

// ControlPlane decides when a control-plane node may be remediated, one at a time in any case.
type ControlPlane struct {
	// Allow says when a control-plane node is remediated: `healthy` while etcd's budget allows it (on OpenShift there has to be one), elsewhere while a majority of etcd's static
	// pods (`kube-system`, kubeadm's labels), or without such pods of the control plane's nodes, is Ready without the node; `always` without
	// asking etcd, which control planes of one or two nodes need.
	Allow string `json:"allow" jsonschema:"required,enum=healthy,enum=always"`
}

// AskEtcd is how etcd is asked about a control-plane node.
func (s Spec) AskEtcd() *EtcdQuestion {
	if s.ControlPlane != nil && s.ControlPlane.Allow == AllowAlways {
		return &EtcdQuestion{Allow: AllowAlways}
	}
	if s.Etcd == nil {
		return nil
	}
	return &EtcdQuestion{Etcd: *s.Etcd}
}
