package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile/state"
)

// witness sees every version of every node and pod through watches of its own, past the proxies. What it says of the
// nodes together was so at one instant: a watch tells changes in the order in which they were made.
type witness struct {
	mu    sync.Mutex
	nodes map[string]*corev1.Node
	// most is the most nodes of a lane that were held, or in maintenance by a profile, at one instant, since forget.
	most map[string]int
	// leaving is when a pod was first seen terminating, by UID.
	leaving map[string]time.Time
	err     error
}

func newWitness(ctx context.Context, client kubernetes.Interface) (*witness, error) {
	w := &witness{nodes: map[string]*corev1.Node{}, most: map[string]int{}, leaving: map[string]time.Time{}}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		w.seeNode(watch.Added, &nodes.Items[i])
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	if err := w.follow(ctx, nodes.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return client.CoreV1().Nodes().Watch(ctx, o)
	}}); err != nil {
		return nil, err
	}
	return w, w.follow(ctx, pods.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, o)
	}})
}

func (w *witness) follow(ctx context.Context, from string, watcher cache.WatcherWithContext) error {
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, from, watcher)
	if err != nil {
		return err
	}
	go func() {
		for event := range stream.ResultChan() {
			w.see(event.Type, event.Object)
		}
	}()
	return nil
}

func (w *witness) see(kind watch.EventType, object runtime.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch o := object.(type) {
	case *corev1.Node:
		w.seeNode(kind, o)
	case *corev1.Pod:
		if _, seen := w.leaving[string(o.UID)]; !seen && o.DeletionTimestamp != nil {
			w.leaving[string(o.UID)] = time.Now()
		}
	default:
		w.err = fmt.Errorf("the witness's watch broke: %v", object)
	}
}

func (w *witness) seeNode(kind watch.EventType, n *corev1.Node) {
	if kind == watch.Deleted {
		delete(w.nodes, n.Name)
		return
	}
	w.nodes[n.Name] = n
	lane := n.Labels[laneLabel]
	held := 0
	for _, other := range w.nodes {
		if other.Labels[laneLabel] == lane && (other.Annotations[api.HoldersAnnotation] != "" || is(other, state.Maintenance)) {
			held++
		}
	}
	w.most[lane] = max(w.most[lane], held)
}

// forget begins to count anew how many nodes of a lane are held at one instant.
func (w *witness) forget(lane string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most[lane] = 0
}

func (w *witness) mostHeld(lane string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most[lane], w.err
}

func (w *witness) node(name string) *corev1.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[name]
}

// held are the nodes of a lane that carry a mark.
func (w *witness) held(lane string) (nodes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, n := range w.nodes {
		if n.Labels[laneLabel] == lane && n.Annotations[api.HoldersAnnotation] != "" {
			nodes = append(nodes, name)
		}
	}
	return nodes
}

// wasLeaving tells whether a pod had been seen terminating by some time.
func (w *witness) wasLeaving(uid string, by time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, seen := w.leaving[uid]
	return seen && at.Before(by)
}
