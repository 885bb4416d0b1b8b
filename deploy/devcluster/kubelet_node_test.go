package main

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

var testNow = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// playedNode is a node after its first report, changed by change.
func playedNode(t *testing.T, change func(*corev1.Node)) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", UID: "1", CreationTimestamp: metav1.NewTime(testNow.Add(-time.Hour)),
	}}
	node = mustPatch(t, node, firstReport(node, testNow))
	node.Labels = map[string]string{}
	if change != nil {
		change(node)
	}
	return node
}

// mustPatch applies a status as the API server does.
func mustPatch[T any](t *testing.T, to *T, status object) *T {
	t.Helper()
	before, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(object{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	patched, err := strategicpatch.StrategicMergePatch(before, patch, *to)
	if err != nil {
		t.Fatal(err)
	}
	var after T
	if err := json.Unmarshal(patched, &after); err != nil {
		t.Fatal(err)
	}
	return &after
}

func setReady(node *corev1.Node, status corev1.ConditionStatus) {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			node.Status.Conditions[i].Status = status
		}
	}
}

func TestNodeStep(t *testing.T) {
	const created = -time.Hour
	down := func(label string, ready corev1.ConditionStatus) func(*corev1.Node) {
		return func(node *corev1.Node) {
			node.Labels[notReadyLabel] = label
			setReady(node, ready)
		}
	}
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		now    time.Time
		want   corev1.ConditionStatus // of Ready, after the step; empty for no step
		reason string
		since  time.Duration // its transition after testNow, 0 for the step itself
	}{
		"a new node":               {func(n *corev1.Node) { n.Status = corev1.NodeStatus{} }, testNow, "True", "KubeletReady", created},
		"a new node to be down":    {func(n *corev1.Node) { n.Status = corev1.NodeStatus{}; n.Labels[notReadyLabel] = "true" }, testNow, "True", "KubeletReady", created},
		"a healthy node":           {nil, testNow.Add(heartbeatEvery - time.Second), "", "", 0},
		"a heartbeat":              {nil, testNow.Add(heartbeatEvery + heartbeatJitter), "True", "KubeletReady", created},
		"not ready":                {down("true", "True"), testNow, "False", "KubeletNotReady", 0},
		"unknown":                  {down("unknown", "True"), testNow, "Unknown", "NodeStatusUnknown", 0},
		"stays down":               {down("true", "False"), testNow.Add(time.Hour), "", "", 0},
		"stays silent":             {down("unknown", "Unknown"), testNow.Add(time.Hour), "", "", 0},
		"another value":            {down("no", "True"), testNow, "", "", 0},
		"recovers":                 {down("", "False"), testNow, "True", "KubeletReady", 0},
		"recovers without a label": {func(n *corev1.Node) { setReady(n, "Unknown") }, testNow, "True", "KubeletReady", 0},
		"its Ready was taken away": {func(n *corev1.Node) { n.Status.Conditions = nil }, testNow, "True", "KubeletReady", 0},
	} {
		t.Run(name, func(t *testing.T) {
			node := playedNode(t, test.change)
			status, again := nodeStep(node, test.now)
			if test.want == "" {
				if status != nil {
					t.Errorf("unexpected report %v", status)
				}
				if isDown := nodeReady(node) != corev1.ConditionTrue; isDown != (again == 0) {
					t.Errorf("next look after %s", again)
				}
				return
			}
			after := mustPatch(t, node, status)
			ready := after.Status.Conditions[0]
			if ready.Status != test.want || ready.Reason != test.reason || after.Status.Phase != corev1.NodeRunning {
				t.Errorf("phase %s, condition %+v", after.Status.Phase, ready)
			}
			if !ready.LastHeartbeatTime.Time.Equal(test.now) {
				t.Errorf("heartbeat at %s, want %s", ready.LastHeartbeatTime, test.now)
			}
			since := test.now
			if test.since != 0 {
				since = testNow.Add(test.since)
			}
			if !ready.LastTransitionTime.Time.Equal(since) {
				t.Errorf("transition at %s, want %s", ready.LastTransitionTime, since)
			}
		})
	}
}

func TestANodeRecoversFromWhatWasMadeUnknown(t *testing.T) {
	node := playedNode(t, func(n *corev1.Node) {
		setReady(n, "Unknown")
		for i, condition := range n.Status.Conditions {
			switch condition.Type {
			case corev1.NodeMemoryPressure:
				n.Status.Conditions[i].Status = corev1.ConditionUnknown
			case corev1.NodeDiskPressure:
				n.Status.Conditions[i].Status = corev1.ConditionTrue // a test has set it
			}
		}
	})
	status, _ := nodeStep(node, testNow)
	for _, condition := range mustPatch(t, node, status).Status.Conditions {
		want := map[corev1.NodeConditionType]corev1.ConditionStatus{
			corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse, corev1.NodeDiskPressure: corev1.ConditionTrue,
		}[condition.Type]
		if want != "" && condition.Status != want {
			t.Errorf("%s is %s, want %s", condition.Type, condition.Status, want)
		}
	}
}

func TestHeartbeatChangesTimesAlone(t *testing.T) {
	node := playedNode(t, func(n *corev1.Node) {
		n.Status.Conditions[1].Status = corev1.ConditionTrue
		n.Status.Conditions = append(n.Status.Conditions[:4], corev1.NodeCondition{Type: "Mine", Status: corev1.ConditionTrue})
	})
	after := mustPatch(t, node, heartbeat(node, testNow.Add(time.Hour)))
	if len(after.Status.Conditions) != len(node.Status.Conditions) {
		t.Fatalf("conditions %+v", after.Status.Conditions)
	}
	for i, condition := range after.Status.Conditions {
		before := node.Status.Conditions[i]
		if moved := !condition.LastHeartbeatTime.Equal(&before.LastHeartbeatTime); moved != (condition.Type != "Mine") {
			t.Errorf("heartbeat of %s at %s", condition.Type, condition.LastHeartbeatTime)
		}
		if condition.Status != before.Status || !condition.LastTransitionTime.Equal(&before.LastTransitionTime) {
			t.Errorf("%+v became %+v", before, condition)
		}
	}
}

func TestFirstReportKeepsWhatIsThere(t *testing.T) {
	bare := playedNode(t, nil)
	if len(bare.Status.Conditions) != 5 || bare.Status.Allocatable.Pods().Value() != 110 || bare.Status.NodeInfo.OperatingSystem != "linux" {
		t.Errorf("status of a bare node: %+v", bare.Status)
	}
	if ip, name := nodeAddresses(bare, corev1.NodeInternalIP), nodeAddresses(bare, corev1.NodeHostName); len(ip) != 1 || len(name) != 1 || name[0] != "n1" {
		t.Errorf("addresses %v", bare.Status.Addresses)
	}
	given := &corev1.Node{Status: corev1.NodeStatus{
		Capacity:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.16.0.9"}},
		NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v9"},
		Conditions: []corev1.NodeCondition{{Type: "Mine", Status: corev1.ConditionTrue}},
	}}
	status := mustPatch(t, given, firstReport(given, testNow)).Status
	if status.Capacity.Cpu().Value() != 4 || len(status.Capacity) != 1 || status.NodeInfo.KubeletVersion != "v9" ||
		len(status.Addresses) != 2 || status.Addresses[0].Address != "172.16.0.9" && status.Addresses[1].Address != "172.16.0.9" ||
		len(status.Conditions) != 6 {
		t.Errorf("status %+v", status)
	}
}
