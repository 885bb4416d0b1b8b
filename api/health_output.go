package api

import (
	"time"

	"drydock.dev/drydock/rules/health"
)

// HealthCheckSummary is a health check as lists have it, as far as it is known.
type HealthCheckSummary struct {
	Name string `json:"name"`
	// Phase is absent if no worker has said what it is, and of a check that has ended.
	Phase health.Phase `json:"phase,omitempty"`
	// Reason says in words why it is in its phase.
	Reason string `json:"reason,omitempty"`
	// Blocked says in words what keeps all remediations from beginning.
	Blocked string `json:"blocked,omitempty"`
	// Counts are the nodes; absent if no worker has said so.
	Counts *HealthCounts        `json:"counts,omitempty"`
	Pauses []health.PauseStatus `json:"pauses,omitempty"`
	// Configured: a worker started it, as its configuration says, and Source in words who did. Left: it is not in the configuration that
	// was looked at, and goes on until it is removed.
	Configured bool   `json:"configured,omitempty"`
	Source     string `json:"source"`
	Left       bool   `json:"left,omitempty"`
	// WaitingFor says in words what it has to know before it decides anything.
	WaitingFor string `json:"waitingFor,omitempty"`
	// Message is why it ended, or what fails.
	Message string `json:"message,omitempty"`
	Execution
}

// Who started a check, in words.
const (
	SourceConfigured = "configuration"
	SourceByHand     = "by hand"
	SourceLeft       = "not in the file"
)

// HealthCounts are the nodes of a check.
type HealthCounts struct {
	// Observed are those that the selector selects, Healthy those of them that match no condition and of whose remediation
	// nothing is left. Remediations begin while MinHealthy are healthy.
	Observed   int `json:"observedNodes"`
	Healthy    int `json:"healthyNodes"`
	MinHealthy int `json:"minHealthy"`
	// Soon match a condition whose duration is not over, Unhealthy one whose duration is; Remediating are under remediation.
	Soon        int `json:"soon"`
	Unhealthy   int `json:"unhealthy"`
	Remediating int `json:"remediating"`
}

// HealthChecks are several.
type HealthChecks []HealthCheckSummary

// Names are those of the checks.
func (c HealthChecks) Names() []string {
	return namesOf(c, func(one HealthCheckSummary) string { return one.Name })
}

// HealthCheck is all that is known of a health check.
type HealthCheck struct {
	HealthCheckSummary
	// Spec is the check's input with all defaults.
	Spec       *health.Spec       `json:"spec,omitempty"`
	Conditions []health.Condition `json:"conditions,omitempty"`
	// UnhealthyNodes are those that were asked for; MoreNodes counts the rest.
	UnhealthyNodes []health.UnhealthyNode `json:"unhealthyNodes"`
	MoreNodes      int                    `json:"moreNodes,omitempty"`
	Groups         []health.GroupStatus   `json:"groups,omitempty"`
	Upgrading      string                 `json:"upgrading,omitempty"`
	// Overlap names an older check that selects nodes of this check.
	Overlap string              `json:"overlap,omitempty"`
	Storm   *health.StormStatus `json:"storm,omitempty"`
	// NextWake is when the check decides again by itself, LastUpdateTime when the cluster was last seen.
	NextWake       *time.Time `json:"nextWake,omitempty"`
	LastUpdateTime *time.Time `json:"lastUpdateTime,omitempty"`
	// Troubles are what fails and is tried again.
	Troubles []Trouble     `json:"troubles,omitempty"`
	Messages []Received    `json:"messages,omitempty"`
	Events   []HealthEvent `json:"events,omitempty"`
}

// HealthCheckOf is a check that runs, as its own answer has it.
func HealthCheckOf(s HealthStatus) HealthCheck {
	c := HealthCheck{
		HealthCheckSummary: HealthCheckSummary{
			Name: s.Name, Phase: s.Phase, Reason: s.Reason, Blocked: s.Blocked, Pauses: s.Pauses, WaitingFor: s.WaitingFor,
			Counts: &HealthCounts{
				Observed: s.ObservedNodes, Healthy: s.HealthyNodes, MinHealthy: s.MinHealthy,
				Soon: s.Soon, Unhealthy: s.Unhealthy, Remediating: s.Remediating,
			},
			Execution: Execution{WorkflowID: s.WorkflowID, RunID: s.RunID, CreatedAt: s.CreatedAt},
		},
		Spec: &s.Spec, Conditions: s.Conditions, UnhealthyNodes: s.UnhealthyNodes, Groups: s.Groups, Upgrading: s.Upgrading, Overlap: s.Overlap,
		Storm: s.Storm, NextWake: s.NextWake, Troubles: s.Troubles, Messages: s.Messages, Events: s.Events,
	}
	if len(s.Troubles) > 0 {
		c.Message = s.Troubles[0].String()
	}
	if s.NextOffset > 0 {
		c.MoreNodes = max(0, s.Unhealthy-s.NextOffset)
	}
	if !s.LastUpdateTime.IsZero() {
		c.LastUpdateTime = &s.LastUpdateTime
	}
	return c
}

// CheckExplanation is what a health check says of a node.
type CheckExplanation struct {
	Check string `json:"check"`
	// Selected reports whether the check's selector selects the node, by Kubernetes' answer; absent if it did not answer.
	Selected *bool        `json:"selected,omitempty"`
	Phase    health.Phase `json:"phase,omitempty"`
	// Blocked says what keeps all remediations of the check from beginning.
	Blocked string `json:"blocked,omitempty"`
	HealthExplanation
}
