package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
)

// witness sees every version of every node through a watch of its own. What it says of the nodes together was so at
// one instant: a watch tells changes in the order in which they were made.
type witness struct {
	mu       sync.Mutex
	held     map[string]bool
	cordoned map[string]bool
	// mostHeld is the most nodes held at one instant, takes how often each was taken, cordons how often each became
	// unschedulable.
	mostHeld int
	takes    map[string]int
	cordons  map[string]int
	err      error
}

// watchNodes begins to watch all nodes until the test ends.
func (s *site) watchNodes() *witness {
	s.Helper()
	w := &witness{held: map[string]bool{}, cordoned: map[string]bool{}, takes: map[string]int{}, cordons: map[string]int{}}
	list, err := s.kube.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	for _, n := range list.Items {
		w.see(watch.Added, &n)
	}
	stream, err := s.kube.CoreV1().Nodes().Watch(s.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(stream.Stop)
	go func() {
		for event := range stream.ResultChan() {
			n, ok := event.Object.(*corev1.Node)
			if !ok {
				w.fail(fmt.Errorf("the witness's watch broke: %v", event.Object))
				return
			}
			w.see(event.Type, n)
		}
	}()
	return w
}

func (w *witness) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *witness) see(kind watch.EventType, n *corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := kind != watch.Deleted && n.Annotations[api.HoldersAnnotation] != ""
	cordoned := kind != watch.Deleted && n.Spec.Unschedulable
	if held && !w.held[n.Name] {
		w.takes[n.Name]++
	}
	if cordoned && !w.cordoned[n.Name] {
		w.cordons[n.Name]++
	}
	set(w.held, n.Name, held)
	set(w.cordoned, n.Name, cordoned)
	w.mostHeld = max(w.mostHeld, len(w.held))
}

func set(m map[string]bool, key string, is bool) {
	if is {
		m[key] = true
	} else {
		delete(m, key)
	}
}

// nobodyHolds waits until the witness has seen every node released, and returns the most that were held at once.
func (s *site) nobodyHolds(w *witness) (mostHeld int) {
	s.Helper()
	s.eventually("no node is held", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		mostHeld = w.mostHeld
		if w.err != nil {
			return w.err
		}
		if len(w.held) > 0 {
			return fmt.Errorf("held: %v", w.held)
		}
		return nil
	})
	return mostHeld
}

// taken is how often a node was taken so far.
func (w *witness) taken(node string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.takes[node]
}

// takenAll is how often any node was taken so far.
func (w *witness) takenAll() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := 0
	for _, takes := range w.takes {
		all += takes
	}
	return all
}

// cordonedTimes is how often a node became unschedulable, counting that it was so at the beginning.
func (w *witness) cordonedTimes(node string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cordons[node]
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
