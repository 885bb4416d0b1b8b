// Command rolling rolls a plan over 300 nodes in three zones: one zone at a time, ten in parallel, a canary, a window that
// closes on the way and opens again, nodes that fail, and pods with disruption budgets on them, while the worker is killed
// twice and the Temporal server once. It watches every version of every node, and judges.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/plan"
)

func main() { world.Main("rolling", command) }

// options are what a run is told.
type options struct {
	nodes, parallel int
	within          time.Duration
}

func command(ctx context.Context) error {
	var o options
	flag.IntVar(&o.nodes, "nodes", 300, "simulated nodes")
	flag.IntVar(&o.parallel, "parallel", 10, "how many nodes are worked on at a time")
	flag.DurationVar(&o.within, "within", 20*time.Minute, "how long it may take")
	flag.Parse()
	if o.nodes < 30 || o.parallel < 1 || flag.NArg() > 0 {
		return world.Misuse("-nodes wants 30 at least, -parallel 1, and there are no arguments")
	}
	ctx, cancel := context.WithTimeout(ctx, o.within)
	defer cancel()
	began := time.Now()
	starting := fmt.Sprintf("starting a control plane with %d nodes, Temporal and a worker", o.nodes)
	err := world.Run(ctx, "rolling", starting, world.Options{Nodes: o.nodes}, func(w *world.World) error { return roll(ctx, w, o) })
	if err != nil {
		return err
	}
	fmt.Printf("%d nodes in %s: all limits and windows held, all nodes are back\n", o.nodes, time.Since(began).Round(time.Second))
	return nil
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

// run is a roll of the plan over the nodes of a world.
type run struct {
	options
	*world.World
	judge *judge
}

func roll(ctx context.Context, w *world.World, o options) error {
	if err := populate(ctx, w.Cluster.Client, o); err != nil {
		return err
	}
	config := fmt.Sprintf("scheduler: {maxParallel: 20}\nwindows: {nights: {cron: %q, for: %s, timezone: UTC}}\n", windowCron, openFor)
	if err := w.StartWorkers(ctx, 1, config); err != nil {
		return err
	}
	r := &run{options: o, World: w, judge: newJudge(o, w.Temporal)}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := r.judge.watch(watching, w.Cluster.Client); err != nil {
		return err
	}
	input := fmt.Sprintf(`{"all":true,"requestor":%q,"reason":"kernel 6.12","windows":["nights"],
		"strategy":{"maxParallel":%d,"order":"zone","canary":{"nodes":%d},"maxFailures":%d},
		"maintenance":{"readyTimeout":"10m"}}`, requestor, o.parallel, canary, failing)
	if err := world.Begin(ctx, w.Temporal.Client, api.PlanID("", planName), api.MaintenancePlanType, input); err != nil {
		return err
	}
	return errors.Join(r.live(ctx), r.judge.verdict())
}

// live lets things go wrong as the plan goes on, until it has ended and the nodes that failed are repaired.
func (r *run) live(ctx context.Context) error {
	worker := r.Workers[0]
	faults := []struct {
		after int
		what  string
		do    func(context.Context) error
	}{
		{r.nodes / 10, "killing the worker", worker.Restart},
		{r.nodes / 3, "killing the Temporal server", r.RestartTemporal},
		{r.nodes * 2 / 3, "killing the worker again", worker.Restart},
	}
	for said := time.Now(); ; {
		status, err := r.planStatus(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("it did not end: %+v, waits for %q: %w", status.Counts, status.WaitingFor, ctx.Err())
		}
		if err == nil && time.Since(said) > 10*time.Second {
			said = time.Now()
			world.Say("%s: %d done, %d running, %d failed, %d waiting", status.Phase, status.Counts.Done, status.Counts.Running, status.Counts.Failures(), status.Counts.Waiting)
		}
		if err == nil && len(faults) > 0 && status.Counts.Done >= faults[0].after {
			world.Say("%s", faults[0].what)
			if err := faults[0].do(ctx); err != nil {
				return err
			}
			faults = faults[1:]
		}
		if err == nil && status.Phase.Ended() {
			return errors.Join(ended(status, r.options), r.repair(ctx, status), r.judge.windows(ctx))
		}
		_ = world.Sleep(ctx, time.Second) // the loop looks at the context
	}
}

func (r *run) planStatus(ctx context.Context) (api.PlanStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	held := api.PlanStatusRequest{States: []string{plan.Held.Word()}}
	return world.Ask[api.PlanStatus](ctx, r.Temporal.Client, api.PlanID("", planName), api.QueryStatus, held)
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
func (r *run) repair(ctx context.Context, status api.PlanStatus) error {
	for _, n := range status.Nodes {
		if err := r.Temporal.Client.SignalWorkflow(ctx, api.MaintenanceID("", n.Node, requestor), "", api.MsgDone, nil); err != nil {
			return err
		}
	}
	for r.judge.heldNow() > 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("%d nodes are not back: %w", r.judge.heldNow(), ctx.Err())
		}
		_ = world.Sleep(ctx, 200*time.Millisecond) // the loop looks at the context
	}
	return nil
}
