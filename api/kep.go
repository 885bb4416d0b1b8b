package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
)

// KEPNodeMaintenance is a plan in the shape of KEP-4212's object of that name.
type KEPNodeMaintenance struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Metadata   KEPMetadata `json:"metadata"`
	Spec       KEPSpec     `json:"spec"`
	Status     KEPStatus   `json:"status"`
}

// KEPMetadata names a NodeMaintenance. Its annotation drydock.dev/more-nodes counts the nodes that the status leaves out, and
// drydock.dev/include names the pod types whose standard entries the drain plan has, where they are not all.
type KEPMetadata struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// KEPSpec is NodeMaintenanceSpec.
type KEPSpec struct {
	NodeSelector *corev1.NodeSelector `json:"nodeSelector"`
	Stage        Stage                `json:"stage"`
	DrainPlan    []KEPEntry           `json:"drainPlan"`
	Reason       string               `json:"reason,omitempty"`
}

// KEPEntry is DrainPlanEntry.
type KEPEntry struct {
	PodPriority int32                 `json:"podPriority"`
	PodType     drainplan.PodType     `json:"podType"`
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
}

// KEPStatus is NodeMaintenanceStatus.
type KEPStatus struct {
	StageStatuses []KEPStage         `json:"stageStatuses"`
	NodeStatuses  []KEPNode          `json:"nodeStatuses"`
	Conditions    []metav1.Condition `json:"conditions"`
}

// KEPStage is StageStatus.
type KEPStage struct {
	Name           Stage     `json:"name"`
	StartTimestamp time.Time `json:"startTimestamp"`
}

// KEPNode is NodeMaintenanceNodeStatus.
type KEPNode struct {
	NodeRef               KEPNodeRef `json:"nodeRef"`
	PodsPendingEvacuation int        `json:"podsPendingEvacuation"`
	PodsEvacuating        int        `json:"podsEvacuating"`
	DrainMessage          string     `json:"drainMessage,omitempty"`
	DrainTargets          []KEPEntry `json:"drainTargets,omitempty"`
}

// KEPNodeRef is NodeReference.
type KEPNodeRef struct {
	Name string `json:"name"`
}

// MoreNodesAnnotation counts the nodes that a NodeMaintenance leaves out.
const MoreNodesAnnotation = "drydock.dev/more-nodes"

// KEPOf is a plan of strategy allAtOnce in the shape of KEP-4212.
func KEPOf(p Plan) KEPNodeMaintenance {
	annotations := map[string]string{}
	m := KEPNodeMaintenance{APIVersion: "v1alpha1", Kind: "NodeMaintenance", Metadata: KEPMetadata{Name: p.Name, Annotations: annotations}}
	if p.MoreNodes > 0 {
		annotations[MoreNodesAnnotation] = strconv.Itoa(p.MoreNodes)
	}
	if s := p.Spec; s != nil && s.DrainPlan != nil && len(s.DrainPlan.Include) < len(drainplan.Types()) {
		var types []string
		for _, podType := range s.DrainPlan.Include {
			types = append(types, string(podType))
		}
		annotations[plan.IncludeAnnotation] = strings.Join(types, ",")
	}
	s := *p.Stages
	m.Spec = KEPSpec{NodeSelector: nodeSelectorOf(p), Stage: s.Stage, DrainPlan: kepEntries(s.Tiers), Reason: p.Reason}
	m.Status = KEPStatus{StageStatuses: []KEPStage{}, NodeStatuses: []KEPNode{}, Conditions: []metav1.Condition{drained(s)}}
	for _, b := range s.Begun {
		m.Status.StageStatuses = append(m.Status.StageStatuses, KEPStage{Name: b.Stage, StartTimestamp: b.At})
	}
	for _, n := range p.Nodes {
		status := KEPNode{NodeRef: KEPNodeRef{n.Node}, DrainMessage: n.Note}
		if d := n.Drain; d != nil {
			status.PodsPendingEvacuation, status.PodsEvacuating, status.DrainTargets = d.Pending, d.Evacuating, kepEntries(d.Targets)
		}
		m.Status.NodeStatuses = append(m.Status.NodeStatuses, status)
	}
	return m
}

func drained(s PlanStages) metav1.Condition {
	c := metav1.Condition{Type: "Drained", Status: metav1.ConditionFalse, Reason: "DrainNotRequested", Message: s.Drained.Message}
	switch {
	case s.Drained.Status:
		c.Status, c.Reason = metav1.ConditionTrue, "Drained"
	case s.Stage == StageDrain:
		c.Reason = "Draining"
	}
	if c.LastTransitionTime = metav1.NewTime(s.Drained.Since); s.Drained.Since.IsZero() && len(s.Begun) > 0 {
		c.LastTransitionTime = metav1.NewTime(s.Begun[0].At)
	}
	return c
}

func kepEntries(entries []drainplan.Entry) []KEPEntry {
	var all []KEPEntry
	for _, e := range entries {
		all = append(all, KEPEntry{PodPriority: e.PodPriority, PodType: e.PodType, PodSelector: labelSelectorOf(e.PodSelector)})
	}
	return all
}

// labelSelectorOf is a selector's text as an object; nil if it selects all, or is none.
func labelSelectorOf(text string) *metav1.LabelSelector {
	requirements, err := labels.ParseToRequirements(text)
	if err != nil || len(requirements) == 0 {
		return nil
	}
	operators := map[selection.Operator]metav1.LabelSelectorOperator{
		selection.In: metav1.LabelSelectorOpIn, selection.NotIn: metav1.LabelSelectorOpNotIn, selection.NotEquals: metav1.LabelSelectorOpNotIn,
		selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
	}
	s := &metav1.LabelSelector{}
	for _, r := range requirements {
		values := slices.Sorted(maps.Keys(r.Values()))
		if op := r.Operator(); op == selection.Equals || op == selection.DoubleEquals {
			if s.MatchLabels == nil {
				s.MatchLabels = map[string]string{}
			}
			s.MatchLabels[r.Key()] = values[0]
			continue
		}
		operator, known := operators[r.Operator()]
		if !known {
			operator = metav1.LabelSelectorOperator(r.Operator()) // gt and lt, which the KEP's selectors lack
		}
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: operator, Values: values})
	}
	return s
}

// without is a selector whose terms all leave some nodes alone.
func without(selector corev1.NodeSelector, names []string) *corev1.NodeSelector {
	if len(names) == 0 {
		return &selector
	}
	var all corev1.NodeSelector
	for _, term := range selector.NodeSelectorTerms {
		term.MatchFields = append(slices.Clone(term.MatchFields), corev1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: names,
		})
		all.NodeSelectorTerms = append(all.NodeSelectorTerms, term)
	}
	return &all
}

func nodeSelectorOf(p Plan) *corev1.NodeSelector {
	if p.Spec == nil {
		return nil
	}
	chosen := p.Spec.Selection
	if chosen.NodeSelector != nil {
		return without(*chosen.NodeSelector, chosen.Exclude)
	}
	var term corev1.NodeSelectorTerm
	if requirements, err := labels.ParseToRequirements(chosen.Selector); err == nil {
		operators := map[selection.Operator]corev1.NodeSelectorOperator{
			selection.Equals: corev1.NodeSelectorOpIn, selection.DoubleEquals: corev1.NodeSelectorOpIn, selection.In: corev1.NodeSelectorOpIn,
			selection.NotIn: corev1.NodeSelectorOpNotIn, selection.NotEquals: corev1.NodeSelectorOpNotIn, selection.Exists: corev1.NodeSelectorOpExists,
			selection.DoesNotExist: corev1.NodeSelectorOpDoesNotExist, selection.GreaterThan: corev1.NodeSelectorOpGt, selection.LessThan: corev1.NodeSelectorOpLt,
		}
		for _, r := range requirements {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: r.Key(), Operator: operators[r.Operator()], Values: slices.Sorted(maps.Keys(r.Values())),
			})
		}
	}
	if chosen.All && len(chosen.Exclude) == 0 {
		// A term that says nothing would choose no node.
		term.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{""}}}
	}
	for _, names := range []struct {
		operator corev1.NodeSelectorOperator
		names    []string
	}{{corev1.NodeSelectorOpIn, chosen.Nodes}, {corev1.NodeSelectorOpNotIn, chosen.Exclude}} {
		if len(names.names) > 0 {
			term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: names.operator, Values: names.names})
		}
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
}
