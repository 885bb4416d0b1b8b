package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
)

func countOf(cluster string) *workflowservice.CountWorkflowExecutionsRequest {
	return &workflowservice.CountWorkflowExecutionsRequest{Query: fmt.Sprintf("%s = '%s' AND WorkflowType = '%s'",
		api.AttributeCluster.GetName(), cluster, api.NodeMaintenanceType)}
}

func TestTwoClustersShareATemporalNamespace(t *testing.T) {
	t.Parallel()
	const config = "scheduler: {maxParallel: 1}"
	near, far := shared.lanes.take(t), ownLane(t, 2)
	here, there := prepareSiteOf(t, near, shared.temporal, config), prepareSiteOf(t, far, shared.temporal, config)
	here.startWorker()
	there.startWorker()
	const node = "worker-01"
	before := map[*site]string{here: here.imprint(node), there: there.imprint(node)}
	ns := there.namespace()
	there.deployment(ns, "web", 2, on(node))
	runs := map[*site]client.WorkflowRun{}
	for _, s := range []*site{here, there} {
		runs[s] = s.begin(node)
	}
	// Each has the one slot of its own scheduler, and holds the node of its own cluster.
	for _, s := range []*site{here, there} {
		if id := runs[s].GetID(); !strings.HasPrefix(id, s.cluster+"/") {
			t.Errorf("workflow ID %s does not begin with the cluster %s", id, s.cluster)
		}
		s.until(runs[s], api.Ready)
		s.mustShow(node, s.mustStatus(runs[s]).RunID, api.Ready)
		if holders := s.holders(); len(holders) != 1 || holders[0] != node {
			t.Errorf("%s: holders %v", s.cluster, holders)
		}
	}
	if left := there.pods(ns); len(left) > 0 && left[0].Spec.NodeName == node {
		t.Errorf("pod %s is still on the drained node", left[0].Name)
	}
	for s, other := range map[*site]*site{here: there, there: here} {
		s.eventually("the lists of "+s.cluster+" are its own", func() error {
			if out := s.mustDrydock("list", "-o", "json"); !strings.Contains(out, s.cluster+"/") || strings.Contains(out, other.cluster+"/") {
				return errors.New(out)
			}
			if out := here.mustDrydock("--cluster", s.cluster, "list", "-o", "json"); !strings.Contains(out, s.cluster+"/") || strings.Contains(out, other.cluster+"/") {
				return errors.New(out)
			}
			answer, err := s.temporal.CountWorkflow(s.ctx, countOf(s.cluster))
			if err == nil && answer.GetCount() != 1 {
				err = fmt.Errorf("%d maintenances have its search attribute", answer.GetCount())
			}
			return err
		})
	}
	// Done over there, from here, by the flag alone: nothing happens to the node of the same name here.
	here.mustDrydock("--cluster", there.cluster, "done", node, "--wait")
	there.back(node, before[there])
	here.mustShow(node, here.mustStatus(runs[here]).RunID, api.Ready)
	here.done(runs[here])
	here.back(node, before[here])
}
