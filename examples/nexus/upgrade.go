package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// UpgradeInput is the input of Upgrade.
type UpgradeInput struct {
	Nodes []string `json:"nodes"`
	// Parallel is how many are worked on at a time; 1 if it is 0. Drydock's limits hold besides.
	Parallel int `json:"parallel,omitempty"`
	// Reason is shown with the maintenances.
	Reason string `json:"reason"`
}

// Result is how the plan ended.
type Result struct {
	Name  string `json:"name"`
	Phase string `json:"phase"`
}

// Upgrade runs a plan over the nodes: each is flashed while Drydock holds it.
func Upgrade(ctx workflow.Context, in UpgradeInput) (result Result, err error) {
	err = workflow.NewNexusClient("drydock", "drydock").ExecuteOperation(ctx, "run-plan", map[string]any{
		"plan": map[string]any{
			"nodes": in.Nodes, "reason": in.Reason, "strategy": map[string]any{"maxParallel": max(in.Parallel, 1)},
		},
		"work": map[string]any{"endpoint": "firmware", "service": "firmware", "operation": "flash"},
	}, workflow.NexusOperationOptions{CancellationType: workflow.NexusOperationCancellationTypeWaitCompleted}).Get(ctx, &result)
	return result, err
}

// Held is what Drydock says of a node that it holds for the operation.
type Held struct {
	Node  string `json:"node"`
	RunID string `json:"runId"`
}

// Flash is the workflow of the operation, which may be asked for more than once on a node. It ends when it is cancelled: the node is held no
// longer then.
func Flash(ctx workflow.Context, held Held) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour, HeartbeatTimeout: 5 * time.Second, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 20},
	})
	var output string
	err := workflow.ExecuteActivity(ctx, "Run", held.Node).Get(ctx, &output)
	return output, err
}

func register(w worker.Registry, command []string) {
	w.RegisterWorkflow(Upgrade)
	w.RegisterWorkflow(Flash)
	w.RegisterActivity(&runner{command})
	service := nexus.NewService("firmware")
	service.MustRegister(temporalnexus.NewWorkflowRunOperation("flash", Flash,
		func(_ context.Context, held Held, _ nexus.StartOperationOptions) (client.StartWorkflowOptions, error) {
			return client.StartWorkflowOptions{
				ID: "flash/" + held.Node + "/" + held.RunID, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			}, nil
		}))
	w.RegisterNexusService(service)
}

// runner has the activity.
type runner struct{ command []string }

// Run runs the command for a node, and returns what it prints.
func (r *runner) Run(ctx context.Context, node string) (string, error) {
	args := make([]string, len(r.command))
	for i, arg := range r.command {
		args[i] = strings.ReplaceAll(arg, "{node}", node)
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-ended:
				tick.Stop()
				return
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	output, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %.1000s", err, output)
	}
	return fmt.Sprintf("%.1000s", output), nil
}
