package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/lab/witness"
)

// remediations are the remediation objects as one client sees them, with when it saw each first.
type remediations struct {
	mu      sync.Mutex
	seen    map[string]time.Time
	peak    int
	failure error
	changed chan struct{}
}

// watchRemediations sees every version of them from now on, for as long as ctx lives.
func watchRemediations(ctx context.Context, objects dynamic.ResourceInterface) (*remediations, error) {
	r := &remediations{seen: map[string]time.Time{}, changed: make(chan struct{}, 1)}
	if err := witness.Objects(ctx, objects, r.see, r.broke); err != nil {
		return nil, err
	}
	if there := r.there(); len(there) > 0 {
		return nil, fmt.Errorf("there are %d remediation objects already", len(there))
	}
	return r, nil
}

func (r *remediations) broke(err error) { r.note(func() { r.failure = err }) }

func (r *remediations) see(kind watch.EventType, o *unstructured.Unstructured) {
	now := time.Now()
	r.note(func() {
		switch kind {
		case watch.Added:
			r.seen[o.GetName()] = now
			r.peak = max(r.peak, len(r.seen))
		case watch.Deleted:
			delete(r.seen, o.GetName())
		}
	})
}

func (r *remediations) note(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// there are the nodes with an object, and when each was seen first.
func (r *remediations) there() map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.seen)
}

// most are how many there were at most at a time.
func (r *remediations) most() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peak
}

func (r *remediations) until(ctx context.Context, n int) error {
	for {
		r.mu.Lock()
		there, failure := len(r.seen), r.failure
		r.mu.Unlock()
		if failure != nil || there == n {
			return failure
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d remediation objects: there are %d: %w", n, there, ctx.Err())
		}
	}
}
