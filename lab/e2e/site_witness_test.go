package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/witness"
)

// observer keeps which nodes are held, and which cordoned, at every instant.
type observer struct {
	mu             sync.Mutex
	held, cordoned *witness.Tally
	err            error
}

// watchNodes begins to watch all nodes until the test ends.
func (s *site) watchNodes() *observer {
	s.Helper()
	w := &observer{held: witness.NewTally(), cordoned: witness.NewTally()}
	s.followNodes(w.see, w.fail)
	return w
}

// followNodes shows every version of every node until the test ends.
func (s *site) followNodes(see func(watch.EventType, *corev1.Node), broke func(error)) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	s.Cleanup(cancel)
	if err := witness.Nodes(ctx, s.kube, see, broke); err != nil {
		s.Fatal(err)
	}
}

func (w *observer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *observer) see(kind watch.EventType, n *corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held.Note(n.Name, kind != watch.Deleted && witness.IsHeld(n))
	w.cordoned.Note(n.Name, kind != watch.Deleted && n.Spec.Unschedulable)
}

// nobodyHolds waits until every node was seen released, and returns the most that were held at one instant.
func (s *site) nobodyHolds(w *observer) (mostHeld int) {
	s.Helper()
	s.eventually("no node is held", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		mostHeld = w.held.Most()
		if w.err != nil {
			return w.err
		}
		if held := w.held.Now(); len(held) > 0 {
			return fmt.Errorf("held: %v", held)
		}
		return nil
	})
	return mostHeld
}

// taken is how often a node was taken so far.
func (w *observer) taken(node string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held.Times(node)
}

// takenAll is how often any node was taken so far.
func (w *observer) takenAll() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held.All()
}

// cordonedTimes is how often a node became unschedulable, counting that it was so at the beginning.
func (w *observer) cordonedTimes(node string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cordoned.Times(node)
}

// request is one request as the API server recorded it.
type request = devstack.Audited

// requests are those that drydock-worker has made since the test began. Part is what the record's line contains, so
// that few have to be decoded.
func (s *site) requests(part string, is func(request) bool) []request {
	s.Helper()
	var found []request
	if err := devstack.ReadAudit(s.lane.audit, s.auditFrom, func(r request) {
		if strings.HasPrefix(r.UserAgent, "drydock-worker") && is(r) {
			found = append(found, r)
		}
	}, part); err != nil {
		s.Fatal(err)
	}
	return found
}

// evictions are the requests to evict pods of a namespace.
func (s *site) evictions(ns string) []request {
	s.Helper()
	return s.requests(`"subresource":"eviction"`, func(r request) bool {
		return r.Object.Subresource == "eviction" && r.Object.Namespace == ns
	})
}

// accepted counts the evictions that the API server accepted, by pod.
func (s *site) accepted(ns string) map[string]int {
	s.Helper()
	counts := map[string]int{}
	for _, e := range s.evictions(ns) {
		if e.Status.Code < 300 {
			counts[e.Object.Name]++
		}
	}
	return counts
}

// refusedOnce waits until an eviction in a namespace was refused, so that the drain is known to be at work.
func (s *site) refusedOnce(ns string) {
	s.Helper()
	s.eventually("an eviction is refused", func() error {
		for _, e := range s.evictions(ns) {
			if e.Status.Code == 429 {
				return nil
			}
		}
		return errors.New("none was")
	})
}

// touched are the requests of the worker that could have changed a node.
func (s *site) touched() []request {
	s.Helper()
	return s.requests(`"resource":"nodes"`, func(r request) bool {
		return r.Object.Resource == "nodes" && r.Verb != "get" && r.Verb != "list" && r.Verb != "watch"
	})
}
