package health

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

const (
	// settle lets a burst of changes end before they are reported.
	settle = 300 * time.Millisecond
	// HeartbeatTimeout is how long a WatchHealth may go without a heartbeat: each is billed, and each check has a watch. Other workers
	// notice a dead worker sooner, and begin its watches anew.
	HeartbeatTimeout = 5 * time.Minute
	// WatchFor is how long a watch runs that has nothing to report.
	WatchFor = 6 * time.Hour
	// maxReported bounds the nodes that one report is about.
	maxReported = 1000
)

// changedNodes are those that changed since they were last taken.
type changedNodes struct {
	mu    sync.Mutex
	names map[string]bool
}

func (c *changedNodes) note(node *corev1.Node, _ bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names == nil {
		c.names = map[string]bool{}
	}
	c.names[node.Name] = true
	return true
}

func (c *changedNodes) take() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names
	c.names = nil
	return names
}

// nodeWatch is one WatchHealth under way.
type nodeWatch struct {
	*inventory
	view    *k8s.View
	changes *changedNodes
	// looked receives a token when something around the nodes has changed, ended the nodes whose remediations have ended.
	looked chan struct{}
	ended  chan []string
}

// WatchHealth returns what has changed for a check, at once where something has already, and nothing once its time is over. What a
// node's heartbeats and reasons say changes nothing. Conditions are reported with the beginning of their durations: the check
// knows when those are over. It is called with HeartbeatTimeout. The nodes are watched once for all checks.
func (a *Activities) WatchHealth(ctx context.Context, in WatchInput) (WatchResult, error) {
	ctx, stop := a.watches.begin(ctx, activity.GetInfo(ctx).WorkflowExecution.ID)
	defer stop()
	inventory, err := a.newInventory(in)
	if err != nil {
		return WatchResult{}, temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorInvalidSpec, nil)
	}
	changes := &changedNodes{}
	view, err := a.Nodes.Follow(ctx, changes.note)
	if err == nil {
		err = view.Synced(ctx)
	}
	if err != nil {
		return WatchResult{}, failure.Translate(ctx, a.Nodes.Client(), failure.OrCause(ctx, err))
	}
	w := &nodeWatch{inventory: inventory, view: view, changes: changes, looked: make(chan struct{}, 1), ended: make(chan []string)}
	w.lookFirst(ctx, in)
	w.lookAtAll()
	go w.keepLooking(ctx, w.surroundings.latest().version)
	go w.keepReading(ctx)
	return w.run(ctx)
}

// run waits until there is something to report.
func (w *nodeWatch) run(ctx context.Context) (WatchResult, error) {
	beat, end := time.NewTicker(beatEvery(ctx)), time.NewTimer(WatchFor)
	defer beat.Stop()
	defer end.Stop()
	for {
		if err := w.view.Err(); err != nil {
			return WatchResult{}, failure.Translate(ctx, w.Nodes.Client(), err)
		}
		w.takeIn()
		if result := w.report(w.surroundings.latest(), time.Now()); !result.empty() {
			return result, nil
		}
		select {
		case <-w.view.Changed:
			select {
			case <-time.After(settle):
			case <-ctx.Done():
			}
		case <-w.looked:
		case ended := <-w.ended:
			return WatchResult{Ended: ended}, nil
		case <-beat.C:
			activity.RecordHeartbeat(ctx)
		case <-end.C:
			return WatchResult{}, nil
		case <-activity.GetWorkerStopChannel(ctx):
			return WatchResult{}, failure.WorkerStopping()
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return WatchResult{}, context.Cause(ctx)
		}
	}
}

// keepLooking looks at what is around the nodes for as long as ctx lives. Seen is the version of what was known before.
func (w *nodeWatch) keepLooking(ctx context.Context, seen int) {
	runs := "runs of " + activity.GetInfo(ctx).WorkflowExecution.ID
	for {
		select {
		case <-time.After(tick):
		case <-ctx.Done():
			return
		}
		w.lookAgain(ctx)
		if now := w.surroundings.latest().version; now != seen {
			seen = now
			select {
			case w.looked <- struct{}{}:
			default:
			}
		}
		if len(w.in.Runs) == 0 || !w.surroundings.isDue(runs, runsEvery) {
			continue
		}
		ended, err := w.endedOf(ctx, w.in)
		if err != nil && ctx.Err() == nil {
			activity.GetLogger(ctx).Warn("not known: which remediations run", "error", err)
		}
		if len(ended) == 0 {
			continue
		}
		select {
		case w.ended <- ended:
		case <-ctx.Done():
		}
	}
}

// keepReading looks at the templates of the check for as long as ctx lives. One may keep the worker waiting.
func (w *nodeWatch) keepReading(ctx context.Context) {
	for {
		select {
		case <-time.After(tick):
		case <-ctx.Done():
			return
		}
		for _, ref := range w.in.Intent.Templates {
			w.lookAtTemplate(ctx, ref)
		}
	}
}

// lookAtAll looks at every node.
func (w *nodeWatch) lookAtAll() {
	w.ignoreTerminating = w.hasMachineChecks(w.surroundings.latest(), time.Now())
	w.all(w.view.List())
}

// takeIn looks at the nodes that changed.
func (w *nodeWatch) takeIn() {
	changed := w.changes.take()
	if w.ignoreTerminating != w.hasMachineChecks(w.surroundings.latest(), time.Now()) {
		w.lookAtAll()
		return
	}
	for name := range changed {
		node, ok := w.view.Get(name)
		if !ok {
			node = nil
		}
		w.look(name, node)
	}
}

// watches are those that run on this worker, by workflow. A new one ends the one before, which learns of its cancellation only with a
// heartbeat.
type watches struct {
	mu      sync.Mutex
	running map[string]*running
}

type running struct{ cancel context.CancelCauseFunc }

var errSuperseded = errors.New("another watch has begun")

// begin takes over from the watch before.
func (w *watches) begin(ctx context.Context, workflow string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	mine := &running{cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == nil {
		w.running = map[string]*running{}
	}
	if before := w.running[workflow]; before != nil {
		before.cancel(errSuperseded)
	}
	w.running[workflow] = mine
	return ctx, func() {
		cancel(nil)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.running[workflow] == mine {
			delete(w.running, workflow)
		}
	}
}
