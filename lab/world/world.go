// Package world is what the programs of the lab work on: a control plane with nodes and workloads, Temporal, and workers; what can go wrong
// with them; and the waiting for what comes of it.
package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"drydock.dev/drydock/deploy/devstack"
)

// World is servers that Drydock runs against.
type World struct {
	// Dir holds what all of them write.
	Dir      string
	Cluster  *devstack.Cluster
	Temporal *devstack.Temporal
	// Audit is the API server's own record of every request, empty if it keeps none.
	Audit string
	// Workers are those of StartWorkers.
	Workers []*Worker
}

// Options choose what a world is like.
type Options struct {
	Dir   string
	Nodes int
	// Cluster are further flags of the control plane.
	Cluster []string
	// Audit has every request recorded.
	Audit bool
	// InMemory keeps Temporal's state in no file: it ends with the process, and no disk slows it down.
	InMemory bool
}

// Start starts a control plane and Temporal. What was started has to be stopped, also where that fails.
func Start(ctx context.Context, o Options) (w *World, err error) {
	w = &World{Dir: o.Dir}
	args := o.Cluster
	if o.Audit {
		w.Audit = filepath.Join(o.Dir, "audit.log")
		args = append(slices.Clone(args), "--audit-log", w.Audit)
	}
	if w.Cluster, err = devstack.StartCluster(ctx, filepath.Join(o.Dir, "cluster"), o.Nodes, args...); err != nil {
		return w, err
	}
	w.Temporal, err = devstack.StartTemporal(ctx, devstack.TemporalOptions{
		Dir: filepath.Join(o.Dir, "temporal"), Attributes: true, InMemory: o.InMemory,
	})
	return w, err
}

// Run starts a world in a directory of its own, works in it, and stops it. The directory has the servers' logs and stays if anything failed.
// Run prints the text starting, which says what starts, with the path of the directory.
func Run(ctx context.Context, name, starting string, o Options, work func(*World) error) (err error) {
	if o.Dir, err = os.MkdirTemp("", "drydock-"+name+"-"); err != nil {
		return err
	}
	Say("%s; logs are in %s", starting, o.Dir)
	w, err := Start(ctx, o)
	defer func() {
		if err = errors.Join(err, w.Stop()); err == nil {
			err = os.RemoveAll(w.Dir)
		}
	}()
	if err != nil {
		return err
	}
	return work(w)
}

// Worker is how a worker of a name and configuration is run.
func (w *World) Worker(name, config string) devstack.WorkerOptions {
	return devstack.WorkerOptions{
		Dir: filepath.Join(w.Dir, "workers"), Name: name, Config: config, Kubeconfig: w.Cluster.Kubeconfig, Temporal: w.Temporal,
	}
}

// Stop ends the workers, and then the servers.
func (w *World) Stop() error {
	var problems []error
	for _, worker := range w.Workers {
		problems = append(problems, worker.stop())
	}
	if w.Temporal != nil && w.Temporal.Process != nil {
		problems = append(problems, w.Temporal.Stop(time.Minute))
	}
	if w.Cluster != nil {
		problems = append(problems, w.Cluster.Stop(time.Minute))
	}
	return errors.Join(problems...)
}

// RestartTemporal kills the Temporal server and starts it again with what it has on disk.
func (w *World) RestartTemporal(ctx context.Context) error {
	w.Temporal.Kill()
	return w.Temporal.Start(ctx)
}

// Output is a file that a program of the lab writes: below the source tree's root unless absolute.
func Output(file string) (string, error) {
	if filepath.IsAbs(file) {
		return file, nil
	}
	root, err := devstack.Root()
	return filepath.Join(root, file), err
}

// WriteJSON writes a value to a file of Output.
func WriteJSON(file string, value any) error {
	path, err := Output(file)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Say prints how far the program is.
func Say(format string, args ...any) {
	fmt.Printf("== %s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// Sleep waits, and returns an error where the context ends meanwhile.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lookAgain is the interval between two checks of what is waited for.
const lookAgain = 250 * time.Millisecond

// Eventually waits until check says that nothing is missing any more.
func Eventually(ctx context.Context, limit time.Duration, what string, check func() error) error {
	for deadline := time.Now().Add(limit); ; {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) || Sleep(ctx, lookAgain) != nil {
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		}
	}
}
