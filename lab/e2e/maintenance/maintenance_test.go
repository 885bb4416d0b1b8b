package maintenance

import (
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestOneMaintenanceFromStartToEnd(t *testing.T) {
	s := site.New(t, "")
	// What somebody set before has to come back.
	const ours, theirs = "cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt"
	s.PatchNode("worker-01", `{"metadata":{"annotations":{"`+theirs+`":"false"}}}`)
	t.Cleanup(func() { s.PatchNode("worker-01", `{"metadata":{"annotations":{"`+theirs+`":null}}}`) })
	before := s.Imprint("worker-01")
	run := s.BeginWith("worker-01", `"reason":"kernel","ticket":"OPS-7"`)
	s.Until(run, api.Ready)
	s.MustShow("worker-01", run.GetRunID(), api.Ready)
	if a := s.Node("worker-01").Annotations; a[ours] != "true" || a[theirs] != "true" {
		t.Errorf("autoscalers may remove the node: %v", a)
	}
	s.Done(run)
	s.Back("worker-01", before)
	for _, reason := range []string{"MaintenanceStarted", "MaintenanceReady", "MaintenanceCompleted"} {
		told := 0
		for _, event := range s.NodeEvents("worker-01", reason) {
			if strings.Contains(event.Message, "kernel [OPS-7]") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("%d events %s name reason and ticket", told, reason)
		}
	}
}
