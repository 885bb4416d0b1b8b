// Package e2e tests Drydock from end to end: a real control plane, a real Temporal server, the real binaries.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"drydock/deploy/devstack"
)

// shared are the servers that all tests of the package use, one test after the other.
var shared struct {
	dir     string
	cluster *devstack.Cluster
	// kubeconfig is that of the worker's account, as shipped.
	kubeconfig string
	temporal   *devstack.Temporal
	// audit is the API server's own record of every request.
	audit string
	// sites counts the tests' sites, so that no two have the same name.
	sites int
	// shapes are those of the histories recorded so far.
	shapes map[string]bool
}

// sharedNodes is how many nodes the shared cluster has: worker-01 to worker-20, over zones a, b and c in turn.
const sharedNodes = 20

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "drydock-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.shapes = map[string]bool{}
	shared.dir, shared.audit = dir, filepath.Join(dir, "audit.log")
	defer os.RemoveAll(dir)
	began := time.Now()
	shared.cluster, err = devstack.StartCluster(context.Background(), filepath.Join(dir, "cluster"), sharedNodes,
		"--audit-log", shared.audit)
	if err == nil {
		defer stop(shared.cluster.Process)
		shared.kubeconfig, err = createAccount(context.Background(), shared.cluster, dir)
	}
	if err == nil {
		shared.temporal, err = devstack.StartTemporal(context.Background(),
			devstack.TemporalOptions{Dir: filepath.Join(dir, "temporal"), Attributes: true, UI: true})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop(shared.temporal.Process)
	fmt.Printf("control plane and Temporal ready after %s\n", time.Since(began).Round(100*time.Millisecond))
	status := m.Run()
	if status == 0 && ranAll() {
		unused, err := unusedPermissions()
		if err != nil || len(unused) > 0 {
			fmt.Fprintf(os.Stderr, "FAIL: %s grants what no test's worker has used: %q, %v\n", roleFile, unused, err)
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
