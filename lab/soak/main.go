// Command soak lets two workers maintain a fleet for a while, with everything at once that may go wrong or be said wrongly,
// on a control plane and a Temporal server of its own. A judge watches the nodes and pods all the time, and at the end
// nothing may be left.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"drydock.dev/drydock/lab/world"
)

func main() { world.Main("soak", command) }

func command(ctx context.Context) error {
	var o options
	o.Flags(200, 5*time.Minute, "end after that")
	flag.DurationVar(&o.length, "for", 10*time.Minute, "how long new things are begun and go wrong")
	flag.StringVar(&o.log, "log", "soak.log", "`FILE` for what was done and when, a line of JSON each, below the source tree's root unless absolute")
	o.Parse()
	if o.Nodes < agentNodes+spareNodes || o.length <= 0 || flag.NArg() > 0 {
		return world.Misuse(fmt.Sprintf("-nodes wants %d at least, -for a time over 0, and there are no arguments", agentNodes+spareNodes))
	}
	var err error
	if o.log, err = world.Output(o.log); err != nil {
		return err
	}
	began := time.Now()
	found, err := run(ctx, o)
	show(found)
	fmt.Printf("\nseed %d, %s: %d violations; what was done is in %s\n", o.Seed, time.Since(began).Round(time.Second), len(found), o.log)
	return err
}

// shown are how many violations are printed with what was done before; the rest is in the log.
const shown = 20

func show(found []Violation) {
	for i, v := range found {
		if i == shown {
			fmt.Printf("\n... and %d more\n", len(found)-shown)
			return
		}
		fmt.Printf("\n%s VIOLATED %s %s\n  %s\n", v.At.Format("15:04:05.000"), v.Rule, v.Node, v.What)
		for _, e := range v.Last {
			fmt.Printf("    %s %s %s %s %s\n", e.At.Format("15:04:05.000"), e.Did, e.Workflow, e.Detail, e.Error)
		}
	}
}
