package nodework

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"drydock.dev/drydock/starter/exit"
)

// Interrupts counts how often the user asked to stop: the first time means something milder than the second.
type Interrupts struct {
	mu     sync.Mutex
	count  int
	signal os.Signal
	levels []interruptLevel
	Quit   chan struct{}
}

// interruptLevel ends when the count reaches it.
type interruptLevel struct {
	context.Context
	cancel context.CancelCauseFunc
}

// maxInterrupts is how many times make a difference.
const maxInterrupts = 4

// NewInterrupts begins to count. The end of ctx is the same event as the first signal, not another one.
func NewInterrupts(ctx context.Context, notify func(chan<- os.Signal)) *Interrupts {
	i := &Interrupts{signal: os.Interrupt, Quit: make(chan struct{})}
	for range maxInterrupts {
		level, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		i.levels = append(i.levels, interruptLevel{level, cancel})
	}
	var signals chan os.Signal
	if notify != nil {
		signals = make(chan os.Signal, maxInterrupts)
		notify(signals)
	}
	go i.listen(ctx.Done(), signals)
	return i
}

func (i *Interrupts) listen(ended <-chan struct{}, signals <-chan os.Signal) {
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
		case <-i.Quit:
			return
		}
	}
}

func (i *Interrupts) raise(count int, s os.Signal) {
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
		i.levels[n].cancel(exit.ErrInterrupted)
	}
}

// Reached is a context that ends with the n-th interrupt.
func (i *Interrupts) Reached(n int) context.Context { return i.levels[n-1] }

// Next is a context that ends with the next interrupt to come.
func (i *Interrupts) Next() context.Context {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.levels[min(i.count, len(i.levels)-1)]
}

// Last is the signal to pass on.
func (i *Interrupts) Last() syscall.Signal {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s, ok := i.signal.(syscall.Signal); ok {
		return s
	}
	return syscall.SIGINT
}

// Stop ends the counting.
func (i *Interrupts) Stop() { close(i.Quit) }
