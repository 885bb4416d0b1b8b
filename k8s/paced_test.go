package k8s

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestPacedWorkIsBoundedInOrderAndAtItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var done []int
		var took []time.Duration
		p := NewPaced(10, 2, 3, func(_ context.Context, i int) {
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
