package k8s

import (
	"context"

	"golang.org/x/time/rate"
)

// Paced does work in the background, in the order in which it came and no faster than its pace: what should not take the API
// server from the evictions.
type Paced[T any] struct {
	waiting chan T
	end     context.CancelFunc
	// ended is closed when no more work begins; cut then tells whether one that was taken was left undone.
	ended chan struct{}
	cut   int
}

// NewPaced does at most perSecond works a second after the first atOnce, and lets room of them wait.
func NewPaced[T any](perSecond rate.Limit, atOnce, room int, work func(context.Context, T)) *Paced[T] {
	ctx, end := context.WithCancel(context.Background())
	p := &Paced[T]{waiting: make(chan T, room), end: end, ended: make(chan struct{})}
	go p.run(ctx, rate.NewLimiter(perSecond, atOnce), work)
	return p
}

// Add tells whether there was room for a work.
func (p *Paced[T]) Add(t T) bool {
	select {
	case p.waiting <- t:
		return true
	default:
		return false
	}
}

func (p *Paced[T]) run(ctx context.Context, pace *rate.Limiter, work func(context.Context, T)) {
	defer close(p.ended)
	for {
		select {
		case t := <-p.waiting:
			if pace.Wait(ctx) != nil {
				p.cut = 1
				return
			}
			work(ctx, t)
		case <-ctx.Done():
			return
		}
	}
}

// Stop ends the work, and tells how much of it is left undone.
func (p *Paced[T]) Stop() (left int) {
	p.end()
	<-p.ended
	return len(p.waiting) + p.cut
}
