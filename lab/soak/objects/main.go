// Command objects has many objects NodeMaintenance ask for maintenances of the nodes of one cluster at once, while bridges and workers are
// killed. It judges that each object has one maintenance and ends right, and how often the bridge wrote it; then it reads how much memory
// the bridge needs for many objects that wait.
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
	"syscall"
	"time"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

func main() { os.Exit(command()) }

// options are what a run is told.
type options struct {
	objects, nodes, kills, waiting int
	settle                         time.Duration
	seed                           uint64
}

func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.IntVar(&o.objects, "objects", 1000, "objects that ask for maintenances at once")
	flag.IntVar(&o.nodes, "nodes", 200, "simulated nodes")
	flag.IntVar(&o.kills, "kills", 20, "how often the bridge is killed meanwhile, and how often a worker")
	flag.IntVar(&o.waiting, "waiting", 5000, "objects whose maintenances wait while the memory of the bridge is read; 0 leaves that out")
	flag.DurationVar(&o.settle, "settle", 20*time.Minute, "how long everything may take to end")
	flag.Uint64Var(&o.seed, "seed", 0, "what all choices follow from; 0 takes one by chance")
	flag.Parse()
	if o.objects < 1 || o.nodes < 1 || o.kills < 0 || o.waiting < 0 || o.settle <= 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "objects: -objects and -nodes want 1 at least, -settle a time over 0, and there are no arguments")
		return 2
	}
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32())
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "objects:", err)
		return 1
	}
	return 0
}

// workers is how many there are.
const workers = 2

// stack is the servers, the workers and the bridge.
type stack struct {
	*world.World
	workers [workers]*devstack.Worker
	bridge  *devstack.Bridge
	begun   int
}

// startWorker starts the i-th worker and waits until it polls.
func (s *stack) startWorker(ctx context.Context, i int) (err error) {
	s.begun++
	s.workers[i], err = devstack.StartWorker(ctx, s.Worker(fmt.Sprintf("worker-%d-%d", i+1, s.begun), "scheduler: {maxParallel: 100}"))
	return err
}

// startBridge starts the bridge, which waits for no Lease of one that was killed.
func (s *stack) startBridge(ctx context.Context) (err error) {
	s.begun++
	s.bridge, err = devstack.StartBridge(ctx, devstack.BridgeOptions{
		Dir: filepath.Join(s.Dir, "bridges"), Name: fmt.Sprintf("bridge-%d", s.begun), Kubeconfig: s.Cluster.Kubeconfig, Temporal: s.Temporal,
		Args: []string{"--leader-election=false"},
	})
	return err
}

// start starts everything but the bridge.
func (s *stack) start(ctx context.Context, o options) (err error) {
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
	if s.bridge != nil {
		problems = append(problems, s.bridge.Stop(time.Minute))
	}
	for _, w := range s.workers {
		if w != nil {
			problems = append(problems, w.Stop(time.Minute))
		}
	}
	return errors.Join(append(problems, s.World.Stop())...)
}

func run(ctx context.Context, o options) (err error) {
	s := &stack{World: &world.World{}}
	if s.Dir, err = os.MkdirTemp("", "drydock-objects-"); err != nil {
		return err
	}
	world.Say("seed %d: starting a control plane with %d nodes, Temporal, %d workers and a bridge; logs are in %s", o.seed, o.nodes, workers, s.Dir)
	defer func() {
		if err = errors.Join(err, s.stop()); err == nil {
			err = os.RemoveAll(s.Dir)
		}
	}()
	if err := s.start(ctx, o); err != nil {
		return err
	}
	// The bridge is there before the definition of the objects: it follows them once that is installed.
	if err := s.startBridge(ctx); err != nil {
		return err
	}
	a, err := newAsker(ctx, s, o)
	if err != nil {
		return err
	}
	if err := a.maintain(ctx); err != nil {
		return err
	}
	return a.wait(ctx)
}

// goWrong kills a bridge and a worker in turn, as often as asked.
func (a *asker) goWrong(ctx context.Context) error {
	dice := rand.New(rand.NewPCG(a.seed, 0))
	for i := 0; i < a.kills && world.Sleep(ctx, 2*time.Second+time.Duration(dice.IntN(8000))*time.Millisecond) == nil; i++ {
		a.stack.bridge.Kill()
		if err := a.stack.startBridge(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("a bridge does not start: %w", err)
		}
		a.stack.workers[i%workers].Kill()
		if err := a.stack.startWorker(context.WithoutCancel(ctx), i%workers); err != nil {
			return fmt.Errorf("a worker does not start: %w", err)
		}
		world.Say("killed %d times; %s", i+1, a.judge.tell())
	}
	return nil
}
