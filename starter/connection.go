package starter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"drydock/api"
	"drydock/config"
	"drydock/config/temporalenv"
)

// globalFlags are the persistent flags: where Temporal and Kubernetes are.
type globalFlags struct {
	address, namespace, profile string
	cluster, taskQueue          string
	kubeconfig, kubeContext     string
}

func (g *globalFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&g.address, "address", "", "Temporal server, host:port (env TEMPORAL_ADDRESS)")
	flags.StringVar(&g.namespace, "namespace", "", "Temporal namespace (env TEMPORAL_NAMESPACE)")
	flags.StringVar(&g.profile, "profile", "", "profile of Temporal's configuration file (env TEMPORAL_PROFILE)")
	flags.StringVar(&g.cluster, "cluster", "", "name of the cluster, as in the worker's configuration (env "+envCluster+")")
	flags.StringVar(&g.taskQueue, "task-queue", "", "task queue of the workers, without the cluster (env "+envTaskQueue+`, default "`+api.DefaultTaskQueue+`")`)
	flags.StringVar(&g.kubeconfig, "kubeconfig", "", "kubeconfig file (env KUBECONFIG)")
	flags.StringVar(&g.kubeContext, "context", "", "context of the kubeconfig")
}

// callTimeout bounds one call to Temporal, so that a server that is down is noticed rather than waited for.
const callTimeout = 10 * time.Second

// connection is a client of one Temporal namespace, with what hints about it have to say.
type connection struct {
	client.Client
	program            string
	address, namespace string
	cluster, taskQueue string
	by                 string
	// self is the requestor of the user's own maintenances.
	self string
	now  func() time.Time

	mu         sync.Mutex
	polledAt   time.Time
	polledThen bool
}

func (a *app) connect(ctx context.Context) (*connection, error) {
	options, err := a.temporalOptions()
	if err != nil {
		return nil, err
	}
	cluster, err := a.clusterName()
	if err != nil {
		return nil, err
	}
	queue := firstSet(a.global.taskQueue, a.env.get(envTaskQueue), api.DefaultTaskQueue)
	c := &connection{
		program: a.name, address: options.HostPort, namespace: options.Namespace,
		cluster: cluster, taskQueue: api.TaskQueue(cluster, queue), by: a.env.by(), self: a.env.requestor(), now: a.now,
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if c.Client, err = client.DialContext(ctx, options); err != nil {
		return nil, c.explain("connecting", err)
	}
	return c, nil
}

// temporalOptions reads the configuration as every other Temporal tool does, with the flags over it.
func (a *app) temporalOptions() (client.Options, error) {
	options, err := temporalenv.Options(a.env, a.global.profile)
	if err != nil {
		return options, usageError("Temporal's configuration: %w", err)
	}
	options.HostPort = firstSet(a.global.address, options.HostPort, client.DefaultHostPort)
	options.Namespace = firstSet(a.global.namespace, options.Namespace, client.DefaultNamespace)
	options.Identity = a.env.by()
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	return options, nil
}

func (a *app) clusterName() (string, error) {
	cluster := firstSet(a.global.cluster, a.env.get(envCluster))
	if err := config.ClusterName(cluster); err != nil {
		return "", usageError("cluster %w", err)
	}
	return cluster, nil
}

func firstSet(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// explain turns an error of a call to Temporal into one that says what to do next.
func (c *connection) explain(doing string, err error) error {
	var (
		noNamespace *serviceerror.NamespaceNotFound
		denied      *serviceerror.PermissionDenied
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &noNamespace):
		return hint(fmt.Errorf("the Temporal server at %s has no namespace %q", c.address, c.namespace),
			"Name another with --namespace or TEMPORAL_NAMESPACE, or create it: temporal operator namespace create -n %s", c.namespace)
	case errors.As(err, &denied), strings.Contains(err.Error(), "Unauthenticated"):
		return hint(fmt.Errorf("the Temporal server at %s refuses access to namespace %q: %w", c.address, c.namespace, err),
			"Set TEMPORAL_API_KEY, the TEMPORAL_TLS_ variables, or a profile with --profile.")
	case unreachable(err):
		return hint(fmt.Errorf("the Temporal server at %s %w: %w", c.address, errUnreachable, plainCause(err)),
			"Set its address with --address or TEMPORAL_ADDRESS, or start one: temporal server start-dev")
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// errUnreachable marks the errors that another try may not meet.
var errUnreachable = errors.New("is not reachable")

// plainCause leaves out the wrapping that repeats what explain says.
func plainCause(err error) error {
	text := err.Error()
	for _, prefix := range []string{"failed reaching server: ", "connection error: desc = "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(strings.Trim(text, `"`))
}

// unreachable tells from Temporal's errors those that another try may not meet.
func unreachable(err error) bool {
	var (
		unavailable *serviceerror.Unavailable
		deadline    *serviceerror.DeadlineExceeded
		exhausted   *serviceerror.ResourceExhausted
		canceled    *serviceerror.Canceled
	)
	return errors.As(err, &unavailable) || errors.As(err, &deadline) || errors.As(err, &exhausted) ||
		errors.As(err, &canceled) || errors.Is(err, context.DeadlineExceeded) || strings.HasPrefix(err.Error(), "failed reaching server")
}

const (
	// A poll takes at most about a minute, so a poller that was not seen for longer is gone, though the server
	// still lists it.
	pollerIsGone = 2 * time.Minute
	polledIsOld  = 2 * time.Second
)

// polled tells whether a worker polls the task queue. A failure to find out counts as yes, since it is only used
// for hints and for not asking what nobody would answer.
func (c *connection) polled(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Sub(c.polledAt) < polledIsOld {
		return c.polledThen
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := c.DescribeTaskQueue(ctx, c.taskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return true
	}
	c.polledAt, c.polledThen = now, false
	for _, poller := range answer.GetPollers() {
		if now.Sub(poller.GetLastAccessTime().AsTime()) < pollerIsGone {
			c.polledThen = true
		}
	}
	return c.polledThen
}

// noWorker is the hint for when nobody polls.
func (c *connection) noWorker() string {
	return fmt.Sprintf("no worker is polling task queue %q in namespace %q: start drydock-worker", c.taskQueue, c.namespace)
}
