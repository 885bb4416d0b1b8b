package check

import (
	"slices"
	"strings"

	"drydock.dev/drydock/rules/profile/state"
)

// index is what checks ask of all nodes at once, found out once for many that ask.
type index struct {
	// maintained are the nodes in maintenance, by name.
	maintained []*Member
	// operational counts nodes by a profile that is so, and unmarked are by a profile that waits for maintenance those without
	// marked pods.
	operational map[string]int
	unmarked    map[string][]*Member
	// versions are the highest versions that were looked for, by label and profile; labelled where labels were found, by key and
	// value.
	versions map[[2]string]highest
	labelled map[[2]string]*Member
}

func (v *View) indexed() *index {
	if v.index != nil {
		return v.index
	}
	v.index = &index{
		operational: map[string]int{}, unmarked: map[string][]*Member{},
		versions: map[[2]string]highest{}, labelled: map[[2]string]*Member{},
	}
	for _, m := range v.members {
		if m.Maintained() {
			v.index.maintained = append(v.index.maintained, m)
		}
		for _, profile := range m.In(state.Operational) {
			v.index.operational[profile]++
		}
		if v.Marked[m.Name] {
			continue
		}
		for _, profile := range m.In(state.Required) {
			v.index.unmarked[profile] = append(v.index.unmarked[profile], m)
		}
	}
	return v.index
}

// maintain notes a node that was granted.
func (x *index) maintain(m *Member) {
	at, _ := slices.BinarySearchFunc(x.maintained, m, func(a, b *Member) int { return strings.Compare(a.Name, b.Name) })
	x.maintained = slices.Insert(x.maintained, at, m)
}

// withLabel is the first node with a label, of any value where that is empty; nil if there is none.
func (v *View) withLabel(key, value string) *Member {
	x := v.indexed()
	found, known := x.labelled[[2]string{key, value}]
	if known {
		return found
	}
	at := slices.IndexFunc(v.members, func(m *Member) bool {
		is, there := m.Labels[key]
		return there && (value == "" || is == value)
	})
	if at >= 0 {
		found = v.members[at]
	}
	x.labelled[[2]string{key, value}] = found
	return found
}
