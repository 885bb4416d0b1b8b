package maintenanceoperator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
)

// Options say whether and how a bridge serves maintenance-operator's objects.
type Options struct {
	// Namespace is that of maintenance-operator, where its lease and its configuration are. Empty serves none of its objects.
	Namespace string
	// Input is a JSON merge patch for the input of each maintenance.
	Input string
}

// Validate returns what is wrong with them.
func (o Options) Validate() error {
	if o.Input == "" {
		return nil
	}
	if o.Namespace == "" {
		return errors.New("--maintenance-operator-input needs --maintenance-operator")
	}
	_, _, err := inputOf(&objects.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "any", UID: "any"},
		Spec:       objects.NodeMaintenanceSpec{NodeName: "any", RequestorID: "any", DrainSpec: &objects.DrainSpec{}},
	}, json.RawMessage(o.Input))
	if err != nil {
		return fmt.Errorf("--maintenance-operator-input: %w", err)
	}
	return nil
}

// leaseName is the name of maintenance-operator's lease. The process that holds the lease serves the objects.
const leaseName = "a9620a8f.nvidia.com"

// How long a lease holds, and how often it is renewed, as maintenance-operator has it.
const (
	leaseFor     = 15 * time.Second
	renewWithin  = 10 * time.Second
	renewedAfter = 2 * time.Second
)

// WhileServing takes maintenance-operator's lease, which waits until the operator has stopped, and calls serve then. It returns when ctx ends,
// and with an error when the lease is lost: another one serves the objects then.
func WhileServing(ctx context.Context, leases coordination.LeasesGetter, namespace string, serve func() error) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	run, stop := context.WithCancel(ctx)
	defer stop()
	leaderelection.RunOrDie(run, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: leaseName}, Client: leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("drydock-bridge_%s_%d", host, os.Getpid())},
		},
		LeaseDuration: leaseFor, RenewDeadline: renewWithin, RetryPeriod: renewedAfter, ReleaseOnCancel: true, Name: leaseName,
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
	return fmt.Errorf("lost the lease %s/%s: somebody else serves maintenance-operator's objects", namespace, leaseName)
}
