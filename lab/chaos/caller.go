package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/maintain"
	"drydock.dev/drydock/rules/plan"
)

// calling is how a workflow of somebody else's has the nodes maintained, by package maintain.
type calling string

const (
	// byNode: it calls for each node.
	byNode calling = "node"
	// byNodeAgain: it is terminated while a node is Ready, and begun again, so that it has to adopt the maintenances.
	byNodeAgain calling = "node-again"
	// forLong: its work lasts so long that the hold has to be extended.
	forLong calling = "for-long"
	// byPlan: it calls once, for a plan.
	byPlan calling = "plan"
	// byPlanAgain: it is terminated as well, and has to adopt the plan.
	byPlanAgain calling = "plan-again"
)

func (c calling) plans() bool { return c == byPlan || c == byPlanAgain }

func (c calling) again() bool { return c == byNodeAgain || c == byPlanAgain }

const (
	callerType   = "ChaosCaller"
	callerWork   = "ChaosWork"
	reportPrefix = "drydock/"
	// workTakes is how long the work on a node lasts, longWorkTakes where the hold is to be extended in the middle of longReady.
	workTakes     = 3 * time.Second
	longWorkTakes = 35 * time.Second
	longReady     = "60s"
)

// callerSteps are those of callers.
var callerSteps = []step{
	{name: "call-node", what: "a workflow begins the maintenance of a node", call: byCaller(starts(api.NodeMaintenanceType)), calls: byNode},
	{name: "report", what: "a maintenance reports to it", call: reports, calls: byNode},
	{name: "call-work", what: "the activity of that workflow that works on the node", task: callerWork, calls: byNode},
	{name: "call-extend", what: "it extends the hold", call: byCaller(signals(api.MsgExtend)), calls: forLong},
	{name: "call-done", what: "it says done", call: byCaller(signals(api.MsgDone)), calls: byNode},
	{name: "call-end", what: "it completes", call: byCaller("CompleteWorkflowExecution"), calls: byNode},
	{name: "ask-report", what: "it begins again, and asks the maintenance that it finds for reports", call: byCaller(signals(api.MsgReportTo)), calls: byNodeAgain},
	{name: "call-plan", what: "it begins a plan", call: byCaller(starts(api.MaintenancePlanType)), calls: byPlan},
	{name: "plan-node-report", what: "a maintenance of the plan reports to it", call: reports, calls: byPlan},
	{name: "ask-plan-report", what: "it begins again, and asks the plan that it finds for reports", call: byCaller(signals(api.MsgReportTo)), calls: byPlanAgain},
}

// reports recognizes a workflow task by which a maintenance or a plan reports to a caller.
func reports(c call) bool {
	return slices.ContainsFunc(c.commands, func(name string) bool { return strings.HasPrefix(name, signals(reportPrefix)) })
}

func byCaller(name string) func(call) bool {
	return func(c call) bool { return c.from == callerType && command(name)(c) }
}

// canHappenToCallers leaves out what the API server answers, and faults to which callers are nothing special.
func (c cell) canHappenToCallers() bool {
	switch {
	case c.kind == terminateCaller && c.step.name == "call-end" && c.when == after:
		return false // it has ended
	case c.kind == resetMaintenance:
		return !slices.Contains([]string{"call-node", "call-plan", "call-end"}, c.step.name) // there is none yet, or all have ended
	case c.kind.onCaller():
		return true
	}
	return slices.Contains([]kind{killWorker, cutTemporal, restartTemporal, resetScheduler, poison, stripMark, liftCordon, expireCredentials}, c.kind)
}

// caller is an attempt whose maintenances are a workflow's that is not Drydock's.
type caller struct {
	*attempt
	id string

	mu      sync.Mutex
	proxy   *temporalProxy
	client  client.Client
	worker  worker.Worker
	running bool
	// worked counts how often the work on a node was done to its end, and wrong is where it was done on one that was not held for it.
	worked map[string]int
	wrong  []error
}

func newCaller(a *attempt) *caller {
	return &caller{attempt: a, id: fmt.Sprintf("%s/caller-%d", a.cluster, a.runs), worked: map[string]int{}}
}

// callerInput is that of the workflow.
type callerInput struct {
	Nodes     []string
	Requestor string
	// Plan is the plan's name; if empty, each node is called for.
	Plan    string
	Fields  map[string]any
	Cluster maintain.Cluster
	Takes   time.Duration
}

// callerWorkflow has the nodes maintained.
func callerWorkflow(ctx workflow.Context, in callerInput) error {
	work := func(ctx workflow.Context, m *maintain.Held) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: endsWithin, HeartbeatTimeout: 3 * time.Second, WaitForCancellation: true,
		})
		return workflow.ExecuteActivity(ctx, callerWork, m, in.Takes).Get(ctx, nil)
	}
	if in.Plan != "" {
		return maintain.Nodes(ctx, maintain.PlanInput{Name: in.Plan, Fields: in.Fields, Cluster: in.Cluster}, work)
	}
	var problems []error
	all := workflow.NewWaitGroup(ctx)
	for _, node := range in.Nodes {
		all.Add(1)
		workflow.GoNamed(ctx, node, func(ctx workflow.Context) {
			defer all.Done()
			problems = append(problems, maintain.Node(ctx, maintain.Input{Node: node, Requestor: in.Requestor, Fields: in.Fields, Cluster: in.Cluster}, work))
		})
	}
	all.Wait(ctx)
	return errors.Join(problems...)
}

// work is the activity. It looks whether the node is held for it, in the beginning and in the end.
func (c *caller) work(ctx context.Context, m maintain.Held, takes time.Duration) error {
	c.look(ctx, m)
	over := time.After(takes)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			c.look(ctx, m)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.worked[m.Node]++
			return nil
		case <-time.After(200 * time.Millisecond):
			activity.RecordHeartbeat(ctx)
		}
	}
}

// look notes what is wrong with a node that is worked on.
func (c *caller) look(ctx context.Context, m maintain.Held) {
	if c.cell.kind == stripMark || c.cell.kind == liftCordon {
		return // the node itself says that it is not held, until it is held again
	}
	err := c.isOut(ctx, m)
	if err != nil && ctx.Err() == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.wrong = append(c.wrong, err)
	}
}

// isOut looks whether a maintenance holds its node, which is cordoned, and none of the lane's pods runs there. What the node's label says of
// the phase may come later.
func (c *caller) isOut(ctx context.Context, m maintain.Held) error {
	n, err := c.kube.CoreV1().Nodes().Get(ctx, m.Node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !n.Spec.Unschedulable || !holds(n, &maintained{first: m.RunID}) {
		return fmt.Errorf("%s was worked on with cordon %v and holders %s", m.Node, n.Spec.Unschedulable, n.Annotations[api.HoldersAnnotation])
	}
	pods, err := c.kube.CoreV1().Pods(c.name).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + m.Node + ",status.phase=Running"})
	if err == nil && len(pods.Items) > 0 {
		err = fmt.Errorf("%s was worked on with %d pods, as %s", m.Node, len(pods.Items), pods.Items[0].Name)
	}
	return err
}

// queue is the task queue of the workflow's own worker.
func (c *caller) queue() string { return c.id }

// start starts the workflow's worker, which reaches Temporal through a proxy of its own.
func (c *caller) start(ctx context.Context) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proxy, err = newTemporalProxy(c.attempt.temporal.Address, c.board); err != nil {
		return err
	}
	c.proxy.whose = callerType
	if c.client, err = client.NewLazyClient(client.Options{HostPort: c.proxy.address, Logger: silent}); err != nil {
		return err
	}
	c.worker = worker.New(c.client, c.queue(), worker.Options{Identity: callerType})
	c.worker.RegisterWorkflowWithOptions(callerWorkflow, workflow.RegisterOptions{Name: callerType})
	c.worker.RegisterActivityWithOptions(c.work, activity.RegisterOptions{Name: callerWork})
	c.running = true
	return world.Eventually(ctx, 15*time.Second, "starting the caller's worker", c.worker.Start)
}

// cut ends all connections of the workflow's worker: what was held back is lost.
func (c *caller) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proxy.listener.set(true)
}

func (c *caller) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		c.proxy.listener.set(true)
		c.worker.Stop()
		c.client.Close()
		c.proxy.close()
		c.running = false
	}
}

// hit is what is done to a caller, and what mends it.
func (c *caller) hit(ctx context.Context) (strike, recovery func() error) {
	recovery = func() error { return nil }
	switch c.cell.kind {
	case killCaller:
		strike = func() error { c.cut(); return nil }
		recovery = func() error { c.stop(); return c.start(ctx) }
	case resetCaller:
		strike = func() error { return c.resetRunning(ctx, c.id) }
	default:
		strike = func() error { return c.terminate(ctx, c.id) }
		recovery = func() error { return c.begin(ctx) }
	}
	return strike, recovery
}

// begin starts the workflow, again where it was terminated.
func (c *caller) begin(ctx context.Context) error {
	fields := map[string]any{}
	if err := json.Unmarshal([]byte("{"+wholeMaintenance[1:]+"}"), &fields); err != nil {
		return err
	}
	in := callerInput{Nodes: c.nodes[:], Requestor: c.requestor(), Fields: fields, Takes: workTakes, Cluster: maintain.Cluster{Name: c.cluster}}
	if c.cell.step.calls == forLong {
		in.Takes, fields["readyTimeout"] = longWorkTakes, longReady
	}
	if c.cell.step.calls.plans() {
		in.Plan = c.planName()
		in.Fields = map[string]any{"nodes": c.nodes, "strategy": map[string]any{"maxParallel": 2}, "maintenance": fields}
	}
	return world.Eventually(ctx, time.Minute, "starting the caller", func() error {
		_, err := c.attempt.temporal.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: c.id, TaskQueue: c.queue()}, callerType, in)
		return err
	})
}

func (c *caller) requestor() string {
	if c.cell.step.calls.plans() {
		return plan.RequestorOf(c.planName())
	}
	return c.planName()
}

// call has the workflow maintain the nodes, and waits for its end and theirs.
func (c *caller) call(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	for _, node := range c.nodes {
		c.expect(node, c.requestor())
	}
	if err := errors.Join(c.start(ctx), c.begin(ctx)); err != nil {
		return err
	}
	if c.cell.step.calls.again() {
		if err := c.beginAgain(ctx); err != nil {
			return err
		}
	}
	problems := []error{c.returns(ctx)}
	for _, m := range c.maintained() {
		problems = append(problems, c.untilEnded(ctx, &m))
	}
	return errors.Join(problems...)
}

// beginAgain terminates the workflow while a node is Ready, and begins it again.
func (c *caller) beginAgain(ctx context.Context) error {
	err := world.Eventually(ctx, endsWithin, "a node is Ready for the caller", func() error {
		for _, m := range c.maintained() {
			if n := c.observer.node(m.node); n != nil && n.Labels[api.PhaseLabel] == string(api.Ready) {
				return nil
			}
		}
		return errors.New("none is")
	})
	return errors.Join(err, c.terminate(ctx, c.id), c.begin(ctx))
}

// returns waits for the end of the workflow, which must be its completion. One that was terminated or reset begins again.
func (c *caller) returns(ctx context.Context) error {
	var failure error
	err := world.Eventually(ctx, endsWithin, "the caller has completed", func() error {
		described, err := c.attempt.temporal.Client.DescribeWorkflowExecution(ctx, c.id, "")
		if err != nil {
			return err
		}
		switch status := described.GetWorkflowExecutionInfo().GetStatus(); status {
		case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
			return nil
		case enums.WORKFLOW_EXECUTION_STATUS_FAILED:
			failure = c.attempt.temporal.Client.GetWorkflow(ctx, c.id, "").Get(ctx, nil)
			return nil
		default:
			return fmt.Errorf("it is %s", status)
		}
	})
	return errors.Join(err, failure)
}

// repeats are faults after which the work on a node may be done again: it is not known whether it was, or the hold was lost, as by a forged refusal of the slot.
var repeats = []kind{killCaller, resetCaller, terminateCaller, restartTemporal, resetMaintenance, poison, stripMark, liftCordon}

// hasCalled looks whether the workflow has completed, and each node was worked on, while it was held, and no more often than it must.
func (c *caller) hasCalled(ctx context.Context) error {
	if c == nil {
		return nil
	}
	problems := []error{c.returns(ctx)}
	c.mu.Lock()
	defer c.mu.Unlock()
	problems = append(problems, c.wrong...)
	most := 1
	if slices.Contains(repeats, c.cell.kind) {
		most++
	}
	if c.cell.step.calls.again() {
		most++
	}
	for _, node := range c.nodes {
		if n := c.worked[node]; n < 1 || n > most {
			problems = append(problems, fmt.Errorf("%s was worked on %d times, want 1 to %d", node, n, most))
		}
	}
	return errors.Join(problems...)
}

// poison sends the workflow reports that no worker sends.
func (c *caller) poison(ctx context.Context) error {
	if c == nil {
		return nil
	}
	about := c.maintained()[0].id
	if c.cell.step.calls.plans() {
		about = c.planID()
	}
	return c.send(ctx, c.id, nonsense(reportPrefix+about))
}

// silent is a logger for workers whose connections are cut on purpose.
var silent = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
