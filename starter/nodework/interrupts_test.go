package nodework

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestInterruptsAreCounted(t *testing.T) {
	signals := make(chan chan<- os.Signal, 1)
	ctx, cancel := context.WithCancel(context.Background())
	i := NewInterrupts(ctx, func(c chan<- os.Signal) { signals <- c })
	defer i.Stop()
	c := <-signals
	// The end of the context and the first signal are one event.
	cancel()
	c <- syscall.SIGTERM
	ended(i.Reached(1), t)
	time.Sleep(100 * time.Millisecond)
	if i.Reached(2).Err() != nil {
		t.Fatal("one signal was counted twice")
	}
	if i.Last() != syscall.SIGTERM {
		t.Errorf("signal = %s", i.Last())
	}
	next := i.Next()
	c <- syscall.SIGINT
	ended(i.Reached(2), t)
	ended(next, t)
	if i.Last() != syscall.SIGINT || i.Reached(3).Err() != nil {
		t.Errorf("signal = %s, third: %v", i.Last(), i.Reached(3).Err())
	}
	for range 5 {
		c <- syscall.SIGINT
	}
	ended(i.Reached(maxInterrupts), t)
	ended(i.Next(), t)
}

func TestEndOfTheContextIsAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	i := NewInterrupts(ctx, nil)
	defer i.Stop()
	cancel()
	ended(i.Reached(1), t)
	if i.Last() != syscall.SIGINT {
		t.Errorf("signal = %s", i.Last())
	}
}

func ended(ctx context.Context, t *testing.T) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Fatal("the context has not ended")
	}
}
