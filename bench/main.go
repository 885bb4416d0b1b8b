// Command bench measures Drydock on a control plane and a Temporal server of its own. Every figure that is a claim
// about speed is a ratio, or a time between two events that one client saw, taken in one run on one machine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"drydock/deploy/devstack"
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

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	figures, err := measure(ctx)
	if err == nil {
		err = publish(figures)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// measure runs every benchmark on servers of its own.
func measure(ctx context.Context) (figures []Figure, err error) {
	dir, err := os.MkdirTemp("", "drydock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	progress("starting a control plane with %d empty nodes, and Temporal", fleet)
	audit := filepath.Join(dir, "audit.log")
	cluster, err := devstack.StartCluster(ctx, filepath.Join(dir, "cluster"), fleet, "--audit-log", audit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Stop(time.Minute)) }()
	// A file would measure the disk's flushes, of which every step has several.
	temporal, err := devstack.StartTemporal(ctx, devstack.TemporalOptions{
		Dir: filepath.Join(dir, "temporal"), Attributes: true, InMemory: true,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temporal.Stop(time.Minute)) }()
	worker, err := devstack.StartWorker(ctx, devstack.WorkerOptions{
		Dir: filepath.Join(dir, "worker"), Name: "worker", Kubeconfig: cluster.Kubeconfig, Temporal: temporal,
		Config: fmt.Sprintf("scheduler: {maxParallel: %d}\n", slots),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, worker.Stop(time.Minute)) }()

	b := &bench{cluster: cluster, temporal: temporal, worker: worker, audit: audit}
	for _, benchmark := range []func(context.Context) ([]Figure, error){b.costCard, b.handOver} {
		more, err := benchmark(ctx)
		if err != nil {
			return figures, err
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

// bench is the stack that the benchmarks share.
type bench struct {
	cluster  *devstack.Cluster
	temporal *devstack.Temporal
	worker   *devstack.Worker
	audit    string
}

func progress(format string, args ...any) { fmt.Printf("== "+format+"\n", args...) }

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
	data, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	root, err := devstack.Root()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "bench.json"), append(data, '\n'), 0o644)
}
