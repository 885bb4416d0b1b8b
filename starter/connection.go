package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"drydock/api"
	"drydock/client"
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

// connection is a client of one Drydock, with what hints about it have to say.
type connection struct {
	*client.Client
	temporal           temporalclient.Client
	program            string
	address, namespace string
	// self is the requestor of the user's own maintenances.
	self string
	now  func() time.Time
}

// Close closes the connection to Temporal.
func (c *connection) Close() { c.temporal.Close() }

func (a *app) connect(ctx context.Context) (*connection, error) {
	options, err := a.temporalOptions()
	if err != nil {
		return nil, err
	}
	cluster, err := a.clusterName()
	if err != nil {
		return nil, err
	}
	c := &connection{program: a.name, address: options.HostPort, namespace: options.Namespace, self: a.env.requestor(), now: a.now}
	ctx, cancel := context.WithTimeout(ctx, client.CallTimeout)
	defer cancel()
	if c.temporal, err = temporalclient.DialContext(ctx, options); err != nil {
		return nil, c.explain(&client.CallError{Doing: "connecting", Err: err})
	}
	c.Client = client.New(c.temporal, client.Options{
		Cluster: cluster, TaskQueue: cmp.Or(a.global.taskQueue, a.env.get(envTaskQueue)), Namespace: options.Namespace,
		By: a.env.by(), Requestor: c.self, Now: a.now,
	})
	return c, nil
}

// temporalOptions reads the configuration as every other Temporal tool does, with the flags over it.
func (a *app) temporalOptions() (temporalclient.Options, error) {
	options, err := temporalenv.Options(a.env, a.global.profile)
	if err != nil {
		return options, usageError("Temporal's configuration: %w", err)
	}
	options.HostPort = cmp.Or(a.global.address, options.HostPort, temporalclient.DefaultHostPort)
	options.Namespace = cmp.Or(a.global.namespace, options.Namespace, temporalclient.DefaultNamespace)
	options.Identity = a.env.by()
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	return options, nil
}

func (a *app) clusterName() (string, error) {
	cluster := cmp.Or(a.global.cluster, a.env.get(envCluster))
	if err := config.ClusterName(cluster); err != nil {
		return "", usageError("cluster %w", err)
	}
	return cluster, nil
}

// schedulerState asks the scheduler for its state, with the first of those that wait, or with client.AllPending.
func (c *connection) schedulerState(ctx context.Context, pending int) (api.State, error) {
	state, err := c.Scheduler().State(ctx, pending)
	return state, c.explain(err)
}

// explain turns an error of the client into one that says what to do next.
func (c *connection) explain(err error) error {
	var (
		call        *client.CallError
		noScheduler *client.NoSchedulerError
		noNamespace *serviceerror.NamespaceNotFound
		denied      *serviceerror.PermissionDenied
	)
	switch {
	case errors.Is(err, client.ErrInvalid):
		return usageError("%w", err)
	case errors.As(err, &noScheduler):
		return hint(err, "Workers start it within half a minute: start drydock-worker, or name its cluster with --cluster.")
	case !errors.As(err, &call):
		return err
	case errors.As(err, &noNamespace):
		return hint(fmt.Errorf("the Temporal server at %s has no namespace %q", c.address, c.namespace),
			"Name another with --namespace or TEMPORAL_NAMESPACE, or create it: temporal operator namespace create -n %s", c.namespace)
	case errors.As(err, &denied), strings.Contains(call.Err.Error(), "Unauthenticated"):
		return hint(fmt.Errorf("the Temporal server at %s refuses access to namespace %q: %w", c.address, c.namespace, call.Err),
			"Set TEMPORAL_API_KEY, the TEMPORAL_TLS_ variables, or a profile with --profile.")
	case errors.Is(call, client.ErrUnreachable):
		return hint(&inWords{fmt.Sprintf("the Temporal server at %s is not reachable: %s", c.address, plainCause(call)), err},
			"Set its address with --address or TEMPORAL_ADDRESS, or start one: temporal server start-dev")
	default:
		return err
	}
}

// inWords is an error with a text for people.
type inWords struct {
	text string
	err  error
}

func (e *inWords) Error() string { return e.text }
func (e *inWords) Unwrap() error { return e.err }

// plainCause leaves out the wrapping that repeats what explain says.
func plainCause(err error) string {
	var call *client.CallError
	if errors.As(err, &call) {
		err = call.Err
	}
	text := err.Error()
	for _, prefix := range []string{"failed reaching server: ", "connection error: desc = "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.Trim(text, `"`)
}
