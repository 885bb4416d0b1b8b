package k8s

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/k8s/k8stest"
)

func TestHasElsewhere(t *testing.T) {
	unready := func(n *corev1.Node) { n.Status.Conditions = nil }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	selecting := onlyOn("pool", "system")
	for name, c := range map[string]struct {
		other []func(*corev1.Node)
		pod   func(*corev1.PodSpec)
		want  bool
	}{
		"another node": {nil, nil, true},
		"without room, which is not its business": {[]func(*corev1.Node){func(n *corev1.Node) { n.Status.Allocatable = nil }}, nil, true},
		"not ready":              {[]func(*corev1.Node){unready}, nil, false},
		"cordoned":               {[]func(*corev1.Node){cordoned}, nil, false},
		"tainted":                {[]func(*corev1.Node){withTaint(corev1.TaintEffectNoSchedule)}, nil, false},
		"tainted, and tolerated": {[]func(*corev1.Node){withTaint(corev1.TaintEffectNoSchedule)}, tolerating, true},
		"not selected":           {nil, selecting, false},
		"selected":               {[]func(*corev1.Node){withLabel("pool", "system")}, selecting, true},
	} {
		t.Run(name, func(t *testing.T) {
			ready := func(n *corev1.Node) {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			}
			here := roomOn("here", "1", ready, withLabel("pool", "system")).Node
			other := roomOn("other", "1", append([]func(*corev1.Node){ready}, c.other...)...).Node
			var changes []func(*corev1.PodSpec)
			if c.pod != nil {
				changes = append(changes, c.pod)
			}
			pod := requesting("drydock", nil, changes...)
			pod.Spec.NodeName = "here"
			if got, err := HasElsewhere(t.Context(), k8stest.NewFake(here, other), pod); err != nil || got != c.want {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
