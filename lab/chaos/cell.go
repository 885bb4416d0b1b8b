package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

const (
	// endsWithin bounds both maintenances of a run; fired that long is waited for a fault that may come with the last
	// call or not before the next maintenance.
	endsWithin  = 5 * time.Minute
	firesWithin = 12 * time.Second
	// shutFor is how long a budget stays shut where no fault happens: the other node may be maintained first.
	shutFor = 3 * time.Minute
	// doneAgain is after how long a requestor says once more that it is done, where its node is still Ready.
	doneAgain = 5 * time.Second
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
func (l *lane) run(ctx context.Context, c cell) Outcome {
	began := time.Now()
	l.runs++
	a := &attempt{lane: l, cell: c, since: began}
	problem := a.run(ctx)
	o := Outcome{Step: c.step.name, When: c.when, Kind: c.kind, Outcome: survived, Seconds: time.Since(began).Seconds(), Detail: a.trap.place()}
	l.board.Store(nil)
	switch {
	case problem != nil:
		o.Outcome = failed
		o.Detail = strings.TrimSpace(o.Detail + ": " + problem.Error())
		if ctx.Err() == nil {
			if err := l.mend(ctx); err != nil {
				o.Detail += "; and the lane could not begin anew: " + err.Error()
			}
		}
	case a.trap != nil && o.Detail == "":
		o.Outcome, o.Detail = missed, "nothing came by to which it could have happened"
	}
	return o
}

// attempt is one run of a lane's maintenances.
type attempt struct {
	*lane
	cell cell
	// trap is nil in a run without a fault.
	trap *trap
	from int64
	// since is when it began.
	since time.Time
	// recovered tells when a process or a connection that the fault ended is there again.
	recovered chan error
	// begun are the maintenances that were started, or are being started.
	begun inventory
	// other is the Drydock of another namespace, where the fault is one.
	other *otherDrydock
	// caller asks for the maintenances, where a workflow of somebody else's does.
	caller *caller
}

func (a *attempt) run(ctx context.Context) (problem error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { problem = errors.Join(problem, a.stopOther(context.WithoutCancel(ctx))) }()
	if a.cell.step.calls != "" {
		a.caller = newCaller(a)
		defer a.caller.stop()
	}
	if err := a.prepare(ctx); err != nil {
		return fmt.Errorf("before the fault: %w", err)
	}
	if a.cell.step.shut {
		opened, err := a.shutBudget(ctx)
		if err != nil {
			return fmt.Errorf("before the fault: %w", err)
		}
		defer func() { problem = errors.Join(problem, <-opened) }()
	}
	if err := maintainBoth(ctx, a); err != nil {
		return errors.Join(err, a.back(ctx), a.endBatch(ctx))
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
	problems = append(problems, a.back(ctx), a.verdict(ctx), a.workedOnce(ctx), a.begunOnce(ctx), ward{a}.hasHealed(ctx), profiled{a}.hasMoved(ctx), a.caller.hasCalled(ctx), a.endBatch(ctx))
	return errors.Join(problems...)
}

// maintainBoth has both nodes maintained as the step needs it.
func maintainBoth(ctx context.Context, a *attempt) error {
	fields := wholeMaintenance
	together := [][]string{a.nodes[:]}
	if a.cell.step.preflight != "" {
		fields = fmt.Sprintf(`,"preflight":%q`, a.cell.step.preflight) + fields
		together = [][]string{a.nodes[:1], a.nodes[1:]}
	}
	if works(a) {
		fields += fmt.Sprintf(`,"work":%q`, a.cell.step.work)
	}
	if a.cell.step.windows {
		fields = `,"windows":["always"]` + fields
	}
	switch wanted := shapeFor(a.cell); {
	case wanted.objects:
		return mirrored{a}.ask(ctx, fields)
	case wanted.profiles:
		return profiled{a}.move(ctx)
	case wanted.heals != "":
		return ward{a}.fallIll(ctx)
	case wanted.slots > 1:
		return a.leadTogether(ctx)
	}
	if a.caller != nil {
		return a.caller.call(ctx)
	}
	if a.plans() {
		return a.roll(ctx, fields, endsWithin)
	}
	for _, nodes := range together {
		if err := a.maintain(ctx, chaosRequestor, fields, endsWithin, nodes...); err != nil {
			return err
		}
	}
	return nil
}

// chaosRequestor is who asks for maintenances that come to every step, wholeMaintenance what they are besides their
// nodes.
const (
	chaosRequestor   = "chaos"
	wholeMaintenance = `,"waitForPodCompletion":{"podSelector":"app=batch"},"drain":{"plan":{"include":["Default","DaemonSet"]}}` +
		`,"hooks":{"beforeCordon":["beside","before-cordon"],"afterDrain":["after-drain"],"beforeRelease":["before-release"]}` +
		`,"validation":{"checks":["fit"]}`
)

// prepare waits until all is as it was before, and sets the trap.
func (a *attempt) prepare(ctx context.Context) error {
	if err := fit(ctx, a.lane, shapeFor(a.cell)); err != nil {
		return err
	}
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
	if err := (ward{a}).ready(ctx); err != nil {
		return err
	}
	if err := (profiled{a}).ready(ctx); err != nil {
		return err
	}
	if err := a.startBatch(ctx); err != nil {
		return err
	}
	var err error
	if a.from, err = devstack.AuditEnd(a.audit); err != nil {
		return err
	}
	a.observer.forget(a.name)
	if a.cell.kind != "" {
		a.setTrap(ctx)
	}
	if a.cell.step.windows {
		return a.forgetWindows(ctx)
	}
	return nil
}

func (a *attempt) setTrap(ctx context.Context) {
	t := &trap{cell: a.cell, ready: a.cell.step.atRequest(), caught: make(chan struct{}), done: make(chan struct{})}
	a.trap = t
	var recovery func() error
	t.strike, recovery = a.fault(ctx)
	if a.cell.step.rewatch {
		t.armed = func() { a.api.breakWatches(a.cell.step.isRequest) }
	}
	a.recovered = make(chan error, 1)
	go func() {
		select {
		case <-t.done:
			a.recovered <- errors.Join(t.problem, recovery())
		case <-ctx.Done():
			a.recovered <- nil
		}
	}()
	a.board.Store(t)
}

// fault is what is done where the API server's answer is not the fault, and what mends it.
func (a *attempt) fault(ctx context.Context) (strike, recovery func() error) {
	recovery = func() error { return nil }
	switch a.cell.kind {
	case killWorker:
		strike = func() error { a.worker.Kill(); return nil }
		recovery = func() error { return a.startWorker(ctx) }
	case cutTemporal:
		strike = func() error { a.calls.listener.set(true); return nil }
		recovery = func() error {
			defer a.calls.listener.set(false)
			return world.Sleep(ctx, cutFor)
		}
	case restartTemporal:
		strike = func() error { a.temporal.Kill(); return nil }
		recovery = func() error {
			if err := world.Sleep(ctx, downFor); err != nil {
				return err
			}
			return a.temporal.Start(ctx)
		}
	case resetMaintenance:
		strike = func() error { return a.resetMaintenances(ctx) }
	case poison:
		strike = func() error { return a.poisonAll(ctx) }
	case foreign:
		strike = func() error { return a.startOther(ctx) }
	case foreignWorker:
		return startIntruder(ctx, a)
	case foreignCaller:
		strike = func() error { return errors.Join(callActivities(ctx, a), forge(ctx, a)) }
	case stripMark:
		strike = func() error { return a.stripMarks(ctx) }
	case liftCordon:
		strike = func() error { return a.liftCordons(ctx) }
	case expireCredentials:
		strike = func() error { a.calls.expired.Store(true); return nil }
		recovery = func() error {
			defer a.calls.expired.Store(false)
			return world.Sleep(ctx, cutFor)
		}
	case killCaller, resetCaller, terminateCaller:
		return a.caller.hit(ctx)
	case killBridge, loseLease:
		return mirrored{a}.hitBridge(ctx)
	case deleteObject:
		strike = func() error { return mirrored{a}.deleteFirst(ctx) }
	case deleteDefinition:
		return a.definition.hit(ctx)
	case kubeletBack:
		strike = func() error { return ward{a}.comeBack(ctx) }
		recovery = func() error { return ward{a}.isBackInService(ctx) }
	default:
		strike = a.hit(ctx)
	}
	return strike, recovery
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
	if err := a.workloads().Budget(ctx, "shut", "web-1", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none}); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		a.happened(ctx, shutFor)
		done <- a.kube.PolicyV1().PodDisruptionBudgets(a.name).Delete(context.WithoutCancel(ctx), "shut", metav1.DeleteOptions{})
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
	_, err = a.startWorkflow(ctx, id, api.SchedulerType, map[string]any{"previousRun": previous})
	return err
}
