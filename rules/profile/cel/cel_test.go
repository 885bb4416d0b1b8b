package cel

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/state"
)

var now = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func example() check.Case {
	return check.Case{Now: now, Since: now.Add(-time.Hour), Profile: "p", State: state.Required, Node: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-1", Labels: map[string]string{"pool": "gpu"}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}}, NodeInfo: corev1.NodeSystemInfo{KernelVersion: "6.1"},
		},
	}}
}

func TestExpressions(t *testing.T) {
	for text, want := range map[string]bool{
		`node.metadata.name == "worker-1"`:                                               true,
		`node.metadata.labels.pool == "cpu"`:                                             false,
		`has(node.spec.unschedulable) && node.spec.unschedulable`:                        true,
		`has(node.spec.taints)`:                                                          false,
		`node.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`:      true,
		`node.status.nodeInfo.kernelVersion.startsWith("6.")`:                            true,
		`profile == "p" && state == "maintenance-required"`:                              true,
		`now - since > duration("30m")`:                                                  true,
		`now.getHours() >= 18`:                                                           false,
		`node.metadata.?annotations["a"].orValue("none") == "none"`:                      true,
		`"spec" in node && !("nothing" in node)`:                                         true,
		`node.spec.unschedulable`:                                                        true,
		`node.metadata.labels.all(k, node.metadata.labels[k] != "" && k.matches("p.*"))`: true,
	} {
		e, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e.Judge(example()); err != nil || got != want {
			t.Errorf("%s: %t, %v", text, got, err)
		}
	}
}

func TestExpressionsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"node.": "line 1, column 6", "other": "undeclared reference", `"text"`: "want true or false", "1 + 1": "want true or false",
		strings.Repeat("a", MaxExpression+1): "exceeds limit", `"a".matches("(")`: "invalid matches argument",
	} {
		if _, err := Compile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

func TestExpressionsThatFail(t *testing.T) {
	for _, text := range []string{`node.metadata.labels.absent == "x"`, "node.spec", "node.metadata.name"} {
		e, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Judge(example()); err == nil || got {
			t.Errorf("%s: %t, %v", text, got, err)
		}
	}
}
