package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
)

// checkDefaults checks the defaults of maintenances, and that what they name is configured: a name that is not would fail
// every maintenance.
func (c Config) checkDefaults() []error {
	if len(c.Defaults) == 0 {
		return nil
	}
	var problems []error
	if err := spec.CheckDefaults(c.Defaults); err != nil {
		problems = append(problems, prefixed("defaults", err))
	}
	var given struct {
		Notify     []string         `json:"notify"`
		Windows    []string         `json:"windows"`
		Hooks      validation.Hooks `json:"hooks"`
		Work       string           `json:"work"`
		Validation struct {
			Checks []string `json:"checks"`
		} `json:"validation"`
	}
	// What is of another type is left out, and CheckDefaults has refused it.
	_ = json.Unmarshal(c.Defaults, &given)
	problems = append(problems, missing("notify", "channel", "channels", given.Notify, c.Channels)...)
	problems = append(problems, missing("windows", "window", "windows", given.Windows, c.Windows)...)
	problems = append(problems, missing("validation.checks", "check", "checks", given.Validation.Checks, c.Checks)...)
	for _, hooks := range []struct {
		field string
		names []string
	}{
		{"hooks.beforeCordon", given.Hooks.BeforeCordon}, {"hooks.afterDrain", given.Hooks.AfterDrain},
		{"hooks.beforeRelease", given.Hooks.BeforeRelease},
	} {
		problems = append(problems, missing(hooks.field, "hook", "hooks", hooks.names, c.Hooks)...)
	}
	if _, ok := c.Work[given.Work]; given.Work != "" && !ok {
		problems = append(problems, fmt.Errorf("defaults.work: there is no work %q in work, %s", given.Work, known(c.Work)))
	}
	return problems
}

// missing are the names of a field of the defaults that are not in a section.
func missing[T any](field, kind, section string, names []string, have map[string]T) []error {
	var problems []error
	for i, name := range names {
		if _, ok := have[name]; !ok {
			problems = append(problems, fmt.Errorf("defaults.%s[%d]: there is no %s %q in %s, %s", field, i, kind, name, section, known(have)))
		}
	}
	return problems
}

// known says what a section has.
func known[T any](have map[string]T) string {
	if len(have) == 0 {
		return "which is empty"
	}
	return "which has " + strings.Join(slices.Sorted(maps.Keys(have)), ", ")
}
