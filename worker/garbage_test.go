package worker

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestGarbageIsLeftUpToTheFloor(t *testing.T) {
	const mega = 1 << 20
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 1600}, {mega, 1600}, {8 * mega, 700}, {20 * mega, 200}, {32 * mega, 100}, {40 * mega, 50}, {43 * mega, 50}, {64 * mega, 50}, {500 * mega, 50},
	} {
		got := percentFor(c.live)
		if got != c.want {
			t.Errorf("%d MiB: %d %%, want %d", c.live/mega, got, c.want)
		}
		if goal := c.live + c.live*uint64(got)/100; got > gcPercent && goal > heapFloor {
			t.Errorf("%d MiB are collected at %d MiB, which is above the floor", c.live/mega, goal/mega)
		}
	}
}

func TestThePercentageFollowsWhatLives(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	collected := func(want func(percent int) bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
			runtime.GC()
			percent := debug.SetGCPercent(-1)
			debug.SetGCPercent(percent)
			if want(percent) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("garbage is collected at %d %%", percent)
			}
		}
	}
	(&tuner{}).begin()
	collected(func(percent int) bool { return percent > gcPercent })
	kept := make([]byte, 2*heapFloor)
	collected(func(percent int) bool { return percent == gcPercent })
	runtime.KeepAlive(kept)
	collected(func(percent int) bool { return percent > gcPercent })
}
