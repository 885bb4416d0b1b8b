// Command objects has many objects NodeMaintenance ask for maintenances of the nodes of one cluster at once, while bridges and workers are
// killed. It judges that each object has one maintenance and ends right, and how often the bridge wrote it; then it reads how much memory
// the bridge needs for many objects that wait.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

func main() { world.Main("objects", command) }

// options are what a run is told.
type options struct {
	world.Trial
	objects, kills, waiting int
}

// workers is how many there are.
const workers = 2

func command(ctx context.Context) error {
	var o options
	o.Flags(200, 20*time.Minute, "end")
	flag.IntVar(&o.objects, "objects", 1000, "objects that ask for maintenances at once")
	flag.IntVar(&o.kills, "kills", 20, "how often the bridge is killed meanwhile, and how often a worker")
	flag.IntVar(&o.waiting, "waiting", 5000, "objects whose maintenances wait while the memory of the bridge is read; 0 leaves that out")
	o.Parse()
	if o.objects < 1 || o.Nodes < 1 || o.kills < 0 || o.waiting < 0 || o.Settle <= 0 || flag.NArg() > 0 {
		return world.Misuse("-objects and -nodes want 1 at least, -settle a time over 0, and there are no arguments")
	}
	starting := fmt.Sprintf("seed %d: starting a control plane with %d nodes, Temporal, %d workers and a bridge", o.Seed, o.Nodes, workers)
	return world.Run(ctx, "objects", starting, world.Options{Nodes: o.Nodes}, func(w *world.World) error { return run(ctx, w, o) })
}

func run(ctx context.Context, w *world.World, o options) (err error) {
	if err := w.StartWorkers(ctx, workers, "scheduler: {maxParallel: 100}"); err != nil {
		return err
	}
	kube, err := world.Dynamic(w.Cluster.Kubeconfig)
	if err != nil {
		return err
	}
	a := &asker{options: o, World: w, judge: newJudge()}
	defer func() {
		if a.bridge != nil {
			err = errors.Join(err, a.bridge.Stop(time.Minute))
		}
	}()
	// The bridge starts before any of its kinds is defined, and follows the objects once they are. The other kinds stay missing.
	if err := a.startBridge(ctx); err != nil {
		return err
	}
	if a.objects, err = world.DefineMaintenances(ctx, kube); err != nil {
		return err
	}
	if err := a.maintain(ctx); err != nil {
		return err
	}
	return a.wait(ctx)
}

// startBridge starts the bridge, which waits for no Lease of one that was killed.
func (a *asker) startBridge(ctx context.Context) (err error) {
	a.bridge, err = devstack.StartBridge(ctx, devstack.BridgeOptions{
		Dir: filepath.Join(a.Dir, "bridges"), Name: "bridge", Kubeconfig: a.Cluster.Kubeconfig, Temporal: a.Temporal,
		Args: []string{"--leader-election=false"},
	})
	return err
}

// goWrong kills a bridge and a worker in turn, as often as asked.
func (a *asker) goWrong(ctx context.Context) error {
	dice := world.Dice(a.Seed, 0)
	for i := 0; i < a.kills && world.Sleep(ctx, 2*time.Second+time.Duration(dice.IntN(8000))*time.Millisecond) == nil; i++ {
		again := context.WithoutCancel(ctx)
		a.bridge.Kill()
		if err := a.startBridge(again); err != nil {
			return fmt.Errorf("a bridge does not start: %w", err)
		}
		if err := a.Workers[i%workers].Restart(again); err != nil {
			return fmt.Errorf("a worker does not start: %w", err)
		}
		world.Say("killed %d times; %s", i+1, a.judge.tell())
	}
	return nil
}
