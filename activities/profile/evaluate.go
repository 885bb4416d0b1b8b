package profile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/state"
)

const (
	// HeartbeatTimeout is how long an EvaluateProfiles may go without a heartbeat: each is billed, and there is one every 48 s.
	HeartbeatTimeout = time.Minute
	beatEvery        = 48 * time.Second
	// EvaluateFor is how long one goes on that has nothing to report.
	EvaluateFor = 6 * time.Hour
	// pace is the shortest time between two evaluations.
	pace = time.Second
	// atOnce bounds the requests under way.
	atOnce = 16
)

// evaluators are the evaluations that run on this worker, by workflow. A new one ends the one before, which would learn that it is
// cancelled only with its next heartbeat.
type evaluators struct {
	mu      sync.Mutex
	running map[string]*evaluator
}

var errSuperseded = errors.New("another evaluation has begun")

// evaluator is one EvaluateProfiles under way.
type evaluator struct {
	*Activities
	in      EvaluateInput
	cluster string
	view    *k8s.View
	changes *changes
	cancel  context.CancelCauseFunc
	// written are nodes we wrote that the watch does not show yet, by name.
	written map[string]written

	mu sync.Mutex
	// lookedAt is when it was looked last which transitions run.
	lookedAt time.Time
	// histories say by node since when checks say the same.
	histories map[string]rules.History
}

// written is a node after a write, and the version that it was written over.
type written struct {
	over string
	node *corev1.Node
}

// begin takes over from the evaluation before, with what that knew.
func (e *evaluators) begin(ctx context.Context, workflow string, mine *evaluator) (context.Context, func()) {
	ctx, mine.cancel = context.WithCancelCause(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running == nil {
		e.running = map[string]*evaluator{}
	}
	mine.histories, mine.written = map[string]rules.History{}, map[string]written{}
	if before := e.running[workflow]; before != nil {
		before.cancel(errSuperseded)
		before.mu.Lock()
		mine.histories, mine.lookedAt = before.histories, before.lookedAt
		before.mu.Unlock()
	}
	e.running[workflow] = mine
	return ctx, func() {
		mine.cancel(nil)
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.running[workflow] == mine {
			mine.Counts.Left()
		}
	}
}

// historyOf is what the last evaluation on this worker knows of a node; evaluates is false if there was none.
func (e *evaluators) historyOf(workflow, node string) (history rules.History, evaluates bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.running[workflow]
	if one == nil {
		return nil, false
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.histories[node], true
}

// EvaluateProfiles evaluates all nodes whenever one has changed, and at the file's interval. It returns as soon as something is to be
// done. What the annotation has to say before that it writes itself. It is called with HeartbeatTimeout.
func (a *Activities) EvaluateProfiles(ctx context.Context, in EvaluateInput) (Evaluated, error) {
	if a.File == nil {
		return Evaluated{Absent: true}, nil
	}
	info := activity.GetInfo(ctx)
	e := &evaluator{Activities: a, in: in, cluster: api.ClusterOf(info.TaskQueue), changes: newChanges()}
	ctx, stop := a.evaluators.begin(ctx, info.WorkflowExecution.ID, e)
	defer stop()
	var err error
	if e.view, err = a.Nodes.Follow(ctx, e.changes.note); err == nil {
		err = e.view.Synced(ctx)
	}
	if err == nil {
		var result Evaluated
		if result, err = e.run(ctx); err == nil {
			return result, nil
		}
	}
	err = failure.OrCause(ctx, err)
	if errors.Is(err, errSuperseded) {
		return Evaluated{}, nil // the workflow has cancelled it, and takes nothing from it: no failure
	}
	return Evaluated{}, failure.Translate(ctx, a.Nodes.Client(), err)
}

// run evaluates until there is something to report.
func (e *evaluator) run(ctx context.Context) (Evaluated, error) {
	beat, end := time.NewTicker(beatEvery), time.NewTimer(EvaluateFor)
	defer beat.Stop()
	defer end.Stop()
	for {
		if err := e.view.Err(); err != nil {
			return Evaluated{}, err
		}
		began := time.Now()
		result, again, err := e.look(ctx)
		if err != nil || !result.isEmpty() {
			return result, err
		}
		due := time.NewTimer(again)
		for waiting := true; waiting; {
			select {
			case <-e.view.Changed:
				waiting = !e.changes.any()
			case <-due.C:
				waiting = false
			case <-beat.C:
				activity.RecordHeartbeat(ctx)
			case <-end.C:
				return Evaluated{}, nil
			case <-activity.GetWorkerStopChannel(ctx):
				return Evaluated{}, failure.WorkerStopping()
			case <-ctx.Done():
				return Evaluated{}, context.Cause(ctx)
			}
		}
		due.Stop()
		select {
		case <-time.After(pace - time.Since(began)):
		case <-ctx.Done():
			return Evaluated{}, context.Cause(ctx)
		}
	}
}

// look evaluates once, and returns when to evaluate again at the latest.
func (e *evaluator) look(ctx context.Context) (result Evaluated, again time.Duration, err error) {
	e.changes.take()
	config, problem := e.File.Read()
	known := problem == e.in.Problem
	switch {
	case config == nil && !known:
		return Evaluated{Problem: &problem}, 0, nil
	case config == nil:
		return result, 0, errors.New("this worker has read no good file: " + problem) // another may have
	}
	if denied := e.denied(ctx, config); !slices.Equal(denied, e.in.Denied) {
		result.Denied = &denied
	}
	again = config.Requeue
	if slices.ContainsFunc(e.in.UnderWay, func(u UnderWay) bool { return !u.Ended }) {
		again = min(again, lookAtRunsEvery)
	}
	nodes := e.nodes()
	now := time.Now()
	all := config.Decide(e.asNodes(nodes), e.facts(ctx, config, nodes), now)
	if ctx.Err() != nil {
		return result, 0, context.Cause(ctx)
	}
	e.complain(ctx, nodes, e.remember(all, now))
	sorting := newSorting(e, config, nodes, now)
	for _, one := range all {
		sorting.take(one)
	}
	var held bool
	if sorting.moves, held = e.hold(ctx, sorting.moves); held {
		again = min(again, freezeAgain)
	}
	denied := result.Denied
	result = sorting.result()
	result.Denied = denied
	if !known {
		result.Problem = &problem
	}
	e.releaseStray(ctx, sorting.strays)
	e.cordonAgain(ctx, sorting.lifted)
	e.logDetails(ctx, all, now)
	e.takes(ctx, sorting.claims)
	if err := e.lookAtRuns(ctx, &result); err != nil {
		activity.GetLogger(ctx).Warn("not known which transitions run", "error", err)
	}
	if e.bring(ctx, config, sorting.bring) {
		again = 0
	}
	return result, again, nil
}

// takes takes Leases of transitions that lead to their own state, where nothing else is done.
func (e *evaluator) takes(ctx context.Context, claims []check.Claim) {
	if len(claims) == 0 {
		return
	}
	if err := e.Facts.Take(ctx, claims); err != nil {
		activity.GetLogger(ctx).Warn("leases could not be taken", "error", err)
	}
}

// nodes are those of the watch, as they were written where that does not show it yet.
func (e *evaluator) nodes() map[string]*corev1.Node {
	nodes := map[string]*corev1.Node{}
	for _, n := range e.view.List() {
		if w, there := e.written[n.Name]; there {
			if w.over == n.ResourceVersion && w.node.UID == n.UID {
				n = w.node
			} else {
				delete(e.written, n.Name)
			}
		}
		nodes[n.Name] = n
	}
	return nodes
}

// logDetails logs how each node was evaluated whose label asks for that.
func (e *evaluator) logDetails(ctx context.Context, all []rules.Evaluation, now time.Time) {
	for _, one := range all {
		if one.LogDetails {
			e.mu.Lock()
			history := e.histories[one.Node]
			e.mu.Unlock()
			activity.GetLogger(ctx).Info("evaluated", "node", one.Node, "details", strings.Join(one.Explain(history, now), "\n"))
		}
	}
}

// remember notes since when checks say what they say, and counts the nodes. It returns the checks that have begun to fail.
func (e *evaluator) remember(all []rules.Evaluation, now time.Time) []failing {
	e.mu.Lock()
	begun := beginToFail(all, e.histories)
	next := make(map[string]rules.History, len(all))
	for _, one := range all {
		next[one.Node] = e.histories[one.Node].After(one, now)
	}
	e.histories = next
	e.mu.Unlock()
	e.Counts.Shown(countsOf(all))
	return begun
}

// bring writes what nodes have to show before anything is done. Where somebody else has changed a node in between, it is evaluated
// again; a node that cannot be written does not delay the others.
func (e *evaluator) bring(ctx context.Context, config *rules.Config, all []brought) (wrote bool) {
	var mu sync.Mutex
	failures := 0
	tokens := make(chan struct{}, atOnce)
	var under sync.WaitGroup
	for i, one := range all {
		if i%1000 == 999 {
			activity.RecordHeartbeat(ctx)
		}
		tokens <- struct{}{}
		under.Go(func() {
			defer func() { <-tokens }()
			if ctx.Err() != nil {
				return
			}
			should := one.node.DeepCopy()
			err := show(config, should, one.data)
			var after *corev1.Node
			if err == nil {
				after, err = write(ctx, e.Nodes.Client(), one.node, should)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				wrote = true
				e.written[one.node.Name] = written{over: one.over, node: after}
			case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			default:
				if failures++; failures <= shownFailures {
					activity.GetLogger(ctx).Warn("the state of a node's profiles could not be written", "node", one.node.Name, "error", err)
				}
			}
		})
	}
	under.Wait()
	if failures > shownFailures {
		activity.GetLogger(ctx).Warn("the states of more nodes' profiles could not be written", "nodes", failures-shownFailures)
	}
	return wrote
}

// shownFailures is how many nodes that cannot be written are logged one by one.
const shownFailures = 5

// brought is a node to be written: over is the version that the watch shows.
type brought struct {
	node *corev1.Node
	over string
	data state.Data
}
