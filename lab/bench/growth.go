package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/profile/state"
)

const (
	// growthNodes is how many nodes the rollout of each size goes over, growthAtOnce of them at a time.
	growthNodes  = 40
	growthAtOnce = 8
	// growthRests is for how long is counted what nothing costs.
	growthRests = time.Minute
)

// consumption is what a worker and the histories have taken so far.
type consumption struct {
	cpu, events, actions, requests float64
	memory                         float64
}

// grown is a stack whose cluster grows.
type grown struct {
	*bench
	// since is the place in the audit log at which the worker was started.
	since int64
}

// measureGrowth is what Drydock costs in clusters of several sizes: at rest, for a rollout over as many nodes in each, and at rest with a
// health check and with profiles over all nodes.
func (b *bench) measureGrowth(ctx context.Context) (figures []Figure, err error) {
	file := filepath.Join(b.Dir, "profiles.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, profilesFile, profileRequeue), 0o600); err != nil {
		return nil, err
	}
	plain := fmt.Sprintf("scheduler: {maxParallel: %d}\n", growthAtOnce) // the first worker's limits are those of all
	memory := plot{title: "Memory of the worker, by nodes of the cluster", unit: "MB"}
	cpu := plot{title: "Processor of the worker in a minute of rest, by nodes of the cluster", unit: "ms"}
	there := memoryDrained
	for _, nodes := range b.sizes.growth {
		world.Say("growth: a cluster of %d nodes", nodes)
		if err := b.addNodes(ctx, there, nodes); err != nil {
			return figures, err
		}
		there = max(there, nodes)
		for _, c := range []struct {
			name, config string
			per          float64
			unit         string
			costs        func(grown, context.Context, string) (consumption, error)
		}{
			{"at rest", plain, 1, "a minute", grown.rests},
			{"a rollout", plain, growthNodes, "a node", grown.rollsOut},
			{"a health check of all", plain, 1, "a minute", grown.checks},
			{"profiles of all", plain + fmt.Sprintf("profiles: {file: %q}\n", file), 1, "a minute", grown.profiles},
		} {
			took, err := b.growthOf(ctx, c.config, strconv.Itoa(nodes), c.costs)
			if err != nil {
				return figures, fmt.Errorf("%d nodes, %s: %w", nodes, c.name, err)
			}
			what := fmt.Sprintf("%d nodes, %s: ", nodes, c.name)
			figures = append(figures,
				report(what+"CPU time of the worker "+c.unit, 1000*took.cpu/c.per, "ms"),
				report("- its resident memory", took.memory, "MB"),
				report("- its API requests "+c.unit, took.requests/c.per, "requests"),
				report("- events in histories "+c.unit, took.events/c.per, "events"),
				report("- billable actions "+c.unit, took.actions/c.per, "actions"))
			memory.add(c.name, strconv.Itoa(nodes), took.memory)
			if c.per == 1 {
				cpu.add(c.name, strconv.Itoa(nodes), 1000*took.cpu)
			}
		}
	}
	return figures, errors.Join(memory.draw("growth-memory"), cpu.draw("growth-cpu"))
}

// growthOf has a worker of its own do something, and returns what that took.
func (b *bench) growthOf(
	ctx context.Context, config, name string, costs func(grown, context.Context, string) (consumption, error),
) (took consumption, err error) {
	g := grown{bench: b}
	if g.since, err = b.audit.mark(); err != nil {
		return took, err
	}
	if b.worker, err = b.startWorker(ctx, "worker", config); err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, b.worker.Stop(time.Minute)) }()
	if err := b.untilQuiet(ctx, atRest, api.SchedulerID("")); err != nil {
		return took, err
	}
	took, err = costs(g, ctx, name)
	if err == nil {
		took.memory, _, err = world.Resident(b.worker.PID())
	}
	return took, err
}

// taken is what was taken until now. It takes long itself, for it reads all histories: what the worker does meanwhile is not to count.
func (g grown) taken(ctx context.Context) (c consumption, err error) {
	for token := []byte(nil); ; {
		page, err := g.Temporal.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{NextPageToken: token})
		if err != nil {
			return c, err
		}
		for _, run := range page.Executions {
			t, err := g.historyOf(ctx, run.Execution.WorkflowId, run.Execution.RunId)
			if err != nil {
				return c, err
			}
			c.events, c.actions = c.events+float64(t.events), c.actions+float64(t.actions)
		}
		if token = page.NextPageToken; len(token) == 0 {
			break
		}
	}
	requests, events, err := g.audit.requests(theWorker, g.since)
	c.requests = float64(requests + events)
	return c, err
}

// used is what the worker has used until now: seconds of CPU, and heartbeats.
func (g grown) used(ctx context.Context) (cpu, beats float64, err error) {
	if cpu, _, err = processTimes(g.worker.PID()); err == nil {
		beats, err = g.beats(ctx)
	}
	return cpu, beats, err
}

// during is what was taken while something went on.
func (g grown) during(ctx context.Context, goOn func(context.Context) error) (c consumption, err error) {
	before, err := g.taken(ctx)
	if err != nil {
		return c, err
	}
	cpu, beats, err := g.used(ctx)
	if err == nil {
		err = goOn(ctx)
	}
	if err != nil {
		return c, err
	}
	cpuThen, beatsThen, err := g.used(ctx)
	if err != nil {
		return c, err
	}
	after, err := g.taken(ctx)
	return consumption{
		cpu: cpuThen - cpu, events: after.events - before.events, actions: after.actions - before.actions + beatsThen - beats,
		requests: after.requests - before.requests,
	}, err
}

// rests is what a minute takes in which nothing happens.
func (g grown) rests(ctx context.Context, _ string) (consumption, error) {
	return g.during(ctx, func(ctx context.Context) error { return world.Sleep(ctx, growthRests) })
}

// rollsOut is what a plan takes that goes over some empty nodes.
func (g grown) rollsOut(ctx context.Context, name string) (consumption, error) {
	return g.during(ctx, func(ctx context.Context) error {
		err := g.startPlan(ctx, "growth-"+name, growthNodes, growthAtOnce, `,"maintenance":{"readyTimeout":"1s","onReadyTimeout":"release"}`)
		return errors.Join(err, g.Temporal.Client.GetWorkflow(ctx, api.PlanID("", "growth-"+name), "").Get(ctx, nil))
	})
}

// checks is what a minute takes with a health check of all nodes, which are well.
func (g grown) checks(ctx context.Context, name string) (c consumption, err error) {
	wards, err := wardOf(ctx, g.bench)
	if err != nil {
		return c, err
	}
	nodes, err := strconv.Atoi(name)
	if err != nil {
		return c, err
	}
	if err := wards.check(ctx, "growth-"+name, everyNode, `"maxUnhealthy":"100%"`, nodes); err != nil {
		return c, err
	}
	if err := g.untilQuiet(ctx, atRest, api.HealthCheckID("", "growth-"+name)); err != nil {
		return c, err
	}
	c, err = g.rests(ctx, name)
	return c, errors.Join(err, wards.end(ctx, "growth-"+name))
}

// profiles is what a minute takes in which each node has two profiles, and none changes its state.
func (g grown) profiles(ctx context.Context, name string) (c consumption, err error) {
	nodes, err := strconv.Atoi(name)
	if err != nil {
		return c, err
	}
	shown := look(ctx, g.Cluster.Client.CoreV1().RESTClient(), "nodes", "", &corev1.Node{}, showsState(state.Operational))
	if _, err := shown.until(ctx, "all nodes to show their state", func(_, operational int) bool { return operational == nodes }); err != nil {
		return c, err
	}
	if err := g.untilQuiet(ctx, atRest, api.ProfilesID("")); err != nil {
		return c, err
	}
	if c, err = g.rests(ctx, name); err != nil {
		return c, err
	}
	// It would go on for a while where the next worker has no profiles, and count as what that one takes.
	return c, g.Temporal.Client.TerminateWorkflow(ctx, api.ProfilesID(""), "", "measured")
}
