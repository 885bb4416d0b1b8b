package rollout

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Matcher tells of nodes whether the plan chooses them. It looks at their names and labels only.
func (p Plan) Matcher() (func(*corev1.Node) bool, error) {
	selector, err := labels.Parse(p.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector: %w", err)
	}
	var terms *nodeaffinity.NodeSelector
	if p.NodeSelector != nil {
		if terms, err = nodeaffinity.NewNodeSelector(p.NodeSelector); err != nil {
			return nil, fmt.Errorf("nodeSelector: %w", err)
		}
	}
	names, excluded := setOf(p.Nodes), setOf(p.Exclude)
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
