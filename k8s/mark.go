package k8s

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
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
	// Prior are the values that protections had before; nil if there was none.
	Prior map[string]*string `json:"prior,omitempty"`
	// Excluded: Drydock excludes the node from medik8s' remediation; nil if it did not.
	Excluded *Excluded `json:"excluded,omitempty"`
	// CordonedBy is the holder that made the node unschedulable; nil in a mark of version 0.1.0.
	CordonedBy *CordonedBy `json:"cordonedBy,omitempty"`
}

// CordonedBy names a maintenance as a Holder does.
type CordonedBy struct {
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
	Run        string `json:"run,omitempty"`
}

// Prior is what a mark says of the node before Drydock came. A maintenance remembers it, because somebody may take the mark off, and the
// node does not show it otherwise.
type Prior struct {
	// UID is the node that it is about.
	UID types.UID `json:"uid"`
	// Cordoned says that the cordon is Drydock's.
	Cordoned bool `json:"cordoned,omitempty"`
	// Protections are the values that they had before; those without one are absent.
	Protections map[string]string `json:"protections,omitempty"`
	Excluded    *Excluded         `json:"excluded,omitempty"`
	// OutOfService says that the taint of that name on the node is the maintenance's.
	OutOfService bool `json:"outOfService,omitempty"`
	// Machine is the Machine of Cluster API that the node is of, "namespace/name"; empty if none was marked for it.
	Machine string `json:"machine,omitempty"`
}

// priorOf is what is remembered of a node that carries a mark.
func priorOf(node *corev1.Node, mark Mark) *Prior {
	p := &Prior{UID: node.UID, Cordoned: mark.Cordoned, Protections: map[string]string{}, Excluded: mark.Excluded}
	for key, value := range mark.Prior {
		if value != nil {
			p.Protections[key] = *value
		}
	}
	return p
}

// remembered returns what a holder is to remember of a node, as this call found it and leaves it with a mark. The memory of the
// holder's own workflow counts before the mark, which everybody who may annotate nodes can write. Where other holders were first,
// their own workflows say whose the cordon is and what the label was (see Confirmed). The protections are the mark's: everybody
// who may write a mark may write them too, and left in place they would keep autoscalers out for good.
func remembered(node *corev1.Node, before, after Mark, in HoldInput) *Prior {
	own := after.index(in.Holder.WorkflowID, in.Holder.RunID)
	p := priorOf(node, after)
	switch others := slices.ContainsFunc(before.Holders, func(h Holder) bool {
		return h.WorkflowID != in.Holder.WorkflowID || h.RunID != in.Holder.RunID
	}); {
	case in.Prior.isAbout(node):
		*p = *in.Prior
		if in.Prior.Cordoned && !after.Cordoned && !node.Spec.Unschedulable {
			p.Cordoned = false // it was lifted, and nobody wants it any more
		}
	case others:
		p = &Prior{UID: node.UID, Cordoned: after.Cordoned && after.isCordonedBy(in.Holder), Protections: map[string]string{}}
		for _, key := range protections {
			value, known := before.Prior[key]
			if !known {
				value = valueOf(node.Annotations, key)
			}
			if value != nil {
				p.Protections[key] = *value
			}
		}
	}
	if own >= 0 {
		p.Cordoned = p.Cordoned || after.Holders[own].Cordon && !node.Spec.Unschedulable // by this call
		p.OutOfService = after.Holders[own].OutOfService
	}
	return p
}

func (m Mark) isCordonedBy(h Holder) bool {
	return m.CordonedBy != nil && m.CordonedBy.WorkflowID == h.WorkflowID && m.CordonedBy.RunID == h.RunID
}

// Confirmed adds what another holder's own workflow says of the node to what a holder remembers.
func (p *Prior) Confirmed(by Prior) *Prior {
	if p == nil || p.UID != by.UID {
		return p
	}
	sum := *p
	sum.Cordoned, sum.Protections, sum.Excluded = p.Cordoned || by.Cordoned, by.Protections, by.Excluded
	return &sum
}

// isAbout reports whether anything is remembered, and is about this very node.
func (p *Prior) isAbout(node *corev1.Node) bool { return p != nil && p.UID == node.UID }

// recall has a mark say what is remembered.
func (p *Prior) recall(mark *Mark) {
	mark.Cordoned, mark.Prior, mark.Excluded = p.Cordoned, map[string]*string{}, p.Excluded
	for _, key := range protections {
		mark.Prior[key] = valueOf(p.Protections, key)
	}
}

// isLeftOn reports whether a node without a mark still shows what Drydock wrote beside the mark. A node that was released does not.
func (p *Prior) isLeftOn(node *corev1.Node) bool {
	if _, labelled := node.Labels[api.PhaseLabel]; labelled || isTainted(node) || p.OutOfService && IsOutOfService(node) {
		return true
	}
	ours := 0
	for _, key := range protections {
		if node.Annotations[key] != "true" {
			return false
		}
		if p.Protections[key] != "true" {
			ours++
		}
	}
	return ours > 0
}

// differences lists what a mark and the memory of its last holder disagree about. The release goes by the memory; where the two
// disagree about the cordon, the node stays cordoned.
func (p *Prior) differences(node *corev1.Node, mark Mark, holder Holder) []string {
	var all []string
	if p.Cordoned != mark.Cordoned && node.Spec.Unschedulable {
		all = append(all, "whose the cordon is, so that the node stays cordoned")
	}
	for _, key := range protections {
		remembered, said := valueOf(p.Protections, key), mark.Prior[key]
		if (remembered == nil) != (said == nil) || remembered != nil && *remembered != *said {
			all = append(all, "the value of "+key)
		}
	}
	if (p.Excluded == nil) != (mark.Excluded == nil) {
		all = append(all, "the label "+ExcludeLabel)
	}
	if holder.OutOfService && !p.OutOfService && IsOutOfService(node) {
		all = append(all, "whose the taint "+OutOfServiceTaint.Key+" is, which stays")
	}
	return all
}

// Holder is one maintenance that holds a node.
type Holder struct {
	WorkflowID string `json:"workflowId"`
	// RunID is the first run of the maintenance's chain, which no reset and no continue-as-new changes. Run is the one
	// that acts for it at present.
	RunID string `json:"runId"`
	Run   string `json:"run,omitempty"`
	// Namespace is the ID of the Temporal namespace that the workflow lives in: another one knows nothing of it.
	Namespace string    `json:"namespace,omitempty"`
	Requestor string    `json:"requestor"`
	Since     time.Time `json:"since"`
	// Cordon says that this holder wants the node unschedulable.
	Cordon bool `json:"cordon"`
	// OutOfService says that the taint OutOfServiceTaint is this holder's.
	OutOfService bool `json:"outOfService,omitempty"`
}

// MarkOf reads a node's mark; a node without one has the zero Mark, and so has one whose mark somebody emptied.
func MarkOf(node *corev1.Node) (Mark, error) {
	var mark Mark
	text, ok := node.Annotations[api.HoldersAnnotation]
	if !ok || strings.TrimSpace(text) == "" {
		return mark, nil
	}
	if err := json.Unmarshal([]byte(text), &mark); err != nil {
		return mark, fmt.Errorf("annotation %s of node %s is not Drydock's: %w", api.HoldersAnnotation, node.Name, err)
	}
	return mark, nil
}

// Caller is on whose behalf a held node is touched: a maintenance, by its workflow ID and the first run of its chain, and
// the run that acts for it. An empty Run acts on behalf of a maintenance that does not run any more.
type Caller struct {
	WorkflowID, RunID, Run string
}

// caller is the holder as one who acts.
func (h Holder) caller() Caller { return Caller{h.WorkflowID, h.RunID, h.Run} }

// HeldBy reports whether a maintenance is among the holders, whichever of its runs acts.
func (m Mark) HeldBy(workflowID, runID string) bool { return m.index(workflowID, runID) >= 0 }

// Allows reports whether a caller may touch the node: ErrNotHolder where its maintenance does not hold it, ErrOtherRun
// where another run acts for that.
func (m Mark) Allows(c Caller) error {
	i := m.index(c.WorkflowID, c.RunID)
	switch {
	case i < 0:
		return ErrNotHolder
	case c.Run != "" && m.Holders[i].Run != c.Run:
		return fmt.Errorf("%w (run %s)", ErrOtherRun, m.Holders[i].Run)
	default:
		return nil
	}
}

// WantsCordon reports whether any holder wants the node unschedulable.
func (m Mark) WantsCordon() bool {
	return slices.ContainsFunc(m.Holders, func(h Holder) bool { return h.Cordon })
}

// keepsCordon reports whether a holder wants no cordon any more while its cordon is in place: it gives in only to
// somebody who has lifted it.
func (m Mark) keepsCordon(node *corev1.Node, holder Holder) bool {
	i := m.index(holder.WorkflowID, holder.RunID)
	return i >= 0 && m.Holders[i].Cordon && !holder.Cordon && node.Spec.Unschedulable
}

func (m Mark) index(workflowID, runID string) int {
	return slices.IndexFunc(m.Holders, func(h Holder) bool { return h.WorkflowID == workflowID && h.RunID == runID })
}

// sameAs reports whether a mark need not be written anew for what its holder wants.
func (h Holder) sameAs(wanted Holder) bool {
	return h.Cordon == wanted.Cordon && h.Run == wanted.Run && h.Namespace == wanted.Namespace && h.OutOfService == wanted.OutOfService
}

// holdPatch adds a holder to a node; it is nil if the node is already as wanted. The mark that it returns is what the
// node carries then. Where the holder's entry is missing, what it remembers is from before.
func holdPatch(node *corev1.Node, mark Mark, in HoldInput) ([]byte, Mark, error) {
	holder := in.Holder
	holder.Cordon = holder.Cordon || mark.keepsCordon(node, holder)
	i := mark.index(holder.WorkflowID, holder.RunID)
	holder.OutOfService = in.Prior.isAbout(node) && in.Prior.OutOfService && mark.isOutOfService(node, i)
	annotations, rewrite := map[string]*string{}, i < 0 || !mark.Holders[i].sameAs(holder)
	labels := map[string]*string{api.PhaseLabel: &in.Phase}
	if len(mark.Holders) == 0 {
		mark.begin(node, in.Exclude, annotations, labels)
	}
	if i < 0 && in.Prior.isAbout(node) {
		mark.recall(in.Prior, holder)
	}
	patch := nodePatch{}
	if holder.Cordon && in.owns(node, mark) {
		// The earlier cordon was lifted or was set for this holder, so that the present one is Drydock's.
		rewrite = rewrite || !mark.Cordoned
		mark.Cordoned, mark.CordonedBy = true, &CordonedBy{holder.WorkflowID, holder.RunID, holder.Run}
		patch["spec"] = map[string]any{"unschedulable": true}
	}
	if !rewrite && len(patch) == 0 {
		return nil, mark, nil
	}
	if i >= 0 && mark.Holders[i].OutOfService && !holder.OutOfService {
		patch.takeOutOfServiceOff(node) // of a run that was reset
	}
	mark.put(i, holder)
	if !node.Spec.Unschedulable && !mark.WantsCordon() {
		mark.Cordoned, mark.CordonedBy = false, nil // the node is schedulable: a later cordon is somebody else's
	}
	if rewrite {
		text, err := json.Marshal(mark)
		if err != nil {
			return nil, mark, err
		}
		annotations[api.HoldersAnnotation] = new(string(text))
	}
	body, err := patch.guarded(node, annotations, labels)
	return body, mark, err
}

// begin takes a node for its first holder: it remembers what it replaces.
func (m *Mark) begin(node *corev1.Node, excludes bool, annotations, labels map[string]*string) {
	m.Cordoned, m.CordonedBy, m.Prior, m.Excluded = false, nil, map[string]*string{}, nil
	for _, key := range protections {
		m.Prior[key] = valueOf(node.Annotations, key)
		annotations[key] = new("true")
	}
	if excludes {
		m.Excluded = exclude(node, labels)
	}
}

// isOutOfService reports whether the holder at a place has the node's taint, or that the node has one where the holder's entry is missing.
func (m *Mark) isOutOfService(node *corev1.Node, i int) bool {
	if i < 0 {
		return IsOutOfService(node)
	}
	return m.Holders[i].OutOfService
}

// put writes a holder over the one at a place, or adds it where that is none.
func (m *Mark) put(i int, h Holder) {
	m.Holders = slices.Clone(m.Holders)
	if i < 0 {
		m.Holders = append(m.Holders, h)
		return
	}
	m.Holders[i].Cordon, m.Holders[i].Run, m.Holders[i].Namespace, m.Holders[i].OutOfService = h.Cordon, h.Run, h.Namespace, h.OutOfService
}

// releasePatch takes a holder off a node and, with the last one, puts back what was before: what the holder remembers, where it
// remembers anything.
func releasePatch(node *corev1.Node, mark Mark, c Caller, prior *Prior, givenBack *GivenBack) ([]byte, error) {
	i := mark.index(c.WorkflowID, c.RunID)
	outOfService := mark.Holders[i].OutOfService && (prior == nil || prior.OutOfService)
	mark.Holders = slices.Delete(slices.Clone(mark.Holders), i, i+1)
	if len(mark.Holders) == 0 {
		if prior != nil {
			cordoned := mark.Cordoned && prior.Cordoned
			prior.recall(&mark)
			mark.Cordoned = cordoned
		}
		return restorePatch(node, mark, outOfService, givenBack)
	}
	annotations, err := mark.annotation()
	if err == nil {
		err = givenBack.addTo(annotations, node)
	}
	if err != nil {
		return nil, err
	}
	patch := nodePatch{}
	if outOfService && !mark.ownsOutOfService() {
		patch.takeOutOfServiceOff(node)
	}
	return patch.guarded(node, annotations, nil)
}

// restorePatch takes the mark off a node and puts back what it says was there before; with outOfService it takes the taint of that name
// off, too.
func restorePatch(node *corev1.Node, mark Mark, outOfService bool, givenBack *GivenBack) ([]byte, error) {
	annotations := map[string]*string{api.HoldersAnnotation: nil}
	if err := givenBack.addTo(annotations, node); err != nil {
		return nil, err
	}
	for _, key := range protections { // a mark may be forged, with other keys
		if value, known := mark.Prior[key]; known {
			annotations[key] = value
		}
	}
	patch := nodePatch{}
	changes := map[string]any{}
	if mark.Cordoned && node.Spec.Unschedulable {
		changes["unschedulable"] = nil
	}
	isOurs := func(t corev1.Taint) bool { return isMaintenanceTaint(t) || outOfService && isOutOfServiceTaint(t) }
	if slices.ContainsFunc(node.Spec.Taints, isOurs) {
		changes["taints"] = slices.DeleteFunc(slices.Clone(node.Spec.Taints), isOurs)
	}
	if len(changes) > 0 {
		patch["spec"] = changes
	}
	labels := map[string]*string{api.PhaseLabel: nil}
	mark.Excluded.restore(node, labels)
	return patch.guarded(node, annotations, labels)
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
