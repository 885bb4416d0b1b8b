package plan

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func nodeIn(name, uid, zone string) *corev1.Node {
	n := activitytest.Node(name)
	n.UID = types.UID(uid)
	n.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	if zone == "" {
		n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	}
	return n
}

func TestListPlanNodesReturnsWhatMatchesAndWhetherItChanged(t *testing.T) {
	s := k8stest.New(nodeIn("a", "1", "z1"), nodeIn("b", "2", "z2"), nodeIn("cp", "3", ""))
	a := &Activities{Nodes: k8s.NewNodes(s.Client(t))}
	in := ListInput{Names: []string{"b", "cp", "no-such"}, Exclude: []string{"a"}}
	list := func() Listed {
		t.Helper()
		listed, err := activitytest.Call(t, a.ListPlanNodes, in)
		if err != nil {
			t.Fatal(err)
		}
		return listed
	}
	first := list()
	if len(first.Nodes) != 2 || first.Nodes[0].Name != "b" || first.Nodes[0].Zone != "z2" || first.All != 3 ||
		first.ControlPlanes.All != 1 || first.ControlPlanes.Matching != 1 || !slices.Equal(first.Missing, []string{"no-such"}) {
		t.Errorf("%+v", first)
	}
	in.Digest = first.Digest
	if again := list(); !again.Unchanged || len(again.Nodes) != 0 || again.Digest != first.Digest {
		t.Errorf("%+v is no news", again)
	}
	// Deleted and made anew between two looks.
	s.Delete(nodeIn("b", "2", "z2"))
	s.Set(nodeIn("b", "4", "z2"))
	later := list()
	for began := time.Now(); later.Unchanged || len(later.Nodes) != 2; later = list() {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("a node that was made anew is no news: %+v", later)
		}
	}
	if later.Digest == first.Digest {
		t.Errorf("%+v", later)
	}
}
