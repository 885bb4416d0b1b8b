package migrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/rules/migration"
	"drydock.dev/drydock/starter/invocation"
)

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

const (
	// answersWithin is how soon an API server answers a list.
	answersWithin = 60 * time.Second
	// gather is how long changes are gathered before the cluster is looked at: a system writes several objects for one decision.
	gather = time.Second
)

type reader struct {
	client dynamic.Interface
	kinds  []schema.GroupVersionResource
	// lease is the only one of all leases that is read.
	lease string
	app   *invocation.App
	// refused is what the account may not list.
	refused []string
	// caches are those of a reader that follows.
	caches map[schema.GroupVersionResource]cache.Store
}

func newReader(config *rest.Config, system migration.System, app *invocation.App) (*reader, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &reader{client: client, kinds: append([]schema.GroupVersionResource{nodes}, system.Reads()...), lease: system.Lease(), app: app}, nil
}

// read reads everything once. A kind that the API server does not serve, or that the account may not list, is left out, and why is said; nodes
// are not.
func (r *reader) read(ctx context.Context) (migration.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	found, unread := map[schema.GroupVersionResource][]unstructured.Unstructured{}, map[schema.GroupVersionResource]string{}
	for _, kind := range r.kinds {
		options := metav1.ListOptions{Limit: 500}
		if kind.Group == coordinationv1.GroupName {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, r.lease).String()
		}
		for {
			page, err := r.client.Resource(kind).List(ctx, options)
			if kind != nodes && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
				unread[kind] = err.Error()
				if apierrors.IsForbidden(err) {
					r.refused = append(r.refused, err.Error())
				}
				break
			}
			if err != nil {
				return migration.Cluster{}, fmt.Errorf("listing %s: %w", kind.GroupResource(), err)
			}
			if found[kind] == nil {
				found[kind] = []unstructured.Unstructured{}
			}
			found[kind] = append(found[kind], page.Items...)
			if options.Continue = page.GetContinue(); options.Continue == "" {
				break
			}
		}
	}
	c, err := r.cluster(found)
	c.Unread = unread
	return c, err
}

// follow keeps everything but leases in caches from now on. The channel has something when something has changed.
func (r *reader) follow(ctx context.Context) (<-chan struct{}, error) {
	first, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	changes := make(chan struct{}, 1)
	tell := func() {
		select {
		case changes <- struct{}{}:
		default: // one is waiting to be read
		}
	}
	r.caches = map[schema.GroupVersionResource]cache.Store{}
	var synced []cache.InformerSynced
	for _, kind := range r.kinds {
		if kind.Group == coordinationv1.GroupName {
			continue // a lease says who serves objects, which is not compared
		}
		if why, is := first.Unread[kind]; is {
			return nil, fmt.Errorf("listing %s: %s", kind.GroupResource(), why)
		}
		informer := cache.NewSharedInformer(r.listAndWatch(kind), &unstructured.Unstructured{}, 0)
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() },
		})
		if err != nil {
			return nil, err
		}
		synced = append(synced, handler.HasSynced)
		r.caches[kind] = informer.GetStore()
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, context.Cause(ctx)
	}
	gathered := make(chan struct{})
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changes:
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(gather):
			}
			select {
			case <-ctx.Done():
				return
			case gathered <- struct{}{}:
			}
		}
	}()
	return gathered, nil
}

func (r *reader) look() (migration.Cluster, error) {
	found := map[schema.GroupVersionResource][]unstructured.Unstructured{}
	for kind, store := range r.caches {
		found[kind] = []unstructured.Unstructured{}
		for _, o := range store.List() {
			object, is := o.(*unstructured.Unstructured)
			if !is {
				return migration.Cluster{}, fmt.Errorf("a %s that is a %T", kind.Resource, o)
			}
			found[kind] = append(found[kind], *object)
		}
	}
	return r.cluster(found)
}

func (r *reader) listAndWatch(kind schema.GroupVersionResource) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return r.client.Resource(kind).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return r.client.Resource(kind).Watch(ctx, options)
		},
	}
}

func (r *reader) cluster(found map[schema.GroupVersionResource][]unstructured.Unstructured) (migration.Cluster, error) {
	c := migration.Cluster{At: r.app.Clock(), Objects: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
	for kind, objects := range found {
		slices.SortFunc(objects, func(a, b unstructured.Unstructured) int {
			return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
		})
		if kind != nodes {
			c.Objects[kind] = objects
			continue
		}
		c.Nodes = make([]corev1.Node, len(objects))
		for i := range objects {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &c.Nodes[i]); err != nil {
				return c, fmt.Errorf("node %s: %w", objects[i].GetName(), err)
			}
		}
	}
	return c, nil
}
