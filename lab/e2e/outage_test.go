package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
)

// cable carries connections to a server, and can be cut.
type cable struct {
	address string
	to      string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
}

// cableToAPIServer lets the site's worker reach the API server through a cable only.
func (s *site) cableToAPIServer() *cable {
	s.Helper()
	config, err := clientcmd.LoadFromFile(s.lane.kubeconfig)
	if err != nil {
		s.Fatal(err)
	}
	var through *cable
	for _, cluster := range config.Clusters {
		through = s.newCable(strings.TrimPrefix(cluster.Server, "https://"))
		cluster.Server = "https://" + through.address
	}
	s.options.Kubeconfig = filepath.Join(s.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, s.options.Kubeconfig); err != nil {
		s.Fatal(err)
	}
	return through
}

// newCable reserves an address; nobody answers there before connect.
func (s *site) newCable(to string) *cable {
	s.Helper()
	ports, err := devstack.FreePorts(1)
	if err != nil {
		s.Fatal(err)
	}
	c := &cable{address: fmt.Sprintf("127.0.0.1:%d", ports[0]), to: to}
	s.Cleanup(c.cut)
	return c
}

// connect lets connections through, the first time or again.
func (s *site) connect(c *cable) {
	s.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	listener, err := net.Listen("tcp", c.address)
	if err != nil {
		s.Fatal(err)
	}
	c.listener, c.open = listener, map[net.Conn]bool{}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go c.carry(in)
		}
	}()
}

func (c *cable) carry(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer out.Close()
	c.mu.Lock()
	c.open[in] = true
	c.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(out, in); out.Close() })
	both.Go(func() { _, _ = io.Copy(in, out); in.Close() })
	both.Wait()
}

// cut ends all connections and refuses new ones.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener == nil {
		return
	}
	c.listener.Close()
	for in := range c.open {
		in.Close()
	}
	c.listener = nil
}

// refuses waits until somebody has tried the cable in vain.
func (s *site) refuses(c *cable) {
	s.Helper()
	listener, err := net.Listen("tcp", c.address)
	if err != nil {
		s.Fatal(err)
	}
	defer listener.Close()
	// The one that connects is hung up on, which is as bad as being refused.
	in, err := listener.Accept()
	if err != nil {
		s.Fatal(err)
	}
	in.Close()
}

func TestADrainCutOffFromTemporalStopsAndGoesOnLater(t *testing.T) {
	s := prepareSite(t, "")
	cable := s.newCable(shared.temporal.Address)
	s.options.Environment = []string{"TEMPORAL_ADDRESS=" + cable.address}
	s.connect(cable)
	s.startWorker()
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	pod := s.one(ns, "web")
	run := s.begin("worker-01")
	s.until(run, api.Draining)
	s.refusedOnce(ns)
	cable.cut()
	// The server takes the drain for lost when its heartbeats have been missing for ten seconds, and gives it to
	// another worker: by then this one must have stopped by itself.
	s.eventually("the server has given the drain up", func() error {
		described, err := s.temporal.DescribeWorkflowExecution(s.ctx, run.GetID(), run.GetRunID())
		if err == nil && (len(described.PendingActivities) != 1 || described.PendingActivities[0].Attempt < 2) {
			err = errors.New("not yet")
		}
		return err
	})
	s.allow(ns, "web")
	s.always("nothing is evicted", 3*time.Second, func() error {
		if accepted := s.accepted(ns); len(accepted) > 0 {
			return fmt.Errorf("evicted: %v", accepted)
		}
		return nil
	})
	s.mustStay(pod)
	s.connect(cable)
	s.until(run, api.Ready)
	if times := s.accepted(ns)[pod.Name]; times != 1 {
		t.Errorf("the eviction was accepted %d times", times)
	}
	s.done(run)
}

func TestAnAPIServerThatIsAwayIsWaitedFor(t *testing.T) {
	s := prepareSite(t, "")
	cable := s.cableToAPIServer()
	s.startWorker()
	before := s.imprint("worker-01")
	run := s.begin("worker-01")
	s.until(run, api.Pending)
	s.refuses(cable)
	s.connect(cable)
	s.untilHeld(run)

	// What brings the node back must succeed however long it takes.
	cable.cut()
	s.signal(run, api.MsgDone, nil)
	s.until(run, api.Releasing)
	s.refuses(cable)
	s.connect(cable)
	s.mustEnd(run, api.Completed)
	s.back("worker-01", before)
}
