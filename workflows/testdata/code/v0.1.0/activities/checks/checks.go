package checks

import (
	"context"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/checks"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/validation"
)

type Activities struct{}

// HookInput asks for a hook of the worker's configuration, or for its closing.
type HookInput struct {
	Hook    string         `json:"hook"`
	Cleanup bool           `json:"closing,omitempty"`
	Subject checks.Subject `json:"subject"`
	// Key is the same whenever the call is repeated.
	Key string `json:"key"`
}

func (c *Activities) CallHook(ctx context.Context, in HookInput) (checks.Outcome, error) {
	panic("frozen")
}

func (c *Activities) AbandonHook(ctx context.Context, in HookInput) error { panic("frozen") }

// ValidateInput asks whether a node may return to production.
type ValidateInput struct {
	// Validation is what must hold; its Signal is the workflow's to wait for.
	Validation   validation.Validation `json:"validation"`
	BootIDBefore string                `json:"bootIDBefore,omitempty"`
	Subject      checks.Subject        `json:"subject"`
	// Key is one for each validation, by which its Jobs are found again.
	Key string `json:"key"`
	// BlockedSignal is the signal by which the workflow wants to hear what does not hold.
	BlockedSignal string `json:"blockedSignal"`
}

// Validated is how a validation ended.
type Validated struct {
	State   validation.State    `json:"state"`
	Results []validation.Result `json:"results"`
}

func (c *Activities) Validate(ctx context.Context, in ValidateInput) (Validated, error) {
	panic("frozen")
}

func (c *Activities) AbandonChecks(ctx context.Context, in ValidateInput) error { panic("frozen") }
