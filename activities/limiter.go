package activities

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// EvictionLimiter bounds the evictions per second of all drains of a worker together, and lets all of them pause when
// the API server asks any of them to slow down.
type EvictionLimiter struct {
	limiter *rate.Limiter

	mu    sync.Mutex
	until time.Time
}

// NewEvictionLimiter allows perSecond evictions; 0 is unlimited.
func NewEvictionLimiter(perSecond float64) *EvictionLimiter {
	limit := rate.Limit(perSecond)
	if perSecond == 0 {
		limit = rate.Inf
	}
	return &EvictionLimiter{limiter: rate.NewLimiter(limit, max(1, int(perSecond)))}
}

// Wait blocks until the next eviction may be sent.
func (l *EvictionLimiter) Wait(ctx context.Context) error {
	for {
		l.mu.Lock()
		pause := time.Until(l.until)
		l.mu.Unlock()
		if pause <= 0 {
			if err := l.limiter.Wait(ctx); err != nil {
				return err
			}
			// Whoever waited for its turn while a pause began waits for both.
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

func (l *EvictionLimiter) paused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.until)
}

// Pause holds back all evictions for a while.
func (l *EvictionLimiter) Pause(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := time.Now().Add(d); until.After(l.until) {
		l.until = until
	}
}
