package show

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
)

// Summary is a maintenance for programs, as far as it is known without a worker. Its status has the same names.
type Summary struct {
	Node      string `json:"node"`
	Requestor string `json:"requestor"`
	// Phase is absent where no worker has said what it is.
	Phase api.Phase `json:"phase,omitempty"`
	// Since is when it came into its phase.
	Since *time.Time `json:"since,omitempty"`
	// WaitingFor says in words what has to happen next.
	WaitingFor string `json:"waitingFor,omitempty"`
	// Message is what the end, or a failure that somebody has to decide about, has to say for itself.
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Ticket  string `json:"ticket,omitempty"`
	// Attempt counts the slots asked for.
	Attempt    int    `json:"attempt,omitempty"`
	WorkflowID string `json:"workflowId"`
	// RunID is the first run of its chain, which stays the same.
	RunID     string     `json:"runId"`
	CreatedAt time.Time  `json:"createdAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	// Unanswered is the error that kept the phase from being read.
	Unanswered string `json:"unanswered,omitempty"`
}

// SummaryOf is a maintenance for programs.
func SummaryOf(v client.View) Summary {
	s := Summary{
		Node: v.Node, Requestor: v.Requestor, Phase: v.Phase(), Message: v.Message(),
		WorkflowID: v.WorkflowID, RunID: v.FirstRunID, CreatedAt: v.Began(),
	}
	if v.Unanswered != nil {
		s.Unanswered = v.Unanswered.Error()
	}
	if v.Status != nil {
		s.Since, s.Attempt, s.WaitingFor = &v.Status.Since, v.Status.Attempt, v.Status.WaitingFor
		s.Reason, s.Ticket = v.Status.Spec.Reason, v.Status.Spec.Ticket
	}
	if !v.Running() {
		ended := v.Ended()
		s.Since, s.EndedAt, s.WaitingFor = &ended, &ended, ""
	}
	return s
}

// Maintenances are several for programs.
type Maintenances []Summary

// Summaries are never nil, so that none is an empty list and not null.
func Summaries(views []client.View) Maintenances {
	all := make(Maintenances, len(views))
	for i, v := range views {
		all[i] = SummaryOf(v)
	}
	return all
}

// Names are those of their nodes, each once.
func (m Maintenances) Names() []string {
	var names []string
	for _, one := range m {
		if !slices.Contains(names, one.Node) {
			names = append(names, one.Node)
		}
	}
	return names
}

// JSONText shows a field's value as it would stand in the input.
func JSONText(value any) string {
	if value == nil {
		return "(not set)"
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(text.String())
}
