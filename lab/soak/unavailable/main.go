// Command unavailable has maintenances, plans, a profile and a health check take the nodes of one cluster out of service under
// maxUnavailable 1, while workers, Temporal and the workflows that decide are killed, terminated and reset. It sees every version of
// every node that the API server has made, and judges that never two were out at one instant.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

func main() { os.Exit(command()) }

// options are what a run is told.
type options struct {
	length, settle time.Duration
	nodes          int
	seed           uint64
}

func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.DurationVar(&o.length, "for", 10*time.Minute, "how long nodes are taken out and things go wrong")
	flag.DurationVar(&o.settle, "settle", 5*time.Minute, "how long everything may take to be back after that")
	flag.IntVar(&o.nodes, "nodes", 20, "simulated nodes")
	flag.Uint64Var(&o.seed, "seed", 0, "what all choices follow from; 0 takes one by chance")
	flag.Parse()
	if o.nodes < 4 || o.length <= 0 || o.settle <= 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "unavailable: -nodes wants 4 at least, -for and -settle a time over 0, and there are no arguments")
		return 2
	}
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32())
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "unavailable:", err)
		return 1
	}
	return 0
}

// workers is how many there are.
const workers = 2

// stack is the servers and the workers.
type stack struct {
	*world.World
	workers [workers]*devstack.Worker
	begun   int
}

// config is that of the workers.
func (s *stack) config() string {
	return fmt.Sprintf(`scheduler: {maxParallel: 10, maxUnavailable: 1}
profiles: {file: %q}
healthChecks:
  %s:
    selector: {matchLabels: {%s: %s}}
    unhealthyConditions: [{type: %s, status: "True", duration: 1s}]
    maintenance: {input: {drain: {mode: none}}}
`, s.profiles(), checkName, takenLabel, takenBy, broken)
}

func (s *stack) profiles() string { return filepath.Join(s.Dir, "profiles.yaml") }

// startWorker starts the i-th worker and waits until it polls.
func (s *stack) startWorker(ctx context.Context, i int) (err error) {
	s.begun++
	s.workers[i], err = devstack.StartWorker(ctx, s.Worker(fmt.Sprintf("worker-%d-%d", i+1, s.begun), s.config()))
	return err
}

// start starts everything.
func (s *stack) start(ctx context.Context, o options) (err error) {
	if err = os.WriteFile(s.profiles(), []byte(profilesFile), 0o600); err != nil {
		return err
	}
	if s.World, err = world.Start(ctx, world.Options{Dir: s.Dir, Nodes: o.nodes}); err != nil {
		return err
	}
	for i := range s.workers {
		if err := s.startWorker(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// stop ends everything that was started.
func (s *stack) stop() error {
	var problems []error
	for _, w := range s.workers {
		if w != nil {
			problems = append(problems, w.Stop(time.Minute))
		}
	}
	return errors.Join(append(problems, s.World.Stop())...)
}

func run(ctx context.Context, o options) (err error) {
	s := &stack{World: &world.World{}}
	if s.Dir, err = os.MkdirTemp("", "drydock-unavailable-"); err != nil {
		return err
	}
	world.Say("seed %d: starting a control plane with %d nodes, Temporal and %d workers; logs are in %s", o.seed, o.nodes, workers, s.Dir)
	defer func() {
		if err = errors.Join(err, s.stop()); err == nil {
			err = os.RemoveAll(s.Dir)
		}
	}()
	if err := s.start(ctx, o); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	j := newJudge()
	if err := j.watch(watching, s.Cluster.Client); err != nil {
		return err
	}
	t := &takers{stack: s, judge: j, nodes: o.nodes}
	if err := t.prepare(ctx); err != nil {
		return err
	}
	t.work(ctx, o)
	world.Say("nothing new is begun; all nodes are to be back within %s", o.settle)
	return errors.Join(t.finish(ctx, o.settle), j.verdict())
}

// work takes nodes out and lets things go wrong until the time is over.
func (t *takers) work(ctx context.Context, o options) {
	ctx, cancel := context.WithTimeout(ctx, o.length)
	defer cancel()
	var all sync.WaitGroup
	for i, part := range []struct {
		every time.Duration
		do    func(context.Context, *rand.Rand)
	}{
		{12 * time.Second, t.maintain},
		{10 * time.Second, t.roll},
		{20 * time.Second, t.need},
		{25 * time.Second, t.fallIll},
		{time.Second, func(ctx context.Context, _ *rand.Rand) { t.serve(ctx) }},
		{9 * time.Second, t.goWrong},
		{20 * time.Second, func(context.Context, *rand.Rand) { world.Say("%s", t.judge.tell()) }},
	} {
		dice := rand.New(rand.NewPCG(o.seed, uint64(i)))
		all.Go(func() {
			for world.Sleep(ctx, time.Duration(float64(part.every)*(0.5+dice.Float64()))) == nil {
				part.do(ctx, dice)
			}
		})
	}
	all.Wait()
}
