package preflight_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/rules/preflight"
)

func TestBudgetsThatNodesOfAWaveShare(t *testing.T) {
	report := func(node string, budgets ...preflight.Budget) preflight.Report {
		return preflight.Report{Node: node, Budgets: budgets}
	}
	of := func(name string, allowed int32, onNode int) preflight.Budget {
		return preflight.Budget{Budget: name, Allowed: allowed, OnNode: onNode}
	}
	for name, c := range map[string]struct {
		reports []preflight.Report
		want    []preflight.Shared
	}{
		"no reports":               {nil, nil},
		"one node":                 {[]preflight.Report{report("a", of("x/db", 0, 2))}, nil},
		"budgets of their own":     {[]preflight.Report{report("a", of("x/db", 1, 1)), report("b", of("x/web", 1, 1))}, nil},
		"enough for both":          {[]preflight.Report{report("a", of("x/db", 2, 1)), report("b", of("x/db", 2, 1))}, nil},
		"none of it on the second": {[]preflight.Report{report("a", of("x/db", 0, 1)), report("b", of("x/db", 0, 0))}, nil},
		"one after the other": {
			[]preflight.Report{report("a", of("x/web", 0, 1), of("x/db", 1, 1)), report("b", of("x/db", 1, 2)), report("c", of("x/web", 0, 1))},
			[]preflight.Shared{{Budget: "x/db", Nodes: []string{"a", "b"}, Pods: 3, Allowed: 1}, {Budget: "x/web", Nodes: []string{"a", "c"}, Pods: 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, preflight.SharedBudgets(c.reports)); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}
