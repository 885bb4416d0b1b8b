package health

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	rules "drydock/rules/health"
)

// maxMemberships bounds the sets of checks that are told of: each is a refusal, and the rest follows once these are settled.
const maxMemberships = 200

func labelsOf(node *corev1.Node) labels.Set { return labels.Set(node.Labels) }

// overlaps are the sets of checks that select a same node, with the first node of each.
func overlaps(sights []*sight) *Overlaps {
	by := map[string][]string{}
	for _, s := range sights {
		for node := range s.selected {
			by[node] = append(by[node], s.in.Name)
		}
	}
	first := map[string]rules.Membership{}
	for node, checks := range by {
		if len(checks) < 2 {
			continue
		}
		slices.Sort(checks)
		key := strings.Join(checks, "/")
		if known, ok := first[key]; !ok || node < known.Node {
			first[key] = rules.Membership{Node: node, Checks: checks}
		}
	}
	if len(first) == 0 {
		return &Overlaps{}
	}
	all := &Overlaps{}
	for _, key := range slices.Sorted(maps.Keys(first)) {
		if len(all.Memberships) < maxMemberships {
			all.Memberships = append(all.Memberships, first[key])
		}
	}
	all.Digest = hashOf(all.Memberships)
	return all
}
