package execution

import (
	"context"
	"encoding/json"
)

type Activities struct{}

// Run is one run of a workflow.
type Run struct {
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId,omitempty"`
}

// QueryInput is one query for each of some runs, closed ones included.
type QueryInput struct {
	Executions []Run           `json:"executions"`
	Query      string          `json:"query"`
	Args       json.RawMessage `json:"args,omitempty"`
}

// Answered is an answer to a query; Gone says that there is nobody to ask any more, Unanswered why one that exists
// cannot answer.
type Answered struct {
	Gone       bool            `json:"gone,omitempty"`
	Unanswered string          `json:"unanswered,omitempty"`
	Answer     json.RawMessage `json:"answer,omitempty"`
}

func (e *Activities) ThisRun(ctx context.Context) (string, error) { panic("frozen") }

func (e *Activities) Query(ctx context.Context, in QueryInput) ([]Answered, error) { panic("frozen") }
