package k8s

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock/api"
)

// protections keep autoscalers from removing a node that is being worked on.
var protections = []string{
	"cluster-autoscaler.kubernetes.io/scale-down-disabled",
	"karpenter.sh/do-not-disrupt",
}

// Mark is the record Drydock keeps on a node: who holds it, and what to put back. It is written in the patch that
// cordons, so that neither is ever there without the other.
type Mark struct {
	Holders []Holder `json:"holders"`
	// Cordoned says that Drydock made the node unschedulable and will undo it; a node that a person had cordoned
	// before stays cordoned.
	Cordoned bool `json:"cordoned"`
	// Prior are the values that protections had before; nil where there was none.
	Prior map[string]*string `json:"prior,omitempty"`
}

// Holder is one maintenance that holds a node.
type Holder struct {
	WorkflowID string    `json:"workflowId"`
	RunID      string    `json:"runId"`
	Requestor  string    `json:"requestor"`
	Since      time.Time `json:"since"`
	// Cordon says that this holder wants the node unschedulable.
	Cordon bool `json:"cordon"`
	// Run is the run that acts for the workflow at present; RunID is the first of its chain.
	Run string `json:"run,omitempty"`
	// Namespace is the ID of the Temporal namespace that the workflow lives in.
	Namespace string `json:"namespace,omitempty"`
}

// MarkOf reads a node's mark; a node without one has the zero Mark.
func MarkOf(node *corev1.Node) (Mark, error) {
	var mark Mark
	text, ok := node.Annotations[api.HoldersAnnotation]
	if !ok {
		return mark, nil
	}
	if err := json.Unmarshal([]byte(text), &mark); err != nil {
		return mark, fmt.Errorf("annotation %s of node %s is not Drydock's: %w", api.HoldersAnnotation, node.Name, err)
	}
	return mark, nil
}

// HeldBy tells whether a run of a workflow is among the holders.
func (m Mark) HeldBy(workflowID, runID string) bool { return m.index(workflowID, runID) >= 0 }

// WantsCordon tells whether any holder wants the node unschedulable.
func (m Mark) WantsCordon() bool {
	return slices.ContainsFunc(m.Holders, func(h Holder) bool { return h.Cordon })
}

// keepsCordon tells whether a holder wants no cordon any more while its cordon is in place: it gives in only to
// somebody who has lifted it.
func (m Mark) keepsCordon(node *corev1.Node, holder Holder) bool {
	i := m.index(holder.WorkflowID, holder.RunID)
	return i >= 0 && m.Holders[i].Cordon && !holder.Cordon && node.Spec.Unschedulable
}

func (m Mark) index(workflowID, runID string) int {
	return slices.IndexFunc(m.Holders, func(h Holder) bool { return h.WorkflowID == workflowID && h.RunID == runID })
}

// holdPatch adds a holder to a node; it is nil where the node is already as wanted.
func holdPatch(node *corev1.Node, mark Mark, holder Holder, phase string) ([]byte, error) {
	if mark.keepsCordon(node, holder) {
		return nil, nil
	}
	annotations := map[string]*string{}
	if len(mark.Holders) == 0 {
		mark.Prior = map[string]*string{}
		for _, key := range protections {
			mark.Prior[key] = valueOf(node.Annotations, key)
			annotations[key] = new("true")
		}
	}
	patch := nodePatch{}
	if holder.Cordon && !node.Spec.Unschedulable {
		// A holder that finds its own cordon lifted sets it again; what was before it came stays on record.
		if !mark.HeldBy(holder.WorkflowID, holder.RunID) {
			mark.Cordoned = true
		}
		patch["spec"] = map[string]any{"unschedulable": true}
	}
	i := mark.index(holder.WorkflowID, holder.RunID)
	if i >= 0 && mark.Holders[i].Cordon == holder.Cordon {
		if len(patch) == 0 {
			return nil, nil
		}
		return patch.guarded(node, nil, map[string]*string{api.PhaseLabel: &phase})
	}
	mark.Holders = slices.Clone(mark.Holders)
	if i >= 0 {
		mark.Holders[i].Cordon = holder.Cordon
	} else {
		mark.Holders = append(mark.Holders, holder)
	}
	if !node.Spec.Unschedulable && !mark.WantsCordon() {
		mark.Cordoned = false // whoever makes it unschedulable now is somebody else
	}
	text, err := json.Marshal(mark)
	if err != nil {
		return nil, err
	}
	annotations[api.HoldersAnnotation] = new(string(text))
	return patch.guarded(node, annotations, map[string]*string{api.PhaseLabel: &phase})
}

// releasePatch takes a holder off a node and, with the last one, puts back what was before.
func releasePatch(node *corev1.Node, mark Mark, workflowID, runID string) ([]byte, error) {
	mark.Holders = slices.Delete(slices.Clone(mark.Holders), mark.index(workflowID, runID), mark.index(workflowID, runID)+1)
	if len(mark.Holders) > 0 {
		text, err := json.Marshal(mark)
		if err != nil {
			return nil, err
		}
		return nodePatch{}.guarded(node, map[string]*string{api.HoldersAnnotation: new(string(text))}, nil)
	}
	annotations := map[string]*string{api.HoldersAnnotation: nil}
	for key, value := range mark.Prior {
		annotations[key] = value
	}
	patch := nodePatch{}
	changes := map[string]any{}
	if mark.Cordoned && node.Spec.Unschedulable {
		changes["unschedulable"] = nil
	}
	if isTainted(node) {
		changes["taints"] = slices.DeleteFunc(slices.Clone(node.Spec.Taints), isMaintenanceTaint)
	}
	if len(changes) > 0 {
		patch["spec"] = changes
	}
	return patch.guarded(node, annotations, map[string]*string{api.PhaseLabel: nil})
}

// nodePatch is a JSON merge patch of a node; null removes.
type nodePatch map[string]any

// guarded completes a patch so that it applies to this very version of this very node only.
func (p nodePatch) guarded(node *corev1.Node, annotations, labels map[string]*string) ([]byte, error) {
	metadata := map[string]any{"resourceVersion": node.ResourceVersion, "uid": node.UID}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	p["metadata"] = metadata
	return json.Marshal(p)
}

func valueOf(m map[string]string, key string) *string {
	if value, ok := m[key]; ok {
		return &value
	}
	return nil
}

const mergePatch = types.MergePatchType
