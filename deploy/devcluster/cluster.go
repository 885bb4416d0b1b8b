package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// probeInterval is short because every wait at the start is one somebody sits
// through.
const probeInterval = 25 * time.Millisecond

// cluster is one control plane and what runs with it.
type cluster struct {
	options upOptions
	files   layout
	pki     *pki
	ports   *clusterPorts
	admin   keyPair
	probes  *http.Client

	// Both speak as devcluster-kubelets, to tell them from the admin's requests;
	// the user agent of the second is that name too.
	client, kubelets *kubernetes.Clientset

	spawner *spawner
	stderr  io.Writer
	began   time.Time

	// ctx ends when the cluster is to stop; its cause is an *exitError if that
	// is because a component ended.
	ctx    context.Context
	cancel context.CancelCauseFunc

	running startedProcesses
}

// startedProcesses are those that were started, until the cluster stops.
type startedProcesses struct {
	mu       sync.Mutex
	byName   map[string]*process
	stopping bool
}

// newCluster prepares everything that needs no running component.
func newCluster(ctx context.Context, o upOptions, stderr io.Writer) (*cluster, error) {
	c := &cluster{options: o, files: layout{o.dir}, spawner: newSpawner(), stderr: stderr, began: time.Now(),
		running: startedProcesses{byName: map[string]*process{}}}
	// A kubeconfig says that the cluster is ready.
	if err := os.Remove(c.files.kubeconfig()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the former kubeconfig: %w", err)
	}
	if _, err := os.Stat(c.files.etcdData()); err == nil {
		c.progress("continuing with the state in %s", c.files.dir)
	}
	for _, dir := range []string{c.files.logs(), c.files.config()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create the cluster's directory: %w", err)
		}
	}
	// The client library's own messages would only disturb the progress.
	own, err := os.Create(c.files.log("devcluster"))
	if err != nil {
		return nil, fmt.Errorf("create the log: %w", err)
	}
	klog.LogToStderr(false)
	klog.SetOutput(own)

	if c.pki, err = openPKI(c.files.pki()); err != nil {
		return nil, err
	}
	if c.ports, err = reserveClusterPorts(o.port); err != nil {
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c, errors.Join(
		writeFile(c.files.auditPolicy(), []byte(auditPolicyYAML), 0o600),
		writeFile(c.files.packing(), packingYAML(c.files), 0o600),
		c.issueClients(),
	)
}

// issueClients gives everybody who talks to the API server a name of their own
// there, so that an audit log tells them apart.
func (c *cluster) issueClients() error {
	var err error
	if c.admin, err = c.pki.client(adminUser, mastersGroup); err != nil {
		return err
	}
	for component, user := range map[string]string{
		controllerManagerName: "system:kube-controller-manager",
		schedulerName:         "system:kube-scheduler",
	} {
		pair, err := c.pki.client(user, mastersGroup)
		if err != nil {
			return err
		}
		err = writeKubeconfig(c.files.componentKubeconfig(component), c.ports.apiServer.url(), user, c.pki.caPEM, pair)
		if err != nil {
			return err
		}
	}
	kubelets, err := c.pki.client(kubeletsUser, mastersGroup)
	if err != nil {
		return err
	}
	if c.client, err = newClient(c.ports.apiServer.url(), c.pki.caPEM, kubelets, "devcluster"); err != nil {
		return err
	}
	if c.kubelets, err = newClient(c.ports.apiServer.url(), c.pki.caPEM, kubelets, kubeletsUser); err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(kubelets.cert, kubelets.key)
	if err != nil {
		return fmt.Errorf("load the client certificate for probes: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.pki.caCert)
	c.probes = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
	}}
	return nil
}

// start brings everything up in the order of dependence, side by side where
// there is none, and writes the kubeconfig last.
func (c *cluster) start() error {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.options.timeout,
		fmt.Errorf("the cluster was not ready within %s", c.options.timeout))
	defer cancel()
	err := c.startAll(ctx)
	// A component that died is the reason for whatever failed after it.
	var exit *exitError
	if errors.As(context.Cause(c.ctx), &exit) {
		return exit
	}
	if c.ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

func (c *cluster) startAll(ctx context.Context) error {
	if err := c.run(etcdName, etcdArgs(c.files, c.pki, c.ports)); err != nil {
		return err
	}
	if err := c.waitHealthy(ctx, etcdName, c.ports.etcdClient.url()+"/health"); err != nil {
		return err
	}
	if err := c.run(apiServerName, apiServerArgs(c.options, c.files, c.pki, c.ports)); err != nil {
		return err
	}
	if err := c.waitHealthy(ctx, apiServerName, c.ports.apiServer.url()+"/readyz"); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return c.runController(groupCtx, controllerManagerName, c.ports.controllerManager, controllerManagerArgs)
	})
	group.Go(func() error {
		return c.runController(groupCtx, schedulerName, c.ports.scheduler, schedulerArgs)
	})
	group.Go(func() error { return c.waitDefaultServiceAccount(groupCtx) })
	group.Go(func() error { return c.bringUpNodes(groupCtx) })
	if err := group.Wait(); err != nil {
		return err
	}
	if pods := c.options.podsPerNode * c.options.nodes.workers; pods > 0 {
		if err := fillNodes(ctx, c.client, int32(pods)); err != nil {
			return err
		}
		c.progress("%d pods ready after %s", pods, c.elapsed())
	}
	return writeKubeconfig(c.files.kubeconfig(), c.ports.apiServer.url(), adminUser, c.pki.caPEM, c.admin)
}

type argsFunc func(upOptions, layout, *pki, *clusterPorts) []string

func (c *cluster) runController(ctx context.Context, name string, port *reservedPort, args argsFunc) error {
	if err := c.run(name, args(c.options, c.files, c.pki, c.ports)); err != nil {
		return err
	}
	return c.waitHealthy(ctx, name, port.url()+"/healthz")
}

// bringUpNodes creates the nodes, and the kubelets that play them.
func (c *cluster) bringUpNodes(ctx context.Context) error {
	kubelets, err := newKubelets(c.ctx, c.kubelets, c.stderr)
	if err != nil {
		return err
	}
	nodes := c.options.nodes.build()
	if err := createNodes(ctx, c.client, nodes); err != nil {
		return err
	}
	if err := waitForNodes(ctx, kubelets.nodes, nodes); err != nil {
		return err
	}
	go kubelets.renewLeases(c.ctx)
	c.progress("%d nodes ready after %s", len(nodes), c.elapsed())
	return nil
}

// waitDefaultServiceAccount waits for what every pod in namespace default needs.
func (c *cluster) waitDefaultServiceAccount(ctx context.Context) error {
	return poll(ctx, "the default service account", probeInterval, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (c *cluster) waitHealthy(ctx context.Context, name, url string) error {
	err := poll(ctx, name, probeInterval, func(ctx context.Context) error { return c.probe(ctx, url) })
	if err == nil {
		c.progress("%s ready after %s", name, c.elapsed())
	}
	return err
}

func (c *cluster) probe(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := c.probes.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return err
}

// run starts a component and ends the cluster when it ends first.
func (c *cluster) run(name string, args []string) error {
	c.running.mu.Lock()
	defer c.running.mu.Unlock()
	if c.running.stopping {
		return fmt.Errorf("start %s: %w", name, context.Cause(c.ctx))
	}
	p, err := startProcess(c.spawner, name, c.files.dir, c.files.log(name), args)
	if err != nil {
		return err
	}
	c.running.byName[name] = p
	go func() {
		<-p.exited
		c.cancel(p.exitError()) // without effect if the cluster is stopping anyway
	}()
	return nil
}

// wait blocks until the cluster is to stop. The result is why, unless it was
// asked for.
func (c *cluster) wait() error {
	<-c.ctx.Done()
	var exit *exitError
	if errors.As(context.Cause(c.ctx), &exit) {
		return exit
	}
	c.progress("stopping")
	return nil
}

// stopOrder has those that write to the API server first, then the API server,
// then its store.
var stopOrder = [][]string{{schedulerName, controllerManagerName}, {apiServerName}, {etcdName}}

// stop ends all components and returns when they are gone.
func (c *cluster) stop() {
	c.cancel(context.Canceled)
	c.running.mu.Lock()
	c.running.stopping = true
	c.running.mu.Unlock()

	_ = os.Remove(c.files.kubeconfig())
	for _, together := range stopOrder {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		var group sync.WaitGroup
		for _, name := range together {
			if p := c.running.byName[name]; p != nil {
				group.Go(func() { p.stop(ctx) })
			}
		}
		group.Wait()
		cancel()
	}
	c.ports.release()
	c.progress("stopped")
}

func (c *cluster) elapsed() string {
	return fmt.Sprintf("%.1fs", time.Since(c.began).Seconds())
}

func (c *cluster) progress(format string, args ...any) {
	fmt.Fprintf(c.stderr, format+"\n", args...)
}
