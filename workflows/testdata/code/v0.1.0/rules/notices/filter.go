package notices

import (
	"errors"
	"fmt"
	"path"
	"slices"
)

// Filter chooses the events of a channel. An event has to satisfy every field; an empty field is satisfied by all.
type Filter struct {
	Events []State `json:"events,omitempty"`
	// Requestors are names or globs such as "*.example.com".
	Requestors []string `json:"requestors,omitempty"`
	// Groups are values of scheduler groups; the node has to be in one of them.
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

// Validate joins one error per wrong entry, which begins with the entry's field.
func (f Filter) Validate() error {
	var problems []error
	for i, s := range f.Events {
		if _, ok := phrases[s]; !ok {
			problems = append(problems, fmt.Errorf("events[%d]: %q is not one of %v", i, s, States()))
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
