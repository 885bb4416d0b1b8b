// Package worker is the process that runs Drydock's workflows and activities.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"drydock.dev/drydock/activities/caller"
	checkactivity "drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/activities/doctor"
	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/heartbeat"
	lockstepactivity "drydock.dev/drydock/activities/lockstep"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/nodeevent"
	planactivity "drydock.dev/drydock/activities/plan"
	policyactivity "drydock.dev/drydock/activities/policy"
	"drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/activities/windows"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/job"
	"drydock.dev/drydock/config"
	"drydock.dev/drydock/config/namespace"
	"drydock.dev/drydock/config/temporalenv"
	"drydock.dev/drydock/config/tracing"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/nexus"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/policy"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/worker/metrics"
	"drydock.dev/drydock/worker/takeover"
	"drydock.dev/drydock/workflows"
)

const (
	// stopTimeout is how long a stopping worker lets activities hand over. A drain does so at once.
	stopTimeout = 15 * time.Second
	// heartbeats bounds how stale progress and cancellations may be.
	heartbeats = 2 * time.Second
	// pollers keep a hand-over from waiting for a free poller while other nodes are worked on.
	pollers = 10
	// tracesStopTime is how long the last traces may take to be sent.
	tracesStopTime = 3 * time.Second
	// namespacePause is the pause between two tries to read the namespace at the start.
	namespacePause = 2 * time.Second
)

// Options are what a worker needs besides its configuration.
type Options struct {
	Config config.Config
	// Logger writes the worker's log; Level changes what it writes while it runs.
	Logger *slog.Logger
	Level  *slog.LevelVar
	// Version is shown by Temporal as the worker's identity, and in the log.
	Version string
	// Temporal are the connection settings; nil takes them from the environment.
	Temporal *client.Options

	// acks know which heartbeats Temporal took, phaseCounts are of maintenances by what they do.
	acks        *heartbeat.Acks
	phaseCounts *cluster.PhaseCounts
	// home is the namespace that it began with.
	home execution.Namespace
	// limiter bounds the evictions, which Events give way to.
	limiter *drain.Limiter
}

// Run works until ctx ends, then stops gracefully. It waits for a Temporal server that is not there yet.
func Run(ctx context.Context, o Options) error {
	o.acks, o.phaseCounts, o.limiter = heartbeat.NewAcks(), &cluster.PhaseCounts{}, drain.NewLimiter(o.Config.Kubernetes.EvictionsPerSecond)
	kube, podEvents, err := clusterClients(o)
	if err != nil {
		return err
	}
	if podEvents != nil {
		defer podEvents.Stop()
	}
	registry := prometheus.NewRegistry()
	measured, err := ownMetrics(o, registry)
	if err != nil {
		return err
	}
	state := &health{}
	served, err := serve(o, state, registry)
	if err != nil {
		return err
	}
	defer served.stop()

	options, traces, err := temporalOptions(ctx, o)
	if err != nil {
		return err
	}
	defer traces.Stop(tracesStopTime)
	options.MetricsHandler = measured
	temporal, err := temporalenv.Dial(ctx, options, o.Logger)
	if err != nil {
		return err
	}
	defer temporal.Close()

	home, err := describeNamespace(ctx, temporal, options.Namespace, o.Logger)
	if err != nil {
		return err
	}
	o.home = home
	acts, err := newActivities(o, kube, connection{temporal, options.Namespace, home}, podEvents, registry)
	if err != nil {
		return err
	}
	defer acts.Nodes.Events.Stop()
	if err := acts.Deliveries.Senders.CheckSecrets(); err != nil {
		o.Logger.Warn("channels get nothing before their secrets can be read", "error", err)
	}
	warnOfRetention(o, options.Namespace, home)
	warnOfOpenServer(o, options)
	warnOfProfiles(o)
	if err := acts.Settings.Register(ctx); err != nil {
		o.Logger.Warn("maintenances run without search attributes (drydock setup says how to register them)", "error", err)
	}
	metrics.NewState(registry, stateMetrics(o, temporal, options.Namespace))
	return work(ctx, o, temporal, options, acts, state, registry)
}

// work polls for tasks until ctx ends.
func work(
	ctx context.Context, o Options, temporal client.Client, options client.Options, acts workflows.Activities, state *health, registry prometheus.Registerer,
) error {
	stopPage, err := servePage(o, temporal, options.Namespace, acts.Cluster.Nodes)
	if err != nil {
		return err
	}
	defer stopPage()
	queue := api.TaskQueue(o.Config.Cluster, o.Config.TaskQueue)
	refused := make(chan error, 1+len(api.Lanes))
	self := takeover.Worker{
		Temporal: temporal, Nodes: acts.Cluster.Nodes, Logger: o.Logger, Namespace: options.Namespace, TaskQueue: queue,
		Identity: takeover.Identity(options.Identity, queue), Started: time.Now(),
	}
	workers, err := startWorkers(o, temporal, self, acts, func(err error) { refused <- err })
	if err != nil {
		return err
	}
	o.Logger.Info("worker started", "taskQueue", queue, "namespace", options.Namespace, "temporal", options.HostPort, "version", o.Version)
	group, ctx := errgroup.WithContext(ctx)
	for _, background := range []func() error{
		func() error { return keepScheduler(ctx, o, temporal, options.Namespace, queue, registry) },
		func() error {
			keepHealthChecks(ctx, o, temporal, options.Namespace, queue)
			return nil
		},
		func() error { return untilRefused(ctx, refused) },
		func() error {
			self.Run(ctx)
			return nil
		},
		func() error {
			warnIfNotCurrent(ctx, o, temporal)
			return nil
		},
	} {
		group.Go(background)
	}
	state.ready.Store(true)
	<-ctx.Done()
	state.ready.Store(false)
	o.Logger.Info("worker stopping: activities hand over", "timeout", stopTimeout)
	stopAll(workers)
	o.Logger.Info("worker stopped")
	return group.Wait()
}

// startWorkers polls the task queue for everything, and each lane beside it for its activities. refused gets a message where the server
// lets one of them poll no more.
func startWorkers(
	o Options, temporal client.Client, as takeover.Worker, acts workflows.Activities, refused func(error),
) ([]sdkworker.Worker, error) {
	queue := as.TaskQueue
	callers := caller.New(temporal, queue)
	options := workerOptions(o, callers, refused)
	options.Identity = as.Identity
	w := sdkworker.New(temporal, queue, options)
	workflows.Register(w, acts)
	nexus.Register(w, o.Config.Nexus, o.Config.Cluster)
	workers := []sdkworker.Worker{w}
	for _, lane := range api.Lanes {
		options := workerOptions(o, callers, refused)
		options.Identity, options.DisableWorkflowWorker = as.Identity, true // by its identity other workers know that it lives
		beside := sdkworker.New(temporal, lane.Queue(queue), options)
		workflows.RegisterActivities(beside, acts)
		workers = append(workers, beside)
	}
	for i, w := range workers {
		if err := w.Start(); err != nil {
			stopAll(workers[:i])
			return nil, fmt.Errorf("starting the worker: %w", err)
		}
	}
	return workers, nil
}

// stopAll stops them at once: each gives its activities time to hand over.
func stopAll(workers []sdkworker.Worker) {
	var under sync.WaitGroup
	for _, w := range workers {
		under.Go(w.Stop)
	}
	under.Wait()
}

// clusterClients are what talks to the API server; podEvents is nil if no Events are recorded on pods.
func clusterClients(o Options) (kube kubeClient, podEvents *k8s.PodEvents, err error) {
	reach := k8s.Options{
		Kubeconfig: o.Config.Kubernetes.Kubeconfig, Context: o.Config.Kubernetes.Context,
		QPS: o.Config.Kubernetes.QPS, Burst: o.Config.Kubernetes.Burst, UserAgent: "drydock-worker/" + o.Version,
	}
	if kube, err = k8s.NewClient(reach); err != nil || !o.Config.Kubernetes.PodEvents {
		return kube, nil, err
	}
	// A client of their own, so that no eviction waits behind them.
	events, err := k8s.NewClient(reach)
	if err != nil {
		return nil, nil, err
	}
	return kube, k8s.NewPodEvents(events, o.Logger, o.limiter), nil
}

// longestDecision is how long one workflow task may compute. The largest decisions, of dozens of plans over 15,000 nodes, take about a
// second on a busy machine, and the SDK's default reports a deadlock after one.
const longestDecision = 5 * time.Second

func workerOptions(o Options, callers *caller.Interceptor, refused func(error)) sdkworker.Options {
	return sdkworker.Options{
		OnFatalError:                            refused,
		DeploymentOptions:                       deployment(o),
		Interceptors:                            append(workflows.Interceptors(), callers),
		WorkerStopTimeout:                       stopTimeout,
		BackgroundActivityContext:               o.acks.Context(context.Background()),
		MaxHeartbeatThrottleInterval:            heartbeats,
		DeadlockDetectionTimeout:                longestDecision,
		MaxConcurrentActivityExecutionSize:      5000,
		MaxConcurrentActivityTaskPollers:        pollers,
		MaxConcurrentWorkflowTaskPollers:        pollers,
		MaxConcurrentWorkflowTaskExecutionSize:  100,
		MaxConcurrentLocalActivityExecutionSize: 100,
	}
}

// connection is the way to Temporal: a client, and the namespace with its name.
type connection struct {
	client    client.Client
	namespace string
	home      execution.Namespace
}

// attributeNames are the search attributes that workflows set.
func attributeNames() []string {
	var names []string
	for _, attribute := range api.SearchAttributes {
		names = append(names, attribute.Name)
	}
	return names
}

func newActivities(o Options, kube kubeClient, to connection, podEvents *k8s.PodEvents, registry prometheus.Registerer) (workflows.Activities, error) {
	c, temporal, namespace := o.Config, to.client, to.namespace
	events := nodeevent.NewRecorder(kube, c.Kubernetes.Events, o.Logger, o.limiter)
	all, sources := k8s.NewNodes(kube), k8s.NewSources(kube)
	runner, err := checks.New(c.ChecksAndHooks(), kube, o.Version)
	if err != nil {
		return workflows.Activities{}, err
	}
	runner.LookAfter(kinds().Checks, checks.Environment{Kubernetes: kube})
	senders, err := notify.New(c.Channels, nodeevent.Channel{Client: kube}, o.Version)
	if err != nil {
		return workflows.Activities{}, err
	}
	groups, err := schedule.NewGrouper(c.Scheduler.Groups)
	if err != nil {
		return workflows.Activities{}, err
	}
	rules, err := policy.Compile(c.Policy)
	if err != nil {
		return workflows.Activities{}, err
	}
	own := c.ChecksAndHooks().Namespaces()
	openings, err := windows.New(c.Windows)
	if err != nil {
		return workflows.Activities{}, err
	}
	left := job.Left{Kubernetes: kube, Namespaces: own}
	starters := newStarters(c.Kubernetes, kube, to)
	judge := &policyactivity.Judge{Policy: rules, Client: kube, Starters: starters}
	sinks := audit.New(c.Audit, o.Logger)
	return workflows.Activities{
		Nodes: &node.Activities{
			Client: kube, Temporal: temporal, Home: to.home, Events: events, Conditions: c.Kubernetes.NodeConditions, Policy: judge, Jobs: left, Marks: node.Marks(c.Kubernetes.Marks),
		},
		Drains: &drain.Activities{
			Client: kube, Temporal: temporal, Nodes: all, Sources: sources, Metrics: drain.NewMetrics(registry),
			Limiter: o.limiter, PodEvents: podEvents, JobNamespaces: own, Pod: c.Kubernetes.PodUID,
		},
		Cluster: &cluster.Activities{Nodes: all, Temporal: temporal, Home: to.home, Pods: k8s.NewNodePods(kube), Evictions: o.limiter, PhaseCounts: o.phaseCounts},
		Preflights: &preflight.Activities{
			Client: kube, Temporal: temporal, Budgets: sources, Capacity: k8s.NewCapacityReader(kube), JobNamespaces: own,
			LeaseNamespace: c.Health.LeaseNamespace,
		},
		Executions: &execution.Activities{Temporal: temporal, Namespace: namespace, Home: to.home, Nodes: all, Leases: nodeLeases(c.Health, kube)},
		Doctors:    &doctor.Activities{Client: kube, Events: events, Temporal: temporal, Namespace: namespace, Home: to.home, Jobs: left, ClusterAPI: c.Kubernetes.Marks.ClusterAPI},
		Settings: &settings.Activities{
			Temporal: temporal, Namespace: namespace, Starters: starters, Attributes: attributeNames(), Defaults: c.Defaults,
			Channels: c.Channels.Plans(), DefaultChannels: c.Channels.Defaults(), Runner: runner, Client: kube, Groups: groups,
			Judge: judge, Windows: slices.Sorted(maps.Keys(c.Windows)),
			Audited: len(sinks.Names()) > 0, Conditions: c.Kubernetes.NodeConditions,
		},
		Windows: openings, Health: healthActivities(c.Health, all, to), Profiles: profileActivities(o, kube, to, events, registry),
		Checks: &checkactivity.Activities{Client: kube, Temporal: temporal, Runner: runner},
		Plans:  &planactivity.Activities{Nodes: all, Temporal: temporal, Namespace: namespace}, Lockstep: &lockstepactivity.Activities{Temporal: temporal, Namespace: namespace},
		Policies: &policyactivity.Activities{Judge: judge, Temporal: temporal, Namespace: namespace},
		Deliveries: &delivery.Activities{
			Temporal: temporal, Senders: senders, Sinks: sinks, Metrics: delivery.NewMetrics(registry, c.Channels.KindsByName()),
		},
	}, nil
}

// newStarters know who started workflows.
func newStarters(c config.Kubernetes, kube kubeClient, to connection) *execution.Starters {
	starters := execution.NewStarters(to.client, to.namespace)
	if c.VerifiedObjects {
		starters.Objects = &execution.Objects{Kubernetes: kube}
	}
	return starters
}

// describeNamespace asks which namespace this is, until the server answers: only the ID shows which marks on nodes are another Drydock's.
func describeNamespace(ctx context.Context, temporal client.Client, name string, logger *slog.Logger) (execution.Namespace, error) {
	for {
		home, err := execution.DescribeNamespace(ctx, temporal, name)
		if err == nil {
			return home, nil
		}
		if ctx.Err() != nil {
			return home, fmt.Errorf("asking for the Temporal namespace: %w", errors.Join(ctx.Err(), err))
		}
		message, next := "not known which Temporal namespace this is; trying again", cmp.Or(temporalenv.Advice(err), "TEMPORAL_NAMESPACE names it")
		if namespace.Absent(err) {
			message, next = "there is no such Temporal namespace; trying again", "drydock setup --apply creates it"
		}
		logger.Warn(message, "namespace", name, "error", err, "next", next, "again", namespacePause)
		select {
		case <-time.After(namespacePause):
		case <-ctx.Done():
		}
	}
}

func temporalOptions(ctx context.Context, o Options) (client.Options, *tracing.Traces, error) {
	options, err := temporalenv.Process(o.Temporal, o.Logger)
	if err != nil {
		return options, nil, err
	}
	options.Logger = log.NewStructuredLogger(slog.New(calm{o.Logger.Handler()}))
	// results comes first, so that what it sends again has a renewed API key.
	options.ConnectionOptions.DialOptions = slices.Concat([]grpc.DialOption{grpc.WithChainUnaryInterceptor(results{ctx}.Intercept)},
		options.ConnectionOptions.DialOptions, []grpc.DialOption{grpc.WithChainUnaryInterceptor(o.acks.Intercept)})
	traces := tracing.Start(ctx, "drydock-worker", o.Version, tracing.Log{Logger: o.Logger})
	traces.Trace(&options)
	return options, traces, nil
}
