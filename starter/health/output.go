package health

import (
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/health"
)

// Summary is a health check for programs, as far as it is known.
type Summary struct {
	Name string `json:"name"`
	// Phase is absent where no worker has said what it is, and of a check that has ended.
	Phase health.Phase `json:"phase,omitempty"`
	// Reason says in words why it is in its phase.
	Reason string `json:"reason,omitempty"`
	// Blocked says in words what keeps all remediations from beginning.
	Blocked string `json:"blocked,omitempty"`
	// Counts are the nodes; absent where no worker has said so.
	Counts *Counts              `json:"counts,omitempty"`
	Pauses []health.PauseStatus `json:"pauses,omitempty"`
	// Configured: a worker started it, as its configuration says, and Source in words who did. Left: it is not in the configuration that
	// was looked at, and goes on until it is removed.
	Configured bool   `json:"configured,omitempty"`
	Source     string `json:"source"`
	Left       bool   `json:"left,omitempty"`
	// WaitingFor says in words what it has to know before it decides anything.
	WaitingFor string `json:"waitingFor,omitempty"`
	// Message is why it ended, or what fails.
	Message    string `json:"message,omitempty"`
	WorkflowID string `json:"workflowId"`
	// RunID is the first run of its chain, where a worker has said so, and else the present one.
	RunID     string     `json:"runId"`
	CreatedAt time.Time  `json:"createdAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	// Unanswered is the error that kept the phase from being read.
	Unanswered string `json:"unanswered,omitempty"`
}

// Counts are the nodes of a check.
type Counts struct {
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

// Checks are several for programs.
type Checks []Summary

// Names are those of the checks.
func (c Checks) Names() []string {
	names := make([]string, len(c))
	for i, one := range c {
		names[i] = one.Name
	}
	return names
}

// Who started a check, in words.
const (
	sourceConfigured = "configuration"
	sourceByHand     = "by hand"
	sourceLeft       = "not in the file"
)

// SummaryOf is a check for programs.
func SummaryOf(v client.HealthCheckView, workflowID string) Summary {
	s := Summary{Name: v.Name, WorkflowID: workflowID, RunID: v.RunID, CreatedAt: v.Started, Configured: v.Configured, Source: sourceByHand, Message: v.Failure}
	if v.Configured {
		s.Source = sourceConfigured
	}
	if v.Unanswered != nil {
		s.Unanswered = v.Unanswered.Error()
	}
	if !v.Running() {
		s.EndedAt = &v.Ended
	}
	if h := v.Status; h != nil {
		s.Phase, s.Reason, s.Blocked, s.Pauses = h.Phase, h.Reason, h.Blocked, h.Pauses
		s.RunID, s.CreatedAt, s.WaitingFor = h.RunID, h.CreatedAt, h.WaitingFor
		s.Counts = &Counts{
			Observed: h.ObservedNodes, Healthy: h.HealthyNodes, MinHealthy: h.MinHealthy,
			Soon: h.Soon, Unhealthy: h.Unhealthy, Remediating: h.Remediating,
		}
		if len(h.Troubles) > 0 {
			s.Message = h.Troubles[0].String()
		}
	}
	return s
}

// Check is all that is known of a health check, for programs.
type Check struct {
	Summary
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
	NextWake       *time.Time        `json:"nextWake,omitempty"`
	LastUpdateTime *time.Time        `json:"lastUpdateTime,omitempty"`
	Messages       []api.Received    `json:"messages,omitempty"`
	Events         []api.HealthEvent `json:"events,omitempty"`
}

// CheckOf is all that is known of a check.
func CheckOf(v client.HealthCheckView, workflowID string) Check {
	c := Check{Summary: SummaryOf(v, workflowID), UnhealthyNodes: []health.UnhealthyNode{}}
	h := v.Status
	if h == nil {
		return c
	}
	c.Spec, c.Conditions, c.Groups = &h.Spec, h.Conditions, h.Groups
	c.Upgrading, c.Overlap, c.Storm, c.NextWake, c.Messages, c.Events = h.Upgrading, h.Overlap, h.Storm, h.NextWake, h.Messages, h.Events
	c.UnhealthyNodes = append(c.UnhealthyNodes, h.UnhealthyNodes...)
	if h.NextOffset > 0 {
		c.MoreNodes = max(0, h.Unhealthy-h.NextOffset)
	}
	if !h.LastUpdateTime.IsZero() {
		c.LastUpdateTime = &h.LastUpdateTime
	}
	return c
}
