// Package bridge runs the controllers that mirror Kubernetes objects to Drydock's workflows.
//
// Workflows call it: one that an object asked for has the activity api.ReconcileObject done on the bridge's own task queue after each
// change (package calls). Beside that, the controllers look at all objects when they start, and at each that is not at its end every ten
// minutes, so that nothing depends on a call.
package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"go.temporal.io/sdk/activity"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/calls"
	"drydock.dev/drydock/bridge/health"
	"drydock.dev/drydock/bridge/kep"
	kepobjects "drydock.dev/drydock/bridge/kep/objects"
	"drydock.dev/drydock/bridge/lease"
	"drydock.dev/drydock/bridge/maintenance"
	"drydock.dev/drydock/bridge/maintenanceoperator"
	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/bridge/nodehealthcheck"
	"drydock.dev/drydock/bridge/pika"
	"drydock.dev/drydock/bridge/plan"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/config/temporalenv"
	"drydock.dev/drydock/config/tracing"
	"drydock.dev/drydock/rules/migration"
)

// Options are what a bridge runs with.
type Options struct {
	// Cluster and TaskQueue are those of the workers' configuration.
	Cluster, TaskQueue string
	// Metrics and Probes are the addresses that serve /metrics, and /healthz and /readyz; "0" is none.
	Metrics, Probes string
	// LeaderElection has one bridge work at a time. LeaseNamespace is where its Lease is; empty is the pod's own.
	LeaderElection bool
	LeaseNamespace string
	// Approvals lets annotations approve and deny. It needs the admission policies of deploy/kubernetes/bridge.
	Approvals bool
	Logger    *slog.Logger
	Version   string
	// MaintenanceOperator says whether and how the objects of maintenance-operator are served.
	MaintenanceOperator maintenanceoperator.Options
	// KEP has the bridge serve KEP-4212's objects (deploy/kubernetes/kep).
	KEP bool
	// PIKA says whether and how the objects of PIKA are served.
	PIKA pika.Options
	// NodeHealthCheck is the namespace of medik8s' node-healthcheck-operator, whose objects are served in its place; empty serves none.
	NodeHealthCheck string
	// Kubernetes and Temporal say how the servers are reached; where they are nil, the environment does.
	Kubernetes *rest.Config
	Temporal   *temporalclient.Options
}

const (
	// concurrent is how many objects of a kind are reconciled at a time. Most of it is waiting for Temporal.
	concurrent = 16
	// maxCalls bounds the calls of workflows that are answered at a time. Each takes a second and next to nothing else.
	maxCalls = 5000
	// stopTimeout is how long calls may take to end.
	stopTimeout = 5 * time.Second
)

// Run works until ctx ends. It waits for a Temporal server that is not there yet.
func Run(ctx context.Context, o Options) error {
	ctrl.SetLogger(logr.FromSlogHandler(o.Logger.Handler()))
	klog.SetSlogLogger(o.Logger.With("logger", "client-go"))
	options, traces, err := temporalOptions(ctx, o)
	if err != nil {
		return err
	}
	defer traces.Stop(stopTimeout)
	temporal, err := temporalenv.Dial(ctx, options, o.Logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	m, err := newManager(o)
	if err != nil {
		return err
	}
	called := calls.New()
	drydock := client.Options{Cluster: o.Cluster, TaskQueue: o.TaskQueue, Namespace: options.Namespace}
	var missing []*kindController
	kinds := []mirror.Kind{maintenance.Kind{}, plan.Kind{}, health.Kind{}}
	if o.KEP {
		kinds = append(kinds, kep.Kind{})
	}
	for _, kind := range kinds {
		c := &kindController{resource: kind.Resource(), object: kind.New(), manager: m, queue: called.Of(kind.Resource())}
		c.reconciler = &mirror.Reconciler{
			Kind: kind, Kube: m.GetClient(), Live: m.GetAPIReader(), Events: m.GetEventRecorder("drydock-bridge"), Approvals: o.Approvals,
			Temporal: temporal, Drydock: drydock,
		}
		added, err := c.add()
		if err != nil {
			return err
		}
		if !added {
			o.Logger.Warn("no definition is installed: its objects are followed once there is one", "kind", c.resource)
			missing = append(missing, c)
		}
	}
	if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error { return addLater(ctx, missing, o.Logger) })); err != nil {
		return err
	}
	places, err := inPlaces(o, m, called, temporal, drydock)
	if err != nil {
		return err
	}
	for _, p := range places {
		if err := m.Add(manager.RunnableFunc(p.serve)); err != nil {
			return err
		}
	}
	// The leader alone takes calls: the others have no objects to reconcile.
	if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error { return answer(ctx, o, temporal, called) })); err != nil {
		return err
	}
	o.Logger.Info("bridge starting", "cluster", o.Cluster, "namespace", options.Namespace, "temporal", options.HostPort, "version", o.Version)
	return m.Start(ctx)
}

// inPlace serves the objects of an operator once that operator does not any more: its lease says so.
type inPlace struct {
	operator, namespace, lease string
	leases                     coordination.LeasesGetter
	controllers                []*kindController
	logger                     *slog.Logger
}

// inPlaces are those that the options name.
func inPlaces(o Options, m manager.Manager, called *calls.Calls, temporal temporalclient.Client, drydock client.Options) (all []inPlace, err error) {
	leases, err := coordination.NewForConfig(m.GetConfig())
	if err != nil {
		return nil, err
	}
	as := func(resource string) *client.Client {
		drydock.By = v1alpha1.Said(resource)
		return client.New(temporal, drydock)
	}
	events := m.GetEventRecorder("drydock-bridge")
	if namespace := o.MaintenanceOperator.Namespace; namespace != "" {
		limits := &maintenanceoperator.Limits{Kube: m.GetClient(), Events: events, Scheduler: as(objects.ConfigResource).Scheduler(), Namespace: namespace}
		all = append(all, inPlace{"maintenance-operator", namespace, migration.LeaseOfMaintenanceOperator, leases, []*kindController{
			{
				resource: objects.Resource, object: &objects.NodeMaintenance{}, manager: m, queue: called.Of(objects.Resource),
				reconciler: &maintenanceoperator.Reconciler{
					Kube: m.GetClient(), Live: m.GetAPIReader(), Events: events, Maintenances: as(objects.Resource),
					Input: json.RawMessage(o.MaintenanceOperator.Input), Limits: limits,
				},
			},
			{
				resource: objects.ConfigResource, object: &objects.MaintenanceOperatorConfig{}, manager: m,
				queue: called.Of(objects.ConfigResource), reconciler: limits,
			},
		}, o.Logger})
	}
	if o.PIKA.Namespace != "" {
		all = append(all, inPlace{"PIKA", o.PIKA.Namespace, migration.LeaseOfPIKA, leases, []*kindController{{
			resource: pika.Resource, object: pika.New(), manager: m, queue: called.Of(pika.Resource),
			reconciler: &pika.Reconciler{Kube: m.GetClient(), Live: m.GetAPIReader(), Events: events, Drydock: as(pika.Resource), Options: o.PIKA},
		}}, o.Logger})
	}
	if o.NodeHealthCheck != "" {
		all = append(all, inPlace{"node-healthcheck-operator", o.NodeHealthCheck, migration.LeaseOfMedik8s, leases, []*kindController{{
			resource: nodehealthcheck.Resource, object: nodehealthcheck.New(), manager: m, queue: called.Of(nodehealthcheck.Resource),
			reconciler: &nodehealthcheck.Reconciler{
				Kube: m.GetClient(), Live: m.GetAPIReader(), Events: events, Drydock: as(nodehealthcheck.Resource),
			},
		}}, o.Logger})
	}
	return all, nil
}

func (p inPlace) serve(ctx context.Context) error {
	logger := p.logger.With("operator", p.operator, "namespace", p.namespace)
	logger.Info("waiting for the operator to give its lease back")
	return lease.Serve(ctx, p.leases, p.namespace, p.lease, func() error {
		logger.Info("serving the operator's objects")
		for _, c := range p.controllers {
			if added, err := c.add(); err != nil || !added {
				return cmp.Or(err, fmt.Errorf("no definition of %s is installed: install that of %s, or do not serve its objects", c.resource, p.operator))
			}
		}
		return nil
	})
}

// kindController is the controller of a kind.
type kindController struct {
	resource   string
	object     kube.Object
	manager    manager.Manager
	queue      *calls.Queue
	reconciler reconcile.Reconciler
}

// installedEvery is how often a definition is looked for that is not installed.
const installedEvery = 30 * time.Second

// add adds the controller to the manager, unless the API server does not know the kind: the manager would end for that.
func (c *kindController) add() (added bool, err error) {
	gvk, err := apiutil.GVKForObject(c.object, c.manager.GetScheme())
	if err != nil {
		return false, err
	}
	if _, err := c.manager.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); meta.IsNoMatchError(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("looking for the definition of %s: %w", c.resource, err)
	}
	err = ctrl.NewControllerManagedBy(c.manager).
		Named(c.resource).
		For(c.object).
		WatchesRawSource(c.queue.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(c.queue.Answering(c.reconciler))
	if err != nil {
		return false, fmt.Errorf("the controller of %s: %w", c.resource, err)
	}
	return true, nil
}

// addLater adds the controllers of kinds whose definitions are installed later.
func addLater(ctx context.Context, missing []*kindController, logger *slog.Logger) error {
	again := time.NewTicker(installedEvery)
	defer again.Stop()
	for len(missing) > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
		missing = slices.DeleteFunc(missing, func(c *kindController) bool {
			added, err := c.add()
			switch {
			case err != nil:
				logger.Warn("a controller was not added", "kind", c.resource, "error", err)
			case added:
				logger.Info("its definition is installed now", "kind", c.resource)
			}
			return added
		})
	}
	return nil
}

// answer takes the calls of workflows until ctx ends.
func answer(ctx context.Context, o Options, temporal temporalclient.Client, called *calls.Calls) error {
	refused := make(chan error, 1)
	queue := api.LaneBridge.Queue(api.TaskQueue(o.Cluster, o.TaskQueue))
	w := sdkworker.New(temporal, queue, sdkworker.Options{
		DisableWorkflowWorker:              true,
		MaxConcurrentActivityExecutionSize: maxCalls,
		WorkerStopTimeout:                  stopTimeout,
		OnFatalError:                       func(err error) { refused <- err },
	})
	w.RegisterActivityWithOptions(called.ReconcileObject, activity.RegisterOptions{Name: api.ReconcileObject})
	if err := w.Start(); err != nil {
		return fmt.Errorf("taking calls from task queue %s: %w", queue, err)
	}
	defer w.Stop()
	o.Logger.Info("bridge working", "taskQueue", queue)
	select {
	case err := <-refused:
		return fmt.Errorf("taking calls from task queue %s: %w", queue, err)
	case <-ctx.Done():
		return nil
	}
}

func newManager(o Options) (manager.Manager, error) {
	reach := o.Kubernetes
	if reach == nil {
		var err error
		if reach, err = ctrl.GetConfig(); err != nil {
			return nil, fmt.Errorf("finding Kubernetes: %w", err)
		}
	}
	reach = rest.CopyConfig(reach)
	reach.UserAgent = "drydock-bridge/" + o.Version
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, kepobjects.AddToScheme, objects.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	m, err := ctrl.NewManager(reach, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: o.Metrics}, HealthProbeBindAddress: o.Probes,
		LeaderElection: o.LeaderElection, LeaderElectionID: leaseName, LeaderElectionNamespace: o.LeaseNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("the manager of controllers: %w", err)
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return m, m.AddReadyzCheck("ping", healthz.Ping)
}

// leaseName is the name of the Lease of who leads: one bridge works on the objects of an API server, whatever cluster it was told.
const leaseName = "drydock-bridge"

func temporalOptions(ctx context.Context, o Options) (temporalclient.Options, *tracing.Traces, error) {
	options, err := temporalenv.Process(o.Temporal, o.Logger)
	if err != nil {
		return options, nil, err
	}
	options.Logger = log.NewStructuredLogger(o.Logger)
	options.Identity = cmp.Or(options.Identity, "drydock-bridge") // who started a maintenance, to those who look at it
	traces := tracing.Start(ctx, "drydock-bridge", o.Version, tracing.Log{Logger: o.Logger})
	traces.Trace(&options)
	return options, traces, nil
}
