package caller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// works are the activities that work on nodes, each of which lasts until the test ends it.
type works struct {
	*begun
	// ends has how each is to end. One that was followed by another on its node, as after a reset, takes none.
	ends chan error
}

// begun are the works that were begun, each as the node and how it stood, and which is the latest on a node.
type begun struct {
	mu     sync.Mutex
	all    []string
	latest map[string]int
}

func newWorks() works { return works{&begun{latest: map[string]int{}}, make(chan error, 10)} }

func (w works) work(ctx context.Context, s *site.Site, node string) error {
	n := s.Node(node)
	w.mu.Lock()
	w.all = append(w.all, fmt.Sprintf("%s cordoned %v, phase %s", node, n.Spec.Unschedulable, n.Labels[api.PhaseLabel]))
	own := len(w.all)
	w.latest[node] = own
	w.mu.Unlock()
	for {
		if ended, err := w.ended(node, own); ended {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
			activity.RecordHeartbeat(ctx)
		}
	}
}

// ended reports whether a work is to end, and how.
func (w works) ended(node string, own int) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.latest[node] != own {
		return false, nil
	}
	select {
	case err := <-w.ends:
		return true, err
	default:
		return false, nil
	}
}

// isAtWork waits until the work was begun so often, each time on a node that was held for it.
func (w works) isAtWork(s *site.Site, times int) {
	s.Helper()
	s.Eventually(fmt.Sprintf("the work is begun for the %dth time", times), func() error {
		all := w.states()
		if len(all) < times {
			return fmt.Errorf("%d times so far", len(all))
		}
		for _, state := range all {
			if !strings.HasSuffix(state, " cordoned true, phase Ready") {
				s.Fatalf("work was begun on %s", state)
			}
		}
		return nil
	})
}

func (w works) states() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.all...)
}
