// Package drain empties nodes, and waits for pods on them to complete.
package drain

import (
	"context"
	"encoding/json"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"

	"drydock/activities/caller"
	"drydock/activities/failure"
	"drydock/activities/heartbeat"
	"drydock/activities/heldnode"
	"drydock/api"
	"drydock/k8s"
	"drydock/k8s/kube"
	"drydock/rules/spec"
)

// withdrawWithin is how long a cancelled drain may take to withdraw its EvictionRequests.
const withdrawWithin = 20 * time.Second

// tellWithin is how long a word about an empty node may take.
const tellWithin = 2 * time.Second

// Activities empty nodes.
type Activities struct {
	Client   kube.Interface
	Temporal client.Client
	// Nodes is the watch that the worker's drains share with all else.
	Nodes *k8s.Nodes
	// Sources are the watches that all drains of the worker share.
	Sources *k8s.Sources
	// Limiter is shared by all drains of the worker.
	Limiter *Limiter
	// Metrics counts evictions, refusals and blocked pods; never nil.
	Metrics *Metrics
	// PodEvents tells of evictions on the pods themselves; nil tells nobody.
	PodEvents *k8s.PodEvents
	// Pod is the one that this worker runs in; empty outside of a cluster. A drain evicts it last.
	Pod types.UID
	// JobNamespaces are those of the Jobs of checks, hooks and works, whose pods are never evicted.
	JobNamespaces []string
}

// Input asks for a held node to be emptied.
type Input struct {
	Node string `json:"node"`
	UID  string `json:"uid"`
	// RunID is the first run of the maintenance that holds the node.
	RunID string     `json:"runId"`
	Drain spec.Drain `json:"drain"`
	// Consents are those to the loss of single pods, beside what Drain consents to.
	Consents []Consent `json:"consents,omitempty"`
	// Why is shown on the pods that are evicted.
	Why string `json:"why,omitempty"`
	// Began is when the escalation's clock started.
	Began time.Time `json:"began"`
	// Cordoned is when the node was cordoned, by the server's clock.
	Cordoned time.Time `json:"cordoned,omitzero"`
	// Force is what the escalation allows by now: spec.BypassBudget deletes pods instead of evicting them, spec.Kill
	// does not give them time either.
	Force string `json:"force,omitempty"`
	// KillAt is when the rung Kill is due: before it every pod is deleted early enough to end in its own time.
	KillAt *time.Time `json:"killAt,omitempty"`
	// EndsStuck deletes pods without grace that are terminating for longer than twice the time they were given.
	EndsStuck bool `json:"endsStuck,omitempty"`
	// Skip are the pods, "namespace/name", that an operator asked to leave on the node.
	Skip []string `json:"skip,omitempty"`
	// Before is how far earlier drains of the same attempt came.
	Before *api.DrainProgress `json:"before,omitempty"`
	// TellCounts has the workflow hear also of how many pods are left, a bounded number of times.
	TellCounts bool `json:"tellCounts,omitempty"`
	// BlockedSignal is the signal by which the workflow wants to hear of blockers.
	BlockedSignal string `json:"blockedSignal"`
	// Then is sent once the node is empty, to those who wait for that; nil tells nobody.
	Then *Word `json:"then,omitempty"`
}

// About implements caller.Input.
func (in Input) About() caller.Subject { return caller.Subject{Node: in.Node, RunID: in.RunID} }

// Word is a signal to a workflow.
type Word struct {
	WorkflowID string          `json:"workflowId"`
	Signal     string          `json:"signal"`
	Payload    json.RawMessage `json:"payload"`
}

// Drained is how far a drain came that has emptied its node. Told: what was to be said then was said.
type Drained struct {
	api.DrainProgress
	Told bool `json:"told,omitempty"`
}

// Consent lets a pod, "namespace/name", be lost, as Drain's fields of the same names let all pods.
type Consent struct {
	Pod            string `json:"pod"`
	Force          bool   `json:"force,omitempty"`
	DeleteEmptyDir bool   `json:"deleteEmptyDir,omitempty"`
}

// Drain empties a node: it evicts the chosen pods tier by tier (mode evict) or watches them leave (mode wait), until
// none is left. It goes on where an earlier attempt stopped, and stops by itself when the node is not the
// maintenance's any more. Cancelled, it tells in the error's details how far it came.
// Errors: ForeignCaller, NodeGone, NodeReplaced, NotHolder, MissingPermission, WorkerStopping.
func (d *Activities) Drain(ctx context.Context, in Input) (Drained, error) {
	if in.Then != nil {
		if err := caller.MaySignal(ctx, in.Then.WorkflowID, in.Then.Signal); err != nil {
			return Drained{}, err
		}
	}
	before := in.before(ctx)
	heartbeats := startHeartbeats(ctx, before)
	defer heartbeats.Stop()
	progress, last, err := d.drain(ctx, heartbeats, in, before)
	switch {
	case err == nil:
		heartbeats.Forget()
		return Drained{progress, d.tell(ctx, in.Then)}, nil // even if somebody cancels it just now: the node is empty
	case temporal.IsCanceledError(context.Cause(ctx)):
		d.withdrawCancelled(ctx, in)
		return Drained{}, temporal.NewCanceledError(last)
	default:
		return Drained{}, failure.Translate(ctx, d.Client, err)
	}
}

// tell sends a word, once: the workflow repeats what was not said.
func (d *Activities) tell(ctx context.Context, word *Word) (sent bool) {
	if word == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	if err := caller.Signal(ctx, d.Temporal, word.WorkflowID, "", word.Signal, word.Payload); err != nil {
		activity.GetLogger(ctx).Warn("not said that the node is empty", "to", word.WorkflowID, "error", err)
		return false
	}
	return true
}

// startHeartbeats begins with how far the drain came. Before the first look there is nothing to tell.
func startHeartbeats(ctx context.Context, before api.DrainProgress) *heartbeat.Loop {
	if !before.Looked() {
		return heartbeat.Start(ctx)
	}
	return heartbeat.Start(ctx, before)
}

func (d *Activities) acting() heldnode.Acting {
	return heldnode.Acting{Client: d.Client, Temporal: d.Temporal, Nodes: d.Nodes}
}

// drain also tells how far it came where it did not come to its end.
func (d *Activities) drain(ctx context.Context, heartbeats *heartbeat.Loop, in Input, before api.DrainProgress) (progress, last api.DrainProgress, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := d.newRun(ctx, heartbeats, in, before)
	if err != nil {
		return api.DrainProgress{}, before, err
	}
	defer r.close(cancel)
	defer d.Metrics.drains(in.Node)()
	progress, err = r.untilEmpty(ctx)
	return progress, r.reporter.Last, err
}

// before is how far an earlier attempt, or an earlier drain of the same maintenance, came.
func (in Input) before(ctx context.Context) api.DrainProgress {
	var before api.DrainProgress
	switch {
	case activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &before) == nil:
		return before
	case in.Before != nil:
		return *in.Before
	default:
		return api.DrainProgress{}
	}
}

// withdrawCancelled takes back what the drain asked for when the workflow cancels it. It cannot know why that is: under a
// freeze nothing may be evicted, so no request stays. A rung or a skipped pod begins the drain anew, which files them
// again; that a responder then begins anew is the lesser evil.
func (d *Activities) withdrawCancelled(ctx context.Context, in Input) {
	if in.Drain.Mode != spec.ModeEvict || in.Drain.Via != spec.ViaEvictionRequest {
		return
	}
	stopping := activity.GetWorkerStopChannel(ctx)
	requests := k8s.EvictionRequests{
		Client: d.Client, Node: in.Node, WorkflowID: activity.GetInfo(ctx).WorkflowExecution.ID, RunID: in.RunID,
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	for {
		err := requests.WithdrawLeft(ctx)
		if err == nil {
			return
		}
		select {
		case <-time.After(firstRetry):
			continue
		case <-stopping:
		case <-ctx.Done():
		}
		activity.GetLogger(ctx).Warn("EvictionRequests of a cancelled drain are still filed", "node", in.Node, "error", err)
		return
	}
}
