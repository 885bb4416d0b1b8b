package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"drydock.dev/drydock/rules/spec"
)

// Selection chooses nodes: by one of NodeSelector, Selector, Nodes and All.
type Selection struct {
	// Nodes are the names of the nodes. One that does not exist is waited for by nobody, and told in the warnings.
	Nodes []string `json:"nodes,omitempty" jsonschema:"maxItems=15000,uniqueItems=true,format=node"`
	// Selector is a label selector of the nodes. Nodes that come to match are taken in; those that cease to match are left alone.
	Selector string `json:"selector,omitempty" jsonschema_extras:"x-flag=selector"`
	// NodeSelector chooses nodes by `nodeSelectorTerms`, as a pod's node affinity does, `matchFields` included.
	NodeSelector *corev1.NodeSelector `json:"nodeSelector,omitempty"`
	// All chooses every node of the cluster, control-plane nodes included.
	All bool `json:"all,omitempty" jsonschema_extras:"x-flag=all"`
	// Exclude are names of nodes that are left alone, whatever chooses them. `plan create` warns of those that no node has.
	Exclude []string `json:"exclude,omitempty" jsonschema:"maxItems=15000,uniqueItems=true,format=node" jsonschema_extras:"x-flag=exclude"`
}

// Check returns what is wrong with the selection; the error joins one line per wrong field.
func (s Selection) Check() error {
	var wrong problems
	s.validate(&wrong)
	return wrong.joined()
}

func (s Selection) validate(wrong *problems) {
	ways := 0
	for _, given := range []bool{s.NodeSelector != nil, s.Selector != "", len(s.Nodes) > 0, s.All} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		wrong.add("nodes", "want exactly one of nodes, selector, nodeSelector and all, and there are %d", ways)
	}
	if _, err := labels.Parse(s.Selector); err != nil {
		wrong.check("selector", err)
	}
	if s.NodeSelector != nil {
		if _, err := nodeaffinity.NewNodeSelector(s.NodeSelector); err != nil {
			wrong.check("nodeSelector", err)
		} else if len(s.NodeSelector.NodeSelectorTerms) == 0 {
			wrong.add("nodeSelector.nodeSelectorTerms", "is empty, so that no node would match: say all for every node")
		}
	}
	for _, list := range []struct {
		field string
		names []string
	}{{"nodes", s.Nodes}, {"exclude", s.Exclude}} {
		validateNames(wrong, list.field, list.names)
	}
}

func validateNames(wrong *problems, field string, names []string) {
	if len(names) > MaxNodes {
		wrong.add(field, "has %d entries: at most %d are taken", len(names), MaxNodes)
	}
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", field, i)
		wrong.check(at, spec.NodeName(name))
		if seen[name] {
			wrong.add(at, "%q is named twice", name)
		}
		seen[name] = true
	}
}

// Matcher returns the function that reports whether a node is chosen. It uses names and labels only.
func (s Selection) Matcher() (func(*corev1.Node) bool, error) {
	selector, err := labels.Parse(s.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector: %w", err)
	}
	var terms *nodeaffinity.NodeSelector
	if s.NodeSelector != nil {
		if terms, err = nodeaffinity.NewNodeSelector(s.NodeSelector); err != nil {
			return nil, fmt.Errorf("nodeSelector: %w", err)
		}
	}
	names, excluded := setOf(s.Nodes), setOf(s.Exclude)
	return func(node *corev1.Node) bool {
		return !excluded[node.Name] && (len(names) == 0 || names[node.Name]) &&
			selector.Matches(labels.Set(node.Labels)) && (terms == nil || terms.Match(node))
	}, nil
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// Reach is how much of a cluster a plan matches.
type Reach struct {
	// All counts the nodes of the cluster, Matching those of them that the plan matches; so do the others for control-plane
	// nodes.
	All, Matching                       int
	ControlPlanes, MatchingControlPlane int
	// Missing are names that no node has, the first of them; MoreMissing counts the rest.
	Missing     []string
	MoreMissing int
}

// Warnings say what somebody may not have meant.
func (r Reach) Warnings() []string {
	var all []string
	if r.Matching == r.All && r.All > 1 {
		all = append(all, fmt.Sprintf("these are all %d nodes of the cluster", r.All))
	}
	if r.ControlPlanes > 0 && r.MatchingControlPlane == r.ControlPlanes {
		all = append(all, fmt.Sprintf("every control-plane node is among them (%d)", r.ControlPlanes))
	}
	if len(r.Missing) > 0 {
		text := "there are no nodes of these names: " + strings.Join(r.Missing, ", ")
		if r.MoreMissing > 0 {
			text += fmt.Sprintf(" and %d more", r.MoreMissing)
		}
		all = append(all, text)
	}
	return all
}
