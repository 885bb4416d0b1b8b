package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

type upOptions struct {
	dir           string
	nodes         nodeSpec
	nodeLabels    []string
	podsPerNode   int
	port          int
	runtimeConfig string
	featureGates  string
	packNodes     bool
	auditLog      string
	timeout       time.Duration
	dieWithParent bool
}

const upHelp = `Starts a cluster and stays in the foreground until SIGTERM, SIGINT or the death of
its parent. Progress goes to stderr. Once every component answers and every node
is Ready it writes DIR/kubeconfig and prints one line on stdout:

  ready kubeconfig=DIR/kubeconfig server=https://127.0.0.1:PORT

All listeners are on 127.0.0.1, on ports that are free, so any number of clusters
run side by side. A component that ends by itself ends the cluster: its name, its
exit status and the end of its log are reported, and the exit status is 1.

DIR holds kubeconfig (while the cluster is up), devcluster.pid, pki/, etcd/,
config/ and logs/COMPONENT.log. A second ` + "`up`" + ` in a directory continues with its
state. Remove the directory to start afresh.

The nodes and pods are played: a pod runs at once, a deleted pod goes at once,
a pod of a Job succeeds at once. The rest is asked for by labels and annotations
under devcluster.drydock.dev/ (the label on a node, the others on a pod):

  label      not-ready=true           the node is NotReady (Ready=False) until the label goes
  label      not-ready=unknown        the node is as good as dead: Ready=Unknown, its lease runs out, its pods not Ready
  label      never-start=true         the pod stays Pending
  label      never-ready=true         the pod runs but is not Ready until the label goes
  annotation termination-delay=2s     the pod takes that long to go (a label works too)
  annotation completion-delay=2s      the pod of a Job takes that long to succeed

A node's Ready condition set by hand is healed at once: use the label.`

func newUpCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up --dir DIR [--nodes N]",
		Short: "Start a cluster and keep it running",
		Long:  upHelp,
		Example: `  # six workers over three zones; in another terminal: export KUBECONFIG=/tmp/dc/kubeconfig
  devcluster up --dir /tmp/dc --nodes 6

  # in the background from a script that ends; stop it with devcluster down
  devcluster up --dir /tmp/dc --die-with-parent=false &

  # a thousand nodes with thirty pods each, node objects of a realistic size
  devcluster up --dir /tmp/big --nodes 1000 --pods-per-node 30 --images-per-node 40

  # every request on record; an alpha API switched on
  devcluster up --dir /tmp/dc --nodes 3 --audit-log /tmp/dc/audit.log \
    --runtime-config api/alpha=true --feature-gates AllAlpha=true

  # take a node down and up again
  devcluster kubectl label node worker-01 devcluster.drydock.dev/not-ready=true
  devcluster kubectl label node worker-01 devcluster.drydock.dev/not-ready-`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			return runUp(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.dir, "dir", "", "`DIR` of the cluster, created if missing (required)")
	f.IntVar(&o.nodes.workers, "nodes", 3, "number of worker nodes")
	f.IntVar(&o.nodes.controlPlanes, "control-plane-nodes", 0, "number of nodes control-plane-01..., labelled and tainted as such")
	f.StringVar(&o.nodes.prefix, "node-prefix", "worker-", "workers are named with this and a number of at least two digits")
	f.StringArrayVar(&o.nodeLabels, "node-labels", nil, "label `KEY=VALUE` for every worker (repeatable)")
	f.IntVar(&o.nodes.zones, "zones", 3, "spread nodes over zone-a, zone-b, ... (topology.kubernetes.io/zone); 0 for no zones")
	f.IntVar(&o.nodes.images, "images-per-node", 0, "container images in each node's status, to give node objects their real size")
	f.IntVar(&o.podsPerNode, "pods-per-node", 0, "fill the workers with a Deployment named filler, this many pods for each, and wait for them")
	f.IntVar(&o.port, "port", 0, "port of the API server; 0 for a free one")
	f.StringVar(&o.runtimeConfig, "runtime-config", "", "passed to kube-apiserver (comma separated API=true|false)")
	f.StringVar(&o.featureGates, "feature-gates", "", "passed to kube-apiserver, kube-controller-manager and kube-scheduler (comma separated Gate=true|false)")
	f.BoolVar(&o.packNodes, "pack-nodes", false, "have kube-scheduler fill nodes up (NodeResourcesFit with MostAllocated), as clusters that save cost do")
	f.StringVar(&o.auditLog, "audit-log", "", "write an audit log at level Metadata to this `FILE`, as JSON lines")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "give up when the cluster is not ready by then")
	f.BoolVar(&o.dieWithParent, "die-with-parent", true, "stop when the process that started this one ends; =false to outlive a script or a make recipe")
	_ = cmd.MarkFlagRequired("dir")
	return cmd
}

// complete makes paths absolute, parses and checks; it reports all that is wrong.
func (o *upOptions) complete() error {
	var wrong []error
	for _, path := range []*string{&o.dir, &o.auditLog} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		wrong = append(wrong, err)
		*path = absolute
	}
	if o.nodes.workers < 0 || o.nodes.controlPlanes < 0 || o.nodes.images < 0 {
		wrong = append(wrong, errors.New("a number of nodes or images cannot be negative"))
	}
	if o.nodes.zones < 0 || o.nodes.zones > 26 {
		wrong = append(wrong, fmt.Errorf("--zones %d: must be 0 to 26", o.nodes.zones))
	}
	if o.podsPerNode < 0 || o.podsPerNode > 110 {
		wrong = append(wrong, fmt.Errorf("--pods-per-node %d: must be 0 to 110, which is what a node holds", o.podsPerNode))
	}
	if o.port < 0 || o.port > 65535 {
		wrong = append(wrong, fmt.Errorf("--port %d: must be 0 to 65535", o.port))
	}
	if problems := validation.IsDNS1123Subdomain(o.nodes.prefix + "01"); len(problems) > 0 {
		wrong = append(wrong, fmt.Errorf("--node-prefix %q: %s", o.nodes.prefix, strings.Join(problems, "; ")))
	}
	labels, err := parseLabels(o.nodeLabels)
	o.nodes.labels = labels
	return errors.Join(append(wrong, err)...)
}

func parseLabels(pairs []string) (map[string]string, error) {
	labels := map[string]string{}
	var wrong []error
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if !ok {
			problems = []string{"must be KEY=VALUE"}
		}
		if len(problems) > 0 {
			wrong = append(wrong, fmt.Errorf("--node-labels %q: %s", pair, strings.Join(problems, "; ")))
		}
		labels[key] = value
	}
	return labels, errors.Join(wrong...)
}

// errInterrupted ends an `up` that was told to stop before it was ready.
var errInterrupted = errors.New("stopped before the cluster was ready")

func runUp(ctx context.Context, o upOptions, stdout, stderr io.Writer) (err error) {
	// Whoever started us may have stopped reading; that is no reason to die
	// in the middle of stopping the components.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stopSignals := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stopSignals()
	if o.dieWithParent {
		ctx = withParent(ctx, os.Getppid())
	}

	l := layout{o.dir}
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return fmt.Errorf("create the cluster's directory: %w", err)
	}
	pid, err := acquirePIDFile(l.pidFile())
	if err != nil {
		return fmt.Errorf("%s: %w", l.dir, err)
	}
	defer func() { err = errors.Join(err, pid.release()) }()

	c, err := newCluster(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer c.stop()
	if err := c.start(); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "ready kubeconfig=%s server=%s\n", l.kubeconfig(), c.ports.apiServer.url())
	return c.wait()
}

// withParent ends ctx when this process is handed to another parent. The
// kernel's own signal for that is of no use here: it comes when the thread that
// started us ends, which in a Go program may be long before the program does.
func withParent(ctx context.Context, parent int) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if os.Getppid() != parent {
					cancel()
					return
				}
			}
		}
	}()
	return ctx
}
