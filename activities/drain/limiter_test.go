package drain

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimiterBoundsEvictionsPerSecond(t *testing.T) {
	for name, c := range map[string]struct {
		perSecond float64
		evictions int
		want      time.Duration
	}{
		"a burst of a second's worth": {10, 10, 0},
		"one more":                    {10, 11, 100 * time.Millisecond},
		"many":                        {10, 110, 10 * time.Second},
		"less than one":               {0.5, 3, 4 * time.Second},
		"unlimited":                   {0, 100000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := NewLimiter(c.perSecond)
				start := time.Now()
				for range c.evictions {
					if err := limiter.Wait(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if got := time.Since(start).Round(time.Millisecond); got != c.want {
					t.Errorf("%d evictions took %s, want %s", c.evictions, got, c.want)
				}
			})
		})
	}
}

func TestPauseHoldsAllBackAndIsNeverShortened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := NewLimiter(0)
		start := time.Now()
		limiter.Pause(10 * time.Second)
		limiter.Pause(time.Second)
		waited := make(chan time.Duration, 3)
		for range 3 {
			go func() {
				if err := limiter.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				waited <- time.Since(start)
			}()
		}
		time.Sleep(5 * time.Second)
		limiter.Pause(20 * time.Second) // while they wait
		for range 3 {
			if got := <-waited; got != 25*time.Second {
				t.Errorf("waited %s", got)
			}
		}
		if err := limiter.Wait(t.Context()); err != nil || time.Since(start) != 25*time.Second {
			t.Errorf("after the pause it waits until %s: %v", time.Since(start), err)
		}
	})
}

func TestPauseHoldsBackWhoWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := NewLimiter(1)
		start := time.Now()
		waited := make(chan time.Duration, 5)
		for range 5 {
			go func() {
				if err := limiter.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				waited <- time.Since(start)
			}()
		}
		time.Sleep(1500 * time.Millisecond)
		limiter.Pause(10 * time.Second)
		for i := range 5 {
			if got, early := <-waited, i < 2; early != (got <= time.Second) || !early && got < 11500*time.Millisecond {
				t.Errorf("the %d. went after %s", i+1, got)
			}
		}
	})
}

func TestLimiterGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		paused := NewLimiter(0)
		paused.Pause(time.Hour)
		slow := NewLimiter(0.001)
		if err := slow.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		for name, limiter := range map[string]*Limiter{"paused": paused, "slow": slow} {
			if err := limiter.Wait(ctx); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if err := paused.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v", err)
		}
	})
}

func TestNoMoreRequestsAreUnderWayThanMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(0)
		ctx, cancel := context.WithCancel(t.Context())
		var leaves []func()
		for range evictionsUnderWay {
			leave, err := l.Enter(ctx)
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		entered := make(chan error, 2)
		go func() { _, err := l.Enter(ctx); entered <- err }()
		synctest.Wait()
		select {
		case err := <-entered:
			t.Fatalf("one more entered: %v", err)
		default:
		}
		leaves[0]()
		if err := <-entered; err != nil {
			t.Errorf("after one left: %v", err)
		}
		go func() { _, err := l.Enter(ctx); entered <- err }()
		synctest.Wait()
		cancel()
		if err := <-entered; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}
