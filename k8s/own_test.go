package k8s

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
)

// A pod of Drydock's own is spared; one that only says so is not.
func TestASelectionSparesDrydocksOwnPods(t *testing.T) {
	yes := true
	own := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "drydock-work", Name: "reboot", Labels: map[string]string{api.WorkflowLabel: "1"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "reboot", Controller: &yes}},
		}}
		change(pod)
		return pod
	}
	all, err := NewSelection("", nil)
	if err != nil {
		t.Fatal(err)
	}
	spares := all.Sparing([]string{"drydock-jobs", "drydock-work"})
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		spared bool
	}{
		"own":             {own(func(*corev1.Pod) {}), true},
		"elsewhere":       {own(func(p *corev1.Pod) { p.Namespace = "shop" }), false},
		"without a Job":   {own(func(p *corev1.Pod) { p.OwnerReferences = nil }), false},
		"without a label": {own(func(p *corev1.Pod) { p.Labels = nil }), false},
	} {
		if spares.IsOwn(c.pod) != c.spared || spares.Selects(c.pod) == c.spared || !all.Selects(c.pod) {
			t.Errorf("%s: spared %v, want %v", name, spares.IsOwn(c.pod), c.spared)
		}
	}
}
