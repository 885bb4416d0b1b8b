package k8s

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestPacedWorkIsBoundedInOrderAndAtItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var done []int
		var took []time.Duration
		p := NewPaced(Pace{PerSecond: 10, AtOnce: 2, Room: 3}, func(_ context.Context, i int) {
			done, took = append(done, i), append(took, time.Since(began))
		})
		// Two go at once and the third waits for its turn, which leaves room for three.
		for i := range 7 {
			if p.Add(i) != (i < 6) {
				t.Errorf("work %d", i)
			}
			synctest.Wait()
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if left := p.Stop(); left != 2 {
			t.Errorf("%d left, want 2: one that was taken and one that waits", left)
		}
		if !slices.Equal(done, []int{0, 1, 2, 3}) {
			t.Errorf("done: %v", done)
		}
		want := []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond}
		for i, d := range took {
			if (d - want[i]).Abs() > time.Millisecond {
				t.Errorf("work %d after %v, want %v", i, d, want[i])
			}
		}
	})
}

func TestPacedWorkGivesWayToWhatIsMoreUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done, busy atomic.Int32
		busy.Store(1)
		p := NewPaced(Pace{PerSecond: 8, AtOnce: 4, Room: 100, Urgent: load{&busy}},
			func(context.Context, int) { done.Add(1) })
		defer p.Stop()
		for i := range 50 {
			p.Add(i)
		}
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		if n := done.Load(); n != 5 {
			t.Errorf("%d done in two seconds that are busy, want the first and two a second", n)
		}
		busy.Store(0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		// The one that waited for the slow turn, those at once, and eight a second.
		if n := done.Load(); n < 20 || n > 26 {
			t.Errorf("%d done after two more that are not", n)
		}
	})
}

// load is busy while there is work.
type load struct{ left *atomic.Int32 }

func (l load) Busy() bool { return l.left.Load() > 0 }
