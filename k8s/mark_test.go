package k8s_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

const (
	scaleDown = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	disrupt   = "karpenter.sh/do-not-disrupt"
)

func nodeWith(change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", UID: "uid-1", ResourceVersion: "7", Labels: map[string]string{"pool": "gpu"}, Annotations: map[string]string{"who": "cares"},
	}, Spec: corev1.NodeSpec{PodCIDR: "10.0.0.0/24", Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}}}
	if change != nil {
		change(n)
	}
	return n
}

// nodesAsFound are nodes in every state in which a maintenance may find one.
var nodesAsFound = map[string]*corev1.Node{
	"plain":             nodeWith(nil),
	"bare":              nodeWith(func(n *corev1.Node) { n.Labels, n.Annotations = nil, nil }),
	"cordoned by hand":  nodeWith(func(n *corev1.Node) { n.Spec.Unschedulable = true }),
	"protected already": nodeWith(func(n *corev1.Node) { n.Annotations[scaleDown], n.Annotations[disrupt] = "true", "true" }),
	"protection off":    nodeWith(func(n *corev1.Node) { n.Annotations[scaleDown] = "false" }),
	"empty protection":  nodeWith(func(n *corev1.Node) { n.Annotations[disrupt] = "" }),
}

func holder(requestor string, cordon bool) k8s.HoldInput {
	return k8s.HoldInput{Node: "n1", Phase: "Cordoning", Holder: k8s.Holder{
		WorkflowID: "node-maintenance/n1/" + requestor, RunID: "run-" + requestor, Requestor: requestor,
		Since: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), Cordon: cordon,
	}}
}

func hold(t *testing.T, client k8stest.Fake, in k8s.HoldInput) k8s.Held {
	t.Helper()
	held, err := k8s.Hold(t.Context(), client, in)
	if err != nil {
		t.Fatalf("hold by %s: %v", in.Holder.Requestor, err)
	}
	return held
}

func release(t *testing.T, client k8stest.Fake, requestor string) k8s.Released {
	t.Helper()
	in := holder(requestor, true)
	released, err := k8s.Release(t.Context(), client, "n1", k8s.Caller{WorkflowID: in.Holder.WorkflowID, RunID: in.Holder.RunID}, k8s.Known{})
	if err != nil {
		t.Fatalf("release by %s: %v", requestor, err)
	}
	return released
}

func get(t *testing.T, client k8stest.Fake) *corev1.Node {
	t.Helper()
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// setSchedulable is what kubectl cordon and uncordon do.
func setSchedulable(t *testing.T, client k8stest.Fake, schedulable bool) {
	t.Helper()
	node := get(t, client)
	node.Spec.Unschedulable = !schedulable
	if _, err := client.All.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func expectAsBefore(t *testing.T, before, after *corev1.Node) {
	t.Helper()
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		t.Errorf("spec before - after +\n%s", diff)
	}
	if diff := cmp.Diff(before.Labels, after.Labels, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("labels before - after +\n%s", diff)
	}
	if diff := cmp.Diff(before.Annotations, after.Annotations, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("annotations before - after +\n%s", diff)
	}
}

func expectHeld(t *testing.T, node *corev1.Node, unschedulable bool, holders ...string) {
	t.Helper()
	mark, err := k8s.MarkOf(node)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range mark.Holders {
		got = append(got, h.Requestor)
	}
	if diff := cmp.Diff(holders, got); diff != "" {
		t.Errorf("holders want - got +\n%s", diff)
	}
	if node.Spec.Unschedulable != unschedulable {
		t.Errorf("unschedulable = %v", node.Spec.Unschedulable)
	}
	if node.Annotations[scaleDown] != "true" || node.Annotations[disrupt] != "true" || node.Labels[api.PhaseLabel] == "" {
		t.Errorf("labels %v, annotations %v", node.Labels, node.Annotations)
	}
}

func TestReleaseLeavesTheNodeAsItWasFound(t *testing.T) {
	for name, found := range nodesAsFound {
		for _, cordon := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, cordon %v", name, cordon), func(t *testing.T) {
				client := k8stest.NewFake(found.DeepCopy())
				held := hold(t, client, holder("ops", cordon))
				if held.UID != "uid-1" || !held.Changed || held.Again || held.WasUnschedulable != found.Spec.Unschedulable || held.Mark == "" {
					t.Errorf("held = %+v", held)
				}
				expectHeld(t, get(t, client), cordon || found.Spec.Unschedulable, "ops")
				released := release(t, client, "ops")
				if released.Gone || released.Foreign || len(released.OtherHolders) != 0 || released.Uncordoned != (cordon && !found.Spec.Unschedulable) {
					t.Errorf("released = %+v", released)
				}
				expectAsBefore(t, found, get(t, client))
			})
		}
	}
}

func TestACordonThatIsTakenOverIsLiftedAtTheEnd(t *testing.T) {
	for name, found := range nodesAsFound {
		client := k8stest.NewFake(found.DeepCopy())
		in := holder("ops", true)
		in.TakesCordon = true
		held := hold(t, client, in)
		if held.WasUnschedulable || !held.Prior.Cordoned {
			t.Errorf("%s: held = %+v", name, held)
		}
		hold(t, client, in)
		if released := release(t, client, "ops"); !released.Uncordoned || get(t, client).Spec.Unschedulable {
			t.Errorf("%s: released = %+v", name, released)
		}
	}
}

// Who comes second does not take the cordon of the first.
func TestACordonIsTakenOverByTheFirstHolderOnly(t *testing.T) {
	client := k8stest.NewFake(nodesAsFound["cordoned by hand"].DeepCopy())
	hold(t, client, holder("first", false))
	in := holder("second", true)
	in.TakesCordon = true
	hold(t, client, in)
	release(t, client, "first")
	if released := release(t, client, "second"); released.Uncordoned || !get(t, client).Spec.Unschedulable {
		t.Errorf("released = %+v", released)
	}
}

// Whoever may annotate nodes may forge a mark: it gets no other annotation written with Drydock's rights.
func TestAForgedMarkRestoresOnlyWhatDrydockWrites(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	hold(t, client, holder("ops", true))
	node := get(t, client)
	mark, err := k8s.MarkOf(node)
	if err != nil {
		t.Fatal(err)
	}
	mark.Prior["projectcalico.org/IPv4Address"], mark.Prior["who"] = new("10.6.6.6/8"), nil
	mark.Prior[api.HoldersAnnotation] = new("forged")
	text, err := json.Marshal(mark)
	if err != nil {
		t.Fatal(err)
	}
	node.Annotations[api.HoldersAnnotation] = string(text)
	if _, err := client.All.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	release(t, client, "ops")
	expectAsBefore(t, nodeWith(nil), get(t, client))
}

func TestNodeOfTwoHoldersIsGivenBackByTheLast(t *testing.T) {
	for name, found := range nodesAsFound {
		for _, order := range [][]string{{"ops", "net"}, {"net", "ops"}} {
			for _, cordons := range [][]bool{{true, true}, {true, false}, {false, true}} {
				t.Run(fmt.Sprint(name, order, cordons), func(t *testing.T) {
					client := k8stest.NewFake(found.DeepCopy())
					hold(t, client, holder("ops", cordons[0]))
					hold(t, client, holder("net", cordons[1]))
					expectHeld(t, get(t, client), true, "ops", "net")
					if released := release(t, client, order[0]); released.Uncordoned || len(released.OtherHolders) != 1 || released.OtherHolders[0] != order[1] {
						t.Errorf("the first release: %+v", released)
					}
					expectHeld(t, get(t, client), true, order[1])
					release(t, client, order[1])
					expectAsBefore(t, found, get(t, client))
				})
			}
		}
	}
}

func TestHoldAndReleaseMayBeRepeated(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	first := hold(t, client, holder("ops", true))
	patches := countOf(client, "patch")
	again := hold(t, client, holder("ops", true))
	if again.Changed || again.Again || again.Mark != first.Mark || countOf(client, "patch") != patches {
		t.Errorf("held again: %+v", again)
	}
	release(t, client, "ops")
	patches = countOf(client, "patch")
	if released := release(t, client, "ops"); !released.Foreign || countOf(client, "patch") != patches {
		t.Errorf("released again: %+v", released)
	}
	expectAsBefore(t, nodeWith(nil), get(t, client))
}

func countOf(client k8stest.Fake, verb string) int {
	n := 0
	for _, action := range client.Actions() {
		if action.GetVerb() == verb {
			n++
		}
	}
	return n
}

func TestCordonThatWasLiftedIsSetAgain(t *testing.T) {
	for name, found := range nodesAsFound {
		t.Run(name, func(t *testing.T) {
			client := k8stest.NewFake(found.DeepCopy())
			hold(t, client, holder("ops", true))
			setSchedulable(t, client, true)
			if held := hold(t, client, holder("ops", true)); !held.Again || !held.Changed {
				t.Errorf("held = %+v", held)
			}
			expectHeld(t, get(t, client), true, "ops")
			release(t, client, "ops")
			// Whoever lifted it wants the node schedulable, also where it was cordoned by hand before.
			wanted := found.DeepCopy()
			wanted.Spec.Unschedulable = false
			expectAsBefore(t, wanted, get(t, client))
		})
	}
}

func TestCordonThatIsNotFoughtForIsSomebodyElses(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	hold(t, client, holder("ops", true))
	setSchedulable(t, client, true)
	if held := hold(t, client, holder("ops", false)); held.Again {
		t.Errorf("held = %+v", held)
	}
	node := get(t, client)
	expectHeld(t, node, false, "ops")
	if mark, err := k8s.MarkOf(node); err != nil || mark.WantsCordon() {
		t.Errorf("mark = %+v, %v", mark, err)
	}
	setSchedulable(t, client, false) // by hand, and for a reason of their own
	if released := release(t, client, "ops"); released.Uncordoned {
		t.Errorf("released = %+v", released)
	}
	expectAsBefore(t, nodeWith(func(n *corev1.Node) { n.Spec.Unschedulable = true }), get(t, client))
}

func TestNodeThatSomebodyUncordonedIsReleasedWithoutAWord(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	hold(t, client, holder("ops", true))
	setSchedulable(t, client, true)
	if released := release(t, client, "ops"); released.Uncordoned {
		t.Errorf("released = %+v", released)
	}
	expectAsBefore(t, nodeWith(nil), get(t, client))
}

func TestMarkThatIsNotDrydocksStopsEverything(t *testing.T) {
	for name, text := range map[string]string{"not JSON": "{", "another type": `["ops"]`, "other fields' types": `{"holders":"ops"}`} {
		t.Run(name, func(t *testing.T) {
			found := nodeWith(func(n *corev1.Node) { n.Annotations[api.HoldersAnnotation] = text })
			client := k8stest.NewFake(found.DeepCopy())
			_, errHold := k8s.Hold(t.Context(), client, holder("ops", true))
			_, errRelease := k8s.Release(t.Context(), client, "n1", k8s.Caller{WorkflowID: "w", RunID: "r"}, k8s.Known{})
			_, errPhase := k8s.SetPhase(t.Context(), client, k8s.PhaseInput{Node: "n1", Caller: k8s.Caller{WorkflowID: "w", RunID: "r"}, Phase: "Ready"})
			for _, err := range []error{errHold, errRelease, errPhase} {
				if err == nil || !strings.Contains(err.Error(), api.HoldersAnnotation) || !strings.Contains(err.Error(), "n1") {
					t.Errorf("error = %v", err)
				}
			}
			if diff := cmp.Diff(found, get(t, client), cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ManagedFields", "ResourceVersion"), cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
				t.Errorf("the node was changed:\n%s", diff)
			}
		})
	}
}

func TestNodeThatIsNotThereOrAnother(t *testing.T) {
	client := k8stest.NewFake()
	if _, err := k8s.Hold(t.Context(), client, holder("ops", true)); !errors.Is(err, k8s.ErrNodeGone) {
		t.Errorf("hold of no node: %v", err)
	}
	if released := release(t, client, "ops"); !released.Gone {
		t.Errorf("release of no node: %+v", released)
	}
	if _, err := k8s.SetPhase(t.Context(), client, k8s.PhaseInput{Node: "n1"}); !errors.Is(err, k8s.ErrNodeGone) {
		t.Errorf("phase of no node: %v", err)
	}
	client = k8stest.NewFake(nodeWith(nil))
	in := holder("ops", true)
	in.UID = "uid-0"
	if _, err := k8s.Hold(t.Context(), client, in); !errors.Is(err, k8s.ErrNodeReplaced) {
		t.Errorf("hold of another node: %v", err)
	}
	if _, err := k8s.SetPhase(t.Context(), client, k8s.PhaseInput{Node: "n1", Caller: k8s.Caller{WorkflowID: "w", RunID: "r"}, Phase: "Ready"}); !errors.Is(err, k8s.ErrNotHolder) {
		t.Errorf("phase by a stranger: %v", err)
	}
	expectAsBefore(t, nodeWith(nil), get(t, client))
}

func TestAnotherRunOfTheSameWorkflowIsAStranger(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	hold(t, client, holder("ops", true))
	released, err := k8s.Release(t.Context(), client, "n1", k8s.Caller{WorkflowID: "node-maintenance/n1/ops", RunID: "run-of-yesterday"}, k8s.Known{})
	if err != nil || !released.Foreign {
		t.Errorf("released = %+v, %v", released, err)
	}
	expectHeld(t, get(t, client), true, "ops")
}

// conflicts makes the next patches fail as the API server does when the node changed meanwhile.
func conflicts(client k8stest.Fake, times int, meanwhile func()) {
	client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if times--; times < 0 {
			return false, nil, nil
		}
		if meanwhile != nil {
			meanwhile()
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("the object has been modified"))
	})
}

func TestPatchIsMadeAnewAfterAConflict(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	// Somebody cordons the node between the read and the patch: it must not be uncordoned in the end.
	conflicts(client, 1, func() {
		cordoned := nodeWith(func(n *corev1.Node) { n.Spec.Unschedulable = true })
		if err := client.All.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), cordoned, ""); err != nil {
			t.Error(err)
		}
	})
	if held := hold(t, client, holder("ops", true)); !held.WasUnschedulable {
		t.Errorf("held = %+v", held)
	}
	conflicts(client, 2, nil)
	release(t, client, "ops")
	expectAsBefore(t, nodeWith(func(n *corev1.Node) { n.Spec.Unschedulable = true }), get(t, client))

	conflicts(client, 1000, nil)
	if _, err := k8s.Hold(t.Context(), client, holder("ops", true)); !apierrors.IsConflict(err) {
		t.Errorf("error = %v, want the conflict, which is worth another attempt", err)
	}
}

func TestPatchAppliesToThisVersionOfThisNodeOnly(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	hold(t, client, holder("ops", true))
	release(t, client, "ops")
	for _, action := range client.Actions() {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok {
			continue
		}
		var body struct {
			Metadata struct {
				UID             types.UID `json:"uid"`
				ResourceVersion string    `json:"resourceVersion"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(patch.GetPatch(), &body); err != nil {
			t.Fatal(err)
		}
		if body.Metadata.UID != "uid-1" || body.Metadata.ResourceVersion == "" {
			t.Errorf("patch %s", patch.GetPatch())
		}
	}
}

func TestAnEmptyPhaseLeavesTheLabel(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	held := hold(t, client, holder("ops", true))
	in := k8s.PhaseInput{Node: "n1", Caller: k8s.Caller{WorkflowID: "node-maintenance/n1/ops", RunID: "run-ops"}, Mark: held.Mark}
	before := get(t, client).Labels[api.PhaseLabel]
	uid, err := k8s.SetPhase(t.Context(), client, in)
	if after := get(t, client).Labels[api.PhaseLabel]; err != nil || uid != "uid-1" || after != before || after == "" {
		t.Errorf("uid %s, error %v, phase %q", uid, err, after)
	}
	in.RunID = "another"
	if _, err := k8s.SetPhase(t.Context(), client, in); !errors.Is(err, k8s.ErrNotHolder) {
		t.Errorf("error = %v, want that another holds the node", err)
	}
}

// TestAMarkThatSomebodyEmptiedIsNone: kubectl annotate NODE drydock.dev/holders= leaves the key.
func TestAMarkThatSomebodyEmptiedIsNone(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	held := hold(t, client, holder("ops", true))
	emptied := get(t, client)
	emptied.Annotations[api.HoldersAnnotation] = ""
	if _, err := client.All.CoreV1().Nodes().Update(t.Context(), emptied, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	released, err := k8s.Release(t.Context(), client, "n1", k8s.Caller{WorkflowID: "node-maintenance/n1/ops", RunID: "run-ops"}, k8s.Known{Prior: held.Prior, Stripped: true})
	if after := get(t, client); err != nil || !released.Stripped || after.Spec.Unschedulable {
		t.Errorf("released %+v, %v; unschedulable %v", released, err, after.Spec.Unschedulable)
	}
}

func TestPhaseIsShownByOneRequestUnderAKnownMark(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	held := hold(t, client, holder("ops", true))
	in := k8s.PhaseInput{Node: "n1", Caller: k8s.Caller{WorkflowID: "node-maintenance/n1/ops", RunID: "run-ops"}, Phase: "Ready", Mark: held.Mark}
	client.ClearActions()
	uid, err := k8s.SetPhase(t.Context(), client, in)
	if err != nil || uid != "uid-1" || get(t, client).Labels[api.PhaseLabel] != "Ready" || len(client.Actions()) != 2 {
		t.Errorf("uid %s, error %v, labels %v, requests %v", uid, err, get(t, client).Labels, client.Actions())
	}

	// Another holder came: the mark is another text, and the node is read first.
	hold(t, client, holder("net", true))
	invalidAsTheServerSays(client)
	in.Phase = "RequestorFailed"
	if _, err := k8s.SetPhase(t.Context(), client, in); err != nil || get(t, client).Labels[api.PhaseLabel] != "RequestorFailed" {
		t.Errorf("error %v, labels %v", err, get(t, client).Labels)
	}
	release(t, client, "ops")
	if _, err := k8s.SetPhase(t.Context(), client, in); !errors.Is(err, k8s.ErrNotHolder) {
		t.Errorf("error = %v, want that it holds the node no more", err)
	}
}

// invalidAsTheServerSays answers JSON patches whose test fails as kube-apiserver does; the fake has another error.
func invalidAsTheServerSays(client k8stest.Fake) {
	client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.(clienttesting.PatchAction).GetPatchType() != types.JSONPatchType {
			return false, nil, nil
		}
		return true, nil, apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "",
			"testing value /metadata/annotations/drydock.dev~1holders failed: test failed", 0, false)
	})
}

func TestHoldGivesUpWithItsContext(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	conflicts(client, 1000, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k8s.Hold(ctx, client, holder("ops", true)); err == nil {
		t.Error("a hold succeeded against conflicts without end")
	}
}

func TestTaintGoesWithTheLastHolder(t *testing.T) {
	n := nodeWith(nil)
	s := k8stest.New(n)
	kube := s.Client(t)
	hold := func(run string) {
		t.Helper()
		if _, err := k8s.Hold(t.Context(), kube, k8s.HoldInput{Node: n.Name, Holder: k8s.Holder{WorkflowID: "w", RunID: run, Cordon: true}}); err != nil {
			t.Fatal(err)
		}
	}
	hold("a")
	for range 2 {
		if err := k8s.Taint(t.Context(), kube, n.Name, k8s.Caller{WorkflowID: "w", RunID: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	hold("b")
	if err := k8s.Taint(t.Context(), kube, n.Name, k8s.Caller{WorkflowID: "w", RunID: "stranger"}); !errors.Is(err, k8s.ErrNotHolder) {
		t.Errorf("error = %v", err)
	}
	for _, c := range []struct {
		release string
		want    int
	}{{"", 2}, {"a", 2}, {"b", 1}} {
		if c.release != "" {
			if _, err := k8s.Release(t.Context(), kube, n.Name, k8s.Caller{WorkflowID: "w", RunID: c.release}, k8s.Known{}); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Node(n.Name).Spec.Taints; len(got) != c.want || got[0].Key != "gpu" {
			t.Errorf("after the release of %q the taints are %v", c.release, got)
		}
	}
}

func TestOnlyTheRunThatActsTouchesTheNode(t *testing.T) {
	client := k8stest.NewFake(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}})
	holder := k8s.Holder{WorkflowID: "w", RunID: "first", Run: "first", Namespace: "ns", Requestor: "ops", Cordon: true}
	if _, err := k8s.Hold(t.Context(), client, k8s.HoldInput{Node: "n1", Phase: "Draining", Holder: holder}); err != nil {
		t.Fatal(err)
	}
	later := k8s.Caller{WorkflowID: "w", RunID: "first", Run: "second"}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, k8s.ErrOtherRun) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := k8s.Release(t.Context(), client, "n1", later, k8s.Known{})
	refused("release", err)
	_, err = k8s.SetPhase(t.Context(), client, k8s.PhaseInput{Caller: later, Node: "n1", Phase: "Ready"})
	refused("phase", err)
	refused("taint", k8s.Taint(t.Context(), client, "n1", later))
	second := holder
	second.Run = "second"
	_, err = k8s.Hold(t.Context(), client, k8s.HoldInput{Node: "n1", Phase: "Draining", Holder: second})
	refused("hold", err)
	if err := k8s.TakeOver(t.Context(), client, "n1", later); err != nil {
		t.Fatal(err)
	}
	refused("the run before", k8s.Taint(t.Context(), client, "n1", k8s.Caller{WorkflowID: "w", RunID: "first", Run: "first"}))
	if err := k8s.Taint(t.Context(), client, "n1", later); err != nil {
		t.Error(err)
	}
	if err := k8s.TakeOver(t.Context(), client, "n1", k8s.Caller{WorkflowID: "w", RunID: "another", Run: "x"}); !errors.Is(err, k8s.ErrNotHolder) {
		t.Errorf("another maintenance: %v", err)
	}
	// Whoever takes care of a maintenance that does not run any more has no run.
	if released, err := k8s.Release(t.Context(), client, "n1", k8s.Caller{WorkflowID: "w", RunID: "first"}, k8s.Known{}); err != nil || released.Foreign || !released.Uncordoned {
		t.Errorf("%+v, %v", released, err)
	}
}
