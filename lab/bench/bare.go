package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"
)

const bareQueue = "bare"

// bareRate is how many workflows per second the same Temporal server and the same machine manage that do nothing: five
// activities without effect and the three signals of a slot, between a workflow and a scheduler that grants at once.
func (b *bench) bareRate(ctx context.Context) float64 {
	w := worker.New(b.Temporal.Client, bareQueue, worker.Options{})
	w.RegisterWorkflow(bareMaintenance)
	w.RegisterWorkflow(bareScheduler)
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "nothing"})
	noError(w.Start())
	defer w.Stop()
	must(b.Temporal.Client.ExecuteWorkflow(ctx,
		client.StartWorkflowOptions{ID: "bare-scheduler", TaskQueue: bareQueue}, bareScheduler))
	began := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(slots)
	for i := range fleet {
		group.Go(func() error {
			run, err := b.Temporal.Client.ExecuteWorkflow(groupCtx,
				client.StartWorkflowOptions{ID: fmt.Sprintf("bare/%d", i), TaskQueue: bareQueue}, bareMaintenance)
			if err != nil {
				return err
			}
			return run.Get(groupCtx, nil)
		})
	}
	noError(group.Wait())
	return fleet / time.Since(began).Seconds()
}

func bareMaintenance(ctx workflow.Context) error {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	if err := workflow.SignalExternalWorkflow(ctx, "bare-scheduler", "", "request", id).Get(ctx, nil); err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, "granted").Receive(ctx, nil)
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for range 5 {
		if err := workflow.ExecuteActivity(ctx, "nothing").Get(ctx, nil); err != nil {
			return err
		}
	}
	return workflow.SignalExternalWorkflow(ctx, "bare-scheduler", "", "release", id).Get(ctx, nil)
}

func bareScheduler(ctx workflow.Context) error {
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(workflow.GetSignalChannel(ctx, "request"), func(c workflow.ReceiveChannel, _ bool) {
		var id string
		c.Receive(ctx, &id)
		workflow.SignalExternalWorkflow(ctx, id, "", "granted", nil)
	})
	selector.AddReceive(workflow.GetSignalChannel(ctx, "release"), func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
	})
	for {
		selector.Select(ctx)
	}
}
