package settings

import (
	"context"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/validation"
	"encoding/json"
)

type Activities struct{}

// Prepared is what a maintenance needs to know before it begins.
type Prepared struct {
	Defaults json.RawMessage `json:"defaults,omitempty"`
	// SearchAttributes: the namespace has them. To set an unregistered one would fail the workflow task for ever.
	SearchAttributes bool `json:"searchAttributes,omitempty"`
	// Channels are told of the maintenance; Groups are those its node is in, where a channel wants to know.
	Channels []notices.Channel `json:"channels,omitempty"`
	Groups   []string          `json:"groups,omitempty"`
	// Hooks are those that its input names.
	Hooks []validation.Hook `json:"hooks,omitempty"`
	// Audited: a record of it is to be kept. Conditions: its node shows lifecycle conditions.
	Audited    bool `json:"audited,omitempty"`
	Conditions bool `json:"conditions,omitempty"`
	// Policy: there are rules, and whoever judges later needs the specification. Refused says which rules refuse it now.
	Policy  bool   `json:"policy,omitempty"`
	Refused string `json:"refused,omitempty"`
	// Unknown says which channel, hook or check of its input the worker's configuration lacks.
	Unknown string `json:"unknown,omitempty"`
}

func (s *Activities) Prepare(ctx context.Context, input json.RawMessage) (Prepared, error) {
	panic("frozen")
}

func (s *Activities) Run(ctx context.Context) (string, error) { panic("frozen") }
