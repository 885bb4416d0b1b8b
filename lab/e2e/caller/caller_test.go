package caller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/maintain"
)

// caller is a workflow in the test's own worker that maintains nodes: its work is an activity that lasts until the test ends it.
type caller struct {
	*site.Site
	run client.WorkflowRun
	// before is the node as it was before it was maintained.
	before string
	works
}

// newCaller has a workflow maintain worker-01.
func newCaller(t *testing.T, in maintain.Input) *caller {
	t.Helper()
	c := &caller{Site: site.New(t, ""), works: newWorks()}
	in.Node, in.Cluster.Name, c.before = "worker-01", c.Cluster, c.Imprint("worker-01")
	c.start(func(ctx workflow.Context, work maintain.Work) error { return maintain.Node(ctx, in, work) })
	return c
}

// start starts the workflow.
func (c *caller) start(maintains func(workflow.Context, maintain.Work) error) {
	c.Helper()
	queue := c.ID + "-caller"
	w := worker.New(c.Temporal, queue, worker.Options{WorkerStopTimeout: time.Second})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		return maintains(ctx, func(ctx workflow.Context, m *maintain.Held) error {
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
				StartToCloseTimeout: site.TestTime, HeartbeatTimeout: 3 * time.Second, WaitForCancellation: true,
				RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
			})
			return workflow.ExecuteActivity(ctx, "Work", m.Node).Get(ctx, nil)
		})
	}, workflow.RegisterOptions{Name: "Caller"})
	w.RegisterActivityWithOptions(c.work, activity.RegisterOptions{Name: "Work"})
	if err := w.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(w.Stop)
	var err error
	c.run, err = c.Temporal.ExecuteWorkflow(c.Ctx, client.StartWorkflowOptions{ID: c.ID + "/caller", TaskQueue: queue}, "Caller")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		// It has ended unless the test has failed.
		_ = c.Temporal.TerminateWorkflow(context.Background(), c.run.GetID(), "", "the test is over")
	})
}

func (c *caller) work(ctx context.Context, node string) error { return c.works.work(ctx, c.Site, node) }

func (c *caller) isAtWork(times int) {
	c.Helper()
	c.works.isAtWork(c.Site, times)
}

func (c *caller) maintenance() client.WorkflowRun {
	return c.Temporal.GetWorkflow(c.Ctx, api.MaintenanceID(c.Cluster, "worker-01", maintain.RequestorOf(c.run.GetID())), "")
}

// began is how many maintenances of the node there were.
func (c *caller) began() int {
	c.Helper()
	var runs int
	c.Eventually("the maintenance is visible", func() error {
		page, err := c.Temporal.ListWorkflow(c.Ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowId = '%s'", c.maintenance().GetID()),
		})
		if err == nil && len(page.GetExecutions()) == 0 {
			err = errors.New("there is none")
		}
		runs = len(page.GetExecutions())
		return err
	})
	return runs
}

// told counts the messages of a name that a maintenance took.
func (c *caller) told(name string) (applied int) {
	c.Helper()
	for _, m := range c.MustStatus(c.maintenance()).Messages {
		if m.Name == name && m.Outcome == api.Applied {
			applied++
		}
	}
	return applied
}

// returns waits for the end of the caller's present run.
func (c *caller) returns() error {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Ctx, site.Patience)
	defer cancel()
	return c.Temporal.GetWorkflow(ctx, c.run.GetID(), "").Get(ctx, nil)
}

func TestAWorkflowMaintainsANode(t *testing.T) {
	c := newCaller(t, maintain.Input{Reason: "BIOS 2.4"})
	ns := c.Namespace()
	c.isAtWork(1)
	status := c.Until(c.maintenance(), api.Ready)
	if status.Spec.Reason != "BIOS 2.4" || status.ReportsTo == nil || status.ReportsTo.Workflow != c.run.GetID() {
		t.Errorf("the maintenance has reason %q, and reports to %v", status.Spec.Reason, status.ReportsTo)
	}
	if left := c.PodsOn(ns, "worker-01"); len(left) > 0 {
		t.Errorf("the node is Ready with pods %v", left)
	}
	c.ends <- nil
	if err := c.returns(); err != nil {
		t.Fatal(err)
	}
	c.Back("worker-01", c.before)
	if c.told(api.MsgDone) != 1 || c.began() != 1 {
		t.Errorf("it was done %d times in %d maintenances", c.told(api.MsgDone), c.began())
	}
}

func TestFailedWorkOfAWorkflowLeavesTheNodeToADecision(t *testing.T) {
	c := newCaller(t, maintain.Input{AwaitDecision: true})
	c.isAtWork(1)
	c.ends <- errors.New("wrong checksum")
	if status := c.Until(c.maintenance(), api.RequestorFailed); status.Failure != "wrong checksum" {
		t.Errorf("it failed by %q", status.Failure)
	}
	c.MustDrydock("retry", "worker-01", "--requestor", maintain.RequestorOf(c.run.GetID()))
	c.isAtWork(2)
	c.ends <- nil
	if err := c.returns(); err != nil {
		t.Fatal(err)
	}
}

// A caller is reset to its latest task, to before it began the maintenance, and without the reports that came since.
func TestAResetCallerBeginsNothingTwice(t *testing.T) {
	c := newCaller(t, maintain.Input{})
	c.isAtWork(1)
	c.run = c.ResetTo(c.run, c.LastTask(c.run.GetID()), true)
	c.isAtWork(2)
	c.run = c.ResetTo(c.run, c.FirstTask(c.run.GetID()), true)
	c.isAtWork(3)
	c.run = c.ResetTo(c.run, c.FirstTask(c.run.GetID()), false)
	c.isAtWork(4)
	c.ends <- nil
	if err := c.returns(); err != nil {
		t.Fatal(err)
	}
	if c.told(api.MsgDone) != 1 || c.began() != 1 {
		t.Errorf("it was done %d times in %d maintenances", c.told(api.MsgDone), c.began())
	}
}

// A caller that has ended is reset into its work: the node is in service, and nothing may be done to it.
func TestACallerThatIsResetAfterItsEndTouchesNoNode(t *testing.T) {
	c := newCaller(t, maintain.Input{})
	c.isAtWork(1)
	atWork := c.LastTask(c.run.GetID())
	c.ends <- nil
	if err := c.returns(); err != nil {
		t.Fatal(err)
	}
	c.run = c.ResetTo(c.run, atWork, false)
	if err := c.returns(); err == nil || !strings.Contains(err.Error(), "the maintenance of worker-01 ended") {
		t.Errorf("it returned %v", err)
	}
	c.isAtWork(1)
	if len(c.states()) != 1 || c.began() != 1 {
		t.Errorf("the work was begun on nodes that were %q, in %d maintenances", c.states(), c.began())
	}
	c.Back("worker-01", c.before)
}

func TestACancelledCallerLeavesItsNodeAsTold(t *testing.T) {
	for name, in := range map[string]maintain.Input{"to a decision": {}, "in service": {GiveBackOnCancel: true}} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t, in)
			c.isAtWork(1)
			if err := c.Temporal.CancelWorkflow(c.Ctx, c.run.GetID(), ""); err != nil {
				t.Fatal(err)
			}
			if err := c.returns(); err == nil || !strings.Contains(err.Error(), "canceled") {
				t.Errorf("it returned %v", err)
			}
			if !in.GiveBackOnCancel {
				c.Until(c.maintenance(), api.RequestorFailed)
				c.MustDrydock("cancel", "worker-01", "--release", "--yes", "--requestor", maintain.RequestorOf(c.run.GetID()))
			}
			c.Back("worker-01", c.before)
		})
	}
}

// A caller that was terminated is started again, and finds its node held.
func TestACallerThatBeginsAgainAdoptsItsNode(t *testing.T) {
	c := newCaller(t, maintain.Input{})
	c.isAtWork(1)
	if err := c.Temporal.TerminateWorkflow(c.Ctx, c.run.GetID(), "", "by hand"); err != nil {
		t.Fatal(err)
	}
	again, err := c.Temporal.ExecuteWorkflow(c.Ctx, client.StartWorkflowOptions{ID: c.run.GetID(), TaskQueue: c.ID + "-caller"}, "Caller")
	if err != nil {
		t.Fatal(err)
	}
	c.run = again
	c.isAtWork(2)
	c.ends <- nil
	if err := c.returns(); err != nil {
		t.Fatal(err)
	}
	if c.began() != 1 {
		t.Errorf("there were %d maintenances", c.began())
	}
}

// The command line has a maintenance report to any workflow.
func TestAMaintenanceReportsToTheWorkflowOfAScript(t *testing.T) {
	s := site.New(t, "")
	var mu sync.Mutex
	var phases []string
	queue := s.ID + "-listener"
	w := worker.New(s.Temporal, queue, worker.Options{WorkerStopTimeout: time.Second})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		for reports := workflow.GetSignalChannel(ctx, "node-report"); ; {
			var r api.MaintenanceReport
			reports.Receive(ctx, &r)
			mu.Lock()
			phases = append(phases, string(r.Phase))
			mu.Unlock()
			if r.Phase.Ended() {
				return nil
			}
		}
	}, workflow.RegisterOptions{Name: "Listener"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	listener, err := s.Temporal.ExecuteWorkflow(s.Ctx, client.StartWorkflowOptions{ID: s.ID + ":listener", TaskQueue: queue}, "Listener")
	if err != nil {
		t.Fatal(err)
	}
	s.MustDrydock("start", "worker-01", "--signal", listener.GetID()+":node-report", "--wait")
	s.Exits(s.Drydock("report-to", "worker-01", "somebody-else:node-report"), 1, "it reports to workflow "+listener.GetID())
	s.Exits(s.Drydock("report-to", "worker-01", "nonsense"), 2, "WORKFLOW:NAME")
	s.Exits(s.Drydock("start", "worker-02", "--signal", "a:done"), 2, "one of Drydock's own")
	s.MustDrydock("report-to", "worker-01", listener.GetID()+":node-report")
	s.MustDrydock("done", "worker-01", "--wait")
	ctx, cancel := context.WithTimeout(s.Ctx, site.Patience)
	defer cancel()
	if err := listener.Get(ctx, nil); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if phases = slices.Compact(phases); phases[0] != "Ready" || phases[len(phases)-1] != "Completed" {
		t.Errorf("it was told %v", phases)
	}
}
