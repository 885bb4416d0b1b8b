package health

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	rules "drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/nodestate"
)

// terminating is the condition of a node that its cloud takes away.
const terminating corev1.NodeConditionType = "Terminating"

// criteria is how a check looks at a node.
type criteria struct {
	check      string
	selector   labels.Selector
	conditions []rules.UnhealthyCondition
	groupBy    []string
}

func newCriteria(in WatchInput) (criteria, error) {
	selector, err := labels.Parse(in.Intent.Selector)
	if err == nil && selector.Empty() {
		err = fmt.Errorf("it selects all nodes")
	}
	if err != nil {
		return criteria{}, fmt.Errorf("selector %.300q: %w", in.Intent.Selector, err)
	}
	return criteria{check: in.Check, selector: selector, conditions: in.Intent.Conditions, groupBy: in.Intent.GroupBy}, nil
}

// facts are what the check sees of a node. Where a MachineHealthCheck takes care of nodes that their cloud takes away, these are
// not ill.
func (a *Activities) facts(by criteria, node *corev1.Node, ignoreTerminating bool) rules.Facts {
	f := rules.Facts{
		Name: node.Name, UID: string(node.UID), Group: by.group(node), ControlPlane: nodestate.IsControlPlane(node.Labels),
		CreatedAt: node.CreationTimestamp.UTC(), Upgrading: upgrading(node), UnderMaintenance: a.maintenanceOf(by.check, node),
	}
	f.Exclude, f.Excluded = a.exclusionOf(node)
	_, f.Confirmed = node.Annotations[k8s.ConfirmedAnnotation]
	f.Matches = by.matches(node, ignoreTerminating)
	return f
}

// exclusionOf is the label by which somebody keeps remediators off a node. Drydock's own, while a maintenance holds the node, is none.
func (a *Activities) exclusionOf(node *corev1.Node) (value string, there bool) {
	mark, err := a.Nodes.MarkOf(node)
	if err != nil {
		mark = k8s.Mark{} // it is not known whose label it is: it counts
	}
	return k8s.ExclusionOf(node, mark)
}

func (l criteria) group(node *corev1.Node) string { return rules.GroupOf(node.Labels, l.groupBy) }

// matches are the unhealthy conditions that a node has.
func (l criteria) matches(node *corev1.Node, ignoreTerminating bool) []rules.Match {
	if ignoreTerminating && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == terminating }) {
		return nil
	}
	var found []rules.Match
	for i, unhealthy := range l.conditions {
		if since, has := unhealthy.Since(node); has {
			found = append(found, rules.Match{Index: i, Since: since})
		}
	}
	return found
}

// upgrading says that OpenShift is about to bring a node to another configuration.
func upgrading(node *corev1.Node) string {
	current, desired := node.Annotations[k8s.CurrentConfigAnnotation], node.Annotations[k8s.DesiredConfigAnnotation]
	if desired == "" || desired == current {
		return ""
	}
	return fmt.Sprintf("its configuration changes to %.100s", desired)
}

// maintenanceOf is the workflow ID of a maintenance that holds the node and is no remediation of the check. Those of another Drydock
// count too.
func (a *Activities) maintenanceOf(check string, node *corev1.Node) string {
	mark, err := a.Nodes.MarkOf(node)
	if err != nil {
		return "a mark that cannot be read"
	}
	for _, h := range mark.Holders {
		if _, of, requestor, err := api.ParseMaintenanceID(h.WorkflowID); err == nil && of == node.Name &&
			requestor == api.RemediationRequestor(check) && a.Home.Owns(h) {
			continue
		}
		return h.WorkflowID
	}
	return ""
}

// hashOf changes with what is reported.
func hashOf(value any) string {
	h := fnv.New64a()
	if err := json.NewEncoder(h).Encode(value); err != nil {
		return err.Error() // what is hashed here is plain data
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
