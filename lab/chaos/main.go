// Command chaos lets every kind of fault happen before and after every step of a maintenance, of the remediation of a node, of its way through
// the states of a profile, and of workflows that maintain nodes, on a control plane and a Temporal server of its own, and prints which were
// survived.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/lab/world"
)

func main() { world.Main("chaos", run) }

func run(ctx context.Context) error {
	chosen := flag.String("run", "", "`REGEXP` of the faults to let happen, each named STEP/before|after/KIND; empty for all")
	lanes := flag.Int("parallel", 10, "`LANES` that work at a time, each on two nodes")
	out := flag.String("out", "chaos.json", "`FILE` to write the outcomes to, below the source tree's root unless absolute")
	part := flag.String("part", "1/1", "`N/M`: of the faults, in the order of -list, let only the Nth of M equal parts happen, for runs that together take longer than a machine has")
	subset := flag.Bool("short", false, "only a few faults, in about a minute")
	list := flag.Bool("list", false, "print the names of the faults and end")
	flag.Parse()
	which, err := regexp.Compile(*chosen)
	if err != nil {
		return world.Misuse("-run: " + err.Error())
	}
	cells, err := partOf(choose(which, *subset), *part)
	if err != nil {
		return world.Misuse("-part: " + err.Error())
	}
	if *list {
		for _, c := range cells {
			fmt.Println(c)
		}
		return nil
	}
	began := time.Now()
	outcomes, err := explore(ctx, cells, *lanes, world.Say)
	if len(outcomes) > 0 {
		err = errors.Join(err, publish(outcomes, *out, time.Since(began)))
	}
	return err
}

// choose lists the faults whose names match.
func choose(which *regexp.Regexp, subset bool) []cell {
	var cells []cell
	for _, k := range kinds {
		for _, s := range steps {
			for _, side := range []when{before, after} {
				c := cell{step: s, when: side, kind: k}
				if c.canHappen() && which.MatchString(c.String()) && (!subset || short[c.String()]) {
					cells = append(cells, c)
				}
			}
		}
	}
	// A lane begins a Drydock anew for faults that need another.
	slices.SortStableFunc(cells, func(a, b cell) int {
		return strings.Compare(fmt.Sprint(shapeFor(a)), fmt.Sprint(shapeFor(b)))
	})
	return cells
}

// partOf returns the nth of m parts of the faults, written n/m. The parts have the same length, or one fault more.
func partOf(cells []cell, part string) ([]cell, error) {
	var n, m int
	var rest string
	if got, _ := fmt.Sscanf(part, "%d/%d%s", &n, &m, &rest); got != 2 || n < 1 || n > m {
		return nil, fmt.Errorf("%q is not N/M with N from 1 to M, as 2/4", part)
	}
	return cells[len(cells)*(n-1)/m : len(cells)*n/m], nil
}

// publish prints the matrix and what went wrong, and writes the outcomes to a file.
func publish(outcomes []Outcome, file string, took time.Duration) error {
	fmt.Println()
	err := printMatrix(os.Stdout, outcomes)
	good := 0
	for _, o := range outcomes {
		if o.Outcome == survived {
			good++
			continue
		}
		fmt.Printf("\n%s %s/%s/%s after %.0f s\n  %s\n", o.Outcome, o.Step, o.When, o.Kind, o.Seconds, o.Detail)
	}
	fmt.Printf("\n%d faults in %s: %d survived, %d not\n", len(outcomes), took.Round(time.Second), good, len(outcomes)-good)
	if good < len(outcomes) {
		err = errors.Join(err, fmt.Errorf("%d of %d faults were not survived", len(outcomes)-good, len(outcomes)))
	}
	return errors.Join(err, world.WriteJSON(file, outcomes))
}
