package k8s_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

func TestMarksThatWereReadAreThoseOnTheNodes(t *testing.T) {
	nodes := k8s.NewNodes(nil)
	marked := func(name, mark string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{api.HoldersAnnotation: mark}}}
	}
	first, second := `{"holders":[{"workflowId":"w","runId":"r1"}]}`, `{"holders":[{"workflowId":"w","runId":"r2"}]}`
	for _, c := range []struct {
		node *corev1.Node
		run  string
		bad  bool
	}{
		{node: marked("n1", first), run: "r1"},
		{node: marked("n1", first), run: "r1"},
		{node: marked("n2", second), run: "r2"},
		{node: marked("n1", second), run: "r2"},
		{node: marked("n1", "of somebody else"), bad: true},
		{node: marked("n1", "")},
		{node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}},
		{node: marked("n1", first), run: "r1"},
	} {
		mark, err := nodes.MarkOf(c.node)
		if (err != nil) != c.bad {
			t.Errorf("%v: error = %v", c.node.Annotations, err)
		}
		if held := mark.HeldBy("w", c.run); held != (c.run != "") {
			t.Errorf("%v: %+v", c.node.Annotations, mark)
		}
	}
}
