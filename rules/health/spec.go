// Package health decides which nodes are ill and which of them are remediated, and when: values in, values out. Decode
// reads a check, State.Observe and State.Report take in what was seen, Decide says what is to be done and when to ask again,
// Look and Explain say how things stand.
package health

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock/rules/period"
	"drydock/rules/schedule"
)

// Spec is a health check, with the fields of medik8s' NodeHealthCheck and some beside them. Exactly one of
// RemediationTemplate, Maintenance and EscalatingRemediations is set.
type Spec struct {
	// Selector chooses the nodes; an empty one is refused.
	Selector metav1.LabelSelector `json:"selector"`
	// UnhealthyConditions are those of which any makes a node ill; absent, Ready is False or Unknown for 300 s.
	UnhealthyConditions []UnhealthyCondition `json:"unhealthyConditions,omitempty"`
	// MinHealthy is how many of the selected nodes have to be healthy for a remediation to begin, a percentage rounded up;
	// MaxUnhealthy how many may not be. At most one is set; where neither is, MinHealthy is 51%.
	MinHealthy   schedule.Amount `json:"minHealthy,omitzero"`
	MaxUnhealthy schedule.Amount `json:"maxUnhealthy,omitzero"`
	// Groups adds thresholds for each group of the nodes.
	Groups *GroupThreshold `json:"groups,omitempty"`
	// StormCooldownDuration is how long nothing begins after the threshold was not met; absent, the first moment at which it
	// is met will do.
	StormCooldownDuration *period.Duration `json:"stormCooldownDuration,omitempty"`
	// HealthyDelay is how long a recovered node has to stay healthy before its remediation is removed; a negative one waits for
	// somebody to confirm it.
	HealthyDelay SignedDuration `json:"healthyDelay,omitzero"`
	// RemediationTemplate is what the one object that remediates a node is made from. It has no timeout.
	RemediationTemplate *TemplateRef `json:"remediationTemplate,omitempty"`
	// Maintenance is the one remediation of a node, by a NodeMaintenance of ours. It has no timeout.
	Maintenance *Repair `json:"maintenance,omitempty"`
	// EscalatingRemediations are tried one after the other, in the order of Order.
	EscalatingRemediations []Escalation `json:"escalatingRemediations,omitempty"`
	// PauseRequests say why nothing new begins, as long as there is one.
	PauseRequests []string `json:"pauseRequests,omitempty"`
	// Flapping has a node that falls ill again go on with the next step of EscalatingRemediations.
	Flapping *Flapping `json:"flapping,omitempty"`
	// Notify names the channels that are notified; nil are those of the worker's configuration.
	Notify *[]string `json:"notify,omitempty"`
	// Etcd has control-plane nodes remediated only while etcd can lose the node's member.
	Etcd *Etcd `json:"etcd,omitempty"`
	// ControlPlane decides when a control-plane node may be remediated.
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
}

// GroupThreshold is a threshold that each group of the selected nodes has to meet for a remediation within it: nodes with
// the same values of the labels By are one. Exactly one of MinHealthy and MaxUnhealthy is set; percentages are of the group.
type GroupThreshold struct {
	By           []string        `json:"by"`
	MinHealthy   schedule.Amount `json:"minHealthy,omitzero"`
	MaxUnhealthy schedule.Amount `json:"maxUnhealthy,omitzero"`
}

// TemplateRef names the object that remediation objects are made from.
type TemplateRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Repair is a remediation by a NodeMaintenance of ours.
type Repair struct {
	// Input is the maintenance's, without node, requestor, additionalRequestors and type.
	Input json.RawMessage `json:"input,omitempty"`
	// OutOfService sets the taint node.kubernetes.io/out-of-service once the maintenance's work has proven the node to be off.
	OutOfService bool `json:"outOfService,omitempty"`
}

// Escalation is a step of several. Exactly one of RemediationTemplate and Maintenance is set.
type Escalation struct {
	RemediationTemplate *TemplateRef `json:"remediationTemplate,omitempty"`
	Maintenance         *Repair      `json:"maintenance,omitempty"`
	Order               int          `json:"order"`
	// Timeout is how long the step has, at least a minute; the next one begins after it, and as soon as the step fails.
	Timeout period.Duration `json:"timeout"`
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
	Within period.Duration `json:"within"`
}

// Etcd says where etcd's disruption budget is.
type Etcd struct {
	Namespace string `json:"namespace"`
	// Budget is the name of its PodDisruptionBudget; empty is the only one in the namespace.
	Budget string `json:"budget,omitempty"`
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
	// Allow is healthy, while a majority of etcd or of the control plane is healthy without the node, or always.
	Allow string `json:"allow"`
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
