package site

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/deploy/devstack"
)

// Cable carries connections to a server, and can be cut.
type Cable struct {
	Address string
	to      string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
}

// CableToAPIServer lets the site's worker reach the API server through a cable only.
func (s *Site) CableToAPIServer() *Cable {
	s.Helper()
	config, err := clientcmd.LoadFromFile(s.Lane.Kubeconfig)
	s.NoError(err)
	var through *Cable
	for _, cluster := range config.Clusters {
		through = s.NewCable(strings.TrimPrefix(cluster.Server, "https://"))
		cluster.Server = "https://" + through.Address
	}
	s.Options.Kubeconfig = filepath.Join(s.TempDir(), "kubeconfig")
	s.NoError(clientcmd.WriteToFile(*config, s.Options.Kubeconfig))
	return through
}

// NewCable reserves an address; nobody answers there before connect.
func (s *Site) NewCable(to string) *Cable {
	s.Helper()
	ports, err := devstack.FreePorts(1)
	s.NoError(err)
	c := &Cable{Address: fmt.Sprintf("127.0.0.1:%d", ports[0]), to: to}
	s.Cleanup(c.Cut)
	return c
}

// Connect lets connections through, the first time or again.
func (s *Site) Connect(c *Cable) {
	s.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", c.Address)
	s.NoError(err)
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

func (c *Cable) carry(in net.Conn) {
	defer in.Close()
	out, err := new(net.Dialer).DialContext(context.Background(), "tcp", c.to)
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

// Cut ends all connections and refuses new ones.
func (c *Cable) Cut() {
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
