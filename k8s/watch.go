package k8s

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/k8s/kube"
)

// Watch is a live copy of the objects of one type that selectors select, kept by client-go's informer: one
// streaming request where the API server can, with list and watch as its fallback.
type Watch[T runtime.Object] struct {
	informer cache.SharedIndexInformer
	// Changed receives a token after any change; tokens coalesce.
	Changed chan struct{}
	// Refused is closed when the API server refuses the watch; Err is its answer.
	Refused chan struct{}

	once sync.Once
	err  error
	// forbidden counts the refusals since the last watch that the API server granted.
	forbidden atomic.Int32
}

// refusals is how many in a row, each after the informer's backoff, make a refusal of what was allowed before: an API
// server whose authorizer is not ready yet refuses too.
const refusals = 3

// WatchOptions choose what is watched.
type WatchOptions struct {
	Resource  string
	Namespace string
	Fields    fields.Selector
	// Labels is a label selector; empty selects all.
	Labels string
	// Strip drops what is not needed before an object is kept.
	Strip cache.TransformFunc
	// Listed has the first copy read by a consistent list. The API server keeps pods by the name of their node: a list finds
	// those of one node at once, where a stream that begins with what is there walks through all pods of the cluster.
	Listed bool
	// Index names what By finds an object by; nil indexes nothing.
	Index func(obj any) string
	// Changing is called with each object that changes, or has gone; may be nil.
	Changing func(obj any, gone bool)
}

// byKey is the name of a watch's index.
const byKey = "key"

// indexers are those of the informer.
func (o WatchOptions) indexers() cache.Indexers {
	if o.Index == nil {
		return cache.Indexers{}
	}
	return cache.Indexers{byKey: func(obj any) ([]string, error) { return []string{o.Index(obj)}, nil }}
}

// listed is a source whose first copy is a consistent list.
type listed struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported has the informer list.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext lists what is so now, where the informer would take whatever the API server remembers.
func (l listed) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion == "0" {
		o.ResourceVersion, o.Limit = "", 0
	}
	return l.ListWatch.ListWithContext(ctx, o)
}

// NewWatch starts a watch that lives as long as ctx.
func NewWatch[T runtime.Object](ctx context.Context, client rest.Interface, example T, o WatchOptions) (*Watch[T], error) {
	if o.Fields == nil {
		o.Fields = fields.Everything()
	}
	w := &Watch[T]{Changed: make(chan struct{}, 1), Refused: make(chan struct{})}
	source := cache.NewFilteredListWatchFromClient(client, o.Resource, o.Namespace, func(options *metav1.ListOptions) {
		options.FieldSelector, options.LabelSelector = o.Fields.String(), o.Labels
	})
	start := source.WatchFuncWithContext
	source.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		stream, err := start(ctx, options)
		if err == nil {
			w.weigh(nil)
		}
		return stream, err
	}
	var from cache.ListerWatcher = source
	if o.Listed {
		from = listed{source}
	}
	w.informer = cache.NewSharedIndexInformer(from, example, 0, o.indexers())
	if o.Strip != nil {
		if err := w.informer.SetTransform(o.Strip); err != nil {
			return nil, err
		}
	}
	if err := w.informer.SetWatchErrorHandlerWithContext(w.failed); err != nil {
		return nil, err
	}
	if err := w.handle(o); err != nil {
		return nil, err
	}
	go w.informer.RunWithContext(ctx)
	return w, nil
}

// handle passes the changes on.
func (w *Watch[T]) handle(o WatchOptions) error {
	note := func(obj any, gone bool) {
		if o.Changing != nil {
			o.Changing(obj, gone)
		}
		w.wake()
	}
	_, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { note(obj, false) },
		UpdateFunc: func(_, obj any) { note(obj, false) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			note(obj, true)
		},
	})
	return err
}

// WatchPodsOn watches the pods on a node. The first copy shows every pod that was bound to it before the call.
func WatchPodsOn(ctx context.Context, client kube.Interface, node string) (*Watch[*corev1.Pod], error) {
	return NewWatch(ctx, client.CoreV1().RESTClient(), &corev1.Pod{}, WatchOptions{
		Resource: "pods", Fields: fields.OneTermEqualSelector("spec.nodeName", node), Listed: true,
	})
}

// WatchNode watches one node by its name, and returns once it is known whether there is one.
func WatchNode(ctx context.Context, client kube.Interface, name string) (*Watch[*corev1.Node], error) {
	watch, err := NewWatch(ctx, client.CoreV1().RESTClient(), &corev1.Node{}, WatchOptions{
		Resource: "nodes", Fields: fields.OneTermEqualSelector("metadata.name", name),
	})
	if err != nil {
		return nil, err
	}
	return watch, watch.Synced(ctx, "node "+name)
}

// Synced waits until the first complete copy is there. A refusal by the API server is returned at once: to wait would
// not heal it.
func (w *Watch[T]) Synced(ctx context.Context, what string) error {
	if w.informer.HasSynced() {
		return nil // whatever happened since
	}
	select {
	case <-w.informer.HasSyncedChecker().Done():
		return nil
	case <-w.Refused:
		return fmt.Errorf("watching %s: %w", what, w.err)
	case <-ctx.Done():
		return fmt.Errorf("watching %s: %w", what, context.Cause(ctx))
	}
}

// Err is the refusal by the API server, nil as long as there is none; other errors are retried by the informer.
func (w *Watch[T]) Err() error {
	select {
	case <-w.Refused:
		return w.err
	default:
		return nil
	}
}

// List is the present copy, in no particular order.
func (w *Watch[T]) List() []T { return typed[T](w.informer.GetStore().List()) }

// By are the objects of one key of the watch's Index, in no particular order.
func (w *Watch[T]) By(key string) []T {
	items, err := w.informer.GetIndexer().ByIndex(byKey, key)
	if err != nil {
		return nil // there is no index
	}
	return typed[T](items)
}

func typed[T any](items []any) []T {
	all := make([]T, 0, len(items))
	for _, item := range items {
		all = append(all, item.(T))
	}
	return all
}

// HasSynced reports whether the first complete copy is there.
func (w *Watch[T]) HasSynced() bool { return w.informer.HasSynced() }

// Get finds an object by "namespace/name", or by name where there is no namespace.
func (w *Watch[T]) Get(key string) (T, bool) {
	item, ok, err := w.informer.GetStore().GetByKey(key)
	if err != nil || !ok {
		var none T
		return none, false
	}
	return item.(T), true
}

func (w *Watch[T]) failed(ctx context.Context, r *cache.Reflector, err error) {
	w.weigh(err)
	cache.DefaultWatchErrorHandler(ctx, r, err)
}

// weigh decides whether an error of the watch is a refusal; nil is a watch that was granted. Before the first copy each Unauthorized or
// Forbidden is one, so that Synced returns it; later only a Forbidden that lasts: a token that has expired is replaced.
func (w *Watch[T]) weigh(err error) {
	if err == nil {
		w.forbidden.Store(0)
		return
	}
	first := !w.informer.HasSynced() && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
	if first || apierrors.IsForbidden(err) && w.forbidden.Add(1) >= refusals {
		w.once.Do(func() {
			w.err = err
			close(w.Refused)
			w.wake()
		})
	}
}

func (w *Watch[T]) wake() {
	select {
	case w.Changed <- struct{}{}:
	default:
	}
}
