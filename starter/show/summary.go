package show

import (
	"encoding/json"
	"strings"
	"time"

	"drydock/api"
	"drydock/client"
)

// summary is a maintenance in the machine-readable output of lists.
type summary struct {
	Node       string     `json:"node"`
	Requestor  string     `json:"requestor"`
	Phase      api.Phase  `json:"phase,omitempty"`
	Since      *time.Time `json:"since,omitempty"`
	WaitingFor string     `json:"waitingFor,omitempty"`
	Message    string     `json:"message,omitempty"`
	Attempt    int        `json:"attempt,omitempty"`
	WorkflowID string     `json:"workflowId"`
	RunID      string     `json:"runId"`
	StartedAt  time.Time  `json:"startedAt"`
	EndedAt    *time.Time `json:"endedAt,omitempty"`
	// Unanswered says why the phase is not known.
	Unanswered string `json:"unanswered,omitempty"`
}

// SummaryOf is a maintenance for programs.
func SummaryOf(v client.View) summary {
	s := summary{
		Node: v.Node, Requestor: v.Requestor, Phase: v.Phase(), Message: v.Message(),
		WorkflowID: v.WorkflowID, RunID: v.FirstRunID, StartedAt: v.Started,
	}
	if v.Unanswered != nil {
		s.Unanswered = v.Unanswered.Error()
	}
	if v.Status != nil {
		s.Since, s.Attempt, s.WaitingFor = &v.Status.Since, v.Status.Attempt, v.Status.WaitingFor
	}
	if !v.Running() {
		s.Since, s.EndedAt, s.WaitingFor = &v.Closed, &v.Closed, ""
	}
	return s
}

// Summaries is never nil, so that none is an empty list and not null.
func Summaries(views []client.View) []summary {
	all := make([]summary, len(views))
	for i, v := range views {
		all[i] = SummaryOf(v)
	}
	return all
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
