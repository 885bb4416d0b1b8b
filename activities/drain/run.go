package drain

import (
	"cmp"
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/activities/reporting"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/spec"
)

// run is one drain of one node by one worker. All that it must not forget is in the cluster: a pod that was evicted has
// a deletion timestamp or is gone.
type run struct {
	*Activities
	in       Input
	node     *heldnode.View
	observer *observer
	attempts *attempts
	sender   *sender
	blockers *blockers
	budgets  *budgets
	requests *evictionRequests
	account  *account
	reporter reporting.Reporter
	bindings *bindings
	own      ownPod
	tainted  bool
}

func (d *Activities) newRun(ctx context.Context, heartbeats *heartbeat.Loop, in Input, before api.DrainProgress) (*run, error) {
	bindings, err := d.bindingsBefore(ctx, in.Cordoned)
	if err != nil {
		return nil, err
	}
	node, observer, err := d.observe(ctx, heartbeats, in, before)
	if err != nil {
		return nil, err
	}
	bindings.node = node
	r := &run{
		Activities: d, in: in, node: node, observer: observer, bindings: bindings, budgets: newBudgets(d.Sources.Budgets), account: accountFrom(before, in.PlanBegan),
		reporter: reporting.Reporter{
			Temporal: d.Temporal, Signal: in.BlockedSignal, Counts: in.ReportCounts, Heartbeats: heartbeats, Last: before,
			Blocked: blockedPods{d.Metrics, in.Node},
		},
	}
	if in.Drain.Mode != spec.ModeWait && in.Drain.Via == spec.ViaEvictionRequest {
		if r.requests, err = d.newEvictionRequests(ctx, node); err != nil {
			return nil, err
		}
		if err = r.requests.withdrawUnwanted(ctx, observer.stays); err != nil {
			return nil, err
		}
	}
	r.attempts = newAttempts(observer.means, r.budgets, r.requests)
	r.sender = &sender{
		Activities: d, why: in.Why, means: observer.means, node: node, budgets: r.budgets, requests: r.requests,
		attempts: r.attempts, account: r.account, unanswered: newUnanswered(),
	}
	r.blockers = &blockers{
		node: node, budgets: r.budgets, requests: r.requests, attempts: r.attempts, firstSeen: map[types.UID]time.Time{},
	}
	return r, nil
}

// observe begins to watch the node and its pods.
func (d *Activities) observe(ctx context.Context, heartbeats *heartbeat.Loop, in Input, before api.DrainProgress) (*heldnode.View, *observer, error) {
	var regexps []string
	for _, filter := range in.Drain.PodEvictionFilters {
		regexps = append(regexps, filter.ByResourceNameRegex)
	}
	choose, err := k8s.NewSelection(in.Drain.PodSelector, regexps)
	if err != nil {
		return nil, nil, err
	}
	choose = choose.Sparing(d.JobNamespaces)
	plan, err := in.Drain.Tiers()
	if err != nil {
		return nil, nil, err
	}
	node, err := d.acting().Watch(ctx, heldnode.Options{
		Name: in.Node, UID: in.UID, Caller: heldnode.CallerOf(ctx, in.RunID), Heartbeats: heartbeats,
	})
	if err != nil {
		return nil, nil, err
	}
	// Consent is a question of eviction only: a node that empties by itself waits for every pod alike.
	waits := in.Drain.Mode == spec.ModeWait
	return node, &observer{
		drain: in.Drain, skip: in.Skip, means: meansOf(in), node: node, choose: choose, plan: plan,
		classify: k8s.NewClassifier(d.Client, false, false), consents: consentsOf(in, waits), worker: d.Pod,
		reached: min(max(before.Tier-1, 0), plan.Len()-1), seen: map[types.UID]bool{}, verdicts: map[types.UID]knownVerdict{},
	}, nil
}

// untilEmpty looks, acts and waits for something to change, until no pod is left.
func (r *run) untilEmpty(ctx context.Context) (api.DrainProgress, error) {
	again := time.NewTicker(heartbeat.Every)
	defer again.Stop()
	for {
		if err := cmp.Or(r.node.Fence(), r.sender.failure(), r.sender.noteDeparted(ctx)); err != nil {
			return api.DrainProgress{}, err
		}
		found, err := r.observer.observe(ctx, r.sender.notice)
		if err != nil {
			return api.DrainProgress{}, err
		}
		if r.in.Drain.Mode == spec.ModeEvict {
			if err := r.act(ctx, &found); err != nil {
				r.heartbeatRequests(ctx, found)
				return api.DrainProgress{}, err
			}
		}
		progress, pause := r.standing(found)
		if found.progress.Remaining == 0 {
			over, again, err := r.bindings.isOver(ctx, r.Activities)
			if err != nil {
				return api.DrainProgress{}, err
			}
			if over {
				return r.emptied(ctx, found.progress)
			}
			pause = min(pause, again)
		}
		r.reporter.Report(ctx, progress)
		retry := time.NewTimer(pause)
		select {
		case <-r.node.Pods.Changed:
		case <-r.node.Node.Changed:
		case <-r.budgets.changed:
		case <-r.requests.changes():
		case <-r.sender.late:
		case <-retry.C:
		case <-again.C:
		case <-r.node.Pods.Refused:
		case <-ctx.Done():
			return api.DrainProgress{}, ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return api.DrainProgress{}, failure.WorkerStopping()
		}
		retry.Stop()
	}
}

// heartbeatRequests has the heartbeats report the outcome of running requests to the next attempt, which could not count their pods
// otherwise.
func (r *run) heartbeatRequests(ctx context.Context, found observation) {
	answered := make(chan struct{})
	go func() {
		r.sender.underWay.Wait() // close ends them
		close(answered)
	}()
	waited := time.NewTimer(patience)
	defer waited.Stop()
	select {
	case <-answered:
	case <-waited.C:
	}
	progress, _ := r.standing(found)
	r.reporter.Report(ctx, progress)
}

// act does what there is to do now: it keeps DaemonSet pods from coming back, evicts, and ends what is overdue.
func (r *run) act(ctx context.Context, found *observation) error {
	if err := r.own.stay(ctx, r, found); err != nil {
		return err
	}
	if !r.tainted && r.observer.reachedDaemonSets() {
		if err := k8s.Taint(ctx, r.Client, r.in.Node, r.node.Caller); err != nil {
			return err
		}
		r.tainted = true
	}
	return r.sender.send(ctx, r.sender.due(*found))
}

// standing is what there is to tell of the drain, and when there is something to do although nothing changes.
func (r *run) standing(found observation) (api.DrainProgress, time.Duration) {
	r.sender.mu.Lock()
	defer r.sender.mu.Unlock()
	return r.blockers.explain(found, r.counted(found.progress)), r.attempts.untilNext(found)
}

// close ends what is still under way.
func (r *run) close(cancel context.CancelFunc) {
	cancel()
	r.sender.underWay.Wait()
}

// counted adds to a progress what became of the pods so far.
func (r *run) counted(p api.DrainProgress) api.DrainProgress {
	return r.requests.count(r.account.count(p))
}

// emptied is the end of a drain: no pod is left, and no volume where the drain waits for them.
func (r *run) emptied(ctx context.Context, progress api.DrainProgress) (api.DrainProgress, error) {
	r.sender.mu.Lock()
	progress = r.counted(progress)
	r.sender.mu.Unlock()
	progress.Terminating = 0
	progress.Total = max(progress.Total, progress.Ended())
	r.reporter.Last = progress
	if err := r.requests.withdraw(ctx); err != nil {
		return api.DrainProgress{}, err
	}
	if r.in.Drain.WaitForVolumeDetach {
		if err := r.untilDetached(ctx, r.node, &r.reporter); err != nil {
			return api.DrainProgress{}, err
		}
	}
	progress.At = time.Now()
	return progress, nil
}
