package nodeevent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/kubernetes"

	"drydock/k8s"
)

const (
	// atOnce are the Events that are written while their activities wait for it.
	atOnce = 8
	// perSecond is how many are written a second once there are more: they must not take the API server from the evictions
	// of a fleet.
	perSecond = 20
	// maxLater bounds those that wait.
	maxLater = 10_000
	// writeWithin bounds one that was put off.
	writeWithin = 10 * time.Second
)

// later writes the Events that more than a few activities at once want to write.
type later struct {
	client kubernetes.Interface
	// turns are taken by activities that write their Event themselves.
	turns chan struct{}
	rate  *rate.Limiter

	mu      sync.Mutex
	waiting []k8s.NodeEvent
	writing bool
}

func newLater(client kubernetes.Interface) *later {
	return &later{client: client, turns: make(chan struct{}, atOnce), rate: rate.NewLimiter(perSecond, 1)}
}

// turn tells whether an activity may write its Event itself; it calls done afterwards.
func (l *later) turn() (done func(), ok bool) {
	select {
	case l.turns <- struct{}{}:
		return func() { <-l.turns }, true
	default:
		return nil, false
	}
}

// add puts an Event off, and tells whether there was room for it.
func (l *later) add(e k8s.NodeEvent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == maxLater {
		return false
	}
	l.waiting = append(l.waiting, e)
	if !l.writing {
		l.writing = true
		go l.write()
	}
	return true
}

// write writes what was put off, until nothing is left.
func (l *later) write() {
	for e, ok := l.next(); ok; e, ok = l.next() {
		ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
		err := l.rate.Wait(ctx)
		if err == nil {
			err = k8s.Emit(ctx, l.client, e)
		}
		cancel()
		if err != nil {
			slog.Warn("event not recorded", "node", e.Node, "reason", e.Reason, "error", err)
		}
	}
}

func (l *later) next() (k8s.NodeEvent, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.waiting, l.writing = nil, false
		return k8s.NodeEvent{}, false
	}
	e := l.waiting[0]
	l.waiting = l.waiting[1:]
	return e, true
}
