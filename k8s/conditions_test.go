package k8s

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func statuses(t *testing.T, client *fake.Clientset) map[corev1.NodeConditionType]corev1.ConditionStatus {
	t.Helper()
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[corev1.NodeConditionType]corev1.ConditionStatus{}
	for _, c := range node.Status.Conditions {
		all[c.Type] = c.Status
	}
	return all
}

func patches(client *fake.Clientset) int {
	n := 0
	for _, action := range client.Actions() {
		if action.GetVerb() == "patch" {
			n++
		}
	}
	return n
}

func TestLifecycleConditionsComeAndGo(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
	show := func(conditions ...Condition) {
		t.Helper()
		if err := ShowConditions(t.Context(), client, "n1", conditions); err != nil {
			t.Fatal(err)
		}
	}
	planned := Condition{Type: MaintenancePlanned, True: true, Reason: "Scheduled", Message: "firmware"}
	show(planned)
	show(planned)
	if got := statuses(t, client); patches(client) != 1 || got[MaintenancePlanned] != corev1.ConditionTrue || got[corev1.NodeReady] != corev1.ConditionTrue {
		t.Errorf("%d patches, %v", patches(client), got)
	}
	show(Condition{Type: MaintenancePlanned, Reason: "Started"}, Condition{Type: Drained, True: true, Reason: "Ready"})
	if got := statuses(t, client); got[MaintenancePlanned] != corev1.ConditionFalse || got[Drained] != corev1.ConditionTrue {
		t.Errorf("%v", got)
	}
	show()
	if got := statuses(t, client); len(got) != 1 || got[corev1.NodeReady] != corev1.ConditionTrue {
		t.Errorf("left %v", got)
	}
	before := patches(client)
	show()
	if patches(client) != before {
		t.Error("a node that shows nothing was patched")
	}
	if err := ShowConditions(t.Context(), client, "n2", []Condition{planned}); !errors.Is(err, ErrNodeGone) {
		t.Errorf("error %v", err)
	}
}

func TestOnlyTheHolderTakesItsConditionsOff(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}})
	holder := Holder{WorkflowID: "w", RunID: "r", Requestor: "ops", Cordon: true}
	if _, err := Hold(t.Context(), client, HoldInput{Node: "n1", Phase: "Draining", Holder: holder}); err != nil {
		t.Fatal(err)
	}
	if err := ShowConditions(t.Context(), client, "n1", []Condition{{Type: DrainInProgress, True: true, Reason: "Draining"}}); err != nil {
		t.Fatal(err)
	}
	if err := Taint(t.Context(), client, "n1", Caller{WorkflowID: "w", RunID: "r"}); err != nil {
		t.Fatal(err)
	}
	if err := Untaint(t.Context(), client, "n1", Caller{WorkflowID: "w", RunID: "other"}); !errors.Is(err, ErrNotHolder) {
		t.Errorf("error %v", err)
	}
	if err := Untaint(t.Context(), client, "n1", Caller{WorkflowID: "w", RunID: "r"}); err != nil {
		t.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil || len(node.Spec.Taints) != 0 || !node.Spec.Unschedulable {
		t.Errorf("%+v, %v", node.Spec, err)
	}
	if err := HideConditions(t.Context(), client, "n1", Caller{WorkflowID: "w", RunID: "other"}); err != nil || len(statuses(t, client)) != 1 {
		t.Errorf("error %v, left %v", err, statuses(t, client))
	}
	if err := HideConditions(t.Context(), client, "n1", Caller{WorkflowID: "w", RunID: "r"}); err != nil {
		t.Fatal(err)
	}
	if got := statuses(t, client); len(got) != 0 {
		t.Errorf("left %v", got)
	}
}
