package invocation

import (
	"testing"
)

func TestControlPlaneNodes(t *testing.T) {
	for label, want := range map[string]bool{
		"node-role.kubernetes.io/control-plane": true, "node-role.kubernetes.io/master": true, "node-role.kubernetes.io/worker": false,
	} {
		if got := (Node{Labels: map[string]string{label: ""}}).ControlPlane(); got != want {
			t.Errorf("%s: %v", label, got)
		}
	}
}
