package maintenanceoperator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/migration"
	"drydock.dev/drydock/rules/schedule"
)

// configName is the name of the only MaintenanceOperatorConfig that counts.
const configName = "default"

// maxAge is how long an object is kept after it was Ready where no configuration says it.
const maxAge = time.Hour

// Scheduler is Drydock's, which client.Scheduler has.
type Scheduler interface {
	ChangeLimits(ctx context.Context, change func(schedule.Limits) (schedule.Limits, error), comment string, pending int) (api.State, error)
	Freeze(ctx context.Context, request api.FreezeRequest) error
	Thaw(ctx context.Context, request api.ThawRequest) error
}

// Limits follows the MaintenanceOperatorConfig: Drydock's scheduler gets its limits whenever it changes. One that is deleted leaves them.
type Limits struct {
	Kube      kube.Reader
	Events    recorder.EventRecorder
	Scheduler Scheduler
	// Namespace is that of maintenance-operator.
	Namespace string

	// last is the age that a configuration said last, in seconds; 0 if none has said one above that.
	last atomic.Int32
	// applied is the generation whose limits the scheduler has.
	applied atomic.Int64
}

// keepsFor is how long an object is kept after it was Ready. It is read each time: the first objects come before the first configuration.
func (l *Limits) keepsFor(ctx context.Context) (time.Duration, error) {
	config := &objects.MaintenanceOperatorConfig{}
	err := l.Kube.Get(ctx, types.NamespacedName{Namespace: l.Namespace, Name: configName}, config)
	if kube.IgnoreNotFound(err) != nil {
		return 0, err
	}
	if age := config.Spec.MaxNodeMaintenanceTimeSeconds; age != nil {
		l.last.Store(*age)
		return time.Duration(*age) * time.Second, nil
	}
	return cmp.Or(time.Duration(l.last.Load())*time.Second, maxAge), nil
}

// Reconcile implements reconcile.Reconciler.
func (l *Limits) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request.NamespacedName != (types.NamespacedName{Namespace: l.Namespace, Name: configName}) {
		return reconcile.Result{}, nil
	}
	config := &objects.MaintenanceOperatorConfig{}
	if err := l.Kube.Get(ctx, request.NamespacedName, config); err != nil {
		return reconcile.Result{}, kube.IgnoreNotFound(err)
	}
	if config.Generation > 0 && config.Generation == l.applied.Load() {
		return reconcile.Result{}, nil // somebody may have changed the scheduler's limits since
	}
	if err := l.apply(ctx, config); err != nil {
		return reconcile.Result{}, err
	}
	l.applied.Store(config.Generation)
	return reconcile.Result{}, nil
}

// apply gives the scheduler the limits of a configuration.
func (l *Limits) apply(ctx context.Context, config *objects.MaintenanceOperatorConfig) error {
	frozen, limits, err := migration.OperatorLimits(config.Spec.MaxParallelOperations, config.Spec.MaxUnavailable)
	if err != nil {
		l.Events.Eventf(config, nil, corev1.EventTypeWarning, "InvalidSpec", "Configure", "%s", bounds.Cut(err.Error(), bounds.Text))
		return nil
	}
	by := v1alpha1.Said(objects.ConfigResource)
	if frozen {
		if err := l.Scheduler.Freeze(ctx, api.FreezeRequest{By: by, Reason: "maxParallelOperations is 0"}); err != nil {
			return err
		}
	}
	state, err := l.Scheduler.ChangeLimits(ctx, func(now schedule.Limits) (schedule.Limits, error) {
		now.MaxParallel, now.MaxUnavailable = limits.MaxParallel, limits.MaxUnavailable
		return now, nil
	}, fmt.Sprintf("%s %s/%s, generation %d", objects.ConfigResource, l.Namespace, configName, config.Generation), 0)
	if err != nil || frozen || !slices.ContainsFunc(state.Freezes, func(f schedule.Freeze) bool { return f.By == by }) {
		return err
	}
	return l.Scheduler.Thaw(ctx, api.ThawRequest{By: by})
}
