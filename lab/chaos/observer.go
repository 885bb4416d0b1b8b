package main

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/rules/profile/state"
)

// observer keeps what the witness sees of the nodes and pods, past the proxies.
type observer struct {
	mu    sync.Mutex
	nodes map[string]*corev1.Node
	// out are the nodes of each lane that are held, or in maintenance by a profile.
	out map[string]*witness.Tally
	// leaving is when a pod was first seen terminating, by UID.
	leaving map[string]time.Time
	err     error
}

func newObserver(ctx context.Context, client kubernetes.Interface) (*observer, error) {
	w := &observer{nodes: map[string]*corev1.Node{}, out: map[string]*witness.Tally{}, leaving: map[string]time.Time{}}
	if err := witness.Nodes(ctx, client, w.seeNode, w.broke); err != nil {
		return nil, err
	}
	return w, witness.Pods(ctx, client, metav1.NamespaceAll, w.seePod, w.broke)
}

func (w *observer) broke(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *observer) seePod(_ watch.EventType, p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, seen := w.leaving[string(p.UID)]; !seen && p.DeletionTimestamp != nil {
		w.leaving[string(p.UID)] = time.Now()
	}
}

func (w *observer) seeNode(kind watch.EventType, n *corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := kind == watch.Deleted
	w.nodes[n.Name] = n
	if gone {
		delete(w.nodes, n.Name)
	}
	w.outOf(n.Labels[laneLabel]).Note(n.Name, !gone && (witness.IsHeld(n) || is(n, state.Maintenance)))
}

// outOf are the nodes of a lane that are out of service.
func (w *observer) outOf(lane string) *witness.Tally {
	if w.out[lane] == nil {
		w.out[lane] = witness.NewTally()
	}
	return w.out[lane]
}

// forget begins to count anew how many nodes of a lane are held at one instant.
func (w *observer) forget(lane string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outOf(lane).Forget()
}

func (w *observer) mostHeld(lane string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outOf(lane).Most(), w.err
}

func (w *observer) node(name string) *corev1.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[name]
}

// held are the nodes of a lane that carry a mark.
func (w *observer) held(lane string) (nodes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, n := range w.nodes {
		if n.Labels[laneLabel] == lane && witness.IsHeld(n) {
			nodes = append(nodes, name)
		}
	}
	return nodes
}

// wasLeaving reports whether a pod had been seen terminating by some time.
func (w *observer) wasLeaving(uid string, by time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, seen := w.leaving[uid]
	return seen && at.Before(by)
}
