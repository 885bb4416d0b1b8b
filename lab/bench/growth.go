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
func (b *bench) measureGrowth(ctx context.Context) (figures []Figure) {
	file := filepath.Join(b.Dir, "profiles.yaml")
	noError(os.WriteFile(file, fmt.Appendf(nil, profilesFile, profileRequeue), 0o600))
	plain := fmt.Sprintf("scheduler: {maxParallel: %d}\n", growthAtOnce) // the first worker's limits are those of all
	memory := plot{title: "Memory of the worker, by nodes of the cluster", unit: "MB"}
	cpu := plot{title: "Processor of the worker in a minute of rest, by nodes of the cluster", unit: "ms"}
	there := memoryDrained
	for _, nodes := range b.sizes.growth {
		world.Say("growth: a cluster of %d nodes", nodes)
		b.addNodes(ctx, there, nodes)
		there = max(there, nodes)
		for _, c := range []struct {
			name, config string
			per          float64
			unit         string
			costs        func(grown, context.Context, string) consumption
		}{
			{"at rest", plain, 1, "a minute", grown.rests},
			{"a rollout", plain, growthNodes, "a node", grown.rollsOut},
			{"a health check of all", plain, 1, "a minute", grown.checks},
			{"profiles of all", plain + fmt.Sprintf("profiles: {file: %q}\n", file), 1, "a minute", grown.profiles},
		} {
			took := named(fmt.Sprintf("%d nodes, %s", nodes, c.name), func() consumption {
				return b.growthOf(ctx, c.config, strconv.Itoa(nodes), c.costs)
			})
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
	noError(errors.Join(memory.draw("growth-memory"), cpu.draw("growth-cpu")))
	return figures
}

// growthOf has a worker of its own do something, and returns what that took.
func (b *bench) growthOf(
	ctx context.Context, config, name string, costs func(grown, context.Context, string) consumption,
) (took consumption) {
	g := grown{bench: b}
	g.since = must(b.audit.mark())
	b.worker = must(b.startWorker(ctx, "worker", config))
	defer func() { b.note(b.worker.Stop(time.Minute)) }()
	noError(b.untilQuiet(ctx, atRest, api.SchedulerID("")))
	took = costs(g, ctx, name)
	took.memory, _ = resident(b.worker)
	return took
}

// taken is what was taken until now. It takes long itself, for it reads all histories: what the worker does meanwhile is not to count.
func (g grown) taken(ctx context.Context) (c consumption) {
	for token := []byte(nil); ; {
		page := must(g.Temporal.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{NextPageToken: token}))
		for _, run := range page.Executions {
			t := g.historyOf(ctx, run.Execution.WorkflowId, run.Execution.RunId)
			c.events, c.actions = c.events+float64(t.events), c.actions+float64(t.actions)
		}
		if token = page.NextPageToken; len(token) == 0 {
			break
		}
	}
	requests, events := g.audit.requests(theWorker, g.since)
	c.requests = float64(requests + events)
	return c
}

// used is what the worker has used until now: seconds of CPU, and heartbeats.
func (g grown) used(ctx context.Context) (cpu, beats float64) {
	return cpuSeconds(g.worker.PID()), g.beats(ctx)
}

// during is what was taken while something went on.
func (g grown) during(ctx context.Context, goOn func(context.Context) error) consumption {
	before := g.taken(ctx)
	cpu, beats := g.used(ctx)
	noError(goOn(ctx))
	cpuThen, beatsThen := g.used(ctx)
	after := g.taken(ctx)
	return consumption{
		cpu: cpuThen - cpu, events: after.events - before.events, actions: after.actions - before.actions + beatsThen - beats,
		requests: after.requests - before.requests,
	}
}

// rests is what a minute takes in which nothing happens.
func (g grown) rests(ctx context.Context, _ string) consumption {
	return g.during(ctx, func(ctx context.Context) error { return world.Sleep(ctx, growthRests) })
}

// rollsOut is what a plan takes that goes over some empty nodes.
func (g grown) rollsOut(ctx context.Context, name string) consumption {
	return g.during(ctx, func(ctx context.Context) error {
		err := g.startPlan(ctx, "growth-"+name, growthNodes, growthAtOnce, `,"maintenance":{"readyTimeout":"1s","onReadyTimeout":"release"}`)
		return errors.Join(err, g.Temporal.Client.GetWorkflow(ctx, api.PlanID("", "growth-"+name), "").Get(ctx, nil))
	})
}

// checks is what a minute takes with a health check of all nodes, which are well.
func (g grown) checks(ctx context.Context, name string) consumption {
	wards := wardOf(ctx, g.bench)
	nodes := must(strconv.Atoi(name))
	wards.check(ctx, "growth-"+name, everyNode, `"maxUnhealthy":"100%"`, nodes)
	noError(g.untilQuiet(ctx, atRest, api.HealthCheckID("", "growth-"+name)))
	c := g.rests(ctx, name)
	wards.end(ctx, "growth-"+name)
	return c
}

// profiles is what a minute takes in which each node has two profiles, and none changes its state.
func (g grown) profiles(ctx context.Context, name string) consumption {
	nodes := must(strconv.Atoi(name))
	shown := look(ctx, g.Cluster.Client.CoreV1().RESTClient(), "nodes", "", &corev1.Node{}, showsState(state.Operational))
	must(shown.until(ctx, "all nodes to show their state", func(_, operational int) bool { return operational == nodes }))
	noError(g.untilQuiet(ctx, atRest, api.ProfilesID("")))
	c := g.rests(ctx, name)
	// It would go on for a while where the next worker has no profiles, and count as what that one takes.
	noError(g.Temporal.Client.TerminateWorkflow(ctx, api.ProfilesID(""), "", "measured"))
	return c
}
