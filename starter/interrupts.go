package starter

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"
)

// interrupts counts how often the user asked to stop: the first time means something milder than the second.
type interrupts struct {
	mu     sync.Mutex
	count  int
	signal os.Signal
	levels []interruptLevel
	quit   chan struct{}
}

// interruptLevel ends when the count reaches it.
type interruptLevel struct {
	context.Context
	cancel context.CancelCauseFunc
}

// maxInterrupts is how many times make a difference.
const maxInterrupts = 4

// interrupts begins to count. The end of ctx is the same event as the first signal, not another one.
func (a *app) interrupts(ctx context.Context) *interrupts {
	i := &interrupts{signal: os.Interrupt, quit: make(chan struct{})}
	for range maxInterrupts {
		level, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		i.levels = append(i.levels, interruptLevel{level, cancel})
	}
	var signals chan os.Signal
	if a.Notify != nil {
		signals = make(chan os.Signal, maxInterrupts)
		a.Notify(signals)
	}
	go i.listen(ctx.Done(), signals)
	return i
}

func (i *interrupts) listen(ended <-chan struct{}, signals <-chan os.Signal) {
	received := 0
	for {
		select {
		case s := <-signals:
			received++
			i.raise(received, s)
		case <-ended:
			ended = nil
			// The signal that has ended the context is about to arrive here too, and says which one it was.
			select {
			case s := <-signals:
				received++
				i.raise(received, s)
			case <-time.After(50 * time.Millisecond):
				i.raise(1, nil)
			}
		case <-i.quit:
			return
		}
	}
}

func (i *interrupts) raise(count int, s os.Signal) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s != nil {
		i.signal = s
	}
	if count <= i.count {
		return
	}
	i.count = count
	for n := range min(count, len(i.levels)) {
		i.levels[n].cancel(errInterrupted)
	}
}

// reached is a context that ends with the n-th interrupt.
func (i *interrupts) reached(n int) context.Context { return i.levels[n-1] }

// next is a context that ends with the next interrupt to come.
func (i *interrupts) next() context.Context {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.levels[min(i.count, len(i.levels)-1)]
}

// last is the signal to pass on.
func (i *interrupts) last() syscall.Signal {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s, ok := i.signal.(syscall.Signal); ok {
		return s
	}
	return syscall.SIGINT
}

func (i *interrupts) stop() { close(i.quit) }
