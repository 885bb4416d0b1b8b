// Package checks asks whether a node is well, calls hooks around a maintenance, and does the work on a node. What is called is defined in
// the worker's configuration: the input of a maintenance can only name it. Each kind of check, hook and work is a package below this one,
// which imports none of them: package kinds lists them.
package checks

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/sections"
)

// Config are the checks, hooks and works that maintenances may name.
type Config struct {
	Checks Checks `json:"checks,omitempty"`
	Hooks  Hooks  `json:"hooks,omitempty"`
	Work   Works  `json:"work,omitempty"`
	// Prometheus is what all checks of kind prometheus share.
	Prometheus Section `json:"prometheus,omitzero"`
	// NodeAddresses are where requests may go whose host a node decides. They are the worker's, and no part of this section.
	NodeAddresses outbound.NodeAddresses `json:"-"`
}

// Decode reads what is undecoded strictly; the error begins every line with the field.
func (c *Config) Decode(kinds Kinds) error {
	return errors.Join(c.Checks.decode(kinds), c.Hooks.decode(kinds), c.Work.decode(kinds), c.Prometheus.decode("prometheus", kinds))
}

// Checks are checks by name.
type Checks map[string]Check

// UnmarshalJSON reads the names; Config.Decode reads the checks themselves.
func (c *Checks) UnmarshalJSON(data []byte) error {
	all, err := sections.Decode[Check]("checks", data)
	*c = all
	return err
}

func (c Checks) decode(kinds Kinds) error {
	return sections.DecodeEach("checks", c, func(check *Check) (err error) {
		if check.Undecoded == nil {
			return nil
		}
		check.Actions, err = sections.DecodeKinds(check.Undecoded, &struct{}{}, kinds.checks())
		check.Undecoded, check.kinds = nil, kinds
		return err
	})
}

// Hooks are hooks by name.
type Hooks map[string]Hook

// UnmarshalJSON reads the names; Config.Decode reads the hooks themselves.
func (h *Hooks) UnmarshalJSON(data []byte) error {
	all, err := sections.Decode[Hook]("hooks", data)
	*h = all
	return err
}

func (h Hooks) decode(kinds Kinds) error {
	return sections.DecodeEach("hooks", h, func(hook *Hook) error {
		if hook.Undecoded == nil {
			return nil
		}
		return hook.decode(kinds)
	})
}

// Check is what asks whether a node is well.
type Check struct {
	// Actions are the kinds that it has, with their configuration: exactly one in a valid check.
	Actions []sections.Chosen[Checkable]
	// Undecoded is what was read, until Config.Decode.
	Undecoded sections.Raw

	// kinds are those that it may have, for an error.
	kinds Kinds
}

// UnmarshalJSON keeps the check undecoded.
func (c *Check) UnmarshalJSON(data []byte) error { return c.Undecoded.UnmarshalJSON(data) }

// MarshalJSON writes the check without its secrets.
func (c Check) MarshalJSON() ([]byte, error) {
	if c.Undecoded != nil {
		return c.Undecoded.MarshalJSON()
	}
	return sections.EncodeKinds(struct{}{}, c.Actions)
}

// Hook is what is called, or Signal, and how the maintenance goes along with it.
type Hook struct {
	HookSettings
	// Actions are the kinds that it has, with their configuration: exactly one in a valid hook that is no signal.
	Actions []sections.Chosen[Callable]
	// Undecoded is what was read, until Config.Decode.
	Undecoded sections.Raw

	// kinds are those that it may have, for an error.
	kinds Kinds
}

// HookSettings are what hooks of every kind have.
type HookSettings struct {
	// Signal calls nothing, and waits for somebody's `hook-done`: `{}`.
	Signal *struct{} `json:"signal,omitempty"`
	// Blocking says that the maintenance waits until the hook went well.
	Blocking *bool `json:"blocking,omitempty" jsonschema:"default=true"`
	// Deadline is the time after which the hook has failed.
	Deadline period.Duration `json:"deadline,omitzero" jsonschema:"default=5m"`
	// OnFailure is what becomes of the maintenance when the hook has failed: `fail` fails it, `continue` goes on without the hook. If absent, it
	// is `fail`, and `continue` of a hook that does not block.
	OnFailure validation.OnFailure `json:"onFailure,omitempty" jsonschema:"enum=fail,enum=continue"`
	// Closing undoes the hook at the end of every attempt, but not where the workflow is terminated: one of `http` and `job`.
	Cleanup *Cleanup `json:"closing,omitempty"`
}

// UnmarshalJSON keeps the hook undecoded.
func (h *Hook) UnmarshalJSON(data []byte) error { return h.Undecoded.UnmarshalJSON(data) }

func (h *Hook) decode(kinds Kinds) (err error) {
	h.Actions, err = sections.DecodeKinds(h.Undecoded, &h.HookSettings, kinds.hooks())
	h.Undecoded, h.kinds = nil, kinds
	if err != nil || h.Cleanup == nil {
		return err
	}
	return sections.DecodeObject("closing", h.Cleanup.Undecoded, func(data []byte) (err error) {
		h.Cleanup.Actions, err = sections.DecodeKinds(data, &struct{}{}, kinds.hooks())
		h.Cleanup.Undecoded, h.Cleanup.kinds = nil, kinds
		return err
	})
}

// MarshalJSON writes the hook without its secrets.
func (h Hook) MarshalJSON() ([]byte, error) {
	if h.Undecoded != nil {
		return h.Undecoded.MarshalJSON()
	}
	return sections.EncodeKinds(h.HookSettings, h.Actions)
}

// Cleanup is what undoes a hook; in the configuration it is called closing.
type Cleanup struct {
	// Actions are the kinds that it has, with their configuration: exactly one in a valid cleanup.
	Actions []sections.Chosen[Callable]
	// Undecoded is what was read, until Config.Decode.
	Undecoded sections.Raw

	// kinds are those that it may have, for an error.
	kinds Kinds
}

// UnmarshalJSON keeps the cleanup undecoded.
func (c *Cleanup) UnmarshalJSON(data []byte) error { return c.Undecoded.UnmarshalJSON(data) }

// MarshalJSON writes the cleanup without its secrets.
func (c Cleanup) MarshalJSON() ([]byte, error) {
	if c.Undecoded != nil {
		return c.Undecoded.MarshalJSON()
	}
	return sections.EncodeKinds(struct{}{}, c.Actions)
}

// Section is a section of the configuration that all actions of one kind share.
type Section struct {
	// Shared is nil if there is no such section.
	Shared Shared
	// Undecoded is what was read, until Config.Decode.
	Undecoded sections.Raw
}

// IsZero says that there is no such section.
func (s Section) IsZero() bool { return s.Shared == nil && s.Undecoded == nil }

// UnmarshalJSON keeps the section undecoded.
func (s *Section) UnmarshalJSON(data []byte) error { return s.Undecoded.UnmarshalJSON(data) }

func (s *Section) decode(kind string, kinds Kinds) error {
	at := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == kind })
	if s.Undecoded == nil || at < 0 || kinds[at].Shared == nil {
		return nil
	}
	shared := sections.Like(kinds[at].Shared)
	if err := sections.DecodeObject(kind, s.Undecoded, func(data []byte) error { return spec.DecodeStrict(data, shared) }); err != nil {
		return err
	}
	s.Shared, s.Undecoded = shared, nil
	return nil
}

// MarshalJSON writes the section without its secrets.
func (s Section) MarshalJSON() ([]byte, error) {
	if s.Undecoded != nil {
		return s.Undecoded.MarshalJSON()
	}
	return json.Marshal(s.Shared)
}

// DefaultTimeout bounds one request where the configuration says nothing.
const DefaultTimeout = period.Duration(10 * time.Second)
