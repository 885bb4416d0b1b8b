package devstack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/kube"
)

// startTimeout bounds how long any part may take to be ready.
const startTimeout = 2 * time.Minute

// Cluster is a running Kubernetes control plane with simulated nodes.
type Cluster struct {
	*Process
	Kubeconfig string
	Client     kubernetes.Interface
	// Narrow is a client as Drydock's own packages take it.
	Narrow kube.Interface
}

// DetachCluster is the flag with which a cluster outlives the process that started it.
const DetachCluster = "--die-with-parent=false"

// StartCluster runs `devcluster up` with a directory of its own; args are further flags.
func StartCluster(ctx context.Context, dir string, nodes int, args ...string) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	l := launch{name: "devcluster", log: filepath.Join(dir, "devcluster.log"), detach: slices.Contains(args, DetachCluster)}
	if err := os.Remove(l.log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	p, err := l.start("devcluster", append([]string{"up", "--dir", dir, "--nodes", strconv.Itoa(nodes)}, args...)...)
	if err != nil {
		return nil, err
	}
	if err := p.await(ctx, func(context.Context) error {
		log, err := os.ReadFile(l.log)
		if err == nil && !bytes.Contains(log, []byte("ready kubeconfig=")) {
			err = errors.New("it does not say that it is ready")
		}
		return err
	}); err != nil {
		p.Kill()
		return nil, err
	}
	c := &Cluster{Process: p, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err == nil {
		config.QPS, config.Burst = 1000, 2000
		config.UserAgent = "devstack"
		c.Client, err = kubernetes.NewForConfig(config)
	}
	if err == nil {
		c.Narrow, err = kube.NewForConfig(config)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop(time.Minute))
	}
	return c, nil
}

// Temporal is a running Temporal server with its state in a file, so that it can be killed and started again.
type Temporal struct {
	*Process
	Address string
	// UI is the web interface's URL, empty if it was not asked for.
	UI     string
	Client client.Client

	dir         string
	args        []string
	detach      bool
	held        *os.File
	connection  client.Options
	environment []string
}

// TemporalOptions choose how a Temporal server is run.
type TemporalOptions struct {
	// Dir holds the database and the log.
	Dir string
	// UI serves the web interface too.
	UI bool
	// Attributes registers Drydock's search attributes from the start.
	Attributes bool
	// InMemory keeps no database file: its state ends with the process, and no disk slows it down.
	InMemory bool
	// Detach lets the server outlive this process.
	Detach bool
	// Port and UIPort are those of the server and of the web interface; 0 is a free one.
	Port, UIPort int
	// Held is a file that stays open in the server for as long as it lives; nil for none.
	Held *os.File
	// Args are further flags of the server.
	Args []string
	// Connection is how Client reaches a server that wants more than its address, and Environment says the same to processes.
	Connection  client.Options
	Environment []string
}

// temporalTries is how often a Temporal server is started: between the choice of a free port and its use another process may
// take it.
const temporalTries = 3

// StartTemporal runs a Temporal server on free ports of the loopback interface.
func StartTemporal(ctx context.Context, o TemporalOptions) (t *Temporal, err error) {
	for range temporalTries {
		if t, err = startTemporal(ctx, o); err == nil || ctx.Err() != nil {
			return t, err
		}
	}
	return t, err
}

func startTemporal(ctx context.Context, o TemporalOptions) (*Temporal, error) {
	ports, err := FreePorts(3)
	if err != nil {
		return nil, err
	}
	ports[0], ports[2] = cmp.Or(o.Port, ports[0]), cmp.Or(o.UIPort, ports[2])
	t := &Temporal{
		Address: address(ports[0]), dir: o.Dir, detach: o.Detach, held: o.Held, connection: o.Connection, environment: o.Environment,
	}
	t.connection.HostPort, t.connection.Logger = t.Address, quiet{}
	t.args = []string{
		"server", "start-dev", "--ip", "127.0.0.1", "--port", strconv.Itoa(ports[0]),
		"--metrics-port", strconv.Itoa(ports[1]), "--log-level", "error",
	}
	if !o.InMemory {
		t.args = append(t.args, "--db-filename", filepath.Join(o.Dir, "temporal.db"))
	}
	if o.UI {
		t.UI = "http://" + address(ports[2])
		t.args = append(t.args, "--ui-port", strconv.Itoa(ports[2]))
	} else {
		t.args = append(t.args, "--headless")
	}
	if o.Attributes {
		for _, attribute := range api.SearchAttributes {
			t.args = append(t.args, "--search-attribute", attribute.Name+"=Keyword")
		}
	}
	t.args = append(t.args, o.Args...)
	return t, t.Start(ctx)
}

// Start runs the server, anew after it was stopped or killed: same address, same state.
func (t *Temporal) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := t.launch(ctx)
	for range 2 { // a port that it has found free may be taken before it listens
		if err != nil && ctx.Err() == nil {
			err = t.launch(ctx)
		}
	}
	return err
}

func (t *Temporal) launch(ctx context.Context) (err error) {
	l := launch{name: "temporal", log: filepath.Join(t.dir, "temporal.log"), detach: t.detach, held: t.held}
	if t.Process, err = l.start("devtemporal", t.args...); err != nil {
		return err
	}
	return t.await(ctx, func(ctx context.Context) error {
		if t.Client == nil {
			c, err := client.DialContext(ctx, t.connection)
			if err != nil {
				return err
			}
			t.Client = c
		}
		if _, err := t.Client.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil || t.UI == "" {
			return err
		}
		return answers(ctx, t.UI)
	})
}

// Environment are the variables by which every Temporal tool finds the server.
func (t *Temporal) Environment() []string {
	return append([]string{"TEMPORAL_ADDRESS=" + t.Address}, t.environment...)
}

// Worker is a running drydock-worker.
type Worker struct {
	*Process
	// URL is where /metrics and the probes are served, AdminURL where the log level is.
	URL, AdminURL string
}

// WorkerOptions choose what a worker works on.
type WorkerOptions struct {
	// Dir holds the configuration and the log.
	Dir  string
	Name string
	// Config is the YAML configuration; it may be empty. ConfigFile is a file that has it instead.
	Config     string
	ConfigFile string
	Kubeconfig string
	Temporal   *Temporal
	// Detach lets the worker outlive this process.
	Detach bool
	// Port and AdminPort are those of URL and AdminURL; 0 is a free one.
	Port, AdminPort int
	// Held is a file that stays open in the worker for as long as it lives; nil for none.
	Held *os.File
	// Environment adds variables.
	Environment []string
}

// StartWorker runs drydock-worker and waits until it polls.
func StartWorker(ctx context.Context, o WorkerOptions) (*Worker, error) {
	w, err := LaunchWorker(o)
	if err != nil {
		return nil, err
	}
	return w, w.Ready(ctx)
}

// LaunchWorker runs drydock-worker and does not wait for it.
func LaunchWorker(o WorkerOptions) (*Worker, error) {
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	ports[0], ports[1] = cmp.Or(o.Port, ports[0]), cmp.Or(o.AdminPort, ports[1])
	file := o.ConfigFile
	if file == "" {
		file = filepath.Join(o.Dir, o.Name+".yaml")
		if err := os.MkdirAll(o.Dir, 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(o.Config), 0o644); err != nil {
			return nil, err
		}
	}
	w := &Worker{URL: "http://" + address(ports[0]), AdminURL: "http://" + address(ports[1])}
	l := launch{
		name: o.Name, log: filepath.Join(o.Dir, o.Name+".log"), detach: o.Detach, held: o.Held,
		env: append(append(o.Temporal.Environment(), "KUBECONFIG="+o.Kubeconfig, "DRYDOCK_ADMIN_LISTEN="+address(ports[1])), o.Environment...),
	}
	w.Process, err = l.start("drydock-worker", "--config", file, "--listen", address(ports[0]))
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Ready waits until the worker polls.
func (w *Worker) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return w.await(ctx, func(ctx context.Context) error { return answers(ctx, w.URL+"/readyz") })
}

// Bridge is a running drydock-bridge.
type Bridge struct {
	*Process
	// URL serves its probes, MetricsURL its metrics.
	URL, MetricsURL string
}

// BridgeOptions say how a bridge is run.
type BridgeOptions struct {
	// Dir holds the log.
	Dir, Name  string
	Kubeconfig string
	Temporal   *Temporal
	// Args are its further flags.
	Args []string
	// Port has its metrics, ProbesPort its probes; 0 is a free one.
	Port, ProbesPort int
	// Detach lets it outlive this process.
	Detach bool
	// Held stays open in it for as long as it lives.
	Held *os.File
	// Environment adds variables.
	Environment []string
}

// StartBridge runs drydock-bridge and waits until its manager runs.
func StartBridge(ctx context.Context, o BridgeOptions) (*Bridge, error) {
	b, err := LaunchBridge(o)
	if err != nil {
		return nil, err
	}
	return b, b.Ready(ctx)
}

// LaunchBridge runs drydock-bridge and does not wait for it.
func LaunchBridge(o BridgeOptions) (*Bridge, error) {
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	ports[0], ports[1] = cmp.Or(o.ProbesPort, ports[0]), cmp.Or(o.Port, ports[1])
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	b := &Bridge{URL: "http://" + address(ports[0]), MetricsURL: "http://" + address(ports[1])}
	l := launch{
		name: o.Name, log: filepath.Join(o.Dir, o.Name+".log"), detach: o.Detach, held: o.Held,
		env: append(append(o.Temporal.Environment(), "KUBECONFIG="+o.Kubeconfig), o.Environment...),
	}
	b.Process, err = l.start("drydock-bridge", append(slices.Clone(o.Args), "--probes", address(ports[0]), "--metrics", address(ports[1]))...)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Ready waits until the bridge's manager runs.
func (b *Bridge) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return b.await(ctx, func(ctx context.Context) error { return answers(ctx, b.URL+"/readyz") })
}

// answers reports whether a GET succeeds.
func answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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
}

// given are the ports that were found free before: whoever got one may not listen on it yet, or not any more for now.
var given = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// FreePorts finds ports of the loopback interface that nobody listens on, none of them twice in the life of a process.
func FreePorts(n int) ([]int, error) {
	given.Lock()
	defer given.Unlock()
	var ports []int
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for len(ports) < n {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		listeners = append(listeners, l)
		if port := l.Addr().(*net.TCPAddr).Port; !given.ports[port] {
			given.ports[port] = true
			ports = append(ports, port)
		}
	}
	return ports, nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// quiet drops the SDK's log lines: what matters to the stack's user comes back as errors.
type quiet struct{}

func (quiet) Debug(string, ...any) {}

func (quiet) Info(string, ...any) {}

func (quiet) Warn(string, ...any) {}

func (quiet) Error(string, ...any) {}
