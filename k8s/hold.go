package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/kube"
)

// Conditions of a node that callers distinguish.
var (
	// ErrNodeGone: there is no node of that name.
	ErrNodeGone = errors.New("the node does not exist")
	// ErrNodeReplaced: a node of that name exists, but it is not the one that was held.
	ErrNodeReplaced = errors.New("the node was deleted and created anew under the same name")
	// ErrNotHolder: the node does not carry the caller's mark.
	ErrNotHolder = errors.New("the node does not carry this maintenance's mark")
	// ErrOtherRun: the node carries the mark, and another run of the maintenance acts for it.
	ErrOtherRun = errors.New("another run of this maintenance holds the node")
)

// HoldInput asks for a node to be marked, and cordoned if the holder wants that.
type HoldInput struct {
	Node string
	// UID is the node that was held before; empty accepts any.
	UID    types.UID
	Holder Holder
	Phase  string
	// TakeOver: the caller knows that its run is the one that acts now, whichever the mark names.
	TakeOver bool
	// Prior is what the holder remembers of the node; nil if it holds it for the first time.
	Prior *Prior
	// ChecksReleases: the caller has yet to check the releases that the node records.
	ChecksReleases bool
	// Exclude has medik8s' remediators leave the node alone, in addition to the first holder's mark.
	Exclude bool
	// TakesCordon: a cordon that the first holder finds is its own, which another system has set for it.
	TakesCordon bool
	// Read is the node as it was read a moment ago, once; nil reads it now.
	Read *Reading
}

// owns reports whether a cordon from now on is the holder's: there is none before, or it was set for it.
func (in HoldInput) owns(node *corev1.Node, before Mark) bool {
	return !node.Spec.Unschedulable || in.TakesCordon && len(before.Holders) == 0
}

// Cordons find out who made nodes unschedulable.
type Cordons interface {
	// Left reports whether a maintenance that is no holder any more made the node unschedulable, by its own workflow, and left the
	// cordon to the last holder.
	Left(ctx context.Context, by CordonedBy, node types.UID) (bool, error)
}

// Held says how a node was found when it was marked.
type Held struct {
	UID    types.UID
	BootID string
	// Mark is the text of the mark on the node.
	Mark string
	// Changed: this call wrote the mark or the cordon. Again: the mark was there and the cordon had been lifted.
	Changed, Again bool
	// WasUnschedulable: the node was unschedulable before Drydock came.
	WasUnschedulable bool
	// Cordon: the holder's mark wants the node unschedulable.
	Cordon bool
	// Prior is what the holder is to remember of the node. Others, where it holds it for the first time, are who held it before,
	// and may have changed it: what of that is to be undone they have to say.
	Prior  *Prior
	Others []Holder
}

// Hold marks a node and cordons it. It is idempotent: a node that is already as wanted is left alone. Errors: ErrNodeGone,
// ErrNodeReplaced, ErrOtherRun, ErrGivenBack.
func Hold(ctx context.Context, client kube.Interface, in HoldInput) (Held, error) {
	var held Held
	read := in.Read
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if read == nil {
			read = ReadAhead(ctx, client, in.Node)
		}
		node, err := read.wait()
		read = nil // a conflict says that it is out of date
		if err != nil {
			return notFound(err)
		}
		mark, err := MarkOf(node)
		if err != nil {
			return err
		}
		if in.UID != "" && node.UID != in.UID {
			return fmt.Errorf("node %s: %w", in.Node, ErrNodeReplaced)
		}
		if err := mark.Allows(in.Holder.caller()); errors.Is(err, ErrOtherRun) && !in.TakeOver {
			return err
		}
		mine := mark.HeldBy(in.Holder.WorkflowID, in.Holder.RunID)
		if err := in.checkReleases(node, mine); err != nil {
			return err
		}
		held = Held{
			UID: node.UID, BootID: node.Status.NodeInfo.BootID,
			Mark:   node.Annotations[api.HoldersAnnotation],
			Again:  mine && in.Holder.Cordon && !node.Spec.Unschedulable,
			Cordon: in.Holder.Cordon || mark.keepsCordon(node, in.Holder),
		}
		patch, after, err := holdPatch(node, mark, in)
		held.Prior, held.WasUnschedulable = remembered(node, mark, after, in), node.Spec.Unschedulable && !after.Cordoned
		if !in.Prior.isAbout(node) {
			held.Others = slices.DeleteFunc(slices.Clone(mark.Holders), func(h Holder) bool {
				return h.WorkflowID == in.Holder.WorkflowID && h.RunID == in.Holder.RunID
			})
		}
		if err != nil || patch == nil {
			return err
		}
		written, err := client.CoreV1().Nodes().Patch(ctx, in.Node, mergePatch, patch, metav1.PatchOptions{})
		if err == nil {
			held.Changed, held.Mark = true, written.Annotations[api.HoldersAnnotation]
		}
		return err
	})
	if err != nil {
		return Held{}, fmt.Errorf("marking node %s: %w", in.Node, notFound(err))
	}
	return held, nil
}

// Released says what a release found.
type Released struct {
	// Gone: there is no such node. Foreign: the caller held nothing, so nothing was changed.
	Gone, Foreign bool
	// Stripped: somebody had taken the mark off, and what Drydock changed was put back as the caller remembered it.
	Stripped bool
	// Uncordoned: the node is schedulable again by this call.
	Uncordoned bool
	// OtherHolders still hold the node, so it stays as it is.
	OtherHolders []string
	UID          types.UID
	// Differences are what the mark says otherwise than the caller remembers.
	Differences []string
}

// Known is what a release relies on: everybody who may annotate nodes can write a mark.
type Known struct {
	// Prior is what the caller's own workflow remembers, and decides what is put back; nil remembers nothing, as before its first
	// hold was answered: then the mark counts.
	Prior *Prior
	// OnlyMarked: the caller has only marked the node. Neither its cordon nor its taint is undone, whatever the mark says.
	OnlyMarked bool
	// Stripped puts back what is remembered where nobody's mark is on the node, too.
	Stripped bool
	// Cordons find out who made the node unschedulable; nil believes nobody.
	Cordons Cordons
	// GivenBack is what the node records of the release; nil records nothing.
	GivenBack *GivenBack
}

// recall is what is remembered of a node with a mark that the caller is the last holder of.
func (k Known) recall(ctx context.Context, node *corev1.Node, mark Mark, c Caller) (*Prior, error) {
	switch {
	case k.OnlyMarked:
		marked := priorOf(node, mark)
		marked.Cordoned = false
		return marked, nil
	case k.Prior == nil:
		return nil, nil
	case !k.Prior.isAbout(node):
		// Of this node nothing is remembered: nothing is undone.
		none := &Prior{UID: node.UID, Protections: map[string]string{}}
		for _, key := range protections {
			if value, there := node.Annotations[key]; there {
				none.Protections[key] = value
			}
		}
		return none, nil
	case k.Prior.Cordoned || !mark.Cordoned || len(mark.Holders) > 1 || k.Cordons == nil || mark.CordonedBy == nil:
		return k.Prior, nil
	case mark.CordonedBy.WorkflowID == c.WorkflowID && mark.CordonedBy.RunID == c.RunID:
		return k.Prior, nil
	}
	cordoned, err := k.Cordons.Left(ctx, *mark.CordonedBy, node.UID)
	if err != nil {
		return nil, err
	}
	sum := *k.Prior
	sum.Cordoned = cordoned
	return &sum, nil
}

// Release takes a holder's mark off a node, which fences all its evictions, and with the last holder puts back what
// Drydock changed: the cordon if it was Drydock's, labels and annotations. It is idempotent; a missing node is fine.
// What is put back is what the caller remembers; what the mark says otherwise is left as it is, and reported.
// Errors: ErrOtherRun.
func Release(ctx context.Context, client kube.Interface, node string, c Caller, known Known) (Released, error) {
	var released Released
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, mark, err := getMarked(ctx, client, node)
		if errors.Is(err, ErrNodeGone) {
			released = Released{Gone: true}
			return nil
		}
		if err != nil {
			return err
		}
		released = Released{UID: n.UID}
		var patch []byte
		switch err = mark.Allows(c); {
		case errors.Is(err, ErrNotHolder):
			prior := known.Prior
			if len(mark.Holders) > 0 || !known.Stripped || !prior.isAbout(n) || !prior.isLeftOn(n) {
				released.Foreign = true
				return nil
			}
			released.Stripped = true
			prior.recall(&mark)
			patch, err = restorePatch(n, mark, prior.OutOfService, known.GivenBack)
		case err == nil:
			var prior *Prior
			if prior, err = known.recall(ctx, n, mark, c); err != nil {
				return err
			}
			if prior != nil && len(mark.Holders) == 1 {
				released.Differences = prior.differences(n, mark, mark.Holders[0])
			}
			patch, err = releasePatch(n, mark, c, prior, known.GivenBack)
		}
		if err != nil {
			return err
		}
		after, err := client.CoreV1().Nodes().Patch(ctx, node, mergePatch, patch, metav1.PatchOptions{})
		if err != nil {
			return err
		}
		released.Uncordoned = n.Spec.Unschedulable && !after.Spec.Unschedulable
		for _, h := range mark.Holders {
			if h.WorkflowID != c.WorkflowID || h.RunID != c.RunID {
				released.OtherHolders = append(released.OtherHolders, h.Requestor)
			}
		}
		return nil
	})
	if apierrors.IsNotFound(err) {
		return Released{Gone: true}, nil
	}
	if err != nil {
		return Released{}, fmt.Errorf("releasing node %s: %w", node, err)
	}
	return released, nil
}

// PhaseInput asks for a phase to be shown on a held node.
type PhaseInput struct {
	Caller
	Node, Phase string
	// Mark is the text of the mark as Hold returned it, empty if it is not known.
	Mark string
}

// SetPhase shows a maintenance's phase in the node's label, as long as the maintenance holds the node. Where the mark
// is still what the caller knows, one request does it; otherwise the node is read first. An empty phase leaves the label.
func SetPhase(ctx context.Context, client kube.Interface, in PhaseInput) (types.UID, error) {
	if in.Phase != "" && in.knows() {
		if node, err := setPhaseUnderMark(ctx, client, in); err == nil {
			return node.UID, nil
		} else if !apierrors.IsInvalid(err) {
			return "", fmt.Errorf("setting the phase of node %s to %s: %w", in.Node, in.Phase, notFound(err))
		}
	}
	var uid types.UID
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, mark, err := getMarked(ctx, client, in.Node)
		if err != nil {
			return err
		}
		uid = node.UID
		if err := mark.Allows(in.Caller); err != nil {
			return err
		}
		if in.Phase == "" || node.Labels[api.PhaseLabel] == in.Phase {
			return nil
		}
		patch, err := nodePatch{}.guarded(node, nil, map[string]*string{api.PhaseLabel: &in.Phase})
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Nodes().Patch(ctx, in.Node, mergePatch, patch, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("setting the phase of node %s to %s: %w", in.Node, in.Phase, notFound(err))
	}
	return uid, nil
}

// knows reports whether the text of the mark is known, and that by it the caller may touch the node.
func (in PhaseInput) knows() bool {
	var mark Mark
	return in.Mark != "" && json.Unmarshal([]byte(in.Mark), &mark) == nil && mark.Allows(in.Caller) == nil
}

// setPhaseUnderMark sets the label on condition that the mark is what the caller knows; the API server answers
// Invalid where it is not.
func setPhaseUnderMark(ctx context.Context, client kube.Interface, in PhaseInput) (*corev1.Node, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/annotations/" + pointer(api.HoldersAnnotation), "value": in.Mark},
		{"op": "add", "path": "/metadata/labels/" + pointer(api.PhaseLabel), "value": in.Phase},
	})
	if err != nil {
		return nil, err
	}
	return client.CoreV1().Nodes().Patch(ctx, in.Node, types.JSONPatchType, patch, metav1.PatchOptions{})
}

// TakeOver has the mark name the caller's run, which the caller knows to be the one that acts for the maintenance now.
// Errors: ErrNodeGone, ErrNotHolder.
func TakeOver(ctx context.Context, client kube.Interface, name string, c Caller) error {
	return changeHeld(ctx, client, name, func(node *corev1.Node, mark Mark) (nodePatch, map[string]*string, error) {
		i := mark.index(c.WorkflowID, c.RunID)
		if i < 0 {
			return nil, nil, ErrNotHolder
		}
		if mark.Holders[i].Run == c.Run {
			return nil, nil, nil
		}
		mark.Holders[i].Run = c.Run
		text, err := json.Marshal(mark)
		return nodePatch{}, map[string]*string{api.HoldersAnnotation: new(string(text))}, err
	})
}

// changeHeld patches a node that carries a mark, as change says; a nil patch changes nothing.
func changeHeld(ctx context.Context, client kube.Interface, name string,
	change func(*corev1.Node, Mark) (patch nodePatch, annotations map[string]*string, err error),
) error {
	return notFound(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, mark, err := getMarked(ctx, client, name)
		if err != nil {
			return err
		}
		changes, annotations, err := change(node, mark)
		if err != nil || changes == nil {
			return err
		}
		patch, err := changes.guarded(node, annotations, nil)
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Nodes().Patch(ctx, name, mergePatch, patch, metav1.PatchOptions{})
		return err
	}))
}

// pointer escapes a key for a JSON pointer (RFC 6901).
func pointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

func getMarked(ctx context.Context, client kube.Interface, name string) (*corev1.Node, Mark, error) {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, Mark{}, notFound(err)
	}
	mark, err := MarkOf(node)
	return node, mark, err
}

func notFound(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", ErrNodeGone, err)
	}
	return err
}

// recall takes back into a mark what a holder remembers whose entry is missing. The cordon counts as this holder's then.
func (m *Mark) recall(prior *Prior, h Holder) {
	prior.recall(m)
	if m.Cordoned {
		m.CordonedBy = &CordonedBy{h.WorkflowID, h.RunID, h.Run}
	}
}
