package api

import "drydock.dev/drydock/rules/period"

// NodeResult is how the work of a command on a node came out.
type NodeResult string

// The results of the work of a command on a node.
const (
	OutcomeDone       NodeResult = "done"
	OutcomeFailed     NodeResult = "failed"
	OutcomeCancelled  NodeResult = "cancelled"
	OutcomeNotStarted NodeResult = "not started"
	OutcomeSkipped    NodeResult = "skipped"
)

// NodeOutcome is what became of a node on which a command was to work.
type NodeOutcome struct {
	Node   string     `json:"node"`
	Result NodeResult `json:"result"`
	// ExitStatus is the command's; absent if it did not run.
	ExitStatus *int            `json:"exitStatus,omitempty"`
	Duration   period.Duration `json:"duration,omitzero"`
	Note       string          `json:"note,omitempty"`
	// Code is what exec exits with.
	Code int `json:"-"`
}
