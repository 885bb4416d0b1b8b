package schedule

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// noValue stands for a label that a node lacks or leaves empty. No label value contains angle brackets.
const noValue = "<none>"

// Grouper finds the groups that a node belongs to. The zero Grouper knows no groups. It is safe for concurrent use.
type Grouper struct {
	groups []compiledGroup
}

type compiledGroup struct {
	name     string
	selector labels.Selector
	groupBy  []string
}

// NewGrouper compiles the groups of valid limits. The error names the group whose selector does not parse.
func NewGrouper(groups []Group) (Grouper, error) {
	compiled := make([]compiledGroup, 0, len(groups))
	for i, g := range groups {
		selector, err := labels.Parse(g.NodeSelector)
		if err != nil {
			return Grouper{}, fmt.Errorf("%s.nodeSelector: %q is not a label selector: %w", groupField(i), g.NodeSelector, err)
		}
		compiled = append(compiled, compiledGroup{name: g.Name, selector: selector, groupBy: g.GroupBy})
	}
	return Grouper{groups: compiled}, nil
}

// Keys returns the keys of the groups that a node with these labels belongs to, in the order of the groups: the
// name of the group, followed where it has GroupBy by the values that set the node's part of it apart, as in
// zone[topology.kubernetes.io/zone=a].
func (g Grouper) Keys(nodeLabels map[string]string) []string {
	var keys []string
	for _, group := range g.groups {
		if group.selector.Matches(labels.Set(nodeLabels)) {
			keys = append(keys, group.key(nodeLabels))
		}
	}
	return keys
}

func (g compiledGroup) key(nodeLabels map[string]string) string {
	if len(g.groupBy) == 0 {
		return g.name
	}
	var b strings.Builder
	b.WriteString(g.name)
	separator := byte('[')
	for _, label := range g.groupBy {
		b.WriteByte(separator)
		separator = ','
		b.WriteString(label)
		b.WriteByte('=')
		if value := nodeLabels[label]; value != "" {
			b.WriteString(value)
		} else {
			b.WriteString(noValue)
		}
	}
	b.WriteByte(']')
	return b.String()
}

// GroupName is the Group.Name in a key of Grouper.Keys. Names hold no bracket, so the key has one reading.
func GroupName(key string) string {
	name, _, _ := strings.Cut(key, "[")
	return name
}
