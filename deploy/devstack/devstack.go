package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"drydock/workflows"
)

// startTimeout bounds how long any part may take to be ready.
const startTimeout = 2 * time.Minute

// Cluster is a running Kubernetes control plane with simulated nodes.
type Cluster struct {
	*Process
	Kubeconfig string
	Client     kubernetes.Interface
}

// StartCluster runs `devcluster up` with a directory of its own; args are further flags.
func StartCluster(ctx context.Context, dir string, nodes int, args ...string) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ready := newFirstLine()
	args = append([]string{"up", "--dir", dir, "--nodes", strconv.Itoa(nodes)}, args...)
	p, err := start("devcluster", filepath.Join(dir, "devcluster.log"), nil, ready, "devcluster", args...)
	if err != nil {
		return nil, err
	}
	select {
	case <-ready.line:
	case <-p.Exited():
		return nil, fmt.Errorf("devcluster ended before it was ready: %v\n%s", p.err, p.Tail())
	case <-ctx.Done():
		p.Kill()
		return nil, fmt.Errorf("devcluster was not ready in time: %w\n%s", ctx.Err(), p.Tail())
	}
	c := &Cluster{Process: p, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err == nil {
		config.QPS, config.Burst = 1000, 2000
		config.UserAgent = "devstack"
		c.Client, err = kubernetes.NewForConfig(config)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop(time.Minute))
	}
	return c, nil
}

// Temporal is a running Temporal dev server with its state in a file, so that it can be killed and started again.
type Temporal struct {
	*Process
	Address string
	// UI is the web interface's URL, empty where it was not asked for.
	UI     string
	Client client.Client

	dir  string
	args []string
}

// TemporalOptions choose how a Temporal server is run.
type TemporalOptions struct {
	// Dir holds the database and the log.
	Dir string
	// UI serves the web interface too.
	UI bool
	// Attributes registers Drydock's search attributes from the start.
	Attributes bool
}

// StartTemporal runs the Temporal CLI's dev server on free ports of the loopback interface.
func StartTemporal(ctx context.Context, o TemporalOptions) (*Temporal, error) {
	ports, err := FreePorts(4)
	if err != nil {
		return nil, err
	}
	t := &Temporal{Address: address(ports[0]), dir: o.Dir}
	t.args = []string{
		"server", "start-dev", "--ip", "127.0.0.1", "--port", strconv.Itoa(ports[0]), "--http-port", strconv.Itoa(ports[1]),
		"--metrics-port", strconv.Itoa(ports[2]), "--db-filename", filepath.Join(o.Dir, "temporal.db"), "--log-level", "error",
	}
	if o.UI {
		t.UI = "http://" + address(ports[3])
		t.args = append(t.args, "--ui-port", strconv.Itoa(ports[3]))
	} else {
		t.args = append(t.args, "--headless")
	}
	if o.Attributes {
		for _, key := range workflows.SearchAttributes {
			t.args = append(t.args, "--search-attribute", key.GetName()+"=Keyword")
		}
	}
	return t, t.Start(ctx)
}

// Start runs the server, anew after it was stopped or killed: same address, same state.
func (t *Temporal) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	if t.Process, err = start("temporal", filepath.Join(t.dir, "temporal.log"), nil, nil, "temporal", t.args...); err != nil {
		return err
	}
	return t.await(ctx, func(ctx context.Context) error {
		if t.Client == nil {
			c, err := client.DialContext(ctx, client.Options{HostPort: t.Address, Logger: quiet{}})
			if err != nil {
				return err
			}
			t.Client = c
		}
		_, err := t.Client.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err
	})
}

// Environment are the variables by which every Temporal tool finds the server.
func (t *Temporal) Environment() []string { return []string{"TEMPORAL_ADDRESS=" + t.Address} }

// Worker is a running drydock-worker.
type Worker struct {
	*Process
	// URL is where /metrics and the probes are served.
	URL string
}

// WorkerOptions choose what a worker works on.
type WorkerOptions struct {
	// Dir holds the configuration and the log.
	Dir  string
	Name string
	// Config is the YAML configuration; it may be empty.
	Config     string
	Kubeconfig string
	Temporal   *Temporal
	// Environment adds variables.
	Environment []string
}

// StartWorker runs drydock-worker and waits until it polls.
func StartWorker(ctx context.Context, o WorkerOptions) (*Worker, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ports, err := FreePorts(1)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(o.Dir, o.Name+".yaml")
	if err := os.WriteFile(file, []byte(o.Config), 0o644); err != nil {
		return nil, err
	}
	w := &Worker{URL: "http://" + address(ports[0])}
	env := append(o.Temporal.Environment(), "KUBECONFIG="+o.Kubeconfig)
	w.Process, err = start(o.Name, filepath.Join(o.Dir, o.Name+".log"), append(env, o.Environment...), nil,
		"drydock-worker", "--config", file, "--listen", address(ports[0]))
	if err != nil {
		return nil, err
	}
	return w, w.await(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
}

// FreePorts finds distinct ports of the loopback interface that nobody listens on.
func FreePorts(n int) ([]int, error) {
	var ports []int
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		listeners = append(listeners, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// quiet drops the SDK's log lines: what matters to the stack's user comes back as errors.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
