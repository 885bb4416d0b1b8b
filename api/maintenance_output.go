package api

import "time"

// Execution is the workflow of a maintenance, a plan or a health check, as summaries have it.
type Execution struct {
	WorkflowID string `json:"workflowId"`
	// RunID is the first run of the chain, which stays the same. Of a plan or a health check that no worker has answered for, it is the
	// present run.
	RunID     string     `json:"runId"`
	CreatedAt time.Time  `json:"createdAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	// Unanswered is the error that kept the phase from being read.
	Unanswered string `json:"unanswered,omitempty"`
}

// MaintenanceSummary is a maintenance as lists have it, as far as it is known without a worker. Its Status has the same names.
type MaintenanceSummary struct {
	Node      string `json:"node"`
	Requestor string `json:"requestor"`
	// Phase is absent if no worker has said what it is.
	Phase Phase `json:"phase,omitempty"`
	// Since is when it came into its phase.
	Since *time.Time `json:"since,omitempty"`
	// WaitingFor says in words what has to happen next.
	WaitingFor string `json:"waitingFor,omitempty"`
	// Message is what the end, or a failure that somebody has to decide about, has to say for itself.
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Ticket  string `json:"ticket,omitempty"`
	// Attempt counts the slots asked for.
	Attempt int `json:"attempt,omitempty"`
	Execution
}

// Maintenance is all that is known of a maintenance: its own answer, and what the server knows besides.
type Maintenance struct {
	Answer
	MaintenanceSummary
}

// Answer is what a maintenance answers to its status query. A field that a MaintenanceSummary has too is that one's.
type Answer struct{ Given }

// Given has the fields of the answer one level below those of Execution, which count where both have a name.
type Given struct{ Status }

// MaintenanceOf is a maintenance that runs, as its own answer has it.
func MaintenanceOf(s Status) Maintenance {
	return Maintenance{Answer: Answer{Given{s}}, MaintenanceSummary: MaintenanceSummary{
		Node: s.Spec.Node, Requestor: s.Spec.Requestor, Phase: s.Phase, Since: &s.Since, WaitingFor: s.WaitingFor, Message: s.Failure,
		Reason: s.Spec.Reason, Ticket: s.Spec.Ticket, Attempt: s.Attempt,
		Execution: Execution{WorkflowID: s.WorkflowID, RunID: s.RunID, CreatedAt: s.CreatedAt},
	}}
}

// IsAnswered reports whether the maintenance's own answer is known.
func (m Maintenance) IsAnswered() bool { return m.Status.Phase != "" }

// Maintenances are several.
type Maintenances []MaintenanceSummary

// Names are those of their nodes, each once.
func (m Maintenances) Names() []string {
	return namesOf(m, func(one MaintenanceSummary) string { return one.Node })
}

// namesOf are the names of some things in their order, each once.
func namesOf[T any](all []T, nameOf func(T) string) []string {
	var names []string
	seen := map[string]bool{}
	for _, one := range all {
		if name := nameOf(one); !seen[name] {
			names, seen[name] = append(names, name), true
		}
	}
	return names
}
