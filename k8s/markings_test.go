package k8s_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

const ownTaint = "drydock.dev/maintenance"

// traced is a node with what a maintenance may leave behind.
func traced(change func(*corev1.Node)) *corev1.Node {
	return nodeWith(func(n *corev1.Node) {
		n.Labels[api.PhaseLabel] = "Ready"
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: ownTaint, Effect: corev1.TaintEffectNoSchedule})
		if change != nil {
			change(n)
		}
	})
}

func TestTracesAreTakenOffAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		node *corev1.Node
		err  error
	}{
		"label and taint": {traced(nil), nil},
		"label":           {traced(func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[:1] }), nil},
		"taint":           {traced(func(n *corev1.Node) { delete(n.Labels, api.PhaseLabel) }), nil},
		"nothing":         {nodeWith(nil), nil},
		"marked":          {traced(func(n *corev1.Node) { n.Annotations[api.HoldersAnnotation] = "{nonsense" }), k8s.ErrMarked},
		"cordoned":        {traced(func(n *corev1.Node) { n.Spec.Unschedulable = true }), k8s.ErrCordoned},
	} {
		t.Run(name, func(t *testing.T) {
			client := k8stest.NewFake(c.node.DeepCopy())
			want := c.node
			if c.err == nil {
				want = nodeWith(nil)
			}
			for range 2 { // it is idempotent
				uid, err := k8s.RemoveMarkings(t.Context(), client, "n1")
				if !errors.Is(err, c.err) || c.err == nil && uid != "uid-1" {
					t.Fatalf("uid %q, %v; want %v", uid, err, c.err)
				}
				got := get(t, client)
				if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion"), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("want - got +\n%s", diff)
				}
			}
		})
	}
	if _, err := k8s.RemoveMarkings(t.Context(), k8stest.NewFake(), "n1"); !errors.Is(err, k8s.ErrNodeGone) {
		t.Errorf("a node that is gone: %v", err)
	}
}

func TestTracesOfAllNodes(t *testing.T) {
	unreadable := traced(func(n *corev1.Node) { n.Name, n.Annotations[api.HoldersAnnotation] = "n2", "{nonsense" })
	empty := nodeWith(func(n *corev1.Node) {
		n.Name, n.Annotations[api.HoldersAnnotation], n.Annotations[disrupt] = "n3", "{}", "true"
	})
	found, err := k8s.MarkingsOf(t.Context(), k8stest.NewFake(traced(nil), unreadable, empty))
	if err != nil || len(found) != 3 {
		t.Fatalf("%d nodes, %v", len(found), err)
	}
	if f := found[0]; f.Name != "n1" || f.Marked || f.Unreadable != nil || f.Phase == nil || *f.Phase != "Ready" || !f.Tainted || len(f.Protections) > 0 {
		t.Errorf("%+v", f)
	}
	if f := found[1]; !f.Marked || f.Unreadable == nil {
		t.Errorf("a mark that cannot be read: %+v", f)
	}
	if f := found[2]; !f.Marked || f.Unreadable == nil || f.Phase != nil || f.Tainted || len(f.Protections) != 1 {
		t.Errorf("a mark without holders: %+v", f)
	}
}
