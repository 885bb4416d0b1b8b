package profile

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/profile/state"
)

// An evaluation keeps the nodes that it wrote until the watch shows them: those of a large cluster are too large to be kept whole.
func TestAWrittenNodeIsAsTheWatchHasIt(t *testing.T) {
	was := node("n1", map[string]state.State{"p": state.Operational}, func(n *corev1.Node) {
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.example.com/app"}, SizeBytes: 1}}
	})
	d := newDock(t, was)
	was, err := d.acts.Nodes.Client().CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil || len(was.Status.Images) == 0 {
		t.Fatal(was, err)
	}
	should := was.DeepCopy()
	should.Labels["tier"] = "gold"
	got, err := write(t.Context(), d.acts.Nodes.Client(), was, should)
	if err != nil || got.Labels["tier"] != "gold" || len(got.Status.Images) > 0 {
		t.Errorf("%v, labels %v, images %v: want the label, and no images", err, got.Labels, got.Status.Images)
	}
}
