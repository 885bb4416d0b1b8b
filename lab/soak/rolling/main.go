// Command rolling rolls a plan over 300 nodes in three zones: one zone at a time, ten in parallel, a canary, a window that
// closes on the way and opens again, nodes that fail, and pods with disruption budgets on them, while the worker is killed
// twice and the Temporal server once. It watches every version of every node, and judges.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/plan"
)

func main() { os.Exit(command()) }

func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.IntVar(&o.nodes, "nodes", 300, "simulated nodes")
	flag.IntVar(&o.parallel, "parallel", 10, "how many nodes are worked on at a time")
	flag.DurationVar(&o.within, "within", 20*time.Minute, "how long it may take")
	flag.Parse()
	if o.nodes < 30 || o.parallel < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "rolling: -nodes wants 30 at least, -parallel 1, and there are no arguments")
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, o.within)
	defer cancel()
	began := time.Now()
	if err := roll(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "rolling:", err)
		return 1
	}
	fmt.Printf("%d nodes in %s: all limits and windows held, all nodes are back\n", o.nodes, time.Since(began).Round(time.Second))
	return 0
}

// options are what a run is told.
type options struct {
	nodes, parallel int
	within          time.Duration
}

const (
	// failing are how many nodes fail; canary go first.
	failing, canary = 5, 3
	requestor       = "ops"
	planName        = "rolling"
	// window opens every three minutes, for openFor.
	windowCron = "*/3 * * * *"
	openFor    = 2 * time.Minute
)

// stack is the servers, and the worker.
type stack struct {
	*world.World
	worker  *devstack.Worker
	workers int
}

func (s *stack) startWorker(ctx context.Context) (err error) {
	s.workers++
	s.worker, err = devstack.StartWorker(ctx, s.Worker(fmt.Sprintf("worker-%d", s.workers),
		fmt.Sprintf("scheduler: {maxParallel: 20}\nwindows: {nights: {cron: %q, for: %s, timezone: UTC}}\n", windowCron, openFor)))
	return err
}

func roll(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "drydock-rolling-")
	if err != nil {
		return err
	}
	world.Say("starting a control plane with %d nodes, Temporal and a worker; logs are in %s", o.nodes, dir)
	s := &stack{}
	s.World, err = world.Start(ctx, world.Options{Dir: dir, Nodes: o.nodes})
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err != nil {
		return err
	}
	if err := populate(ctx, s.Cluster.Client, o.nodes); err != nil {
		return err
	}
	if err := s.startWorker(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.worker.Stop(time.Minute)) }()
	j := newJudge(o)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := j.watch(watching, s); err != nil {
		return err
	}
	if err := start(ctx, s.Temporal.Client, o); err != nil {
		return err
	}
	return errors.Join(s.live(ctx, j, o), j.verdict())
}

// start starts the plan.
func start(ctx context.Context, temporal client.Client, o options) error {
	input := fmt.Sprintf(`{"all":true,"requestor":%q,"reason":"kernel 6.12","windows":["nights"],
		"strategy":{"maxParallel":%d,"order":"zone","canary":{"nodes":%d},"maxFailures":%d},
		"maintenance":{"readyTimeout":"10m"}}`, requestor, o.parallel, canary, failing)
	_, err := temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: api.PlanID("", planName), TaskQueue: api.DefaultTaskQueue},
		api.MaintenancePlanType, json.RawMessage(input))
	return err
}

// live lets things go wrong as the plan goes on, until it has ended and the nodes that failed are repaired.
func (s *stack) live(ctx context.Context, j *judge, o options) error {
	faults := []struct {
		after int
		what  string
		do    func() error
	}{
		{o.nodes / 10, "killing the worker", func() error { s.worker.Kill(); return s.startWorker(ctx) }},
		{o.nodes / 3, "killing the Temporal server", func() error { s.Temporal.Kill(); return s.Temporal.Start(ctx) }},
		{o.nodes * 2 / 3, "killing the worker again", func() error { s.worker.Kill(); return s.startWorker(ctx) }},
	}
	for said := time.Now(); ; {
		status, err := planStatus(ctx, s.Temporal.Client)
		if ctx.Err() != nil {
			return fmt.Errorf("it did not end: %+v, waits for %q: %w", status.Counts, status.WaitingFor, ctx.Err())
		}
		if err == nil && time.Since(said) > 10*time.Second {
			said = time.Now()
			world.Say("%s: %d done, %d running, %d failed, %d waiting", status.Phase, status.Counts.Done, status.Counts.Running, status.Counts.Failures(), status.Counts.Waiting)
		}
		if err == nil && len(faults) > 0 && status.Counts.Done >= faults[0].after {
			world.Say("%s", faults[0].what)
			if err := faults[0].do(); err != nil {
				return err
			}
			faults = faults[1:]
		}
		if err == nil && status.Phase.Ended() {
			return errors.Join(ended(status, o), s.repair(ctx, j, status), j.windows(ctx, s.Temporal.Client))
		}
		_ = world.Sleep(ctx, time.Second) // the loop looks at the context
	}
}

func planStatus(ctx context.Context, temporal client.Client) (status api.PlanStatus, err error) {
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	value, err := temporal.QueryWorkflow(asking, api.PlanID("", planName), "", api.QueryStatus, api.PlanStatusRequest{States: []string{plan.Held.Word()}})
	if err == nil {
		err = value.Get(&status)
	}
	return status, err
}

// ended checks the summary of the plan.
func ended(status api.PlanStatus, o options) error {
	world.Say("the plan is %s: %+v", status.Phase, status.Counts)
	want := plan.Counts{Total: o.nodes, Held: failing, Done: o.nodes - failing}
	if status.Phase != api.PlanIncomplete || status.Counts != want {
		return fmt.Errorf("the plan is %s with %+v: want %s with %+v", status.Phase, status.Counts, api.PlanIncomplete, want)
	}
	return nil
}

// repair is done with the nodes that failed, and waits until all are back.
func (s *stack) repair(ctx context.Context, j *judge, status api.PlanStatus) error {
	for _, n := range status.Nodes {
		if err := s.Temporal.Client.SignalWorkflow(ctx, api.MaintenanceID("", n.Node, requestor), "", api.MsgDone, nil); err != nil {
			return err
		}
	}
	for j.heldNow() > 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("%d nodes are not back: %w", j.heldNow(), ctx.Err())
		}
		_ = world.Sleep(ctx, 200*time.Millisecond) // the loop looks at the context
	}
	return nil
}
