package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// remediations are the remediation objects as one client sees them, with when it saw each first.
type remediations struct {
	mu      sync.Mutex
	seen    map[string]time.Time
	peak    int
	failure error
	changed chan struct{}
}

const restartsPath = "/apis/" + healthGroup + "/v1/namespaces/default/restarts"

// watchRemediations watches them from now on, for as long as ctx lives. A watch that ends is a failure: what came and went in
// between would not be counted.
func watchRemediations(ctx context.Context, client rest.Interface) (*remediations, error) {
	text, err := client.Get().AbsPath(restartsPath).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if len(list.Items) > 0 {
		return nil, fmt.Errorf("there are %d remediation objects already", len(list.Items))
	}
	stream, err := client.Get().AbsPath(restartsPath).Param("watch", "true").Param("resourceVersion", list.GetResourceVersion()).
		Param("timeoutSeconds", "3600").Stream(ctx)
	if err != nil {
		return nil, err
	}
	r := &remediations{seen: map[string]time.Time{}, changed: make(chan struct{}, 1)}
	go func() {
		defer stream.Close()
		decoder := json.NewDecoder(stream)
		for {
			var event metav1.WatchEvent
			if err := decoder.Decode(&event); err != nil {
				r.note(func() { r.failure = fmt.Errorf("watching remediation objects: %w", err) })
				return
			}
			r.take(event)
		}
	}()
	return r, nil
}

func (r *remediations) take(event metav1.WatchEvent) {
	now := time.Now()
	var o metav1.PartialObjectMetadata
	err := json.Unmarshal(event.Object.Raw, &o)
	r.note(func() {
		switch watch.EventType(event.Type) {
		case watch.Added:
			r.seen[o.Name] = now
			r.peak = max(r.peak, len(r.seen))
		case watch.Deleted:
			delete(r.seen, o.Name)
		case watch.Error:
			r.failure = fmt.Errorf("watching remediation objects: %s", event.Object.Raw)
		}
		if err != nil {
			r.failure = err
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

// until waits until there are so many.
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
