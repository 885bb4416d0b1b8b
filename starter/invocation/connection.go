package invocation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/config/payloadcodec"
	"drydock.dev/drydock/config/temporalenv"
	"drydock.dev/drydock/config/tracing"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/visible"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

// globalFlags are the persistent flags: where Temporal and Kubernetes are.
type globalFlags struct {
	address, namespace, profile string
	cluster, taskQueue          string
	kubeconfig, kubeContext     string
	verbose                     bool
}

// Register adds the flags to all commands.
func (g *globalFlags) Register(flags *pflag.FlagSet) {
	flags.StringVar(&g.address, "address", "", "Temporal server, host:port (env TEMPORAL_ADDRESS)")
	flags.StringVar(&g.namespace, "namespace", "", "Temporal namespace (env TEMPORAL_NAMESPACE)")
	flags.StringVar(&g.profile, "temporal-profile", "", "profile of Temporal's configuration file (env TEMPORAL_PROFILE)")
	flags.StringVar(&g.cluster, "cluster", "", "name of the cluster, as in the worker's configuration (env "+EnvCluster+")")
	flags.StringVar(&g.taskQueue, "task-queue", "", "task queue of the workers, without the cluster (env "+envTaskQueue+`, default "`+api.DefaultTaskQueue+`")`)
	flags.StringVar(&g.kubeconfig, "kubeconfig", "", "kubeconfig file (env KUBECONFIG)")
	flags.StringVar(&g.kubeContext, "context", "", "context of the kubeconfig")
	flags.BoolVarP(&g.verbose, "verbose", "v", false, "show what the command waits for outside of a terminal too")
}

// Connection is a client of one Drydock, with what hints about it have to say.
type Connection struct {
	*client.Client
	Temporal           temporalclient.Client
	Program            string
	Address, Namespace string
	// ShowsCredentials: the server is shown who calls.
	ShowsCredentials bool
	// self is the requestor of the user's own maintenances. claimed: it comes from the environment, and not from the user's name.
	self    string
	claimed bool
	Clock   func() time.Time
	traces  *tracing.Traces
	// untraced is what is told on stderr at the end.
	untraced untraced
	stderr   io.Writer
}

// Close closes the connection to Temporal, and sends the trace that begins with the command.
func (c *Connection) Close() {
	c.Temporal.Close()
	c.stopTraces()
}

// tracesStopTime is how long a command waits for a collector that is away.
const tracesStopTime = time.Second

func (c *Connection) stopTraces() {
	c.traces.Stop(tracesStopTime)
	if why := c.untraced.Load(); why != nil {
		fmt.Fprintf(c.stderr, "Warning: traces are not sent: %s\n", terminal.OneLine((*why).Error()))
	}
}

// untraced keeps the first reason why traces are not sent. It is told when the command has ended.
type untraced struct{ atomic.Pointer[error] }

// Untraced makes it a tracing.Reporter.
func (u *untraced) Untraced(why error) { u.CompareAndSwap(nil, &why) }

// Connect connects to the Drydock that flags, environment and files name.
func (a *App) Connect(ctx context.Context) (*Connection, error) {
	options, err := a.temporalOptions()
	if err != nil {
		return nil, err
	}
	cluster, err := a.ClusterName()
	if err != nil {
		return nil, err
	}
	c := &Connection{
		Program: a.Name, Address: options.HostPort, Namespace: options.Namespace,
		self: a.Env.Requestor(), claimed: a.Env.Get(EnvRequestor) != "", Clock: a.Clock, stderr: a.Stderr,
	}
	c.ShowsCredentials = temporalenv.ShowsCredentials(options)
	ctx, cancel := context.WithTimeout(ctx, client.CallTimeout)
	defer cancel()
	c.traces = tracing.Start(ctx, "drydock", "", &c.untraced)
	c.traces.Trace(&options)
	if c.Temporal, err = temporalclient.DialContext(ctx, options); err != nil {
		c.stopTraces()
		return nil, c.Explain(&client.CallError{Doing: "connecting", Err: err})
	}
	c.Client = client.New(c.Temporal, client.Options{
		Cluster: cluster, TaskQueue: a.TaskQueue(), Namespace: options.Namespace,
		By: a.Env.by(), Requestor: c.self, Now: a.Clock,
	})
	return c, nil
}

// Temporal is the address and the namespace of the Temporal that is meant.
func (a *App) Temporal() (address, namespace string, err error) {
	options, err := a.temporalOptions()
	return options.HostPort, options.Namespace, err
}

// TaskQueue is the name of the workers' task queue, without the cluster, by flag or environment; it may be empty.
func (a *App) TaskQueue() string { return cmp.Or(a.Global.taskQueue, a.Env.Get(envTaskQueue)) }

// temporalOptions reads the configuration as every other Temporal tool does, with the flags over it.
func (a *App) temporalOptions() (temporalclient.Options, error) {
	options, err := temporalenv.Options(a.Env, a.Global.profile)
	if err != nil {
		return options, exit.UsageError("Temporal's configuration: %w", err)
	}
	options.HostPort = cmp.Or(a.Global.address, options.HostPort, temporalclient.DefaultHostPort)
	options.Namespace = cmp.Or(a.Global.namespace, options.Namespace, temporalclient.DefaultNamespace)
	options.Identity = a.Env.by()
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	return options, nil
}

// ClusterName is the name of the cluster by flag or environment; it may be empty.
func (a *App) ClusterName() (string, error) {
	cluster := cmp.Or(a.Global.cluster, a.Env.Get(EnvCluster))
	if err := spec.ClusterName(cluster); err != nil {
		return "", exit.UsageError("cluster %w", err)
	}
	return cluster, nil
}

// SchedulerState asks the scheduler for its state, with the first of those that wait, or with client.AllPending.
func (c *Connection) SchedulerState(ctx context.Context, pending int) (api.State, error) {
	state, err := c.Scheduler().State(ctx, pending)
	return state, c.Explain(err)
}

// Explain turns an error of the client into one that says what to do next.
func (c *Connection) Explain(err error) error {
	var (
		call   *client.CallError
		denied *serviceerror.PermissionDenied
	)
	switch {
	case errors.Is(err, client.ErrInvalid):
		return exit.UsageError("%w", err)
	case exit.Has[*client.NoSchedulerError](err):
		return exit.Hint(err, "Workers start it within half a minute: start drydock-worker, or name its cluster with --cluster.")
	case exit.Has[*client.BusyError](err):
		return exit.Hint(err, `"%s doctor" shows what is stuck.`, c.Program)
	case err != nil && payloadcodec.IsEncrypted(err):
		return WithoutKeys(err)
	case !errors.As(err, &call):
		return err
	case exit.Has[*serviceerror.NamespaceNotFound](err):
		return exit.Hint(fmt.Errorf("the Temporal server at %s has no namespace %q", c.Address, c.Namespace),
			`Name another with --namespace or TEMPORAL_NAMESPACE, or create it: "%s setup --apply", or "temporal operator namespace create -n %s".`, c.Program, c.Namespace)
	case errors.As(err, &denied), strings.Contains(call.Err.Error(), "Unauthenticated"):
		why := ""
		if denied != nil && denied.Reason != "" {
			why = ": " + visible.Line(bounds.Cut(denied.Reason, bounds.Text))
		}
		return exit.Hint(
			fmt.Errorf("the Temporal server at %s refuses access to namespace %q: %s: %w%s", c.Address, c.Namespace, call.Doing, call.Err, why),
			"%s", cmp.Or(temporalenv.Advice(call.Err), temporalenv.AdviceOfKey))
	case errors.Is(call, client.ErrUnreachable):
		return exit.Hint(exit.InWords(fmt.Sprintf("the Temporal server at %s is not reachable: %s", c.Address, plainCause(call)), err),
			"%s", cmp.Or(temporalenv.Advice(call.Err), "Set its address with --address or TEMPORAL_ADDRESS. What `make demo KEEP=1` or `make up` has started says its address."))
	default:
		return err
	}
}

// WithoutKeys says of an error how to name the keys that payloads are encrypted with, where they are what is missing.
func WithoutKeys(err error) error {
	if err == nil || !payloadcodec.IsEncrypted(err) {
		return err
	}
	return exit.Hint(err, "Payloads are encrypted here: name the file of the workers' keys with %s.", payloadcodec.VariableKeysFile)
}

// plainCause says in words what a failed call met, without the wrapping that repeats what explain says.
func plainCause(err error) string {
	var call *client.CallError
	if errors.As(err, &call) {
		err = call.Err
	}
	text := err.Error()
	switch {
	case exit.Has[*serviceerror.DeadlineExceeded](err), errors.Is(err, context.DeadlineExceeded), strings.Contains(text, context.DeadlineExceeded.Error()):
		return "no answer in time"
	case exit.Has[*serviceerror.Canceled](err), strings.Contains(text, "RST_STREAM"), strings.Contains(text, "transport is closing"):
		return "the connection broke off"
	}
	for _, prefix := range []string{"failed reaching server: ", "connection error: desc = "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.Trim(text, `"`)
}
