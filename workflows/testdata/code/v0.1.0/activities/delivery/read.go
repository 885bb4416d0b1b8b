package delivery

import (
	"context"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
)

// ReadInput asks for the events of a maintenance behind a moment, on behalf of a channel.
type ReadInput struct {
	Channel     string        `json:"channel"`
	Maintenance api.Reference `json:"maintenance"`
	After       api.Moment    `json:"after,omitzero"`
}

// Read is what happened.
type Read struct {
	// Plan is the channel's.
	Plan   notices.Channel `json:"plan"`
	Events []notices.Event `json:"events,omitempty"`
	// Lost counts events that the maintenance does not keep any more; More: there are further ones.
	Lost int  `json:"lost,omitempty"`
	More bool `json:"more,omitempty"`
	// Closed: the maintenance has closed, and these are its last events. Unanswered says why it cannot tell them.
	Closed     bool   `json:"closed,omitempty"`
	Unanswered string `json:"unanswered,omitempty"`
}

func (n *Activities) ReadEvents(ctx context.Context, in ReadInput) (Read, error) { panic("frozen") }

// GatherInput asks for events of many maintenances, on behalf of a channel. Without events it asks for the channel's plan.
type GatherInput struct {
	Channel string               `json:"channel"`
	Events  []api.EventReference `json:"events,omitempty"`
}

// Gathered are those that were found, in the order in which they were asked for, with short texts.
type Gathered struct {
	Plan   notices.Channel `json:"plan"`
	Events []notices.Event `json:"events,omitempty"`
	// Refused counts those that there are not, Why says so of the last of them.
	Refused int    `json:"refused,omitempty"`
	Why     string `json:"why,omitempty"`
}

func (n *Activities) Gather(ctx context.Context, in GatherInput) (Gathered, error) { panic("frozen") }

// SameInput asks whether a workflow of that ID does what another is to do: to keep the record of a maintenance, or to
// tell a channel of it.
type SameInput struct {
	WorkflowID   string        `json:"workflowId"`
	WorkflowType string        `json:"workflowType"`
	Maintenance  api.Reference `json:"maintenance"`
	Channel      string        `json:"channel,omitempty"`
}

func (n *Activities) Same(ctx context.Context, in SameInput) (bool, error) { panic("frozen") }
