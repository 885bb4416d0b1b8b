// Package site gives an end-to-end test a Drydock of its own: a real control plane, a real Temporal server, the real binaries.
package site

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drydock.dev/drydock/deploy/devstack"
)

// Shared is what the tests of the package have in common, several of them at a time.
var Shared struct {
	Dir string
	// temporal is one server for all: each test's cluster name keeps its workflows apart.
	Temporal *devstack.Temporal
	Lanes    lanes
	// Plain is held by the site that names no cluster.
	Plain sync.Mutex
	// sites counts the tests' sites, so that no two have the same name.
	Sites atomic.Int64
	// shapes are those of the histories recorded so far.
	shapes struct {
		sync.Mutex
		seen map[string]bool
	}
}

// Main runs the tests of a package: they share a Temporal server, and control planes that are used again.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "drydock-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	Shared.Dir, Shared.Lanes.dir, Shared.shapes.seen = dir, dir, map[string]bool{}
	began := time.Now()
	Shared.Temporal, err = devstack.StartTemporal(context.Background(),
		devstack.TemporalOptions{Dir: filepath.Join(dir, "temporal"), Attributes: true, UI: true, InMemory: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer Stop(Shared.Temporal.Process)
	defer Shared.Lanes.stop()
	fmt.Printf("Temporal ready after %s\n", time.Since(began).Round(100*time.Millisecond))
	status := m.Run()
	if status == 0 {
		if err := keepUsedPermissions(); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL: which permissions were used:", err)
			return 1
		}
	}
	return status
}

// Stop has a process end in order, and says where it does not.
func Stop(p *devstack.Process) {
	if err := p.Stop(20 * time.Second); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
