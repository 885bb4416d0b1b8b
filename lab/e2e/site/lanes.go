package site

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"drydock.dev/drydock/deploy/devstack"
)

// LaneNodes is how many nodes each lane has: worker-01 to worker-20, over zones a, b and c in turn.
const LaneNodes = 20

// Lane is a control plane with nodes that one test at a time has to itself. Drydock counts unavailable nodes, looks for
// marks and takes percentages over the whole cluster, so that tests which share nodes would have to look away from just
// that.
type Lane struct {
	Cluster *devstack.Cluster
	// kubeconfig is that of the worker's account, as shipped.
	Kubeconfig string
	// audit is the API server's own record of every request.
	audit string
}

// startLane starts a cluster with the worker's account in it.
func startLane(ctx context.Context, dir string, nodes int) (*Lane, error) {
	l := &Lane{audit: filepath.Join(dir, "audit.log")}
	var err error
	if l.Cluster, err = devstack.StartCluster(ctx, filepath.Join(dir, "cluster"), nodes, "--audit-log", l.audit); err != nil {
		return nil, err
	}
	if l.Kubeconfig, err = createAccount(ctx, l.Cluster, dir); err != nil {
		Stop(l.Cluster.Process)
		return nil, err
	}
	return l, nil
}

// OwnLane is a lane for one test, of another size than the others'.
func OwnLane(t *testing.T, nodes int) *Lane {
	t.Helper()
	l, err := startLane(context.Background(), filepath.Join(Shared.Dir, strings.ToLower(t.Name())), nodes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Stop(l.Cluster.Process) })
	return l
}

// lanes are as many as tests have run at once.
type lanes struct {
	dir string
	// taking lets one test at a time take a lane: control planes that start together hold each other up.
	taking sync.Mutex

	mu   sync.Mutex
	free []*Lane
	// audits are the records of all lanes that ever were.
	audits []string
}

// Take gives a test a lane until it ends.
func (p *lanes) Take(t *testing.T) *Lane {
	t.Helper()
	p.taking.Lock()
	defer p.taking.Unlock()
	l := p.pop()
	if l == nil {
		var err error
		if l, err = p.start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			// Its nodes may not be as the next test expects them.
			Stop(l.Cluster.Process)
			return
		}
		p.push(l)
	})
	return l
}

func (p *lanes) start() (*Lane, error) {
	p.mu.Lock()
	dir := filepath.Join(p.dir, fmt.Sprintf("lane-%d", len(p.audits)+1))
	p.audits = append(p.audits, filepath.Join(dir, "audit.log"))
	p.mu.Unlock()
	return startLane(context.Background(), dir, LaneNodes)
}

func (p *lanes) pop() *Lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return nil
	}
	l := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return l
}

func (p *lanes) push(l *Lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, l)
}

// stop ends all lanes, after the last test.
func (p *lanes) stop() {
	var all sync.WaitGroup
	for l := p.pop(); l != nil; l = p.pop() {
		all.Go(func() { Stop(l.Cluster.Process) })
	}
	all.Wait()
}

// requests are those that any lane's API server has recorded and whose record contains a text.
func (p *lanes) requests(visit func(Request), part string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, audit := range p.audits {
		errs = append(errs, devstack.ReadAudit(audit, 0, visit, part))
	}
	return errors.Join(errs...)
}
