package show

import (
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
)

// Maintenance is all that is known of a maintenance, for programs: its own answer, and what the server knows besides.
type Maintenance struct {
	Answer
	Summary
}

// Answer is what a maintenance answers to its status query. A field that a Summary has too is the Summary's.
type Answer struct{ api.Status }

// StatusOf is the workflow's own answer, or as much of it as is known without a worker.
func StatusOf(v client.View) Maintenance {
	m := Maintenance{Summary: SummaryOf(v)}
	if v.Status != nil {
		m.Status = *v.Status
	}
	if m.Spec.Node == "" {
		m.Spec = spec.Maintenance{Node: v.Node, Requestor: v.Requestor}
	}
	m.Transitions = v.Transitions()
	return m
}
