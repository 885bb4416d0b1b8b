package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock/k8s"
	"drydock/workflows/spec"
)

// Drains empties nodes.
type Drains struct {
	Nodes    *Nodes
	Temporal client.Client
	// Limiter is shared by all drains of the worker.
	Limiter *EvictionLimiter
	// Metrics counts evictions and refusals; never nil.
	Metrics *DrainMetrics
}

// DrainInput asks for a held node to be emptied.
type DrainInput struct {
	Node  string     `json:"node"`
	UID   string     `json:"uid"`
	RunID string     `json:"runId"`
	Drain spec.Drain `json:"drain"`
	// BlockedSignal is the signal by which the workflow wants to hear of blockers.
	BlockedSignal string `json:"blockedSignal"`
}

// Drained is how a drain ended.
type Drained struct {
	Evicted int `json:"evicted"`
	Skipped int `json:"skipped"`
}

// drainRun is one drain of one node by one worker. All that it must not forget is in the cluster: a pod that was
// evicted has a deletion timestamp or is gone.
type drainRun struct {
	*Drains
	in       DrainInput
	node     *heldNode
	choose   k8s.Selection
	classify *k8s.Classifier
	budgets  *budgets
	reporter reporter

	tries   map[types.UID]*try
	seen    map[types.UID]bool
	evicted int
}

// Drain empties a node: it evicts the chosen pods (mode evict) or watches them leave (mode wait), until none is left.
// It goes on where an earlier attempt stopped, and stops by itself when the node is not the maintenance's any more.
// Errors: NodeGone, NodeReplaced, NotHolder, MissingPermission, WorkerStopping.
func (d *Drains) Drain(ctx context.Context, in DrainInput) (Drained, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := d.newRun(ctx, in)
	if err != nil {
		return Drained{}, translate(err)
	}
	progress, err := r.untilEmpty(ctx)
	if err != nil {
		return Drained{}, translate(err)
	}
	return Drained{Evicted: progress.Evicted, Skipped: progress.Skipped}, nil
}

func (d *Drains) newRun(ctx context.Context, in DrainInput) (*drainRun, error) {
	var regexps []string
	for _, filter := range in.Drain.PodEvictionFilters {
		regexps = append(regexps, filter.ByResourceNameRegex)
	}
	choose, err := k8s.NewSelection(in.Drain.PodSelector, regexps)
	if err != nil {
		return nil, err
	}
	node, err := watchHeld(ctx, d.Nodes.Client, in.Node, in.UID, in.RunID)
	if err != nil {
		return nil, err
	}
	// Consent is a question of eviction only: a node that empties by itself waits for every pod alike.
	waits := in.Drain.Mode == spec.ModeWait
	r := &drainRun{
		Drains: d, in: in, node: node, choose: choose,
		classify: k8s.NewClassifier(d.Nodes.Client, waits || in.Drain.Force, waits || in.Drain.DeleteEmptyDir),
		budgets:  newBudgets(d.Nodes.Client),
		reporter: reporter{temporal: d.Temporal, signal: in.BlockedSignal},
		tries:    map[types.UID]*try{}, seen: map[types.UID]bool{},
	}
	var before DrainProgress
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &before) == nil {
		r.evicted = before.Evicted
	}
	return r, nil
}

// untilEmpty looks, acts and waits for something to change, until no pod is left.
func (r *drainRun) untilEmpty(ctx context.Context) (DrainProgress, error) {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		if err := r.node.fence(); err != nil {
			return DrainProgress{}, err
		}
		round, err := r.look(ctx)
		if err != nil {
			return DrainProgress{}, err
		}
		if round.progress.Remaining == 0 {
			return round.progress, nil
		}
		if r.in.Drain.Mode == spec.ModeEvict {
			if err := r.evictDue(ctx, round); err != nil {
				return DrainProgress{}, err
			}
		}
		r.reporter.report(ctx, r.blocked(ctx, round))
		retry := time.NewTimer(r.untilNextTry(round))
		select {
		case <-r.node.pods.Changed:
		case <-r.node.node.Changed:
		case <-r.budgets.changed:
		case <-retry.C:
		case <-beat.C:
		case <-r.node.pods.Refused:
		case <-r.node.node.Refused:
		case <-ctx.Done():
			return DrainProgress{}, ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return DrainProgress{}, workerStopping()
		}
		retry.Stop()
	}
}

// round is what one look at the node found.
type round struct {
	evictable []*corev1.Pod
	refused   []refusedPod
	leaving   []*corev1.Pod
	progress  DrainProgress
}

type refusedPod struct {
	pod     *corev1.Pod
	verdict k8s.Verdict
}

// look sorts the pods on the node: those to evict, those that lack consent, those on their way out. Finished pods are
// evicted too but never keep the node from being drained.
func (r *drainRun) look(ctx context.Context) (round, error) {
	found := round{progress: DrainProgress{At: time.Now()}}
	blocking := 0
	for _, pod := range r.node.podsByName() {
		if !r.choose.Selects(pod) {
			found.progress.Skipped++
			continue
		}
		verdict, err := r.classify.Classify(ctx, pod)
		if err != nil {
			return found, err
		}
		if verdict.Class == k8s.Skip {
			found.progress.Skipped++
			continue
		}
		r.seen[pod.UID] = true
		if !finished(pod) {
			blocking++
		}
		switch {
		case pod.DeletionTimestamp != nil:
			found.leaving = append(found.leaving, pod)
		case verdict.Class == k8s.Refuse:
			found.refused = append(found.refused, refusedPod{pod, verdict})
		default:
			found.evictable = append(found.evictable, pod)
		}
	}
	found.progress.Total = len(r.seen)
	found.progress.Remaining = blocking
	if blocking == 0 && r.in.Drain.Mode == spec.ModeEvict && r.untried(found.evictable) {
		// Only finished pods are left: they are evicted once, and not waited for.
		if err := r.evictDue(ctx, found); err != nil {
			return found, err
		}
	}
	found.progress.Terminating = len(found.leaving)
	found.progress.Evicted = r.evicted
	return found, nil
}

func (r *drainRun) untried(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if r.tries[pod.UID] == nil {
			return true
		}
	}
	return false
}
