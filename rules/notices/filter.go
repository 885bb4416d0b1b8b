package notices

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Filter chooses the events of a channel. An event has to satisfy every field; an empty field is satisfied by all.
type Filter struct {
	// Events are the [states and notices](#lifecycle-states) that are delivered, those of plans and of [health checks](#health-checks) among them.
	// If absent, all are.
	Events []State `json:"events,omitempty"`
	// Requestors are names, or globs such as `*.example.com`, of whose maintenances events are delivered. If absent, of all.
	Requestors []string `json:"requestors,omitempty"`
	// Groups are values of this file's `scheduler.groups`, such as `gpu` or `zone[topology.kubernetes.io/zone=a]`, of which the node has to be
	// in one. Others are refused. If absent, it may be in any or in none.
	Groups []string `json:"groups,omitempty"`
}

// Wants says whether the event passes.
func (f Filter) Wants(e Event) bool {
	return (len(f.Events) == 0 || slices.Contains(f.Events, e.State)) &&
		(len(f.Requestors) == 0 || slices.ContainsFunc(f.Requestors, func(p string) bool { return matches(p, e.Requestor) })) &&
		(len(f.Groups) == 0 || slices.ContainsFunc(f.Groups, func(g string) bool { return slices.Contains(e.Groups, g) }))
}

// matches counts a glob that is none as no match: Validate has refused it.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return pattern == name || err == nil && ok
}

// stateNames lists all states.
func stateNames() string {
	var names []string
	for _, s := range States() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// Validate joins one error per wrong entry, which begins with the entry's field.
func (f Filter) Validate() error {
	var problems []error
	for i, s := range f.Events {
		if !slices.Contains(States(), s) {
			problems = append(problems, fmt.Errorf("events[%d]: %q is not one of %s", i, s, stateNames()))
		}
	}
	for i, pattern := range f.Requestors {
		if _, err := path.Match(pattern, ""); pattern == "" || err != nil {
			problems = append(problems, fmt.Errorf("requestors[%d]: %q: want a name or a glob like \"*.example.com\"", i, pattern))
		}
	}
	for i, group := range f.Groups {
		if group == "" {
			problems = append(problems, fmt.Errorf("groups[%d]: is empty: want the value of a scheduler group", i))
		}
	}
	return errors.Join(problems...)
}
