package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/kube"
)

// ErrMarked says that the node carries a mark, which explains everything else on it.
var ErrMarked = errors.New("the node carries a mark")

// ErrCordoned says that the node is unschedulable, and what Drydock wrote on it is the only hint at why.
var ErrCordoned = errors.New("the node is unschedulable")

// Markings are what Drydock writes on a node, as they are found.
type Markings struct {
	Name string
	UID  types.UID
	// Text is the mark's. Marked: there is one. Unreadable is the error that kept it from being read.
	Text       string
	Marked     bool
	Mark       Mark
	Unreadable error
	// Phase is nil if there is no label.
	Phase         *string
	Tainted       bool
	Unschedulable bool
	// Claims are who shows lifecycle conditions.
	Claims []Claim
	// Protections are the keys of annotations that say what Drydock's would say.
	Protections []string
	// Excluded: the label ExcludeLabel says so. OutOfService: the node is tainted as that, Owned: by a holder.
	Excluded, OutOfService, Owned bool
}

// MarkingsOf reads all nodes from the API server: no cache may stand between a doctor and the truth.
func MarkingsOf(ctx context.Context, client kube.Interface) ([]Markings, error) {
	var found []Markings
	err := eachPage(metav1.ListOptions{}, func(o metav1.ListOptions) (string, error) {
		list, err := client.CoreV1().Nodes().List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("listing nodes: %w", err)
		}
		for i := range list.Items {
			found = append(found, markingsOn(&list.Items[i]))
		}
		return list.Continue, nil
	})
	return found, err
}

func markingsOn(node *corev1.Node) Markings {
	t := Markings{Name: node.Name, UID: node.UID, Phase: valueOf(node.Labels, api.PhaseLabel), Tainted: isTainted(node), Unschedulable: node.Spec.Unschedulable}
	t.Text, t.Marked = node.Annotations[api.HoldersAnnotation]
	t.Mark, t.Unreadable = MarkOf(node)
	if t.Marked && t.Unreadable == nil && len(t.Mark.Holders) == 0 {
		t.Unreadable = fmt.Errorf("annotation %s of node %s names no holder", api.HoldersAnnotation, node.Name)
	}
	t.Excluded, t.OutOfService = node.Labels[ExcludeLabel] == ExcludedValue, IsOutOfService(node)
	t.Owned = t.Unreadable == nil && t.Mark.ownsOutOfService()
	t.Claims, _ = ClaimsOn(node) // what cannot be read is nobody's
	for _, key := range protections {
		if node.Annotations[key] == "true" {
			t.Protections = append(t.Protections, key)
		}
	}
	return t
}

// RemoveMarkings takes label and taint off a node that nobody holds. It touches nothing that may be somebody else's, and
// is idempotent. Errors: ErrNodeGone, ErrMarked, ErrCordoned.
func RemoveMarkings(ctx context.Context, client kube.Interface, name string) (types.UID, error) {
	var uid types.UID
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return notFound(err)
		}
		uid = node.UID
		found := markingsOn(node)
		switch {
		case found.Marked:
			return ErrMarked
		case found.Unschedulable:
			return ErrCordoned
		case found.Phase == nil && !found.Tainted:
			return nil
		}
		changes := nodePatch{}
		if found.Tainted {
			changes["spec"] = map[string]any{"taints": slices.DeleteFunc(slices.Clone(node.Spec.Taints), isMaintenanceTaint)}
		}
		patch, err := changes.guarded(node, nil, map[string]*string{api.PhaseLabel: nil})
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Nodes().Patch(ctx, name, mergePatch, patch, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("cleaning node %s: %w", name, notFound(err))
	}
	return uid, nil
}
