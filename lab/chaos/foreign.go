package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

const (
	// elsewhere is the Temporal namespace of the other Drydock.
	elsewhere = "elsewhere"
	// looksWithin bounds how long the other Drydock takes to look at all nodes.
	looksWithin = time.Minute
)

func registerElsewhere(ctx context.Context, t *devstack.Temporal) error {
	_, err := t.Client.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: elsewhere, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	var exists *serviceerror.NamespaceAlreadyExists
	if errors.As(err, &exists) {
		return nil
	}
	return err
}

// otherDrydock is a worker of the same cluster in another Temporal namespace.
type otherDrydock struct {
	api    *apiProxy
	worker *devstack.Worker
	client client.Client
	// scheduler is its scheduler's workflow ID.
	scheduler string
}

// startOther starts a Drydock that knows nothing of the lane's, and waits until it has looked at the nodes.
func (a *attempt) startOther(ctx context.Context) (err error) {
	held := a.observer.held(a.name)
	o := &otherDrydock{scheduler: api.SchedulerID(a.cluster)}
	a.other = o
	if o.client, err = client.NewClientFromExisting(a.temporal.Client, client.Options{Namespace: elsewhere}); err != nil {
		return err
	}
	if o.api, err = newAPIProxy(a.stack.cluster.Kubeconfig, laneLabel+"="+a.name, &switchboard{}); err != nil {
		return err
	}
	dir := filepath.Join(a.dir, a.name)
	kubefile := filepath.Join(dir, "kubeconfig-elsewhere")
	if err := o.api.writeKubeconfig(kubefile); err != nil {
		return err
	}
	if o.worker, err = devstack.StartWorker(ctx, devstack.WorkerOptions{
		Dir: dir, Name: "elsewhere", Config: "cluster: " + a.lane.cluster + "\nscheduler: {maxParallel: 1}\n", Kubeconfig: kubefile,
		Temporal: a.temporal, Environment: []string{"TEMPORAL_NAMESPACE=" + elsewhere},
	}); err != nil {
		return err
	}
	return world.Eventually(ctx, looksWithin, "the other Drydock looks at the nodes", func() error { return o.hasLooked(ctx, a.observer, a.name, held) })
}

// hasLooked reports whether the other scheduler knows the marks that were on nodes when it began, and still are.
func (o *otherDrydock) hasLooked(ctx context.Context, w *observer, lane string, held []string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	state, err := world.Ask[api.State](ctx, o.client, o.scheduler, api.QueryState)
	if err != nil {
		return err
	}
	if state.Rebuilding {
		return errors.New("its scheduler has not")
	}
	still := slices.DeleteFunc(slices.Clone(held), func(node string) bool { return !slices.Contains(w.held(lane), node) })
	if state.StraysAll < len(still) {
		return fmt.Errorf("its scheduler tells of %d foreign marks, and %v have some", state.StraysAll, still)
	}
	return nil
}

// stopOther ends the other Drydock, which must have changed nothing.
func (a *attempt) stopOther(ctx context.Context) error {
	o := a.other
	if o == nil {
		return nil
	}
	a.other = nil
	var problems []error
	if o.worker != nil && o.worker.Process != nil {
		select {
		case <-o.worker.Exited():
			problems = append(problems, fmt.Errorf("the other worker ended by itself: %s", o.worker.Tail()))
		default:
			o.worker.Kill()
		}
	}
	if o.client != nil {
		// The next one has to look at all nodes again.
		err := o.client.TerminateWorkflow(ctx, o.scheduler, "", "chaos: the other Drydock is gone")
		var gone *serviceerror.NotFound
		if err != nil && !errors.As(err, &gone) {
			problems = append(problems, err)
		}
		o.client.Close()
	}
	if o.api != nil {
		if writes := o.api.writes(); len(writes) > 0 {
			problems = append(problems, fmt.Errorf("the other Drydock wrote: %s", strings.Join(writes, "; ")))
		}
		o.api.close()
	}
	return errors.Join(problems...)
}
