package worker

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcPercent keeps a large worker small: what it keeps of thousands of nodes is little, what it reads to get there is much.
	gcPercent = 50
	// heapFloor is the heap, in bytes, up to which garbage is left: a small worker would collect a few megabytes again and
	// again while it drains many nodes, which takes a fifth of its CPU time.
	heapFloor = 64 << 20
	// mostPercent bounds what is set where next to nothing lives.
	mostPercent = 1600
)

// tuneGarbage has garbage collected by gcPercent, but not below heapFloor. GOGC in the environment beats it.
func tuneGarbage() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	(&tuner{}).begin()
}

// tuner sets the percentage anew after each collection, which the runtime has no setting for.
type tuner struct{ percent int }

// sentinel is collected by every collection. It has a field so that it has an address of its own.
type sentinel struct{ tuner *tuner }

func (t *tuner) begin() {
	t.tune()
	t.afterEach()
}

func (t *tuner) afterEach() {
	runtime.SetFinalizer(&sentinel{t}, func(s *sentinel) {
		s.tuner.begin()
	})
}

func (t *tuner) tune() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if percent := percentFor(live[0].Value.Uint64()); percent != t.percent {
		t.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percentFor is the percentage of live bytes at which the next collection begins, in steps: setting it stops the world.
func percentFor(live uint64) int {
	const step = 25
	live = max(live, 1<<20)
	if live >= heapFloor {
		return gcPercent
	}
	percent := int((heapFloor - live) * 100 / live)
	return min(max(percent-percent%step, gcPercent), mostPercent)
}
