package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
)

// sight is what is seen of many objects: which of them are as wished, and when that last changed.
type sight struct {
	mu      sync.Mutex
	there   map[string]bool // by name; true for those as wished
	wished  int
	last    time.Time
	changed chan struct{}
}

// look follows objects for as long as ctx lives; is tells whether one is as wished. The API server ends the watch of
// a client that is slow for a moment, as this one may be: an informer begins it anew.
func look[T interface {
	runtime.Object
	metav1.Object
}](ctx context.Context, client rest.Interface, resource, selector string, example T, is func(T) bool) *sight {
	s := &sight{there: map[string]bool{}, changed: make(chan struct{}, 1)}
	forget := func(name string) {
		if s.there[name] {
			s.wished--
		}
		delete(s.there, name)
	}
	keep := func(seen any) {
		object, ok := seen.(T)
		if !ok {
			return
		}
		name := object.GetNamespace() + "/" + object.GetName()
		s.note(func() {
			forget(name)
			s.there[name] = is(object)
			if s.there[name] {
				s.wished++
			}
		})
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(client, resource, metav1.NamespaceAll,
			func(o *metav1.ListOptions) { o.LabelSelector = selector }),
		ObjectType: example,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    keep,
			UpdateFunc: func(_, now any) { keep(now) },
			DeleteFunc: func(seen any) {
				if tombstone, ok := seen.(cache.DeletedFinalStateUnknown); ok {
					seen = tombstone.Obj
				}
				if object, ok := seen.(T); ok {
					s.note(func() { forget(object.GetNamespace() + "/" + object.GetName()) })
				}
			},
		},
	})
	go informer.RunWithContext(ctx)
	return s
}

func (s *sight) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.last = time.Now()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// until waits until so many objects are there and so many of them are as wished, and returns when that was. One
// goroutine at a time may wait.
func (s *sight) until(ctx context.Context, what string, enough func(there, wished int) bool) (time.Time, error) {
	for {
		s.mu.Lock()
		there, wished, last := len(s.there), s.wished, s.last
		s.mu.Unlock()
		if enough(there, wished) {
			return last, nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return last, fmt.Errorf("waiting for %s: %d there, %d as wished: %w", what, there, wished, ctx.Err())
		}
	}
}

// readyNodes follows which nodes are shown as Ready for their maintenance.
func readyNodes(ctx context.Context, cluster *devstack.Cluster) *sight {
	return look(ctx, cluster.Client.CoreV1().RESTClient(), "nodes", api.PhaseLabel, &corev1.Node{},
		func(node *corev1.Node) bool { return node.Labels[api.PhaseLabel] == string(api.Ready) })
}

// runningPods follows the pods that match a selector, and which of them run.
func runningPods(ctx context.Context, cluster *devstack.Cluster, selector string) *sight {
	return look(ctx, cluster.Client.CoreV1().RESTClient(), "pods", selector, &corev1.Pod{},
		func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
}
