package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/deploy/devstack"
)

// stack is what all lanes share.
type stack struct {
	dir     string
	cluster *devstack.Cluster
	kube    kubernetes.Interface
	// audit is the API server's own record of every request.
	audit    string
	observer *observer
	receiver *receiver
	// objects are nil if no fault is about the bridge.
	objects    dynamic.ResourceInterface
	definition definition
	// remedies are nil if no fault is about health checks.
	remedies *remedies
}

// short are the faults of the short subset: one of each kind that is quick, at the steps whose repetition would do harm.
var short = map[string]bool{
	"cordon/after/api-drop":                  true,
	"create-object/after/api-drop":           true,
	"delete-object/after/api-500":            true,
	"drain/before/foreign":                   true,
	"drain/before/foreign-caller":            true,
	"drain/before/poison":                    true,
	"entered/after/api-drop":                 true,
	"evict/after/kill-worker":                true,
	"evict/after/reset-maintenance":          true,
	"evict/before/api-429":                   true,
	"announce/after/foreign-worker":          true,
	"evict/before/cut-temporal":              true,
	"maintain/after/terminate-transition":    true,
	"mark-object/before/api-409":             true,
	"give-slot-back/before/reset-scheduler":  true,
	"grant-slot/after/terminate-remediation": true,
	"move/after/api-409":                     true,
	"out-of-service/after/api-409":           true,
	"out-of-service/after/kubelet-back":      true,
	"remediation-progress/after/reset-check": true,
	"say-done/before/reset-transition":       true,
	"show-object/after/kill-bridge":          true,
	"hold-object/after/api-drop":             true,
	"slot-granted/after/api-409":             true,
	"slot-granted/after/reset-scheduler":     true,
	"taint/before/api-409":                   true,
	"uncordon/after/api-500":                 true,
}

// shortLanes is how many lanes the short subset has: on two cores more only wait for each other.
const shortLanes = 4

// explore lets all faults happen, some lanes at a time.
func explore(ctx context.Context, cells []cell, lanes int, progress func(string, ...any)) (outcomes []Outcome, err error) {
	if len(cells) == 0 {
		return nil, errors.New("no fault has such a name: -list prints all")
	}
	var shared, private []cell
	for _, c := range cells {
		if c.kind == restartTemporal {
			private = append(private, c)
		} else {
			shared = append(shared, c)
		}
	}
	// A worker that was killed has nothing in memory: what workers of one process keep of workflows there, they share.
	worker.SetStickyWorkflowCacheSize(0)
	lanes = min(lanes, len(cells))
	// A lane whose Temporal is killed has it for itself.
	alone := 0
	if len(private) > 0 {
		alone = min(max(1, lanes*3/10), len(private))
	}
	if len(shared) > 0 && lanes == alone {
		lanes++
	}
	q := &queue{shared: shared, private: private, total: len(cells), progress: progress}
	dir, err := os.MkdirTemp("", "drydock-chaos-")
	if err != nil {
		return nil, err
	}
	s := &stack{dir: dir, audit: filepath.Join(dir, "audit.log")}
	defer func() {
		if err == nil && !slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Outcome != survived }) {
			err = os.RemoveAll(dir)
		} else {
			progress("logs are in %s", dir)
		}
	}()
	progress("%d faults on %d lanes; starting a control plane and %d Temporal servers", len(cells), lanes, alone+min(1, lanes-alone))
	if s.cluster, err = devstack.StartCluster(ctx, filepath.Join(dir, "cluster"), 2*lanes, "--audit-log", s.audit); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.cluster.Stop(time.Minute)) }()
	s.kube = s.cluster.Client
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	if s.observer, err = newObserver(watching, s.kube); err != nil {
		return nil, err
	}
	s.receiver = newReceiver()
	defer s.receiver.server.Config.Close()
	if err = s.define(ctx, watching, cells); err != nil {
		return nil, err
	}
	err = s.runLanes(ctx, q, lanes, alone)
	return q.outcomes, errors.Join(append(q.problems, err, ctx.Err())...)
}

// define has the API server serve the kinds of objects that some faults are about.
func (s *stack) define(ctx, watching context.Context, cells []cell) (err error) {
	if slices.ContainsFunc(cells, func(c cell) bool { return c.step.heals != "" }) {
		if s.remedies, err = newRemedies(watching, s.cluster.Kubeconfig); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(cells, func(c cell) bool { return c.step.objects }) {
		return s.defineObjects(ctx)
	}
	return nil
}

// runLanes works the queue off on some lanes at a time; alone is how many of them have a Temporal server for themselves.
func (s *stack) runLanes(ctx context.Context, q *queue, lanes, alone int) (err error) {
	var temporals []*devstack.Temporal
	defer func() {
		for _, t := range temporals {
			err = errors.Join(err, t.Stop(time.Minute))
		}
	}()
	for i := range alone + min(1, lanes-alone) {
		// Only a server that is to be killed has to keep its state in a file.
		t, err := devstack.StartTemporal(ctx, devstack.TemporalOptions{
			Dir: filepath.Join(s.dir, fmt.Sprintf("temporal-%d", i+1)), Attributes: true, InMemory: i >= alone,
		})
		if err != nil {
			return err
		}
		temporals = append(temporals, t)
		if err := registerElsewhere(ctx, t); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	for i := range lanes {
		all.Go(func() {
			q.work(ctx, s, i, temporals[min(i, len(temporals)-1)], i < alone)
		})
	}
	all.Wait()
	return nil
}

// queue is what is left to be done, and what came of the rest.
type queue struct {
	mu              sync.Mutex
	shared, private []cell
	total           int
	outcomes        []Outcome
	problems        []error
	progress        func(string, ...any)
}

// next is a fault for a lane, which may have its Temporal for itself.
func (q *queue) next(alone bool) (cell, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	from := &q.shared
	if alone && len(q.private) > 0 {
		from = &q.private
	}
	if len(*from) == 0 {
		return cell{}, false
	}
	c := (*from)[0]
	*from = (*from)[1:]
	return c, true
}

func (q *queue) done(o Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.outcomes = append(q.outcomes, o)
	text := o.Outcome
	if o.Outcome != survived {
		text += ": " + o.Detail
	}
	q.progress("%d/%d %s/%s/%s in %.0f s: %s", len(q.outcomes), q.total, o.Step, o.When, o.Kind, o.Seconds, text)
}

func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.problems = append(q.problems, err)
	q.progress("%v", err)
}

// work is a lane's life: a run without a fault, to compare with, and then one fault after the other.
func (q *queue) work(ctx context.Context, s *stack, i int, temporal *devstack.Temporal, alone bool) {
	l, err := s.newLane(ctx, i, temporal)
	if l != nil {
		defer l.close()
	}
	if err != nil {
		q.fail(fmt.Errorf("lane %d: %w", i+1, err))
		return
	}
	calm := l.run(ctx, cell{})
	for range 2 {
		// On a busy machine the first run may take longer than its time.
		if calm.Outcome != survived && ctx.Err() == nil {
			calm = l.run(ctx, cell{})
		}
	}
	if calm.Outcome != survived {
		q.fail(fmt.Errorf("%s: the run without a fault %s: %s", l.name, calm.Outcome, calm.Detail))
		return
	}
	q.progress("%s is ready: its maintenances without a fault took %.0f s", l.name, calm.Seconds)
	for ctx.Err() == nil {
		c, more := q.next(alone)
		if !more {
			return
		}
		done := s.definition.use(c)
		if o := l.run(ctx, c); ctx.Err() == nil {
			q.done(o)
		}
		if c.kind == deleteDefinition && ctx.Err() == nil {
			if err := s.definition.settle(ctx); err != nil {
				q.fail(err)
			}
		}
		done()
	}
}
