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

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/spec"
)

// withdrawWithin is how long a cancelled drain may take to withdraw its EvictionRequests.
const withdrawWithin = 20 * time.Second

// reportWithin is how long the report of an empty node may take.
const reportWithin = 2 * time.Second

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
	// PodEvents records evictions on the pods themselves; nil records none.
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
	// PlanBegan is when the plan began that began the maintenance; zero if none did.
	PlanBegan time.Time `json:"planBegan,omitzero"`
	// Before is how far earlier drains of the same attempt came.
	Before *api.DrainProgress `json:"before,omitempty"`
	// ReportCounts sends the workflow also how many pods are left, a bounded number of times.
	ReportCounts bool `json:"reportCounts,omitempty"`
	// BlockedSignal is the signal by which the workflow gets the blockers.
	BlockedSignal string `json:"blockedSignal"`
	// Then is sent once the node is empty; nil is not.
	Then *Report `json:"then,omitempty"`
}

// About implements caller.Input.
func (in Input) About() caller.Subject { return caller.Subject{Node: in.Node, RunID: in.RunID} }

// Report is a signal to a workflow that waits for the drain.
type Report struct {
	WorkflowID string          `json:"workflowId"`
	Signal     string          `json:"signal"`
	Payload    json.RawMessage `json:"payload"`
}

// Drained is the progress of a drain that has emptied its node. Reported is set where Input.Then was sent.
type Drained struct {
	api.DrainProgress
	Reported bool `json:"reported,omitempty"`
}

// Consent lets a pod, "namespace/name", be lost, as Drain's fields of the same names let all pods.
type Consent struct {
	Pod            string `json:"pod"`
	Force          bool   `json:"force,omitempty"`
	DeleteEmptyDir bool   `json:"deleteEmptyDir,omitempty"`
}

// Drain empties a node: it evicts the chosen pods tier by tier (mode evict) or watches them leave (mode wait), until
// none is left. It goes on where an earlier attempt stopped, and stops by itself when the node is not the
// maintenance's any more. When it is cancelled, the error's details are its progress.
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
		return Drained{progress, d.report(ctx, in.Then)}, nil // even if somebody cancels it just now: the node is empty
	case temporal.IsCanceledError(context.Cause(ctx)):
		d.withdrawCancelled(ctx, in)
		return Drained{}, temporal.NewCanceledError(last)
	default:
		return Drained{}, failure.Translate(ctx, d.Client, err)
	}
}

// report sends a report, once: the maintenance repeats one that was not sent.
func (d *Activities) report(ctx context.Context, r *Report) (sent bool) {
	if r == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	if err := caller.Signal(ctx, d.Temporal, r.WorkflowID, "", r.Signal, r.Payload); err != nil {
		activity.GetLogger(ctx).Warn("not reported that the node is empty", "to", r.WorkflowID, "error", err)
		return false
	}
	return true
}

// startHeartbeats starts heartbeats with the progress of the drain, if it has read the node's pods already.
func startHeartbeats(ctx context.Context, before api.DrainProgress) *heartbeat.Loop {
	if !before.Looked() {
		return heartbeat.Start(ctx)
	}
	return heartbeat.Start(ctx, before)
}

func (d *Activities) acting() heldnode.Acting {
	return heldnode.Acting{Client: d.Client, Temporal: d.Temporal, Nodes: d.Nodes}
}

// drain returns its last progress also where it fails.
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

// withdrawCancelled withdraws the drain's EvictionRequests when the workflow cancels it. It cannot know why: under a
// freeze nothing may be evicted, so no request stays. After a rung or a skipped pod the next drain files them again, and
// their responders begin again.
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
