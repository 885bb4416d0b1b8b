package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/window"
)

// checkWindows checks the windows, and that the scheduler's limits name none that is not there: nothing would be granted.
func (c Config) checkWindows() []error {
	var problems []error
	if len(c.Windows) > window.MaxWindows {
		problems = append(problems, fmt.Errorf("windows: has %d: want %d at most", len(c.Windows), window.MaxWindows))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Windows)) {
		if err := spec.WindowName(name); err != nil {
			problems = append(problems, fmt.Errorf("windows: %w", err))
		}
		if _, err := c.Windows[name].Compile(); err != nil {
			problems = append(problems, prefixed("windows."+name, err))
		}
	}
	problems = append(problems, c.knownWindows("scheduler.windows", c.Scheduler.Windows)...)
	for i, g := range c.Scheduler.Limits.Groups {
		problems = append(problems, c.knownWindows(fmt.Sprintf("scheduler.groups[%d].windows", i), g.Windows)...)
	}
	return problems
}

func (c Config) knownWindows(field string, names []string) []error {
	known := "which is empty"
	if len(c.Windows) > 0 {
		known = "which has " + strings.Join(slices.Sorted(maps.Keys(c.Windows)), ", ")
	}
	var problems []error
	for i, name := range names {
		if _, there := c.Windows[name]; !there && spec.WindowName(name) == nil {
			problems = append(problems, fmt.Errorf("%s[%d]: there is no window %q in windows, %s", field, i, name, known))
		}
	}
	return problems
}
