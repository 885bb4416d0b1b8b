package validation

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/period"
	"errors"
)

// Hooks are names of hooks in the worker's configuration, called in their order.
type Hooks struct {
	// BeforeCordon are called once the slot is granted and before the node is touched.
	BeforeCordon []string `json:"beforeCordon,omitempty"`
	// AfterDrain are called once the node is empty and before the requestor is told.
	AfterDrain []string `json:"afterDrain,omitempty"`
	// BeforeRelease are called once the node is validated and before it is given back.
	BeforeRelease []string `json:"beforeRelease,omitempty"`
}

// Validate checks the names; the error joins one line per wrong field.
func (h Hooks) Validate() error {
	var p problems
	p.names("beforeCordon", h.BeforeCordon)
	p.names("afterDrain", h.AfterDrain)
	p.names("beforeRelease", h.BeforeRelease)
	return errors.Join(p...)
}

// Kind is what a hook does.
type Kind string

// The kinds. KindSignal does nothing but wait for somebody's signal.
const (
	KindHTTP   Kind = "http"
	KindJob    Kind = "job"
	KindSignal Kind = "signal"
)

// OnFailure is what becomes of a maintenance whose hook failed.
type OnFailure string

// FailMaintenance ends the maintenance as failed, ContinueAnyway goes on without the hook.
const (
	FailMaintenance OnFailure = "fail"
	ContinueAnyway  OnFailure = "continue"
)

// Hook is what a workflow has to know of a hook. It holds no secrets.
type Hook struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Blocking: the maintenance waits for the hook.
	Blocking bool `json:"blocking"`
	// Deadline is the time after the call at which the hook has failed.
	Deadline period.Duration `json:"deadline"`
	// HasCleanup: once the hook was called, its cleanup is called at every end of the maintenance.
	HasCleanup bool      `json:"hasClosing"`
	OnFailure  OnFailure `json:"onFailure"`
}
