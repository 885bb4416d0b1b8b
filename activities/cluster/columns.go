package cluster

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// FactColumns are the facts on nodes in the order of the request. The names are not repeated: thousands
// of them are nearly a payload by themselves.
type FactColumns struct {
	// Kinds are the sets of groups that occur, and Kind is the one of each node; -1 is a node that is missing.
	Kinds       [][]string `json:"kinds"`
	Kind        []int      `json:"kind"`
	Unavailable []int      `json:"unavailable,omitempty"`
	// Suggestions are by the place of the missing node.
	Suggestions map[int]string `json:"suggestions,omitempty"`
}

// missingKind is the FactColumns.Kind of a node that does not exist.
const missingKind = -1

// Pack turns the facts on these nodes into columns where they are many.
func (o Observed) Pack(names []string) Observed {
	if len(names) <= api.PackAbove {
		return o
	}
	c := &FactColumns{Kind: make([]int, len(names)), Suggestions: map[int]string{}}
	kinds := map[string]int{}
	for i, name := range names {
		facts := o.Observation.Facts[name]
		if facts.Missing {
			c.Kind[i] = missingKind
			if facts.Suggestion != "" {
				c.Suggestions[i] = facts.Suggestion
			}
			continue
		}
		key := strings.Join(facts.Groups, "\n")
		kind, known := kinds[key]
		if !known {
			kind = len(c.Kinds)
			kinds[key] = kind
			c.Kinds = append(c.Kinds, facts.Groups)
		}
		c.Kind[i] = kind
		if facts.Unavailable {
			c.Unavailable = append(c.Unavailable, i)
		}
	}
	o.Columns, o.Observation.Facts = c, nil
	return o
}

// Unpack is the inverse of Pack, with the same names.
func (o Observed) Unpack(names []string) (Observed, error) {
	c := o.Columns
	if c == nil {
		return o, nil
	}
	if len(c.Kind) != len(names) {
		return o, fmt.Errorf("facts on %d nodes instead of %d", len(c.Kind), len(names))
	}
	all := make(map[string]schedule.NodeFacts, len(names))
	for i, kind := range c.Kind {
		switch {
		case kind == missingKind:
			all[names[i]] = schedule.NodeFacts{Missing: true, Suggestion: c.Suggestions[i]}
		case kind < 0 || kind >= len(c.Kinds):
			return o, fmt.Errorf("node %s is of kind %d of %d", names[i], kind, len(c.Kinds))
		default:
			all[names[i]] = schedule.NodeFacts{Groups: c.Kinds[kind]}
		}
	}
	for _, i := range c.Unavailable {
		if i < 0 || i >= len(names) {
			return o, fmt.Errorf("node %d of %d is unavailable", i, len(names))
		}
		facts := all[names[i]]
		facts.Unavailable = true
		all[names[i]] = facts
	}
	o.Columns, o.Observation.Facts = nil, all
	return o, nil
}
