package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
)

// orderedAfter is how long an event waits for those of the other watch that were made before it.
const orderedAfter = 2 * time.Second

// seenEvent is a version of a node or a pod.
type seenEvent struct {
	revision int64
	at       time.Time
	gone     bool
	node     *corev1.Node
	pod      *corev1.Pod
}

// watcher shows the judge every version of every node and pod in the order in which they were made: both come from one
// etcd, whose revisions count all changes.
type watcher struct {
	mu      sync.Mutex
	judge   *judge
	journal *journal
	waiting []seenEvent
	latest  map[string]*corev1.Node
	// byOperator are the revisions that the soak's own operator made.
	byOperator map[int64]bool
}

// watch begins to watch, and judges until the context ends.
func (w *watcher) watch(ctx context.Context, client kubernetes.Interface) error {
	if err := witness.Nodes(ctx, client, func(kind watch.EventType, n *corev1.Node) {
		w.see(seenEvent{at: time.Now(), gone: kind == watch.Deleted, node: n}, n.ResourceVersion)
	}, w.broke); err != nil {
		return err
	}
	if err := witness.Pods(ctx, client, namespace, func(kind watch.EventType, p *corev1.Pod) {
		w.see(seenEvent{at: time.Now(), gone: kind == watch.Deleted, pod: p}, p.ResourceVersion)
	}, w.broke); err != nil {
		return err
	}
	go func() {
		for world.Sleep(ctx, 250*time.Millisecond) == nil {
			w.judgeUntil(time.Now().Add(-orderedAfter))
		}
	}()
	return nil
}

func (w *watcher) broke(err error) {
	w.journal.violated(Violation{At: time.Now(), Rule: ruleProcess, What: err.Error()})
}

func (w *watcher) see(e seenEvent, version string) {
	revision, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		w.broke(fmt.Errorf("a resource version is no number: %s", version))
		return
	}
	e.revision = revision
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.node != nil {
		w.latest[e.node.Name] = e.node
	}
	w.waiting = append(w.waiting, e)
}

// judgeUntil judges what came before a time, in the order of revisions.
func (w *watcher) judgeUntil(time time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.waiting, func(a, b seenEvent) int { return int(a.revision - b.revision) })
	n := slices.IndexFunc(w.waiting, func(e seenEvent) bool { return e.at.After(time) })
	if n < 0 {
		n = len(w.waiting)
	}
	for _, e := range w.waiting[:n] {
		switch {
		case e.pod != nil:
			w.judge.pod(e.at, e.pod, e.gone)
		case e.gone:
			w.judge.gone(e.node.Name)
		default:
			w.judge.node(e.at, e.node, w.byOperator[e.revision])
		}
	}
	w.waiting = slices.Clone(w.waiting[n:])
}

// operated notes that the soak's own operator made this version.
func (w *watcher) operated(n *corev1.Node) {
	revision, err := strconv.ParseInt(n.ResourceVersion, 10, 64)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.byOperator[revision] = true
	}
}

// limits tells the judge which limits may be in force.
func (w *watcher) limits(parallel, unavailable []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge.limits(time.Now(), parallel, unavailable)
}

// node is a node's latest version.
func (w *watcher) node(name string) *corev1.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latest[name]
}

// phase is what a node shows of a maintenance that holds it, empty if that does not hold it.
func (w *watcher) phase(name, workflowID, run string) api.Phase {
	n := w.node(name)
	if n == nil {
		return ""
	}
	mark, err := k8s.MarkOf(n)
	if err != nil || !mark.HeldBy(workflowID, run) {
		return ""
	}
	return api.Phase(n.Labels[api.PhaseLabel])
}

func (w *watcher) held() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.judge.held()
}

// settled is an error until every workload has as many Ready pods as it needs.
func (w *watcher) settled() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.judge.pods.settled()
}
