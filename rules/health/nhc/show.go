package nhc

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
)

// AnnotationLeftOut names the fields of a health check that a NodeHealthCheck has not.
const AnnotationLeftOut = "drydock.dev/left-out"

// NodeHealthCheck is a health check in the form of medik8s' object.
type NodeHealthCheck struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`
	Status     Status   `json:"status"`
}

// Metadata names it.
type Metadata struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Spec is NodeHealthCheckSpec.
type Spec struct {
	Selector               metav1.LabelSelector        `json:"selector"`
	UnhealthyConditions    []health.UnhealthyCondition `json:"unhealthyConditions,omitempty"`
	MinHealthy             schedule.Amount             `json:"minHealthy,omitzero"`
	MaxUnhealthy           schedule.Amount             `json:"maxUnhealthy,omitzero"`
	StormCooldownDuration  *period.Duration            `json:"stormCooldownDuration,omitempty"`
	HealthyDelay           health.SignedDuration       `json:"healthyDelay,omitzero"`
	RemediationTemplate    *health.TemplateRef         `json:"remediationTemplate,omitempty"`
	EscalatingRemediations []Step                      `json:"escalatingRemediations,omitempty"`
	PauseRequests          []string                    `json:"pauseRequests,omitempty"`
}

// Step is EscalatingRemediation.
type Step struct {
	RemediationTemplate *health.TemplateRef `json:"remediationTemplate,omitempty"`
	Order               int                 `json:"order"`
	Timeout             period.Duration     `json:"timeout"`
}

// Status is NodeHealthCheckStatus.
type Status struct {
	ObservedNodes  int                `json:"observedNodes"`
	HealthyNodes   int                `json:"healthyNodes"`
	UnhealthyNodes []UnhealthyNode    `json:"unhealthyNodes,omitempty"`
	Conditions     []health.Condition `json:"conditions,omitempty"`
	Phase          health.Phase       `json:"phase"`
	Reason         string             `json:"reason"`
	LastUpdateTime *time.Time         `json:"lastUpdateTime,omitempty"`
}

// UnhealthyNode is a node that is ill or under remediation.
type UnhealthyNode struct {
	Name                       string        `json:"name"`
	Remediations               []Remediation `json:"remediations,omitempty"`
	ConditionsHealthyTimestamp *time.Time    `json:"conditionsHealthyTimestamp,omitempty"`
	HealthyDelayed             *bool         `json:"healthyDelayed,omitempty"`
}

// Remediation is a remediation object. A maintenance is shown as one of Drydock's.
type Remediation struct {
	Resource     health.Resource `json:"resource"`
	Started      time.Time       `json:"started"`
	TimedOut     *time.Time      `json:"timedOut,omitempty"`
	TemplateName string          `json:"templateName,omitempty"`
}

// Show is a check in medik8s' form. Pauses of people are pause requests as those of the spec are.
func Show(name string, spec health.Spec, status health.Status) NodeHealthCheck {
	left := leftOut(spec)
	object := NodeHealthCheck{APIVersion: APIVersion, Kind: Kind, Metadata: Metadata{Name: name}, Spec: Spec{
		Selector: spec.Selector, UnhealthyConditions: slices.DeleteFunc(slices.Clone(spec.UnhealthyConditions), isOurs),
		MinHealthy: spec.MinHealthy, MaxUnhealthy: spec.MaxUnhealthy,
		StormCooldownDuration: spec.StormCooldownDuration, HealthyDelay: spec.HealthyDelay, RemediationTemplate: spec.RemediationTemplate,
	}}
	for _, step := range spec.EscalatingRemediations {
		object.Spec.EscalatingRemediations = append(object.Spec.EscalatingRemediations,
			Step{RemediationTemplate: step.RemediationTemplate, Order: step.Order, Timeout: step.Timeout})
	}
	for _, p := range status.Pauses {
		words := []string{}
		for _, word := range []string{p.By, p.Why} {
			if word != "" {
				words = append(words, word)
			}
		}
		object.Spec.PauseRequests = append(object.Spec.PauseRequests, strings.Join(words, ": "))
	}
	if len(left) > 0 {
		object.Metadata.Annotations = map[string]string{AnnotationLeftOut: strings.Join(left, ",")}
	}
	object.Status = Status{
		ObservedNodes: status.ObservedNodes, HealthyNodes: status.HealthyNodes, Conditions: slices.Clone(status.Conditions),
		Phase: status.Phase, Reason: status.Reason,
	}
	for i := range object.Status.Conditions {
		c := &object.Status.Conditions[i]
		c.LastTransitionTime = *seconds(&c.LastTransitionTime)
	}
	if !status.LastUpdateTime.IsZero() {
		object.Status.LastUpdateTime = seconds(&status.LastUpdateTime)
	}
	for _, node := range status.UnhealthyNodes {
		object.Status.UnhealthyNodes = append(object.Status.UnhealthyNodes, nodeOf(node))
	}
	return object
}

func nodeOf(n health.UnhealthyNode) UnhealthyNode {
	own := UnhealthyNode{Name: n.Name, ConditionsHealthyTimestamp: seconds(n.ConditionsHealthyTimestamp), HealthyDelayed: n.HealthyDelayed}
	for _, r := range n.Remediations {
		shown := Remediation{Started: *seconds(&r.Started), TimedOut: seconds(r.TimedOut), TemplateName: r.TemplateName}
		if r.Resource != nil {
			shown.Resource = *r.Resource
		} else {
			shown.Resource = health.Resource{APIVersion: "drydock.dev", Kind: "NodeMaintenance", Name: r.WorkflowID}
		}
		own.Remediations = append(own.Remediations, shown)
	}
	return own
}

// seconds is a time as Kubernetes' objects have it.
func seconds(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC().Truncate(time.Second))
}

// isOurs reports whether medik8s has nothing like an unhealthy condition.
func isOurs(c health.UnhealthyCondition) bool { return c.Type == "" }

// leftOut are the fields that a NodeHealthCheck has not.
func leftOut(s health.Spec) []string {
	ownSteps := false
	for _, step := range s.EscalatingRemediations {
		ownSteps = ownSteps || step.Maintenance != nil
	}
	var left []string
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"maintenance", s.Maintenance != nil || ownSteps}, {"groups", s.Groups != nil}, {"flapping", s.Flapping != nil},
		{"notify", s.Notify != nil}, {"etcd", s.Etcd != nil}, {"controlPlane", s.ControlPlane != nil},
		{"unhealthyConditions", slices.ContainsFunc(s.UnhealthyConditions, isOurs)},
	} {
		if field.given {
			left = append(left, field.name)
		}
	}
	return left
}
