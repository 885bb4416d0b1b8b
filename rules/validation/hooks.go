package validation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/rules/period"
)

// Hooks are names of hooks in the worker's configuration, called in their order.
type Hooks struct {
	// BeforeCordon are called once the slot is granted and before the node is touched.
	BeforeCordon []string `json:"beforeCordon,omitempty" jsonschema:"maxItems=64,uniqueItems=true,format=label"`
	// AfterDrain are called once the node is empty and before its requestor is notified.
	AfterDrain []string `json:"afterDrain,omitempty" jsonschema:"maxItems=64,uniqueItems=true,format=label"`
	// BeforeRelease are called once the node is validated and before it is given back.
	BeforeRelease []string `json:"beforeRelease,omitempty" jsonschema:"maxItems=64,uniqueItems=true,format=label"`
}

// Validate checks the names; the error joins one line per wrong field.
func (h Hooks) Validate() error {
	var p problems
	p.names("beforeCordon", h.BeforeCordon)
	p.names("afterDrain", h.AfterDrain)
	p.names("beforeRelease", h.BeforeRelease)
	return errors.Join(p...)
}

// Without is the hooks but one.
func (h Hooks) Without(name string) Hooks {
	is := func(other string) bool { return other == name }
	h.BeforeCordon = slices.DeleteFunc(slices.Clone(h.BeforeCordon), is)
	h.AfterDrain = slices.DeleteFunc(slices.Clone(h.AfterDrain), is)
	h.BeforeRelease = slices.DeleteFunc(slices.Clone(h.BeforeRelease), is)
	return h
}

// Empty reports whether no hook is named.
func (h Hooks) Empty() bool { return len(h.BeforeCordon)+len(h.AfterDrain)+len(h.BeforeRelease) == 0 }

// IsZero leaves hooks of which none is named out of JSON.
func (h Hooks) IsZero() bool { return h.Empty() }

// Names are all hooks that are named, sorted, each once.
func (h Hooks) Names() []string {
	all := slices.Concat(h.BeforeCordon, h.AfterDrain, h.BeforeRelease)
	slices.Sort(all)
	return slices.Compact(all)
}

// Field is where in an input a hook is named first, such as hooks.beforeCordon[0].
func (h Hooks) Field(name string) string {
	for _, list := range []struct {
		field string
		names []string
	}{{"beforeCordon", h.BeforeCordon}, {"afterDrain", h.AfterDrain}, {"beforeRelease", h.BeforeRelease}} {
		if i := slices.Index(list.names, name); i >= 0 {
			return fmt.Sprintf("hooks.%s[%d]", list.field, i)
		}
	}
	return "hooks"
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

// DefaultHookDeadline is the deadline of a hook that names none.
const DefaultHookDeadline = period.Duration(5 * time.Minute)

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
