package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

// firstLimits are in force from the beginning.
var firstLimits = limits{parallel: 6, unavailable: 12}

// zoneLimit is how many nodes of a zone may be held at a time; nobody changes it.
const zoneLimit = 4

// limits are what the soak changes of the scheduler's.
type limits struct{ parallel, unavailable int }

// stack is the servers that Drydock runs against, and its workers.
type stack struct {
	*world.World
	receiver *receiver
	workers  []*fleetWorker
}

// fleetWorker is a worker that is killed and started again.
type fleetWorker struct {
	name string
	mu   sync.Mutex
	// at is nil while it is down.
	at *devstack.Worker
}

func startStack(ctx context.Context, dir string, nodes int, dice *rand.Rand) (s *stack, err error) {
	s = &stack{World: &world.World{Dir: dir}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.receiver, err = newReceiver(ctx, dice); err != nil {
		return s, err
	}
	if s.World, err = world.Start(ctx, world.Options{Dir: dir, Nodes: nodes, Audit: true}); err != nil {
		return s, err
	}
	if err = populate(ctx, s.Cluster.Client, nodes); err != nil {
		return s, err
	}
	for i := range 2 {
		w := &fleetWorker{name: fmt.Sprintf("worker-%d", i+1)}
		s.workers = append(s.workers, w)
		if err = s.startWorker(ctx, w); err != nil {
			return s, err
		}
	}
	return s, nil
}

// startWorker starts a worker that is down and waits until it polls.
func (s *stack) startWorker(ctx context.Context, w *fleetWorker) error {
	started, err := devstack.LaunchWorker(s.Worker(w.name, s.config()))
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
func (w *fleetWorker) has(at *devstack.Worker) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at == at
}

// take returns a running worker to the caller, who ends it; nil if it is down already.
func (w *fleetWorker) take() *devstack.Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.at
	w.at = nil
	return at
}

// ended reports whether the worker ended by itself, and what it said last.
func (w *fleetWorker) ended() (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == nil {
		return "", false
	}
	select {
	case <-w.at.Exited():
		said := w.at.Tail()
		w.at = nil
		return said, true
	default:
		return "", false
	}
}

// config is the workers' configuration.
func (s *stack) config() string {
	return fmt.Sprintf(`scheduler:
  maxParallel: %d
  maxUnavailable: %d
  groups: [{name: zone, groupBy: [topology.kubernetes.io/zone], maxParallel: %d}]
channels:
  events: {webhook: {url: %q}, default: true, retryFor: 30m}
  digest: {webhook: {url: %q}, digest: 5s, retryFor: 30m}
hooks:
  sign-off: {signal: {}, deadline: 20s, onFailure: continue}
  ticket: {http: {url: %q}, deadline: 15s, onFailure: continue, closing: {http: {url: %q}}}
audit: {webhook: {url: %q}}
`, firstLimits.parallel, firstLimits.unavailable, zoneLimit,
		s.receiver.url+"/events", s.receiver.url+"/digest", s.receiver.url+"/ticket", s.receiver.url+"/ticket/close", s.receiver.url+"/audit")
}

// stop ends everything that was started.
func (s *stack) stop() error {
	var problems []error
	for _, w := range s.workers {
		if at := w.take(); at != nil {
			problems = append(problems, at.Stop(time.Minute))
		}
	}
	problems = append(problems, s.World.Stop())
	if s.receiver != nil {
		problems = append(problems, s.receiver.close())
	}
	return errors.Join(problems...)
}

// remove forgets the logs of a run in which nothing was found.
func (s *stack) remove() error { return os.RemoveAll(s.Dir) }
