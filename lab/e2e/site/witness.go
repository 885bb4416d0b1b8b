package site

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

// WatchNodes begins to watch all nodes until the test ends.
func (s *Site) WatchNodes() *observer {
	s.Helper()
	w := &observer{held: witness.NewTally(), cordoned: witness.NewTally()}
	s.FollowNodes(w.see, w.fail)
	return w
}

// FollowNodes shows every version of every node until the test ends.
func (s *Site) FollowNodes(see func(watch.EventType, *corev1.Node), broke func(error)) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Ctx)
	s.Cleanup(cancel)
	s.NoError(witness.Nodes(ctx, s.Kube, see, broke))
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

// NobodyHolds waits until every node was seen released, and returns the most that were held at one instant.
func (s *Site) NobodyHolds(w *observer) (mostHeld int) {
	s.Helper()
	s.Eventually("no node is held", func() error {
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

// Taken is how often a node was taken so far.
func (w *observer) Taken(node string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held.Times(node)
}

// TakenAll is how often any node was taken so far.
func (w *observer) TakenAll() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held.All()
}

// CordonedTimes is how often a node became unschedulable, counting that it was so at the beginning.
func (w *observer) CordonedTimes(node string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cordoned.Times(node)
}

// Request is one request as the API server recorded it.
type Request = devstack.Audited

// Requests are those that the workers have made since the test began. Part is what the record's line contains, so that few have to be
// decoded.
func (s *Site) Requests(part string, is func(Request) bool) []Request {
	s.Helper()
	return s.RequestsBy("drydock-worker", part, is)
}

// RequestsBy are those of another program.
func (s *Site) RequestsBy(program, part string, is func(Request) bool) []Request {
	s.Helper()
	var found []Request
	s.NoError(devstack.ReadAudit(s.Lane.audit, s.auditFrom, func(r Request) {
		if strings.HasPrefix(r.UserAgent, program+"/") && is(r) {
			found = append(found, r)
		}
	}, part))
	return found
}

// Evictions are the requests to evict pods of a namespace.
func (s *Site) Evictions(ns string) []Request {
	s.Helper()
	return s.Requests(`"subresource":"eviction"`, func(r Request) bool {
		return r.Object.Subresource == "eviction" && r.Object.Namespace == ns
	})
}

// Accepted counts the evictions that the API server accepted, by pod.
func (s *Site) Accepted(ns string) map[string]int {
	s.Helper()
	counts := map[string]int{}
	for _, e := range s.Evictions(ns) {
		if e.Status.Code < 300 {
			counts[e.Object.Name]++
		}
	}
	return counts
}

// RefusedOnce waits until an eviction in a namespace was refused, so that the drain is known to be at work.
func (s *Site) RefusedOnce(ns string) {
	s.Helper()
	s.Eventually("an eviction is refused", func() error {
		for _, e := range s.Evictions(ns) {
			if e.Status.Code == 429 {
				return nil
			}
		}
		return errors.New("none was")
	})
}

// Touched are the requests of the worker that could have changed a node.
func (s *Site) Touched() []Request {
	s.Helper()
	return s.Requests(`"resource":"nodes"`, func(r Request) bool {
		return r.Object.Resource == "nodes" && r.Verb != "get" && r.Verb != "list" && r.Verb != "watch"
	})
}

// Deletions are the worker's requests to delete pods of a namespace.
func (s *Site) Deletions(ns string) []Request {
	s.Helper()
	return s.Requests(`"verb":"delete"`, func(r Request) bool {
		return r.Verb == "delete" && r.Object.Resource == "pods" && r.Object.Subresource == "" && r.Object.Namespace == ns
	})
}
