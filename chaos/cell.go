package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock/api"
	"drydock/deploy/devstack"
	"drydock/k8s"
)

const (
	// endsWithin bounds both maintenances of a run; fired that long is waited for a fault that may come with the last
	// call or not before the next maintenance.
	endsWithin  = 5 * time.Minute
	firesWithin = 12 * time.Second
	// shutFor is how long a budget stays shut where no fault happens.
	shutFor = 45 * time.Second
	// probeWithin bounds a maintenance that finds its slot free.
	probeWithin = 2 * time.Minute
)

// Outcome is what became of a fault.
type Outcome struct {
	Step    string  `json:"step"`
	When    when    `json:"when"`
	Kind    kind    `json:"kind"`
	Outcome string  `json:"outcome"`
	Seconds float64 `json:"seconds"`
	// Detail is where the fault happened, or what was wrong afterwards.
	Detail string `json:"detail"`
}

// What became of a fault.
const (
	survived = "survived"
	failed   = "FAILED"
	missed   = "NO FAULT"
)

// run lets one fault happen in the maintenance of the lane's two nodes, which may be out of service one at a time, and
// tells what became of it. Without a fault it makes the run to compare with.
func (l *lane) run(ctx context.Context, c *cell) Outcome {
	began := time.Now()
	l.runs++
	a := &attempt{lane: l, cell: c}
	problem := a.run(ctx)
	o := Outcome{Outcome: survived, Seconds: time.Since(began).Seconds()}
	if c != nil {
		o.Step, o.When, o.Kind, o.Detail = c.step.name, c.when, c.kind, a.trap.place()
		l.board.arm(nil)
	}
	switch {
	case problem != nil:
		o.Outcome = failed
		o.Detail = strings.TrimSpace(o.Detail + ": " + problem.Error())
		if ctx.Err() == nil {
			if err := l.mend(ctx); err != nil {
				o.Detail += "; and the lane could not begin anew: " + err.Error()
			}
		}
	case c != nil && o.Detail == "":
		o.Outcome, o.Detail = missed, "nothing came by to which it could have happened"
	}
	return o
}

// attempt is one run of a lane's maintenances.
type attempt struct {
	*lane
	cell *cell
	trap *trap
	from int64
	// recovered tells when a process or a connection that the fault ended is there again.
	recovered chan error
}

func (a *attempt) run(ctx context.Context) (problem error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := a.prepare(ctx); err != nil {
		return fmt.Errorf("before the fault: %w", err)
	}
	fields := `,"waitForPodCompletion":{"podSelector":"app=batch"},"drain":{"plan":{"include":["Default","DaemonSet"]}}`
	together := [][]string{a.nodes[:]}
	if a.cell != nil && a.cell.step.preflight != "" {
		fields = fmt.Sprintf(`,"preflight":%q`, a.cell.step.preflight) + fields
		together = [][]string{a.nodes[:1], a.nodes[1:]}
	}
	if a.cell != nil && a.cell.step.shut {
		opened, err := a.shutBudget(ctx)
		if err != nil {
			return fmt.Errorf("before the fault: %w", err)
		}
		defer func() { problem = errors.Join(problem, <-opened) }()
	}
	for _, nodes := range together {
		if err := a.maintain(ctx, "chaos", fields, endsWithin, nodes...); err != nil {
			return errors.Join(err, a.back(ctx), a.endBatch(ctx))
		}
	}
	var problems []error
	// A slot that the fault left behind would keep the next maintenance from its own. A fault that comes no sooner than
	// with that one is followed by another.
	for probe, happened := 1, false; probe <= 2 && !happened; probe++ {
		happened = a.happened(ctx, firesWithin)
		err := a.maintain(ctx, fmt.Sprintf("probe-%d", probe), `,"drain":{"mode":"none"}`, probeWithin, a.nodes[0])
		if err != nil {
			problems = append(problems, fmt.Errorf("the next maintenance: %w", err))
			break
		}
	}
	problems = append(problems, a.back(ctx), a.verdict(ctx), a.endBatch(ctx))
	return errors.Join(problems...)
}

// prepare waits until all is as it was before, and sets the trap.
func (a *attempt) prepare(ctx context.Context) error {
	if err := a.settled(ctx); err != nil {
		return err
	}
	if a.undamaged == nil {
		a.undamaged = map[string]string{}
		for _, node := range a.nodes {
			imprint, err := a.imprint(ctx, node)
			if err != nil {
				return err
			}
			a.undamaged[node] = imprint
		}
	}
	if err := a.startBatch(ctx); err != nil {
		return err
	}
	var err error
	if a.from, err = devstack.AuditEnd(a.audit); err != nil {
		return err
	}
	a.witness.forget(a.name)
	if a.cell != nil {
		a.setTrap(ctx)
	}
	return nil
}

func (a *attempt) setTrap(ctx context.Context) {
	t := newTrap(*a.cell)
	a.trap = t
	recovery := func() error { return nil }
	switch a.cell.kind {
	case killWorker:
		t.strike = a.worker.Kill
		recovery = func() error { return a.startWorker(ctx) }
	case cutTemporal:
		t.strike = func() { a.calls.listener.set(true) }
		recovery = func() error {
			defer a.calls.listener.set(false)
			return sleep(ctx, cutFor)
		}
	case restartTemporal:
		t.strike = a.temporal.Kill
		recovery = func() error {
			if err := sleep(ctx, downFor); err != nil {
				return err
			}
			return a.temporal.Start(ctx)
		}
	}
	if a.cell.step.rewatch {
		t.armed = a.api.breakWatches
	}
	a.recovered = make(chan error, 1)
	go func() {
		select {
		case <-t.done:
			a.recovered <- recovery()
		case <-ctx.Done():
			a.recovered <- nil
		}
	}()
	a.board.arm(t)
}

// back waits until a process or a connection that the fault ended is there again. The worker must not have ended by
// itself.
func (a *attempt) back(ctx context.Context) error {
	if a.trap != nil && a.trap.place() != "" {
		select {
		case err := <-a.recovered:
			if err != nil {
				return fmt.Errorf("after the fault: %w", err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-a.worker.Exited():
		return fmt.Errorf("the worker ended by itself: %s", a.worker.Tail())
	default:
		return nil
	}
}

// shutBudget protects the pod that is pinned to the first node until the fault has happened.
func (a *attempt) shutBudget(ctx context.Context) (opened <-chan error, err error) {
	none := intstr.FromInt32(0)
	budgets := a.kube.PolicyV1().PodDisruptionBudgets(a.name)
	if _, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "shut"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web-1"}},
		},
	}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		a.happened(ctx, shutFor)
		done <- budgets.Delete(context.WithoutCancel(ctx), "shut", metav1.DeleteOptions{})
	}()
	return done, nil
}

// happened waits until the fault has happened, and lets things go on.
func (a *attempt) happened(ctx context.Context, limit time.Duration) bool {
	if a.trap == nil {
		return true
	}
	select {
	case <-a.trap.caught:
		return true
	case <-time.After(limit):
	case <-ctx.Done():
	}
	return false
}

// maintain has some nodes maintained by one requestor, who is done as soon as it sees its node Ready, and waits for the
// maintenances' ends.
func (a *attempt) maintain(ctx context.Context, requestor, fields string, limit time.Duration, nodes ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	requestor = fmt.Sprintf("%s-%d", requestor, a.runs)
	runs := map[string]client.WorkflowRun{}
	for _, node := range nodes {
		// The fault may happen before all are started.
		if err := eventually(ctx, time.Minute, "starting the maintenance of "+node, func() (err error) {
			runs[node], err = a.temporal.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
				ID: api.MaintenanceID(a.cluster, node, requestor), TaskQueue: api.TaskQueue(a.cluster, api.DefaultTaskQueue),
			}, api.NodeMaintenanceType, json.RawMessage(fmt.Sprintf(`{"node":%q,"requestor":%q%s}`, node, requestor, fields)))
			return err
		}); err != nil {
			return err
		}
	}
	ended := make(chan error, len(runs))
	for node, run := range runs {
		go func() { ended <- a.untilEnded(ctx, node, run) }()
	}
	done := map[string]bool{}
	rebuilt := false
	var problems []error
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for left := len(runs); left > 0; {
		for _, node := range slices.Sorted(maps.Keys(runs)) {
			if done[node] || !a.isReady(node, runs[node].GetRunID()) {
				continue
			}
			if a.cell != nil && a.cell.step.rebuild && !rebuilt {
				if err := a.replaceScheduler(ctx); err != nil {
					continue // Temporal may be away
				}
				rebuilt = true
			}
			if a.temporal.Client.SignalWorkflow(ctx, runs[node].GetID(), runs[node].GetRunID(), api.MsgDone, nil) == nil {
				done[node] = true
			}
		}
		select {
		case err := <-ended:
			left--
			problems = append(problems, err)
		case <-tick.C:
		}
	}
	return errors.Join(problems...)
}

// isReady tells whether the node says of itself that it is Ready for this run.
func (a *attempt) isReady(node, run string) bool {
	n := a.witness.node(node)
	if n == nil || n.Labels[api.PhaseLabel] != string(api.Ready) {
		return false
	}
	mark, err := k8s.MarkOf(n)
	return err == nil && len(mark.Holders) == 1 && mark.Holders[0].RunID == run
}

// untilEnded waits for the end of a maintenance, which must be its completion. Temporal may be away meanwhile.
func (a *attempt) untilEnded(ctx context.Context, node string, run client.WorkflowRun) error {
	for {
		var result api.Result
		err := run.GetWithOptions(ctx, &result, client.WorkflowRunGetOptions{DisableFollowingRuns: true})
		var end *temporal.WorkflowExecutionError
		switch {
		case err == nil && result.Phase == api.Completed:
			return nil
		case err == nil:
			return fmt.Errorf("the maintenance of %s ended %s: %s", node, result.Phase, result.Message)
		case errors.As(err, &end):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("the maintenance of %s did not end: %s", node, a.statusOf(run))
		}
		if sleep(ctx, 300*time.Millisecond) != nil {
			return fmt.Errorf("the maintenance of %s did not end: %s", node, a.statusOf(run))
		}
	}
}

// statusOf tells a person what a maintenance waits for.
func (a *attempt) statusOf(run client.WorkflowRun) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	value, err := a.temporal.Client.QueryWorkflow(ctx, run.GetID(), run.GetRunID(), api.QueryStatus)
	var status api.Status
	if err == nil {
		err = value.Get(&status)
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, waiting for %s", status.Phase, status.WaitingFor)
}

// replaceScheduler terminates the scheduler and starts another, as every worker does within 30 s.
func (a *attempt) replaceScheduler(ctx context.Context) error {
	id := api.SchedulerID(a.cluster)
	described, err := a.temporal.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return err
	}
	previous := described.WorkflowExecutionInfo.Execution.RunId
	if err := a.temporal.Client.TerminateWorkflow(ctx, id, previous, "chaos: by hand"); err != nil {
		return err
	}
	_, err = a.temporal.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: api.TaskQueue(a.cluster, api.DefaultTaskQueue),
	}, api.SchedulerType, map[string]any{"previousRun": previous})
	return err
}
