package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func countOf(cluster string) *workflowservice.CountWorkflowExecutionsRequest {
	return &workflowservice.CountWorkflowExecutionsRequest{Query: fmt.Sprintf("%s = '%s' AND WorkflowType = '%s'",
		api.AttributeCluster.GetName(), cluster, api.NodeMaintenanceType)}
}

func TestTwoClustersShareATemporalNamespace(t *testing.T) {
	t.Parallel()
	const config = "scheduler: {maxParallel: 1}"
	near, far := site.Shared.Lanes.Take(t), site.OwnLane(t, 2)
	here, there := site.PrepareOf(t, near, site.Shared.Temporal, config), site.PrepareOf(t, far, site.Shared.Temporal, config)
	here.StartWorker()
	there.StartWorker()
	const node = "worker-01"
	before := map[*site.Site]string{here: here.Imprint(node), there: there.Imprint(node)}
	ns := there.Namespace()
	there.Deployment(ns, "web", 2, site.On(node))
	runs := map[*site.Site]client.WorkflowRun{}
	for _, s := range []*site.Site{here, there} {
		runs[s] = s.Begin(node)
	}
	// Each has the one slot of its own scheduler, and holds the node of its own cluster.
	for _, s := range []*site.Site{here, there} {
		if id := runs[s].GetID(); !strings.HasPrefix(id, s.Cluster+"/") {
			t.Errorf("workflow ID %s does not begin with the cluster %s", id, s.Cluster)
		}
		s.Until(runs[s], api.Ready)
		s.MustShow(node, s.MustStatus(runs[s]).RunID, api.Ready)
		if holders := s.Holders(); len(holders) != 1 || holders[0] != node {
			t.Errorf("%s: holders %v", s.Cluster, holders)
		}
	}
	if left := there.Pods(ns); len(left) > 0 && left[0].Spec.NodeName == node {
		t.Errorf("pod %s is still on the drained node", left[0].Name)
	}
	for s, other := range map[*site.Site]*site.Site{here: there, there: here} {
		s.Eventually("the lists of "+s.Cluster+" are its own", func() error {
			if out := s.MustDrydock("list", "-o", "json"); !strings.Contains(out, s.Cluster+"/") || strings.Contains(out, other.Cluster+"/") {
				return errors.New(out)
			}
			if out := here.MustDrydock("--cluster", s.Cluster, "list", "-o", "json"); !strings.Contains(out, s.Cluster+"/") || strings.Contains(out, other.Cluster+"/") {
				return errors.New(out)
			}
			answer, err := s.Temporal.CountWorkflow(s.Ctx, countOf(s.Cluster))
			if err == nil && answer.GetCount() != 1 {
				err = fmt.Errorf("%d maintenances have its search attribute", answer.GetCount())
			}
			return err
		})
	}
	// Done over there, from here, by the flag alone: nothing happens to the node of the same name here.
	here.MustDrydock("--cluster", there.Cluster, "done", node, "--wait")
	there.Back(node, before[there])
	here.MustShow(node, here.MustStatus(runs[here]).RunID, api.Ready)
	here.Done(runs[here])
	here.Back(node, before[here])
}
