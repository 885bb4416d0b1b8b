package caller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/maintain"
)

// newPlanner has a workflow maintain the first three nodes under a plan, whose name is made of the workflow if it is empty.
func newPlanner(t *testing.T, plan string, strategy map[string]any) *caller {
	t.Helper()
	c := &caller{Site: site.New(t, "scheduler: {maxParallel: 4}"), works: newWorks()}
	in := maintain.PlanInput{Name: plan, Reason: "BIOS 2.4", Cluster: maintain.Cluster{Name: c.Cluster}, Fields: map[string]any{
		"nodes": []string{"worker-01", "worker-02", "worker-03"}, "strategy": strategy,
	}}
	c.start(func(ctx workflow.Context, work maintain.Work) error { return maintain.Nodes(ctx, in, work) })
	return c
}

// maintained is how many maintenances and plans there were in the cluster.
func (c *caller) maintained(kind string, want int64) {
	c.Helper()
	c.Eventually(fmt.Sprintf("there were %d of type %s", want, kind), func() error {
		counted, err := c.Temporal.CountWorkflow(c.Ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowType = '%s' AND TaskQueue = '%s/drydock'", kind, c.Cluster),
		})
		if err == nil && counted.GetCount() != want {
			err = fmt.Errorf("there were %d", counted.GetCount())
		}
		return err
	})
}

func TestAWorkflowMaintainsNodesUnderAPlan(t *testing.T) {
	c := newPlanner(t, "", map[string]any{"maxParallel": 2})
	before := c.Imprints()
	c.isAtWork(2)
	c.ends <- nil
	c.isAtWork(3)
	c.ends <- nil
	c.ends <- nil
	if err := c.returns(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"worker-01", "worker-02", "worker-03"} {
		c.Back(name, before[name])
	}
	c.maintained(api.NodeMaintenanceType, 3)
	c.maintained(api.MaintenancePlanType, 1)
}

// A caller is reset to its latest task, to before it began the plan, and without the reports that came since; then it is terminated and begun
// again. No node is maintained twice, and one that is done is left alone.
func TestAResetCallerGoesOnWithItsPlan(t *testing.T) {
	c := newPlanner(t, "", map[string]any{"maxParallel": 1})
	c.isAtWork(1)
	c.ends <- nil
	c.isAtWork(2)
	c.run = c.ResetTo(c.run, c.LastTask(c.run.GetID()), true)
	c.isAtWork(3)
	c.run = c.ResetTo(c.run, c.FirstTask(c.run.GetID()), true)
	c.isAtWork(4)
	c.run = c.ResetTo(c.run, c.FirstTask(c.run.GetID()), false)
	c.isAtWork(5)
	if err := c.Temporal.TerminateWorkflow(c.Ctx, c.run.GetID(), "", "by hand"); err != nil {
		t.Fatal(err)
	}
	again, err := c.Temporal.ExecuteWorkflow(c.Ctx, client.StartWorkflowOptions{ID: c.run.GetID(), TaskQueue: c.ID + "-caller"}, "Caller")
	if err != nil {
		t.Fatal(err)
	}
	c.run = again
	c.isAtWork(6)
	c.ends <- nil
	c.isAtWork(7)
	c.ends <- nil
	if err := c.returns(); err != nil {
		t.Fatal(err)
	}
	c.maintained(api.NodeMaintenanceType, 3)
	c.maintained(api.MaintenancePlanType, 1)

	// Reset after its end, it knows that the plan is done.
	c.run = c.ResetTo(c.run, c.FirstTask(c.run.GetID()), true)
	if err := c.returns(); err != nil {
		t.Fatal(err)
	}
	if len(c.states()) != 7 {
		t.Errorf("the work was begun %d times", len(c.states()))
	}
	c.maintained(api.NodeMaintenanceType, 3)
}

func TestACancelledCallerEndsItsPlan(t *testing.T) {
	c := newPlanner(t, "bios", map[string]any{"maxParallel": 1})
	c.isAtWork(1)
	if err := c.Temporal.CancelWorkflow(c.Ctx, c.run.GetID(), ""); err != nil {
		t.Fatal(err)
	}
	if err := c.returns(); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("it returned %v", err)
	}
	c.Until(c.Temporal.GetWorkflow(c.Ctx, api.MaintenanceID(c.Cluster, "worker-01", "plan-bios"), ""), api.RequestorFailed)
	c.MustDrydock("cancel", "worker-01", "--release", "--yes", "--requestor", "plan-bios")
	c.maintained(api.NodeMaintenanceType, 1)
}

// Another workflow names the plan of a caller: it is refused, and its cancellation ends nothing of the caller's.
func TestTheCancellationOfAnotherWorkflowLeavesThePlanAlone(t *testing.T) {
	c := newPlanner(t, "bios", map[string]any{"maxParallel": 1})
	c.isAtWork(1)
	other, err := c.Temporal.ExecuteWorkflow(c.Ctx, client.StartWorkflowOptions{ID: c.ID + "/other", TaskQueue: c.ID + "-caller"}, "Caller")
	if err != nil {
		t.Fatal(err)
	}
	plan := api.PlanID(c.Cluster, "bios")
	c.Eventually("the plan has refused it", func() error {
		value, err := c.Temporal.QueryWorkflow(c.Ctx, plan, "", api.QueryStatus)
		var status api.PlanStatus
		if err == nil {
			err = value.Get(&status)
		}
		for _, m := range status.Messages {
			if m.Outcome == api.Ignored && strings.Contains(m.Effect, "it reports to workflow "+c.run.GetID()) {
				return err
			}
		}
		return errors.Join(err, fmt.Errorf("it says %+v", status.Messages))
	})
	if err := c.Temporal.CancelWorkflow(c.Ctx, other.GetID(), ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.Ctx, site.Patience)
	defer cancel()
	if err := other.Get(ctx, nil); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("it returned %v", err)
	}
	for times := range 3 {
		c.isAtWork(times + 1)
		c.ends <- nil
	}
	if err := c.returns(); err != nil {
		t.Fatal(err)
	}
	c.maintained(api.NodeMaintenanceType, 3)
}
