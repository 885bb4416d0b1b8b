// Package lease has a bridge serve the objects of an operator once that operator has stopped. Whoever holds the operator's lease serves them.
package lease

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"drydock.dev/drydock/rules/spec"
)

// How long a lease holds, and how often it is renewed, as controllers usually have it.
const (
	leaseFor     = 15 * time.Second
	renewWithin  = 10 * time.Second
	renewedAfter = 2 * time.Second
)

// Serve waits until nobody holds the lease, takes it, and calls serve. It returns nil when ctx ends, and an error when it loses the lease,
// because another process serves the objects then.
func Serve(ctx context.Context, leases coordination.LeasesGetter, namespace, name string, serve func() error) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	run, stop := context.WithCancel(ctx)
	defer stop()
	leaderelection.RunOrDie(run, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s_%s_%d", spec.Bridge, host, os.Getpid())},
		},
		LeaseDuration: leaseFor, RenewDeadline: renewWithin, RetryPeriod: renewedAfter, ReleaseOnCancel: true, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				if err := serve(); err != nil {
					failed <- err
					stop()
				}
			},
			OnStoppedLeading: func() {},
		},
	})
	select {
	case err := <-failed:
		return err
	default:
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("lost the lease %s/%s: somebody else serves its objects", namespace, name)
}
