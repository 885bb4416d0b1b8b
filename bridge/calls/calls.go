// Package calls lets a workflow have the object reconciled that asked for it, and know when that is done.
package calls

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"drydock.dev/drydock/rules/spec"
)

// Least is how long a call takes at the least: a workflow that calls again once it has its answer has the object written no more than once
// a second.
const Least = time.Second

// Calls are the calls for the objects of all controllers.
type Calls struct{ queues map[string]*Queue }

// New takes calls for the objects of no controller yet.
func New() *Calls { return &Calls{queues: map[string]*Queue{}} }

// Of is the queue of a resource, such as nodemaintenances.drydock.dev. All queues are made before the first call.
func (c *Calls) Of(resource string) *Queue {
	q := &Queue{events: make(chan event.GenericEvent), callers: map[types.NamespacedName][]chan error{}}
	c.queues[resource] = q
	return q
}

// ReconcileObject is the activity api.ReconcileObject.
func (c *Calls) ReconcileObject(ctx context.Context, o spec.Object) error {
	q, known := c.queues[o.Resource]
	if !known {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("this bridge has no controller for %s", o.Resource), "UnknownResource", nil)
	}
	least := time.NewTimer(Least)
	defer least.Stop()
	if err := q.call(ctx, types.NamespacedName{Namespace: o.Namespace, Name: o.Name}); err != nil {
		return err
	}
	select {
	case <-least.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Queue is the calls for the objects of one resource.
type Queue struct {
	events chan event.GenericEvent

	mu sync.Mutex
	// callers wait for the next reconciliation that begins.
	callers map[types.NamespacedName][]chan error
}

// Source has a controller reconcile what is called for.
func (q *Queue) Source() source.Source {
	return source.Channel(q.events, &handler.EnqueueRequestForObject{})
}

func (q *Queue) call(ctx context.Context, object types.NamespacedName) error {
	answer := make(chan error, 1)
	q.mu.Lock()
	q.callers[object] = append(q.callers[object], answer)
	q.mu.Unlock()
	defer q.forget(object, answer)
	asked := event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name}}}
	select {
	case q.events <- asked:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forget takes a caller out that waits no longer.
func (q *Queue) forget(object types.NamespacedName, caller chan error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := slices.DeleteFunc(q.callers[object], func(c chan error) bool { return c == caller })
	if q.callers[object] = waiting; len(waiting) == 0 {
		delete(q.callers, object)
	}
}

// Answering is a reconciler that answers those who called for an object before it was reconciled.
func (q *Queue) Answering(r reconcile.Reconciler) reconcile.Reconciler { return answering{q, r} }

type answering struct {
	queue *Queue
	reconcile.Reconciler
}

// Reconcile implements reconcile.Reconciler.
func (a answering) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	callers := a.queue.take(request.NamespacedName)
	result, err := a.Reconciler.Reconcile(ctx, request)
	for _, caller := range callers {
		caller <- err
	}
	return result, err
}

func (q *Queue) take(object types.NamespacedName) []chan error {
	q.mu.Lock()
	defer q.mu.Unlock()
	callers := q.callers[object]
	delete(q.callers, object)
	return callers
}
