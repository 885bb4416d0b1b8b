package k8s_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock/api"
	"drydock/k8s"
	"drydock/k8s/k8stest"
)

// strip takes the mark off a node, as somebody's hand would.
func strip(t *testing.T, client k8stest.Fake) {
	t.Helper()
	node := get(t, client)
	delete(node.Annotations, api.HoldersAnnotation)
	if _, err := client.All.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func releaseKnown(t *testing.T, client k8stest.Fake, requestor string, prior *k8s.Prior) k8s.Released {
	t.Helper()
	in := holder(requestor, true)
	released, err := k8s.Release(t.Context(), client, "n1", k8s.Caller{WorkflowID: in.Holder.WorkflowID, RunID: in.Holder.RunID}, prior)
	if err != nil {
		t.Fatal(err)
	}
	return released
}

func TestAMarkThatWasStrippedIsRestoredWithWhatWasBefore(t *testing.T) {
	for name, found := range nodesAsFound {
		for _, cordon := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, cordon %v", name, cordon), func(t *testing.T) {
				client := k8stest.NewFake(found.DeepCopy())
				in := holder("ops", cordon)
				first := hold(t, client, in)
				for range 2 {
					strip(t, client)
					in.Prior = first.Prior
					if again := hold(t, client, in); again.Mark != first.Mark || again.WasUnschedulable != first.WasUnschedulable || again.Again {
						t.Errorf("held again %+v, first %+v", again, first)
					}
				}
				release(t, client, "ops")
				expectAsBefore(t, found, get(t, client))
			})
		}
	}
}

func TestANodeWhoseMarkWasStrippedIsGivenBackAsItWas(t *testing.T) {
	for name, found := range nodesAsFound {
		for _, cordon := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, cordon %v", name, cordon), func(t *testing.T) {
				client := k8stest.NewFake(found.DeepCopy())
				prior := hold(t, client, holder("ops", cordon)).Prior
				strip(t, client)
				if released := releaseKnown(t, client, "ops", nil); !released.Foreign || !get(t, client).Spec.Unschedulable && cordon {
					t.Errorf("released by somebody who knows nothing: %+v", released)
				}
				if released := releaseKnown(t, client, "ops", prior); !released.Stripped || released.Foreign || released.Uncordoned != (cordon && !found.Spec.Unschedulable) {
					t.Errorf("released %+v", released)
				}
				expectAsBefore(t, found, get(t, client))
				// The release is repeated where its answer was lost: what came since is somebody else's.
				setSchedulable(t, client, false)
				if released := releaseKnown(t, client, "ops", prior); !released.Foreign || !get(t, client).Spec.Unschedulable {
					t.Errorf("released again %+v", released)
				}
			})
		}
	}
}

func TestWhatIsRememberedIsOfOneNodeOnly(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	prior := hold(t, client, holder("ops", true)).Prior
	prior.UID = "uid-0"
	strip(t, client)
	if released := releaseKnown(t, client, "ops", prior); !released.Foreign || !get(t, client).Spec.Unschedulable {
		t.Errorf("a replacement was released: %+v", released)
	}
	in := holder("ops", true)
	in.Prior = prior
	if held := hold(t, client, in); !held.WasUnschedulable {
		t.Errorf("a replacement was held as %+v", held)
	}
	// A node that somebody else holds is theirs.
	client = k8stest.NewFake(nodeWith(nil))
	prior = hold(t, client, holder("ops", true)).Prior
	strip(t, client)
	hold(t, client, holder("net", true))
	if released := releaseKnown(t, client, "ops", prior); !released.Foreign {
		t.Errorf("another's node was released: %+v", released)
	}
	in.Prior = prior
	hold(t, client, in)
	release(t, client, "net")
	release(t, client, "ops")
	expectAsBefore(t, nodeWith(nil), get(t, client))
}

func TestACordonThatItsOwnerLiftedDoesNotComeBack(t *testing.T) {
	for name, steps := range map[string]func(t *testing.T, client k8stest.Fake, in k8s.HoldInput){
		"and set again by the guard": func(t *testing.T, client k8stest.Fake, in k8s.HoldInput) { hold(t, client, in) },
		"and not fought for": func(t *testing.T, client k8stest.Fake, in k8s.HoldInput) {
			in.Holder.Cordon = false
			hold(t, client, in)
		},
		"with the mark": func(t *testing.T, client k8stest.Fake, in k8s.HoldInput) { strip(t, client); hold(t, client, in) },
		"just before":   func(*testing.T, k8stest.Fake, k8s.HoldInput) {},
	} {
		t.Run(name, func(t *testing.T) {
			client := k8stest.NewFake(nodeWith(func(n *corev1.Node) { n.Spec.Unschedulable = true }))
			in := holder("ops", true)
			in.Prior = hold(t, client, in).Prior
			setSchedulable(t, client, true)
			steps(t, client, in)
			release(t, client, "ops")
			expectAsBefore(t, nodeWith(nil), get(t, client))
		})
	}
}
