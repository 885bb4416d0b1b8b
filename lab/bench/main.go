// Command bench measures Drydock on a control plane and a Temporal server of its own. Every figure that is a claim
// about speed is a ratio, or a time between two events that one client saw, taken in one run on one machine.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

// Figure is one measured value and what it is held against.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Target is empty for a figure that is only reported.
	Target string `json:"target"`
	OK     bool   `json:"ok"`
}

func atMost(name string, value float64, unit string, limit float64) Figure {
	return Figure{name, value, unit, fmt.Sprintf("<= %g", limit), value <= limit}
}

func atLeast(name string, value float64, unit string, limit float64) Figure {
	return Figure{name, value, unit, fmt.Sprintf(">= %g", limit), value >= limit}
}

func report(name string, value float64, unit string) Figure {
	return Figure{Name: name, Value: value, Unit: unit, OK: true}
}

func median[T cmp.Ordered](values []T) T { return slices.Sorted(slices.Values(values))[len(values)/2] }

func main() { world.Main("bench", run) }

func run(ctx context.Context) error {
	chosen := flag.String("run", "", "`REGEXP` of the benchmarks to run, of "+strings.Join(names(), ", ")+"; empty for all")
	var s sizes
	s.flags(flag.CommandLine)
	flag.Parse()
	which, err := regexp.Compile(*chosen)
	if err != nil {
		return world.Misuse("-run: " + err.Error())
	}
	figures, err := measure(ctx, which, s)
	// What was measured before something failed may have taken long.
	if len(figures) > 0 {
		err = errors.Join(err, publish(figures))
	}
	return err
}

// sizes are how much is measured. The targets hold for the defaults.
type sizes struct {
	budgetRounds, manyRounds int
	fleetNodes, fleetPods    int
	memoryNodes, memoryPods  int
	burst                    int
	togetherNodes            int
	healthIdle, pageViewed   time.Duration
	growth                   []int
}

func (s *sizes) flags(f *flag.FlagSet) {
	f.IntVar(&s.budgetRounds, "budget-rounds", 9, "drains of each kind that the benchmark budget makes")
	f.IntVar(&s.manyRounds, "many-rounds", 5, "drains of each kind that the benchmark many makes")
	f.IntVar(&s.fleetNodes, "fleet-nodes", 375, "nodes that the benchmark fleet drains at once")
	f.IntVar(&s.fleetPods, "fleet-pods", 15, "pods on each of these nodes")
	f.IntVar(&s.burst, "burst", 5000, "requests that the benchmark burst makes at once")
	f.IntVar(&s.togetherNodes, "together-nodes", 100, "nodes that the benchmark plan-together drains by one plan")
	f.DurationVar(&s.healthIdle, "health-idle", 6*time.Minute, "for how long the benchmarks health and profiles count what nothing costs")
	f.DurationVar(&s.pageViewed, "page-viewed", 10*time.Minute, "for how long the benchmark page has viewers look at it")
	s.growth = []int{50, 500, 5000}
	f.Func("growth-nodes", "`NODES` of the clusters of the benchmark growth, from 50 on (default 50,500,5000)", func(text string) error {
		s.growth = nil
		for part := range strings.SplitSeq(text, ",") {
			nodes, err := strconv.Atoi(part)
			if err != nil || nodes < memoryDrained || len(s.growth) > 0 && nodes <= s.growth[len(s.growth)-1] {
				return fmt.Errorf("%q: numbers of nodes from %d on, each more than the one before", text, memoryDrained)
			}
			s.growth = append(s.growth, nodes)
		}
		return nil
	})
	f.IntVar(&s.memoryNodes, "memory-nodes", 5000, "nodes of the clusters of the benchmarks memory, which drains 50 of them, health-memory, page and profiles")
	f.IntVar(&s.memoryPods, "memory-pods", 20000, "pods of that cluster")
}

// benchmark measures something on a stack that is there.
type benchmark struct {
	name string
	// limit bounds how long it may take.
	limit time.Duration
	run   func(*bench, context.Context) []Figure
}

// suite is a stack and the benchmarks that share it.
type suite struct {
	// nodes are simulated, args are further flags of the cluster.
	nodes func(sizes) int
	args  []string
	// audit records every request.
	audit bool
	// config is the worker's; nil leaves it to the benchmarks to start one.
	config     *string
	benchmarks []benchmark
}

var suites = []suite{
	{
		nodes: func(sizes) int { return fleet }, audit: true,
		config: new(fmt.Sprintf("scheduler: {maxParallel: %d}\n", slots)),
		benchmarks: []benchmark{
			{"cost", 2 * time.Minute, (*bench).costCard},
			{"handover", 3 * time.Minute, (*bench).handOver},
			{"plan-handover", 3 * time.Minute, (*bench).planHandOver},
		},
	},
	{
		nodes: func(sizes) int { return 2 }, audit: true, config: new(""),
		benchmarks: []benchmark{{"budget", 10 * time.Minute, (*bench).drainUnderBudget}, {"many", 5 * time.Minute, (*bench).drainManyPods}},
	},
	{
		nodes: func(sizes) int { return burstNodes },
		benchmarks: []benchmark{
			{"decide", 5 * time.Minute, (*bench).decide},
			{"lockstep", 5 * time.Minute, (*bench).lockstep},
			{"carry", 5 * time.Minute, (*bench).carry},
			{"burst", 10 * time.Minute, (*bench).burst},
		},
	},
	{
		nodes: func(sizes) int { return planNodes }, config: new(planConfig()),
		benchmarks: []benchmark{
			{"plan-size", 5 * time.Minute, (*bench).planSize},
			{"plan-rate", 12 * time.Minute, (*bench).planRate},
			{"plan-waits", 3 * time.Minute, (*bench).planWaits},
		},
	},
	{
		nodes: func(sizes) int { return movesNodes }, config: new(unlimited()),
		benchmarks: []benchmark{{"moves", 15 * time.Minute, moves("moves", movesWithDefaults)}},
	},
	{
		nodes: func(sizes) int { return movesNodes }, args: []string{"--pack-nodes"}, config: new(unlimited()),
		benchmarks: []benchmark{{"moves-packed", 15 * time.Minute, moves("moves-packed", movesPacked)}},
	},
	{
		nodes: func(s sizes) int { return s.togetherNodes }, config: new(unlimited()),
		benchmarks: []benchmark{{"plan-together", 15 * time.Minute, (*bench).planTogether}},
	},
	{
		nodes: func(s sizes) int { return s.fleetNodes }, audit: true,
		benchmarks: []benchmark{{"fleet", 20 * time.Minute, (*bench).drainFleet}, {"owned", 20 * time.Minute, (*bench).drainOwned}},
	},
	{
		nodes: func(sizes) int { return memoryDrained }, args: largeNodes(),
		benchmarks: []benchmark{{"memory", 25 * time.Minute, (*bench).memory}},
	},
	{
		nodes: func(sizes) int { return healthNodes }, config: new(""),
		benchmarks: []benchmark{{"health", 20 * time.Minute, (*bench).measureHealth}},
	},
	{
		nodes:      func(sizes) int { return blindNodes },
		benchmarks: []benchmark{{"blind", 10 * time.Minute, (*bench).measureBlind}},
	},
	{
		nodes: func(sizes) int { return memoryDrained }, args: largeNodes(),
		benchmarks: []benchmark{{"health-memory", 25 * time.Minute, (*bench).measureHealthMemory}},
	},
	{
		nodes: func(sizes) int { return memoryDrained }, args: largeNodes(),
		benchmarks: []benchmark{{"page", 30 * time.Minute, (*bench).measurePage}},
	},
	{
		nodes: func(sizes) int { return memoryDrained }, args: profiledNodes(), audit: true,
		benchmarks: []benchmark{{"profiles", 40 * time.Minute, (*bench).measureProfiles}},
	},
	{
		nodes: func(sizes) int { return memoryDrained }, args: profiledNodes(), audit: true,
		benchmarks: []benchmark{{"growth", 2 * time.Hour, (*bench).measureGrowth}},
	},
}

func names() []string {
	var all []string
	for _, s := range suites {
		for _, benchmark := range s.benchmarks {
			all = append(all, benchmark.name)
		}
	}
	return all
}

// measure runs the benchmarks whose names match. One that fails does not keep the others from running.
func measure(ctx context.Context, which *regexp.Regexp, s sizes) ([]Figure, error) {
	var figures []Figure
	var problems []error
	for _, suite := range suites {
		suite.benchmarks = slices.DeleteFunc(slices.Clone(suite.benchmarks), func(b benchmark) bool {
			return !which.MatchString(b.name)
		})
		if len(suite.benchmarks) == 0 || ctx.Err() != nil {
			continue
		}
		more, err := suite.measure(ctx, s)
		figures = append(figures, more...)
		problems = append(problems, err)
	}
	if len(figures) == 0 && errors.Join(problems...) == nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("nothing was measured: -run chooses of %s", strings.Join(names(), ", ")))
	}
	return figures, errors.Join(append(problems, ctx.Err())...)
}

// measure runs the benchmarks of a suite on servers of their own.
func (s suite) measure(ctx context.Context, sizes sizes) (figures []Figure, err error) {
	dir, err := os.MkdirTemp("", "drydock-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	nodes := s.nodes(sizes)
	world.Say("starting a control plane with %d empty nodes, and Temporal", nodes)
	// A file would measure the disk's flushes, of which every step has several.
	servers, err := world.Start(ctx, world.Options{Dir: dir, Nodes: nodes, Cluster: s.args, Audit: s.audit, InMemory: true})
	defer func() { err = errors.Join(err, servers.Stop()) }()
	if err != nil {
		return nil, err
	}
	b := &bench{World: servers, audit: auditLog(servers.Audit), sizes: sizes}
	if s.config != nil {
		if b.worker, err = b.startWorker(ctx, "worker", *s.config); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.worker.Stop(time.Minute)) }()
	}
	var problems []error
	for _, benchmark := range s.benchmarks {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, benchmark.limit)
		more, err := attempt(func() []Figure { return benchmark.run(b, limited) })
		cancel()
		if err = errors.Join(err, b.problem); err != nil {
			problems = append(problems, fmt.Errorf("benchmark %s: %w", benchmark.name, err))
			b.problem = nil
			continue
		}
		world.Say("benchmark %s took %s", benchmark.name, time.Since(began).Round(time.Second))
		figures = append(figures, more...)
	}
	return figures, errors.Join(problems...)
}

// bench is the stack that the benchmarks share.
type bench struct {
	*world.World
	worker *devstack.Worker
	audit  auditLog
	sizes  sizes
	// problem is what went wrong when what a benchmark had started was ended.
	problem error
}

// note keeps an error that comes after a benchmark, which fails by it.
func (b *bench) note(err error) { b.problem = errors.Join(b.problem, err) }

func (b *bench) startWorker(ctx context.Context, name, config string) (*devstack.Worker, error) {
	w, err := devstack.LaunchWorker(b.Worker(name, config))
	if err != nil {
		return nil, err
	}
	if err := w.Ready(ctx); err != nil {
		return nil, errors.Join(err, w.Stop(time.Minute))
	}
	return w, nil
}

// publish prints the table and writes bench.json. A missed target is reported, and is no failure of the run.
func publish(figures []Figure) error {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FIGURE\tVALUE\tUNIT\tTARGET\tOK")
	for _, f := range figures {
		ok := "-"
		if f.Target != "" {
			ok = map[bool]string{true: "yes", false: "NO"}[f.OK]
		}
		fmt.Fprintf(w, "%s\t%.4g\t%s\t%s\t%s\n", f.Name, f.Value, f.Unit, f.Target, ok)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Print("\n", table.String())
	return world.WriteJSON("bench.json", figures)
}
