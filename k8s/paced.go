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
	// ended is closed when no more work begins; cut is then whether an item that was taken was left undone.
	ended chan struct{}
	cut   int
}

// Pace is how fast work is done in the background.
type Pace struct {
	// PerSecond is how many works are done a second after the first AtOnce.
	PerSecond rate.Limit
	AtOnce    int
	// Room is how many may wait.
	Room int
	// Urgent is what comes first; nil is nothing. While it is busy, work goes at a quarter of the pace, and none of it at once.
	Urgent Load
}

// Load is work that may be more urgent than other work.
type Load interface {
	// Busy reports that there is more to do than may be done at once.
	Busy() bool
}

// NewPaced does works at a pace.
func NewPaced[T any](pace Pace, work func(context.Context, T)) *Paced[T] {
	ctx, end := context.WithCancel(context.Background())
	p := &Paced[T]{waiting: make(chan T, pace.Room), end: end, ended: make(chan struct{})}
	go p.run(ctx, pace.turns(), work)
	return p
}

// turns is what waits for the next work's turn.
func (p Pace) turns() func(context.Context) error {
	usual, slow := rate.NewLimiter(p.PerSecond, p.AtOnce), rate.NewLimiter(p.PerSecond/4, 1)
	return func(ctx context.Context) error {
		if p.Urgent != nil && p.Urgent.Busy() {
			if err := slow.Wait(ctx); err != nil {
				return err
			}
		}
		return usual.Wait(ctx)
	}
}

// Add reports whether there was room for a work.
func (p *Paced[T]) Add(t T) bool {
	select {
	case p.waiting <- t:
		return true
	default:
		return false
	}
}

func (p *Paced[T]) run(ctx context.Context, turn func(context.Context) error, work func(context.Context, T)) {
	defer close(p.ended)
	for {
		select {
		case t := <-p.waiting:
			if turn(ctx) != nil {
				p.cut = 1
				return
			}
			work(ctx, t)
		case <-ctx.Done():
			return
		}
	}
}

// Stop ends the work, and returns how much of it is left undone.
func (p *Paced[T]) Stop() (left int) {
	p.end()
	<-p.ended
	return len(p.waiting) + p.cut
}
