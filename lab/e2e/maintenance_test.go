package e2e

import (
	"strings"
	"testing"

	"drydock.dev/drydock/api"
)

func TestOneMaintenanceFromStartToEnd(t *testing.T) {
	s := newSite(t, "")
	// What somebody set before has to come back.
	const ours, theirs = "cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt"
	s.patchNode("worker-01", `{"metadata":{"annotations":{"`+theirs+`":"false"}}}`)
	t.Cleanup(func() { s.patchNode("worker-01", `{"metadata":{"annotations":{"`+theirs+`":null}}}`) })
	before := s.imprint("worker-01")
	run := s.beginWith("worker-01", `"reason":"kernel","ticket":"OPS-7"`)
	s.until(run, api.Ready)
	s.mustShow("worker-01", run.GetRunID(), api.Ready)
	if a := s.node("worker-01").Annotations; a[ours] != "true" || a[theirs] != "true" {
		t.Errorf("autoscalers may remove the node: %v", a)
	}
	s.done(run)
	s.back("worker-01", before)
	for _, reason := range []string{"MaintenanceStarted", "MaintenanceReady", "MaintenanceCompleted"} {
		told := 0
		for _, event := range s.nodeEvents("worker-01", reason) {
			if strings.Contains(event.Message, "kernel [OPS-7]") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("%d events %s name reason and ticket", told, reason)
		}
	}
}
