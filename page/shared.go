package page

import (
	"context"
	"sync"
	"time"
)

// shared is something that everybody who looks is shown: it is read by one at a time, however many ask.
type shared[T any] struct {
	mu sync.Mutex
	// last is what was read last without an error, and err is why the latest try failed; nil if it did not.
	last  T
	there bool
	err   error
	// until is when it is to be read again.
	until time.Time
	// reading is closed when what is being read is there; nil if nothing is.
	reading chan struct{}
}

// reading reads something, and says for how long that counts.
type reading[T any] func(ctx context.Context) (value T, fresh time.Duration, err error)

// get is what was read last. Where that is too old it is read anew, within a limit, and the next ones get that: only if nothing is there yet is
// it waited for. After an error it is tried again no sooner than what is read counts, and what was known before still is.
func (s *shared[T]) get(ctx context.Context, limit time.Duration, read reading[T]) (T, error) {
	s.mu.Lock()
	if s.reading == nil && !time.Now().Before(s.until) {
		s.reading = make(chan struct{})
		// It is everybody's: who asked for it first may be gone before it is there.
		go s.read(context.WithoutCancel(ctx), limit, read, s.reading)
	}
	wait := s.reading
	if s.there || wait == nil {
		defer s.mu.Unlock()
		return s.last, s.err
	}
	s.mu.Unlock()
	select {
	case <-wait:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.last, s.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (s *shared[T]) read(ctx context.Context, limit time.Duration, read reading[T], done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	value, fresh, err := read(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err == nil {
		s.last, s.there = value, true
	}
	s.until, s.reading = time.Now().Add(fresh), nil
	close(done)
}
