package world

import (
	"context"
	"fmt"
	"sync"
	"time"

	"drydock.dev/drydock/deploy/devstack"
)

// Worker is a worker that a program ends and starts again. Several goroutines may do so at once.
type Worker struct {
	Name    string
	options devstack.WorkerOptions

	mu sync.Mutex
	// at is nil while the worker is down.
	at *devstack.Worker
}

// StartWorkers starts workers of one configuration and waits until they poll. Stop ends them.
func (w *World) StartWorkers(ctx context.Context, count int, config string) error {
	for i := range count {
		name := fmt.Sprintf("worker-%d", i+1)
		worker := &Worker{Name: name, options: w.Worker(name, config)}
		w.Workers = append(w.Workers, worker)
		if err := worker.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Start starts a worker that is down and waits until it polls.
func (w *Worker) Start(ctx context.Context) error {
	started, err := devstack.LaunchWorker(w.options)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.at = started
	w.mu.Unlock()
	if err := started.Ready(ctx); err != nil && w.has(started) {
		return err
	}
	return nil // it polls, or another fault has ended it while it started
}

// has reports whether a process is the worker's, which nobody has ended meanwhile.
func (w *Worker) has(at *devstack.Worker) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at == at
}

// Take hands the process of a running worker to the caller, who ends it. It returns nil if the worker is down already.
func (w *Worker) Take() *devstack.Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.at
	w.at = nil
	return at
}

// Kill kills the worker, unless it is down.
func (w *Worker) Kill() {
	if at := w.Take(); at != nil {
		at.Kill()
	}
}

// Restart kills the worker, starts it again, and waits until it polls.
func (w *Worker) Restart(ctx context.Context) error {
	w.Kill()
	return w.Start(ctx)
}

// stop ends the worker, unless it is down.
func (w *Worker) stop() error {
	if at := w.Take(); at != nil {
		return at.Stop(time.Minute)
	}
	return nil
}

// Ended reports whether the worker ended by itself, and what it said last.
func (w *Worker) Ended() (said string, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == nil {
		return "", false
	}
	select {
	case <-w.at.Exited():
		said = w.at.Tail()
		w.at = nil
		return said, true
	default:
		return "", false
	}
}
