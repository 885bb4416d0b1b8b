package page

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/overview"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/record"
)

// source is what pages are read from.
type source interface {
	now() time.Time
	close()
	// nodes are all nodes of the cluster, for reading only.
	nodes(ctx context.Context) ([]*corev1.Node, error)
	// mark is what Drydock has written on a node.
	mark(n *corev1.Node) (k8s.Mark, error)
	status(ctx context.Context, now time.Time) api.ClusterStatus
	// maintenances are those of a node that run, and records those that it had, the newest first; missing counts those without a record.
	maintenances(ctx context.Context, node string) ([]client.View, error)
	records(ctx context.Context, node string) (all []record.Record, missing int, err error)
	// plan is a plan, with the nodes that have something to say, and its pace; nil if that is not known.
	plan(ctx context.Context, name string) (client.PlanView, *plan.Pace, error)
}

// shownRecords are the maintenances that a node had, which its page lists.
const shownRecords = 10

// reader reads from Temporal, and from the worker's watch of the nodes.
type reader struct {
	o Options

	mu   sync.Mutex
	view *k8s.View
	// idle ends the watch of the nodes when nobody has looked for a while.
	idle   *time.Timer
	closed bool
	// had are the maintenances that nodes had, as they were read last.
	had map[string]had
}

// had are maintenances, and the runs that they are of: what has ended stays as it is.
type had struct {
	runs string
	all  []record.Record
}

const (
	// watchesFor is for how long nodes are watched that nobody looks at, and maxHad bounds those whose maintenances are kept.
	watchesFor = 10 * time.Minute
	maxHad     = 100
)

func (r *reader) now() time.Time { return time.Now() }

// nodes begins the watch with the first page, and again where it has failed.
func (r *reader) nodes(ctx context.Context) ([]*corev1.Node, error) {
	view, err := r.watch(ctx)
	if err != nil {
		return nil, err
	}
	if err := view.Synced(ctx); err != nil {
		return nil, err
	}
	return view.List(), nil
}

func (r *reader) watch(ctx context.Context) (*k8s.View, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view != nil && r.view.Err() == nil {
		r.idle.Reset(watchesFor)
		return r.view, nil
	}
	r.unwatch()
	if r.closed {
		return nil, errors.New("the worker is stopping")
	}
	view, err := r.o.Nodes.View(ctx)
	if err != nil {
		return nil, err
	}
	r.view, r.idle = view, time.AfterFunc(watchesFor, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unwatch()
	})
	return view, nil
}

func (r *reader) unwatch() {
	if r.view != nil {
		r.idle.Stop()
		r.view.Close()
		r.view = nil
	}
}

func (r *reader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.unwatch()
}

func (r *reader) mark(n *corev1.Node) (k8s.Mark, error) { return r.o.Nodes.MarkOf(n) }

func (r *reader) status(ctx context.Context, now time.Time) api.ClusterStatus {
	return overview.Status(ctx, r.o.Client, now, overview.AsIs{})
}

func (r *reader) maintenances(ctx context.Context, node string) ([]client.View, error) {
	all, err := r.o.Client.List(ctx, client.ListOptions{Node: node, Running: true})
	if err != nil {
		return nil, err
	}
	return r.o.Client.ObserveAll(ctx, all)
}

// records reads those that have ended since it was asked last: the others are kept.
func (r *reader) records(ctx context.Context, node string) (all []record.Record, missing int, err error) {
	found, err := r.o.Client.List(ctx, client.ListOptions{Node: node, Limit: shownRecords})
	if err != nil {
		return nil, 0, err
	}
	runs := ""
	for _, m := range found {
		if !m.Running() {
			runs += m.RunID + " "
		}
	}
	r.mu.Lock()
	known := r.had[node]
	r.mu.Unlock()
	if known.runs == runs {
		return known.all, 0, nil
	}
	all, gaps, err := r.o.Client.Records(ctx, client.RecordFilter{Node: node, Ended: true, Limit: shownRecords}, nil)
	if err != nil || len(gaps) > 0 {
		return all, len(gaps), err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.had == nil || len(r.had) >= maxHad {
		r.had = map[string]had{}
	}
	r.had[node] = had{runs: runs, all: all}
	return all, 0, nil
}

func (r *reader) plan(ctx context.Context, name string) (client.PlanView, *plan.Pace, error) {
	p := client.PlanOf(r.o.Client, name)
	v, err := p.Observe(ctx, api.PlanStatusRequest{})
	if err != nil {
		return v, nil, err
	}
	return v, p.Pace(ctx, v), nil
}

// isNone reports whether there is no such plan.
func isNone(err error) bool {
	var none *client.NoneError
	return errors.As(err, &none)
}
