// Package e2e tests Drydock from end to end: a real control plane, a real Temporal server, the real binaries.
package e2e

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

// shared is what the tests of the package have in common, several of them at a time.
var shared struct {
	dir string
	// temporal is one server for all: each test's cluster name keeps its workflows apart.
	temporal *devstack.Temporal
	lanes    lanes
	// sites counts the tests' sites, so that no two have the same name.
	sites atomic.Int64
	// shapes are those of the histories recorded so far.
	shapes struct {
		sync.Mutex
		seen map[string]bool
	}
}

// slow leaves a test that takes half a minute or more out of make test, which has shorter ones of the same capability; make test-all runs it.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "drydock-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared.dir, shared.lanes.dir, shared.shapes.seen = dir, dir, map[string]bool{}
	began := time.Now()
	shared.temporal, err = devstack.StartTemporal(context.Background(),
		devstack.TemporalOptions{Dir: filepath.Join(dir, "temporal"), Attributes: true, UI: true, InMemory: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop(shared.temporal.Process)
	defer shared.lanes.stop()
	fmt.Printf("Temporal ready after %s\n", time.Since(began).Round(100*time.Millisecond))
	status := m.Run()
	if status == 0 && ranAll() {
		unused, err := unusedPermissions()
		if err != nil || len(unused) > 0 {
			fmt.Fprintf(os.Stderr, "FAIL: %v grant what no test's worker has used: %q, %v\n", roleFiles, unused, err)
			return 1
		}
	}
	return status
}

func stop(p *devstack.Process) {
	if err := p.Stop(20 * time.Second); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
