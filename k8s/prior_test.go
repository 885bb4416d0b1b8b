package k8s_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
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
	released, err := k8s.Release(t.Context(), client, "n1", k8s.Caller{WorkflowID: in.Holder.WorkflowID, RunID: in.Holder.RunID}, k8s.Known{Prior: prior, Stripped: true})
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

// forge changes the mark on the node, as anyone who can annotate nodes can.
func forge(t *testing.T, client k8stest.Fake, change func(*k8s.Mark)) {
	t.Helper()
	node := get(t, client)
	mark, err := k8s.MarkOf(node)
	if err != nil {
		t.Fatal(err)
	}
	change(&mark)
	text, err := json.Marshal(mark)
	if err != nil {
		t.Fatal(err)
	}
	node.Annotations[api.HoldersAnnotation] = string(text)
	if _, err := client.All.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAForgedMarkIsComparedAndNotObeyed(t *testing.T) {
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	tainted := func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, k8s.OutOfServiceTaint) }
	for name, c := range map[string]struct {
		found   *corev1.Node
		forge   func(*k8s.Mark)
		differs string
	}{
		"a person's cordon is claimed":        {nodeWith(cordoned), func(m *k8s.Mark) { m.Cordoned = true }, "cordon"},
		"and another is named":                {nodeWith(cordoned), func(m *k8s.Mark) { m.Cordoned, m.CordonedBy = true, &k8s.CordonedBy{WorkflowID: "w", RunID: "r"} }, "cordon"},
		"an annotation's value":               {nodeWith(nil), func(m *k8s.Mark) { m.Prior[scaleDown] = new("true") }, scaleDown},
		"an annotation is to go":              {nodeWith(func(n *corev1.Node) { n.Annotations[disrupt] = "true" }), func(m *k8s.Mark) { m.Prior[disrupt] = nil }, disrupt},
		"a person's taint is claimed":         {nodeWith(tainted), func(m *k8s.Mark) { m.Holders[0].OutOfService = true }, "taint"},
		"the label of others is to be set":    {nodeWith(nil), func(m *k8s.Mark) { m.Excluded = &k8s.Excluded{Prior: new("true")} }, k8s.ExcludeLabel},
		"nothing is forged":                   {nodeWith(nil), func(*k8s.Mark) {}, ""},
		"nothing is forged, cordoned by hand": {nodeWith(cordoned), func(*k8s.Mark) {}, ""},
	} {
		for _, again := range []bool{false, true} {
			if again && c.differs == "taint" {
				continue // a hold takes off what a run that was reset has left
			}
			t.Run(fmt.Sprintf("%s, held again %t", name, again), func(t *testing.T) {
				client := k8stest.NewFake(c.found.DeepCopy())
				in := holder("ops", true)
				in.Prior = hold(t, client, in).Prior
				forge(t, client, c.forge)
				if again {
					in.Prior = hold(t, client, in).Prior
				}
				released, err := k8s.Release(t.Context(), client, "n1", callerOf("ops"), k8s.Known{
					Prior: in.Prior, Cordons: cordons(func(k8s.CordonedBy, types.UID) bool { return false }),
				})
				differs := strings.Join(released.Differences, "; ")
				if err != nil || (differs == "") != (c.differs == "") || !strings.Contains(differs, c.differs) {
					t.Errorf("released %+v, %v", released, err)
				}
				expectAsBefore(t, c.found, get(t, client))
			})
		}
	}
}

func TestTheLastHolderUndoesWhatOthersChanged(t *testing.T) {
	for _, believed := range []bool{true, false} {
		client := k8stest.NewFake(nodeWith(nil))
		ops, net := holder("ops", false), holder("net", true)
		ops.Prior = hold(t, client, ops).Prior
		second := hold(t, client, net)
		if len(second.Others) != 1 || second.Others[0].Requestor != "ops" || !second.Prior.Cordoned || len(second.Prior.Protections) != 0 {
			t.Fatalf("the second holder: %+v, %+v", second, second.Prior)
		}
		net.Prior = second.Prior.Confirmed(*ops.Prior)
		if _, err := k8s.Release(t.Context(), client, "n1", callerOf("net"), k8s.Known{Prior: net.Prior}); err != nil {
			t.Fatal(err)
		}
		released, err := k8s.Release(t.Context(), client, "n1", callerOf("ops"), k8s.Known{
			Prior: ops.Prior, Cordons: cordons(func(by k8s.CordonedBy, uid types.UID) bool {
				return believed && by.WorkflowID == net.Holder.WorkflowID && by.RunID == net.Holder.RunID && uid == "uid-1"
			}),
		})
		if err != nil || released.Uncordoned != believed || (len(released.Differences) == 0) != believed {
			t.Errorf("released %+v, %v", released, err)
		}
		expectAsBefore(t, nodeWith(func(n *corev1.Node) { n.Spec.Unschedulable = !believed }), get(t, client))
	}
	// The other way round: the second is the last, and remembers what the first has said.
	client := k8stest.NewFake(nodeWith(nil))
	ops, net := holder("ops", true), holder("net", true)
	ops.Prior = hold(t, client, ops).Prior
	second := hold(t, client, net)
	if second.Prior.Cordoned {
		t.Errorf("the second holder claims the cordon: %+v", second.Prior)
	}
	releaseKnown(t, client, "ops", ops.Prior)
	if released := releaseKnown(t, client, "net", second.Prior.Confirmed(*ops.Prior)); !released.Uncordoned || len(released.Differences) != 0 {
		t.Errorf("released %+v", released)
	}
	expectAsBefore(t, nodeWith(nil), get(t, client))
}

func TestASecondHolderGivesBackTheProtectionsThatTheFirstFound(t *testing.T) {
	for name, found := range nodesAsFound {
		t.Run(name, func(t *testing.T) {
			client := k8stest.NewFake(found.DeepCopy())
			// The first is a profile or another Drydock: no history of ours says what it found.
			ops, net := holder("ops", false), holder("net", true)
			hold(t, client, ops)
			second := hold(t, client, net)
			if _, err := k8s.Release(t.Context(), client, "n1", callerOf("ops"), k8s.Known{OnlyMarked: true}); err != nil {
				t.Fatal(err)
			}
			if released := releaseKnown(t, client, "net", second.Prior); len(released.Differences) != 0 {
				t.Errorf("released %+v", released)
			}
			expectAsBefore(t, found, get(t, client))
		})
	}
}

// cordons knows who left a cordon to the last holder.
type cordons func(by k8s.CordonedBy, uid types.UID) bool

func (c cordons) Left(_ context.Context, by k8s.CordonedBy, uid types.UID) (bool, error) {
	return c(by, uid), nil
}
