package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/maintain"
)

// RolloutInput is the input of Rollout.
type RolloutInput struct {
	// Nodes are flashed in this order.
	Nodes []string `json:"nodes"`
	// Parallel is how many are worked on at a time; 1 if it is 0. Drydock's limits hold besides.
	Parallel int `json:"parallel,omitempty"`
	// Reason is shown with the maintenances.
	Reason string `json:"reason"`
	// Cluster is the name in front of the IDs of the cluster's workflows, if it has one.
	Cluster string `json:"cluster,omitempty"`
}

// Rollout flashes nodes, each while Drydock holds it. A node whose flash fails is left to a decision, and no further node begins.
func Rollout(ctx workflow.Context, in RolloutInput) error {
	if len(in.Nodes) == 0 {
		return temporal.NewNonRetryableApplicationError("nodes: name at least one", "InvalidInput", nil)
	}
	places := workflow.NewSemaphore(ctx, int64(max(in.Parallel, 1)))
	done := workflow.NewWaitGroup(ctx)
	var failed []error
	for _, node := range in.Nodes {
		if err := places.Acquire(ctx, 1); err != nil {
			failed = append(failed, err) // cancelled: those that have begun still give their nodes back
		}
		if len(failed) > 0 {
			break
		}
		done.Add(1)
		workflow.GoNamed(ctx, node, func(ctx workflow.Context) {
			defer done.Done()
			defer places.Release(1)
			if err := flash(ctx, in, node); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", node, err))
			}
		})
	}
	done.Wait(ctx)
	return errors.Join(failed...)
}

func flash(ctx workflow.Context, in RolloutInput, node string) error {
	return maintain.Node(ctx, maintain.Input{
		Node: node, Reason: in.Reason, Cluster: maintain.Cluster{Name: in.Cluster},
	}, func(ctx workflow.Context, m *maintain.Held) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour,
			HeartbeatTimeout:    5 * time.Second, // so soon another worker takes over from one that was lost
			WaitForCancellation: true,            // a node is not given back while it is being flashed
			RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 20},
		})
		return workflow.ExecuteActivity(ctx, "Flash", m.Node).Get(ctx, nil)
	})
}

// flasher has the activity.
type flasher struct {
	// command is what flashes a node, with {node} where its name belongs. It may be run more than once on a node, and has to look first what
	// is done already.
	command []string
}

// Flash runs the command for a node.
func (f *flasher) Flash(ctx context.Context, node string) error {
	args := make([]string, len(f.command))
	for i, arg := range f.command {
		args[i] = strings.ReplaceAll(arg, "{node}", node)
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(time.Second):
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	output, err := command.CombinedOutput()
	close(ended)
	if err != nil {
		return fmt.Errorf("%w: %.1000s", err, output)
	}
	return nil
}
