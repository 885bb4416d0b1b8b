package k8s

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/k8stest"
)

func statuses(t *testing.T, client k8stest.Fake) map[corev1.NodeConditionType]corev1.ConditionStatus {
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

func patches(client k8stest.Fake) int {
	n := 0
	for _, action := range client.Actions() {
		if action.GetVerb() == "patch" {
			n++
		}
	}
	return n
}

// show shows conditions in the name of a requestor's maintenance of n1.
func show(t *testing.T, client k8stest.Fake, requestor string, conditions ...Condition) {
	t.Helper()
	claim := Claim{WorkflowID: "w-" + requestor, RunID: "r", Since: time.Now(), Conditions: conditions}
	if err := ShowConditions(t.Context(), client, "n1", claim); err != nil {
		t.Fatal(err)
	}
}

func hide(t *testing.T, client k8stest.Fake, requestor string, shown bool) {
	t.Helper()
	if err := HideConditions(t.Context(), client, "n1", Caller{WorkflowID: "w-" + requestor, RunID: "r"}, shown); err != nil {
		t.Fatal(err)
	}
}

var (
	planned  = Condition{Type: MaintenancePlanned, True: true, Reason: "Scheduled", Message: "firmware"}
	drains   = []Condition{{Type: MaintenancePlanned, Reason: "Started"}, {Type: MaintenanceInProgress, True: true, Reason: "Draining"}}
	wellNode = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", ResourceVersion: "7", Annotations: map[string]string{"who": "cares"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
)

func expectAsFound(t *testing.T, client k8stest.Fake) {
	t.Helper()
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := statuses(t, client); len(got) != 1 || got[corev1.NodeReady] != corev1.ConditionTrue || len(node.Annotations) != 1 {
		t.Errorf("left %v, annotations %v", got, node.Annotations)
	}
}

func TestLifecycleConditionsComeAndGo(t *testing.T) {
	client := k8stest.NewFake(wellNode.DeepCopy())
	show(t, client, "ops", planned)
	show(t, client, "ops", planned)
	if got := statuses(t, client); patches(client) != 1 || got[MaintenancePlanned] != corev1.ConditionTrue || got[corev1.NodeReady] != corev1.ConditionTrue {
		t.Errorf("%d patches, %v", patches(client), got)
	}
	show(t, client, "ops", Condition{Type: MaintenancePlanned, Reason: "Started"}, Condition{Type: Drained, True: true, Reason: "Ready"})
	if got := statuses(t, client); got[MaintenancePlanned] != corev1.ConditionFalse || got[Drained] != corev1.ConditionTrue {
		t.Errorf("%v", got)
	}
	show(t, client, "ops", Condition{Type: Drained, True: true, Reason: "Ready"})
	if _, left := statuses(t, client)[MaintenancePlanned]; left {
		t.Error("what nobody claims any more is shown on")
	}
	show(t, client, "ops")
	expectAsFound(t, client)
	before := patches(client)
	show(t, client, "ops")
	hide(t, client, "ops", true)
	if patches(client) != before {
		t.Error("a node that shows nothing was patched")
	}
	err := ShowConditions(t.Context(), client, "n2", Claim{Conditions: []Condition{planned}})
	if !errors.Is(err, ErrNodeGone) {
		t.Errorf("error %v", err)
	}
	if err := HideConditions(t.Context(), client, "n2", Caller{}, true); err != nil {
		t.Errorf("error %v", err)
	}
}

func TestNoMaintenanceTakesAnothersConditionsOff(t *testing.T) {
	for name, first := range map[string]string{"the one that waits goes first": "net", "the one that drains goes first": "ops"} {
		t.Run(name, func(t *testing.T) {
			client := k8stest.NewFake(wellNode.DeepCopy())
			show(t, client, "ops", drains...)
			show(t, client, "net", planned)
			// The node is in maintenance, and the next one is planned.
			if got := statuses(t, client); got[MaintenancePlanned] != corev1.ConditionTrue || got[MaintenanceInProgress] != corev1.ConditionTrue {
				t.Errorf("both show %v", got)
			}
			show(t, client, "ops", drains...)
			if got := statuses(t, client); got[MaintenancePlanned] != corev1.ConditionTrue {
				t.Errorf("both show %v", got)
			}
			hide(t, client, first, true)
			got := statuses(t, client)
			_, inProgress := got[MaintenanceInProgress]
			if inProgress != (first == "net") || (got[MaintenancePlanned] == corev1.ConditionTrue) != (first == "ops") {
				t.Errorf("after %s went: %v", first, got)
			}
			hide(t, client, "nobody", false)
			hide(t, client, "net", false)
			hide(t, client, "ops", false)
			expectAsFound(t, client)
		})
	}
}

func TestConditionsThatNobodyClaimsAreOnlyTheirsWhoShowedThem(t *testing.T) {
	client := k8stest.NewFake(wellNode.DeepCopy())
	show(t, client, "ops", drains...)
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	delete(node.Annotations, api.ConditionsAnnotation)
	if _, err := client.All.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	hide(t, client, "net", false)
	if got := statuses(t, client); got[MaintenanceInProgress] != corev1.ConditionTrue {
		t.Errorf("somebody who showed nothing left %v", got)
	}
	hide(t, client, "ops", true)
	expectAsFound(t, client)
}

func TestTheRunBeforeAResetLeavesTheConditions(t *testing.T) {
	client := k8stest.NewFake(wellNode.DeepCopy())
	holder := Holder{WorkflowID: "w-ops", RunID: "r", Run: "second", Requestor: "ops", Cordon: true}
	if _, err := Hold(t.Context(), client, HoldInput{Node: "n1", Phase: "Draining", Holder: holder}); err != nil {
		t.Fatal(err)
	}
	show(t, client, "ops", drains...)
	if err := HideConditions(t.Context(), client, "n1", Caller{WorkflowID: "w-ops", RunID: "r", Run: "first"}, true); err != nil {
		t.Fatal(err)
	}
	if got := statuses(t, client); got[MaintenanceInProgress] != corev1.ConditionTrue {
		t.Errorf("left %v", got)
	}
	// Whoever takes care of a maintenance that does not run any more has no run.
	hide(t, client, "ops", false)
	if got := statuses(t, client); len(got) != 1 {
		t.Errorf("left %v", got)
	}
}

// All annotations of a node share 256 KiB; beyond them it could not be held any more.
func TestManyThatWaitForANodeLeaveRoomOnIt(t *testing.T) {
	client := k8stest.NewFake(wellNode.DeepCopy())
	claims := func() (claims []Claim, size int) {
		node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if claims, err = ClaimsOn(node); err != nil {
			t.Fatal(err)
		}
		return claims, len(node.Annotations[api.ConditionsAnnotation])
	}
	long := planned
	long.Message = strings.Repeat("<reason>", 128)
	for i := range 200 {
		show(t, client, fmt.Sprintf("%s-%d", strings.Repeat("r", 300), i), long)
	}
	all, size := claims()
	if len(all) != maxClaims || size > 64<<10 || statuses(t, client)[MaintenancePlanned] != corev1.ConditionTrue {
		t.Errorf("%d claims in %d bytes", len(all), size)
	}
	// Who holds the node is shown all the same, and who was shown before goes on.
	show(t, client, "holder", drains...)
	again := long
	again.Message = "again"
	show(t, client, strings.TrimPrefix(all[7].WorkflowID, "w-"), again)
	all, _ = claims()
	if len(all) != maxClaims+1 || all[7].Conditions[0].Message != "again" || statuses(t, client)[MaintenanceInProgress] != corev1.ConditionTrue {
		t.Errorf("%d claims, the earlier one shows %+v", len(all), all[7])
	}
}

func TestAnAnnotationThatIsNotDrydocksStopsTheConditions(t *testing.T) {
	node := wellNode.DeepCopy()
	node.Annotations[api.ConditionsAnnotation] = "{"
	err := ShowConditions(t.Context(), k8stest.NewFake(node), "n1", Claim{Conditions: drains})
	if err == nil || !strings.Contains(err.Error(), api.ConditionsAnnotation) {
		t.Errorf("error %v", err)
	}
}

func TestAnAnnotationThatSomebodyEmptiedHasNoClaims(t *testing.T) {
	node := wellNode.DeepCopy()
	node.Annotations[api.ConditionsAnnotation] = ""
	client := k8stest.NewFake(node)
	if err := ShowConditions(t.Context(), client, "n1", Claim{Conditions: drains}); err != nil {
		t.Error(err)
	}
}

func TestTheTaintIsTakenOffByItsHolderOnly(t *testing.T) {
	client := k8stest.NewFake(wellNode.DeepCopy())
	holder := Holder{WorkflowID: "w", RunID: "r", Requestor: "ops", Cordon: true}
	if _, err := Hold(t.Context(), client, HoldInput{Node: "n1", Phase: "Draining", Holder: holder}); err != nil {
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
}
