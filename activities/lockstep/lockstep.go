// Package lockstep acts for the lockstep of plans: it begins, tells and ends the maintenances that plans share, and finds out
// which of them, and which plans, run.
package lockstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"drydock/activities/caller"
	"drydock/activities/execution"
	"drydock/activities/heartbeat"
	planactivity "drydock/activities/plan"
	"drydock/api"
	"drydock/rules/bounds"
)

// Activities act for the lockstep of plans.
type Activities struct {
	Temporal  client.Client
	Namespace string
}

// atOnce bounds the requests under way.
const atOnce = 16

// BeginInput are nodes whose maintenances are to be begun, and the input of all of them but the node.
type BeginInput struct {
	Nodes []string        `json:"nodes"`
	Input json.RawMessage `json:"input"`
}

// Begun is what became of that for one node.
type Begun struct {
	Node string `json:"node"`
	// RunID is the first run of the maintenance's chain.
	RunID string `json:"runId,omitempty"`
	// Adopted: it ran already, and knows how far it is.
	Adopted bool `json:"adopted,omitempty"`
	// Refused says why the node cannot be held: a maintenance that is nobody's to share has its workflow ID. Missed says what
	// went wrong, and may not the next time.
	Refused string `json:"refused,omitempty"`
	Missed  string `json:"missed,omitempty"`
}

// BeginShared begins maintenances, and adopts those that run already.
func (a *Activities) BeginShared(ctx context.Context, in BeginInput) ([]Begun, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(in.Input, &fields); err != nil {
		return nil, temporal.NewNonRetryableApplicationError("input: "+err.Error(), api.ErrorInvalidSpec, nil)
	}
	begun := make([]Begun, len(in.Nodes))
	err := each(ctx, in.Nodes, func(ctx context.Context, i int, node string) (err error) {
		if begun[i], err = a.begin(ctx, node, fields); isBelieved(ctx, err) {
			begun[i], err = Begun{Node: node, Missed: bounds.Cut(err.Error(), bounds.Text)}, nil
		}
		return err
	})
	return begun, err
}

// believeAfter is the attempt from which on an error is that of one workflow: it must not keep the others waiting.
const believeAfter = 4

func isBelieved(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && activity.GetInfo(ctx).Attempt >= believeAfter
}

// each does something for every one of some, several at once, while it shows that it lives. It goes on after an error, and
// returns the first.
func each[T any](ctx context.Context, all []T, do func(ctx context.Context, i int, one T) error) error {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, one := range all {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return do(ctx, i, one)
		})
	}
	return group.Wait()
}

func (a *Activities) begin(ctx context.Context, node string, fields map[string]json.RawMessage) (Begun, error) {
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
		return Begun{Node: node, RunID: run.GetRunID()}, nil
	case !errors.As(err, &running):
		return Begun{}, fmt.Errorf("beginning the maintenance of %s: %w", node, err)
	}
	return a.adopt(ctx, node, id)
}

// adopt takes the maintenance that runs, if it is one that plans share.
func (a *Activities) adopt(ctx context.Context, node, id string) (Begun, error) {
	first, err := execution.Running(ctx, a.Temporal, id)
	if err == nil && first == "" {
		err = errors.New("it has just ended")
	}
	if err != nil {
		return Begun{}, fmt.Errorf("adopting the maintenance of %s: %w", node, err)
	}
	var status struct {
		Phase api.Phase `json:"phase"`
		Spec  struct {
			Lockstep bool `json:"lockstep"`
		} `json:"spec"`
	}
	answer, err := a.Temporal.QueryWorkflow(ctx, id, "", api.QueryStatus)
	if err == nil {
		err = answer.Get(&status)
	}
	if err != nil {
		return Begun{}, fmt.Errorf("asking the maintenance of %s whether plans share it: %w", node, err)
	}
	if !status.Spec.Lockstep {
		return Begun{Node: node, Refused: fmt.Sprintf(
			"workflow %s runs and is not for plans to share: end it (drydock cancel %s --requestor %s), then name the node anew", id, node, api.PlansRequestor)}, nil
	}
	if status.Phase == api.Releasing || status.Phase.Ended() {
		return Begun{}, fmt.Errorf("adopting the maintenance of %s: it is about to end", node)
	}
	return Begun{Node: node, RunID: first, Adopted: true}, nil
}

// Addressed is a target and whose it is.
type Addressed struct {
	Node   string         `json:"node"`
	Target api.NodeTarget `json:"target"`
}

// SteerInput are maintenances that are told how far to go.
type SteerInput struct {
	Targets []Addressed `json:"targets"`
}

// Gone is a maintenance that has ended, and how.
type Gone struct {
	Node    string    `json:"node"`
	RunID   string    `json:"runId,omitempty"`
	Phase   api.Phase `json:"phase,omitempty"`
	Failure string    `json:"failure,omitempty"`
}

// Signalled is who could not be signalled: maintenances that have ended, and those with which something went wrong.
type Signalled struct {
	Gone   []Gone   `json:"gone,omitempty"`
	Missed []Missed `json:"missed,omitempty"`
}

// Missed is a node whose maintenance could not be signalled, and why.
type Missed struct {
	Node string `json:"node"`
	Why  string `json:"why"`
}

// SteerShared tells maintenances how far to go.
func (a *Activities) SteerShared(ctx context.Context, in SteerInput) (Signalled, error) {
	var all found
	err := each(ctx, in.Targets, func(ctx context.Context, _ int, to Addressed) error {
		return a.signal(ctx, api.HeldNode{Node: to.Node, RunID: to.Target.Run}, &all, message{api.SignalTarget, to.Target})
	})
	return all.signalled, err
}

// EndInput are maintenances that no plan wants any more.
type EndInput struct {
	Nodes []api.HeldNode `json:"nodes"`
}

// EndShared ends maintenances: one that is not Ready is cancelled, and one that is, done.
func (a *Activities) EndShared(ctx context.Context, in EndInput) (Signalled, error) {
	var all found
	err := each(ctx, in.Nodes, func(ctx context.Context, _ int, n api.HeldNode) error {
		said := api.Message{By: "lockstep", Comment: "no plan holds the node any more"}
		// Each is ignored where the other applies.
		return a.signal(ctx, n, &all,
			message{api.MsgCancel, api.Cancel{Message: said, Run: n.RunID, BeforeReady: true}},
			message{api.MsgDone, api.Done{Message: said, Run: n.RunID}})
	})
	return all.signalled, err
}

// found collects who could not be signalled.
type found struct {
	mu        sync.Mutex
	signalled Signalled
}

func (f *found) add(one Gone) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signalled.Gone = append(f.signalled.Gone, one)
}

func (f *found) miss(one Missed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signalled.Missed = append(f.signalled.Missed, one)
}

// message is a signal.
type message struct {
	name    string
	payload any
}

// signal tells a maintenance some things, one after the other; one that has ended is told of.
func (a *Activities) signal(ctx context.Context, n api.HeldNode, all *found, messages ...message) error {
	cluster, _ := here(ctx)
	id := api.MaintenanceID(cluster, n.Node, api.PlansRequestor)
	for _, m := range messages {
		err := caller.Signal(ctx, a.Temporal, id, "", m.name, m.payload)
		var nobody *serviceerror.NotFound
		if errors.As(err, &nobody) {
			gone, err := a.endOf(ctx, n)
			all.add(gone)
			return err
		}
		if isBelieved(ctx, err) {
			all.miss(Missed{Node: n.Node, Why: bounds.Cut(err.Error(), bounds.Text)})
			return nil
		}
		if err != nil {
			return fmt.Errorf("telling the maintenance of %s (%s): %w", n.Node, m.name, err)
		}
	}
	return nil
}

// endOf tells how a maintenance that does not run has ended, as far as that is known.
func (a *Activities) endOf(ctx context.Context, n api.HeldNode) (Gone, error) {
	cluster, _ := here(ctx)
	gone := Gone{Node: n.Node, RunID: n.RunID}
	if n.RunID == "" {
		return gone, nil
	}
	id := api.MaintenanceID(cluster, n.Node, api.PlansRequestor)
	var result api.Result
	err := a.Temporal.GetWorkflow(ctx, id, n.RunID).Get(ctx, &result)
	var failed *temporal.WorkflowExecutionError
	var nobody *serviceerror.NotFound
	switch {
	case errors.As(err, &nobody):
		return gone, nil
	case err != nil && !errors.As(err, &failed):
		return gone, fmt.Errorf("reading the end of workflow %s: %w", id, err)
	}
	end := planactivity.EndOf(planactivity.Execution{WorkflowID: id, RunID: n.RunID}, result, err)
	gone.Phase = end.Phase
	if end.Phase != api.Completed {
		gone.Failure = bounds.Cut(end.Message, bounds.Text)
	}
	if end.Kind == api.ErrorNodeNotFound {
		gone.Phase = api.NodeGone
	}
	return gone, nil
}

// here is the cluster and the task queue of the workflow that calls.
func here(ctx context.Context) (cluster, queue string) {
	queue = activity.GetInfo(ctx).TaskQueue
	return api.ClusterOf(queue), queue
}
