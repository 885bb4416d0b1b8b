package drain

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// evictionsUnderWay bounds the requests of all drains of a worker that wait for an answer. More of them make no API server
// faster: hundreds of drains at once would let it answer after ten seconds, or not at all.
const evictionsUnderWay = 32

// evictionsOverdue bounds those beside them that nobody waits for any more. Where the API server answers every request late,
// each would make room for another at once.
const evictionsOverdue = 4 * evictionsUnderWay

// Limiter bounds the evictions per second of all drains of a worker together, and those under way, and lets all of
// them pause when the API server asks any of them to slow down.
type Limiter struct {
	limiter  *rate.Limiter
	underWay chan struct{}
	overdue  chan struct{}
	// waiting are the evictions whose turn has not come.
	waiting atomic.Int64

	mu    sync.Mutex
	until time.Time
}

// NewLimiter allows perSecond evictions; 0 is unlimited.
func NewLimiter(perSecond float64) *Limiter {
	limit := rate.Limit(perSecond)
	if perSecond == 0 {
		limit = rate.Inf
	}
	return &Limiter{
		limiter:  rate.NewLimiter(limit, max(1, int(perSecond))),
		underWay: make(chan struct{}, evictionsUnderWay), overdue: make(chan struct{}, evictionsOverdue),
	}
}

// Busy reports whether there are more evictions to send than may be under way.
func (l *Limiter) Busy() bool {
	return len(l.underWay) == evictionsUnderWay || l.waiting.Load() > evictionsUnderWay
}

// Enter blocks until fewer requests are under way than may be. Call leave when this one is answered.
func (l *Limiter) Enter(ctx context.Context) (leave func(), err error) {
	select {
	case l.underWay <- struct{}{}:
		return func() { <-l.underWay }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Wait blocks until the next eviction may be sent.
func (l *Limiter) Wait(ctx context.Context) error {
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	for {
		l.mu.Lock()
		pause := time.Until(l.until)
		l.mu.Unlock()
		if pause <= 0 {
			if err := l.limiter.Wait(ctx); err != nil {
				return err
			}
			// A pause that began while this request waited for its turn delays it too.
			if !l.paused() {
				return nil
			}
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *Limiter) paused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.until)
}

// Pause holds back all evictions for a while.
func (l *Limiter) Pause(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := time.Now().Add(d); until.After(l.until) {
		l.until = until
	}
}
