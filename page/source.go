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
	// nodes are all nodes of the cluster, for reading only.
	nodes(ctx context.Context) ([]*corev1.Node, error)
	// mark is what Drydock has written on a node.
	mark(n *corev1.Node) (k8s.Mark, error)
	status(ctx context.Context, now time.Time) api.ClusterStatus
	// maintenances are those of a node that run, and records those that it had, the newest first.
	maintenances(ctx context.Context, node string) ([]client.View, error)
	records(ctx context.Context, node string) ([]record.Record, error)
	// plan is a plan, with the nodes that have something to say, and when its nodes were done.
	plan(ctx context.Context, name string) (v client.PlanView, done []time.Time, err error)
}

// shownRecords are the maintenances that a node had, which its page lists.
const shownRecords = 10

// reader reads from Temporal, and from the worker's watch of the nodes.
type reader struct {
	o Options

	mu   sync.Mutex
	view *k8s.View
	// had are the maintenances that nodes had, as they were read last: what has ended stays as it is.
	had map[string]had
}

type had struct {
	at  time.Time
	all []record.Record
}

const (
	// hadFresh is for how long they count, and maxHad bounds the nodes of which they are kept.
	hadFresh = time.Minute
	maxHad   = 100
)

func (r *reader) now() time.Time { return time.Now() }

// nodes begins the watch with the first page, and again where it has failed.
func (r *reader) nodes(ctx context.Context) ([]*corev1.Node, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view != nil && r.view.Err() != nil {
		r.view.Close()
		r.view = nil
	}
	if r.view == nil {
		view, err := r.o.Nodes.View(ctx)
		if err != nil {
			return nil, err
		}
		r.view = view
	}
	if err := r.view.Synced(ctx); err != nil {
		return nil, err
	}
	return r.view.List(), nil
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

func (r *reader) records(ctx context.Context, node string) ([]record.Record, error) {
	r.mu.Lock()
	known, there := r.had[node]
	r.mu.Unlock()
	if now := time.Now(); there && now.Sub(known.at) < hadFresh {
		return known.all, nil
	}
	all, _, err := r.o.Client.Records(ctx, client.RecordFilter{Node: node, Ended: true, Limit: shownRecords}, nil)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.had == nil || len(r.had) >= maxHad {
		r.had = map[string]had{}
	}
	r.had[node] = had{at: time.Now(), all: all}
	return all, nil
}

// maxDone bounds the nodes whose ends a plan's rate is computed of.
const maxDone = 1000

func (r *reader) plan(ctx context.Context, name string) (v client.PlanView, done []time.Time, err error) {
	p := client.PlanOf(r.o.Client, name)
	if v, err = p.Observe(ctx, api.PlanStatusRequest{}); err != nil || v.Status == nil || !v.Running() {
		return v, nil, err
	}
	ends, err := p.Status(ctx, api.PlanStatusRequest{States: []string{plan.Done.Word()}, Limit: maxDone})
	if err != nil {
		return v, nil, nil //nolint:nilerr // the plan is shown without its rate
	}
	for _, n := range ends.Nodes {
		done = append(done, n.Since)
	}
	return v, done, nil
}

// isNone reports whether there is no such plan.
func isNone(err error) bool {
	var none *client.NoneError
	return errors.As(err, &none)
}
