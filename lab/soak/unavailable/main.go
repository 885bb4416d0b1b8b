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
	"path/filepath"
	"sync"
	"time"

	"drydock.dev/drydock/lab/world"
)

func main() { world.Main("unavailable", command) }

// options are what a run is told.
type options struct {
	world.Trial
	length time.Duration
}

// workers is how many there are.
const workers = 2

func command(ctx context.Context) error {
	var o options
	o.Flags(20, 5*time.Minute, "be back after that")
	flag.DurationVar(&o.length, "for", 10*time.Minute, "how long nodes are taken out and things go wrong")
	o.Parse()
	if o.Nodes < 4 || o.length <= 0 || o.Settle <= 0 || flag.NArg() > 0 {
		return world.Misuse("-nodes wants 4 at least, -for and -settle a time over 0, and there are no arguments")
	}
	starting := fmt.Sprintf("seed %d: starting a control plane with %d nodes, Temporal and %d workers", o.Seed, o.Nodes, workers)
	return world.Run(ctx, "unavailable", starting, world.Options{Nodes: o.Nodes}, func(w *world.World) error { return run(ctx, w, o) })
}

func run(ctx context.Context, w *world.World, o options) error {
	profiles := filepath.Join(w.Dir, "profiles.yaml")
	if err := os.WriteFile(profiles, []byte(profilesFile), 0o600); err != nil {
		return err
	}
	if err := w.StartWorkers(ctx, workers, config(profiles)); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	j := newJudge()
	if err := j.watch(watching, w.Cluster.Client); err != nil {
		return err
	}
	t := &takers{World: w, judge: j, nodes: o.Nodes}
	if err := t.prepare(ctx); err != nil {
		return err
	}
	t.work(ctx, o)
	world.Say("nothing new is begun; all nodes are to be back within %s", o.Settle)
	return errors.Join(t.finish(ctx, o.Settle), j.verdict())
}

// config is that of the workers, with the file that has the profile.
func config(profiles string) string {
	return fmt.Sprintf(`scheduler: {maxParallel: 10, maxUnavailable: 1}
profiles: {file: %q}
healthChecks:
  %s:
    selector: {matchLabels: {%s: %s}}
    unhealthyConditions: [{type: %s, status: "True", duration: 1s}]
    maintenance: {input: {drain: {mode: none}}}
`, profiles, checkName, takenLabel, takenBy, broken)
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
		dice := world.Dice(o.Seed, uint64(i))
		all.Go(func() {
			for world.Sleep(ctx, time.Duration(float64(part.every)*(0.5+dice.Float64()))) == nil {
				part.do(ctx, dice)
			}
		})
	}
	all.Wait()
}
