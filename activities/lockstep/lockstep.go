// Package lockstep acts for the lockstep of plans: it begins, steers and ends the maintenances that plans share, and finds those
// that run, and the plans that run.
package lockstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/heartbeat"
	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
)

// Activities act for the lockstep of plans.
type Activities struct {
	Temporal  client.Client
	Namespace string
}

// atOnce bounds the requests under way.
const atOnce = 16

// Batch is what is to be done for the maintenances of some nodes. Input is that of maintenances to begin, without the node.
type Batch struct {
	Requests []Request       `json:"nodes"`
	Input    json.RawMessage `json:"input,omitempty"`
}

// Request is what is to be done for the maintenance of a node. RunID is the first run of its chain; empty is whichever runs.
type Request struct {
	Node   string          `json:"node"`
	RunID  string          `json:"runId,omitempty"`
	Target *api.NodeTarget `json:"target,omitempty"`
}

// Result is what became of a request.
type Result struct {
	Node  string `json:"node"`
	RunID string `json:"runId,omitempty"`
	// Adopted: it ran already, and knows how far it is.
	Adopted bool `json:"adopted,omitempty"`
	// Refused is why the node cannot be held: a maintenance that plans do not share has its workflow ID. Failed is an error that may not
	// recur.
	Refused string `json:"refused,omitempty"`
	Failed  string `json:"failed,omitempty"`
	// Ended: the maintenance has ended. Phase and Failure say how, as far as that is known.
	Ended   bool      `json:"ended,omitempty"`
	Phase   api.Phase `json:"phase,omitempty"`
	Failure string    `json:"failure,omitempty"`
}

// BeginShared begins maintenances, and adopts those that run already.
func (a *Activities) BeginShared(ctx context.Context, in Batch) ([]Result, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(in.Input, &fields); err != nil {
		return nil, temporal.NewNonRetryableApplicationError("input: "+err.Error(), api.ErrorInvalidSpec, nil)
	}
	return each(ctx, in.Requests, func(ctx context.Context, r Request) (Result, error) { return a.begin(ctx, r.Node, fields) })
}

// SteerShared sends maintenances how far to go.
func (a *Activities) SteerShared(ctx context.Context, in Batch) ([]Result, error) {
	return each(ctx, in.Requests, func(ctx context.Context, r Request) (Result, error) {
		target := *r.Target
		target.Run = r.RunID
		return a.signal(ctx, r, message{api.SignalTarget, target})
	})
}

// EndShared ends maintenances that no plan wants any more: one that is not Ready is cancelled, and one that is, done.
func (a *Activities) EndShared(ctx context.Context, in Batch) ([]Result, error) {
	return each(ctx, in.Requests, func(ctx context.Context, r Request) (Result, error) {
		said := api.Message{By: "lockstep", Comment: "no plan holds the node any more"}
		// Each is ignored where the other applies.
		return a.signal(ctx, r,
			message{api.MsgCancel, api.Cancel{Message: said, Run: r.RunID, BeforeReady: true}},
			message{api.MsgDone, api.Done{Message: said, Run: r.RunID}})
	})
}

// lastsAfter is the attempt from which on an error of one node is a result: the others must not wait for it.
const lastsAfter = 4

// lasts reports whether an error has recurred for long enough.
func lasts(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && activity.GetInfo(ctx).Attempt >= lastsAfter
}

// each carries out requests, several at once, with heartbeats. It goes on after an error, and returns the first.
func each(ctx context.Context, all []Request, do func(context.Context, Request) (Result, error)) ([]Result, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	results := make([]Result, len(all))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, r := range all {
		group.Go(func() (err error) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if results[i], err = do(ctx, r); lasts(ctx, err) {
				results[i], err = Result{Node: r.Node, RunID: r.RunID, Failed: bounds.Cut(err.Error(), bounds.Text)}, nil
			}
			return err
		})
	}
	err := group.Wait()
	return results, err
}

func (a *Activities) begin(ctx context.Context, node string, fields map[string]json.RawMessage) (Result, error) {
	cluster, queue := here(ctx)
	input := maps.Clone(fields)
	input["node"], _ = json.Marshal(node) // a text
	id := api.MaintenanceID(cluster, node, api.PlansRequestor)
	run, err := a.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: queue,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            "maintenance of " + node + " for plans",
		Memo:                                     map[string]any{api.MemoBegun: true},
	}, api.NodeMaintenanceType, input)
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return Result{Node: node, RunID: run.GetRunID()}, nil
	case !errors.As(err, &running):
		return Result{}, fmt.Errorf("beginning the maintenance of %s: %w", node, err)
	}
	return a.adopt(ctx, node, id)
}

// adopt takes the maintenance that runs, if it is one that plans share.
func (a *Activities) adopt(ctx context.Context, node, id string) (Result, error) {
	first, err := execution.Running(ctx, a.Temporal, id)
	if err == nil && first == "" {
		err = errors.New("it has just ended")
	}
	if err != nil {
		return Result{}, fmt.Errorf("adopting the maintenance of %s: %w", node, err)
	}
	var status api.Status
	answer, err := a.Temporal.QueryWorkflow(ctx, id, "", api.QueryStatus)
	if err == nil {
		err = answer.Get(&status)
	}
	if err != nil {
		return Result{}, fmt.Errorf("asking the maintenance of %s whether plans share it: %w", node, err)
	}
	if !status.Spec.Lockstep {
		return Result{Node: node, Refused: fmt.Sprintf(
			"workflow %s runs and is not for plans to share: end it (drydock cancel %s --requestor %s), then name the node anew", id, node, api.PlansRequestor)}, nil
	}
	if status.Phase == api.Releasing || status.Phase.Ended() {
		return Result{}, fmt.Errorf("adopting the maintenance of %s: it is about to end", node)
	}
	return Result{Node: node, RunID: first, Adopted: true}, nil
}

// message is a signal.
type message struct {
	name    string
	payload any
}

// signal sends a maintenance some signals, one after the other. Where it has ended, the result is its end.
func (a *Activities) signal(ctx context.Context, r Request, messages ...message) (Result, error) {
	cluster, _ := here(ctx)
	id := api.MaintenanceID(cluster, r.Node, api.PlansRequestor)
	for _, m := range messages {
		err := caller.Signal(ctx, a.Temporal, id, "", m.name, m.payload)
		var nobody *serviceerror.NotFound
		switch {
		case errors.As(err, &nobody):
			return a.endOf(ctx, r.Node, r.RunID)
		case err != nil:
			return Result{}, fmt.Errorf("sending %s to the maintenance of %s: %w", m.name, r.Node, err)
		}
	}
	return Result{Node: r.Node, RunID: r.RunID}, nil
}

// endOf is how a maintenance that does not run has ended, as far as that is known.
func (a *Activities) endOf(ctx context.Context, node, run string) (Result, error) {
	ended := Result{Node: node, RunID: run, Ended: true}
	if run == "" {
		return ended, nil
	}
	cluster, _ := here(ctx)
	id := api.MaintenanceID(cluster, node, api.PlansRequestor)
	var result api.Result
	err := a.Temporal.GetWorkflow(ctx, id, run).Get(ctx, &result)
	var failed *temporal.WorkflowExecutionError
	var nobody *serviceerror.NotFound
	switch {
	case errors.As(err, &nobody):
		return ended, nil
	case err != nil && !errors.As(err, &failed):
		return Result{}, fmt.Errorf("reading the end of workflow %s: %w", id, err)
	}
	end := planactivity.EndOf(planactivity.Execution{WorkflowID: id, RunID: run}, result, err)
	ended.Phase = end.Phase
	if end.Phase != api.Completed {
		ended.Failure = bounds.Cut(end.Message, bounds.Text)
	}
	if end.Kind == api.ErrorNodeNotFound {
		ended.Phase = api.NodeGone
	}
	return ended, nil
}

// here is the cluster and the task queue of the workflow that calls.
func here(ctx context.Context) (cluster, queue string) {
	queue = activity.GetInfo(ctx).TaskQueue
	return api.ClusterOf(queue), queue
}
