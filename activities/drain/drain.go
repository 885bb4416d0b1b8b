// Package drain empties nodes, and waits for pods on them to complete.
package drain

import (
	"context"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock/activities/failure"
	"drydock/activities/heartbeat"
	"drydock/activities/heldnode"
	"drydock/activities/reporting"
	"drydock/api"
	"drydock/k8s"
	"drydock/rules/drainplan"
	"drydock/rules/spec"
)

// withdrawWithin is how long a cancelled drain may take to withdraw its EvictionRequests.
const withdrawWithin = 20 * time.Second

// Drains empties nodes.
type Activities struct {
	Client   kubernetes.Interface
	Temporal client.Client
	// Limiter is shared by all drains of the worker.
	Limiter *Limiter
	// Metrics counts evictions, refusals and blocked pods; never nil.
	Metrics *Metrics
	// PodEvents tells of evictions on the pods themselves; nil tells nobody.
	PodEvents *k8s.PodEvents
}

// DrainInput asks for a held node to be emptied.
type Input struct {
	Node  string     `json:"node"`
	UID   string     `json:"uid"`
	RunID string     `json:"runId"`
	Drain spec.Drain `json:"drain"`
	// Why is shown on the pods that are evicted.
	Why string `json:"why,omitempty"`
	// Began is when the escalation's clock started.
	Began time.Time `json:"began"`
	// Force is what the escalation allows by now: spec.BypassBudget deletes pods instead of evicting them, spec.Kill
	// does not give them time either.
	Force string `json:"force,omitempty"`
	// KillAt is when the rung Kill is due: before it every pod is deleted early enough to end in its own time.
	KillAt *time.Time `json:"killAt,omitempty"`
	// Skip are the pods, "namespace/name", that an operator asked to leave on the node.
	Skip []string `json:"skip,omitempty"`
	// Before is how far earlier drains of the same attempt came.
	Before *api.DrainProgress `json:"before,omitempty"`
	// BlockedSignal is the signal by which the workflow wants to hear of blockers.
	BlockedSignal string `json:"blockedSignal"`
}

// drainRun is one drain of one node by one worker. All that it must not forget is in the cluster: a pod that was
// evicted has a deletion timestamp or is gone.
type drainRun struct {
	*Activities
	in       Input
	node     *heldnode.View
	choose   k8s.Selection
	classify *k8s.Classifier
	plan     drainplan.Plan
	budgets  *budgets
	requests *evictionRequests
	reporter reporting.Reporter

	// reached is the tier that is drained; it never goes back.
	reached int
	tainted bool
	tries   map[types.UID]*try
	back    comebacks
	seen    map[types.UID]bool
	evicted int
	// ended are the first pods that were told to end, moreEnded counts the rest.
	ended     []api.EndedPod
	moreEnded int
	// refusedSince is when a pod was first seen that must not be evicted yet.
	refusedSince map[types.UID]time.Time
	verdicts     map[types.UID]knownVerdict
}

// Drain empties a node: it evicts the chosen pods tier by tier (mode evict) or watches them leave (mode wait), until
// none is left. It goes on where an earlier attempt stopped, and stops by itself when the node is not the
// maintenance's any more. Cancelled, it tells in the error's details how far it came.
// Errors: NodeGone, NodeReplaced, NotHolder, MissingPermission, WorkerStopping.
func (d *Activities) Drain(ctx context.Context, in Input) (api.DrainProgress, error) {
	before := in.before(ctx)
	pulse := heartbeat.Start(ctx, before)
	defer pulse.Stop()
	progress, last, err := d.drain(ctx, pulse, in, before)
	switch {
	case err == nil:
		return progress, nil // even if somebody cancels it just now: the node is empty
	case temporal.IsCanceledError(context.Cause(ctx)):
		d.withdrawCancelled(ctx, in)
		return api.DrainProgress{}, temporal.NewCanceledError(last)
	default:
		return api.DrainProgress{}, failure.Translate(err)
	}
}

// drain also tells how far it came where it did not come to its end.
func (d *Activities) drain(ctx context.Context, pulse *heartbeat.Loop, in Input, before api.DrainProgress) (progress, last api.DrainProgress, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := d.newRun(ctx, pulse, in, before)
	if err != nil {
		return api.DrainProgress{}, before, err
	}
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

func (d *Activities) newRun(ctx context.Context, pulse *heartbeat.Loop, in Input, before api.DrainProgress) (*drainRun, error) {
	var regexps []string
	for _, filter := range in.Drain.PodEvictionFilters {
		regexps = append(regexps, filter.ByResourceNameRegex)
	}
	choose, err := k8s.NewSelection(in.Drain.PodSelector, regexps)
	if err != nil {
		return nil, err
	}
	plan, err := in.Drain.Tiers()
	if err != nil {
		return nil, err
	}
	node, err := heldnode.Watch(ctx, d.Client, heldnode.Options{
		Name: in.Node, UID: in.UID, WorkflowID: activity.GetInfo(ctx).WorkflowExecution.ID, RunID: in.RunID, Heartbeats: pulse,
	})
	if err != nil {
		return nil, err
	}
	// Consent is a question of eviction only: a node that empties by itself waits for every pod alike.
	waits := in.Drain.Mode == spec.ModeWait
	r := &drainRun{
		Activities: d, in: in, node: node, choose: choose, plan: plan,
		classify: k8s.NewClassifier(d.Client, waits || in.Drain.Force, waits || in.Drain.DeleteEmptyDir),
		budgets:  newBudgets(d.Client),
		reporter: reporting.Reporter{
			Temporal: d.Temporal, Signal: in.BlockedSignal, Heartbeats: pulse, Last: before,
			Show: func(reasons map[string]int) { d.Metrics.blocked(in.Node, reasons) },
		},
		tries: map[types.UID]*try{}, back: newComebacks(), seen: map[types.UID]bool{},
		refusedSince: map[types.UID]time.Time{}, verdicts: map[types.UID]knownVerdict{},
		evicted: before.Evicted, ended: before.Pods, moreEnded: before.MorePods, reached: min(max(before.Tier-1, 0), plan.Len()-1),
	}
	if !waits && in.Drain.Via == spec.ViaEvictionRequest {
		if r.requests, err = newEvictionRequests(ctx, d.Client, node, d.Limiter); err != nil {
			return nil, err
		}
		if err = r.withdrawUnwanted(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// untilEmpty looks, acts and waits for something to change, until no pod is left.
func (r *drainRun) untilEmpty(ctx context.Context) (api.DrainProgress, error) {
	again := time.NewTicker(heartbeat.Every)
	defer again.Stop()
	for {
		if err := r.node.Fence(); err != nil {
			return api.DrainProgress{}, err
		}
		found, err := r.look(ctx)
		if err != nil {
			return api.DrainProgress{}, err
		}
		if r.in.Drain.Mode == spec.ModeEvict {
			if err := r.act(ctx, found); err != nil {
				return api.DrainProgress{}, err
			}
		}
		if found.progress.Remaining == 0 {
			return r.emptied(ctx, found.progress)
		}
		r.reporter.Report(ctx, r.blocked(found))
		retry := time.NewTimer(r.untilNextTry(found))
		select {
		case <-r.node.Pods.Changed:
		case <-r.node.Node.Changed:
		case <-r.budgets.changed:
		case <-r.requests.changes():
		case <-retry.C:
		case <-again.C:
		case <-r.node.Pods.Refused:
		case <-r.node.Node.Refused:
		case <-ctx.Done():
			return api.DrainProgress{}, ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return api.DrainProgress{}, failure.WorkerStopping()
		}
		retry.Stop()
	}
}

// emptied is the end of a drain: no pod is left, and no volume if that was asked for.
func (r *drainRun) emptied(ctx context.Context, progress api.DrainProgress) (api.DrainProgress, error) {
	progress.Evicted, progress.Terminating = r.evicted, 0
	progress.Pods, progress.MorePods = r.ended, r.moreEnded
	progress.Total = max(progress.Total, progress.Evicted)
	progress = r.requests.count(progress)
	r.reporter.Last = progress
	if err := r.requests.withdraw(ctx); err != nil {
		return api.DrainProgress{}, err
	}
	if r.in.Drain.WaitForVolumeDetach {
		if err := r.untilDetached(ctx); err != nil {
			return api.DrainProgress{}, err
		}
	}
	progress.At = time.Now()
	return progress, nil
}

// act does what there is to do now: it keeps DaemonSet pods from coming back, evicts, and ends what is overdue.
func (r *drainRun) act(ctx context.Context, found round) error {
	if !r.tainted && r.reachedDaemonSets() {
		if err := k8s.Taint(ctx, r.Client, r.in.Node, r.node.WorkflowID, r.in.RunID); err != nil {
			return err
		}
		r.tainted = true
	}
	return r.evictDue(ctx, slices.Concat(r.overdueForKill(found), r.due(found.targets)))
}

// reachedDaemonSets tells whether the drain has come to a tier of DaemonSet pods, or past one.
func (r *drainRun) reachedDaemonSets() bool {
	return slices.ContainsFunc(r.plan.Entries()[:r.reached+1], func(e drainplan.Entry) bool { return e.PodType == drainplan.DaemonSet })
}
