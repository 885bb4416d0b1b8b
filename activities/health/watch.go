package health

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"

	"drydock/activities/failure"
	"drydock/api"
	"drydock/k8s"
)

const (
	// settle lets a burst of changes end before they are reported.
	settle = 300 * time.Millisecond
	// HeartbeatTimeout is how long a WatchHealth may go without a heartbeat: each is billed, and there is one a minute. For as
	// long nobody watches after a worker was killed.
	HeartbeatTimeout = 75 * time.Second
	// WatchFor is how long a watch runs that has nothing to tell.
	WatchFor = 6 * time.Hour
	// maxTold bounds the nodes that one result tells of.
	maxTold = 1000
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
	in      WatchInput
	cluster string
	view    *k8s.View
	changes *changedNodes
	around  *around
	sights  []*sight
	// overlaps are those of the sights; nil asks for them anew.
	overlaps *Overlaps
}

// WatchHealth returns what has changed for any of the checks, at once where something has already, and nothing once its time is
// over. What a node's heartbeats and reasons say changes nothing. Conditions are told of with the beginning of their durations: what
// follows once those are over is for the checks to know. It is called with HeartbeatTimeout.
func (a *Activities) WatchHealth(ctx context.Context, in WatchInput) (WatchResult, error) {
	ctx, around, stop := a.watches.begin(ctx, activity.GetInfo(ctx).WorkflowExecution.ID)
	defer stop()
	changes := &changedNodes{}
	view, err := a.Nodes.Follow(ctx, changes.note)
	if err == nil {
		err = view.Synced(ctx)
	}
	if err != nil {
		return WatchResult{}, failure.Translate(ctx, a.Nodes.Client(), failure.OrCause(ctx, err))
	}
	w := &nodeWatch{in: in, cluster: api.ClusterOf(activity.GetInfo(ctx).TaskQueue), view: view, changes: changes, around: around}
	for _, check := range in.Checks {
		w.sights = append(w.sights, lookout{a}.newSight(check))
	}
	lookout{a}.lookAround(ctx, around, in)
	w.lookAtAll()
	go lookout{a}.keepLooking(ctx, around, in)
	return w.run(ctx, a)
}

// run waits until there is something to tell.
func (w *nodeWatch) run(ctx context.Context, a *Activities) (WatchResult, error) {
	beat, end := time.NewTicker(beatEvery(ctx)), time.NewTimer(WatchFor)
	defer beat.Stop()
	defer end.Stop()
	for {
		if err := w.view.Err(); err != nil {
			return WatchResult{}, failure.Translate(ctx, a.Nodes.Client(), err)
		}
		w.takeIn()
		if result := w.report(time.Now()); !result.empty() {
			return result, nil
		}
		select {
		case <-w.view.Changed:
			select {
			case <-time.After(settle):
			case <-ctx.Done():
			}
		case <-w.around.changed:
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

// lookAtAll looks at every node for every check.
func (w *nodeWatch) lookAtAll() {
	there := w.around.latest().machines.there
	nodes := w.view.List()
	for _, s := range w.sights {
		s.ignoreTerminating = there
		s.all(nodes)
	}
	w.overlaps = nil
}

// takeIn looks at the nodes that changed.
func (w *nodeWatch) takeIn() {
	changed := w.changes.take()
	if there := w.around.latest().machines.there; len(w.sights) > 0 && w.sights[0].ignoreTerminating != there {
		w.lookAtAll()
		return
	}
	for name := range changed {
		node, ok := w.view.Get(name)
		if !ok {
			node = nil
		}
		for _, s := range w.sights {
			_, before := s.selected[name]
			s.look(name, node)
			if _, after := s.selected[name]; before != after {
				w.overlaps = nil
			}
		}
	}
}

// report is what is not as the workflow knows it.
func (w *nodeWatch) report(now time.Time) WatchResult {
	latest := w.around.latest()
	var result WatchResult
	room := maxTold
	for _, s := range w.sights {
		seen, ok := s.report(latest, room, now)
		if !ok {
			continue
		}
		room -= len(seen.Observation.Nodes)
		result.More = result.More || seen.Observation.More
		result.Checks = append(result.Checks, seen)
	}
	if w.overlaps == nil {
		w.overlaps = overlaps(w.sights)
	}
	if w.overlaps.Digest != w.in.Overlaps {
		result.Overlaps = w.overlaps
	}
	if denied := latest.deniedText(); denied != w.in.Denied {
		result.Denied = &denied
	}
	for _, asked := range w.in.Permits {
		state, known := latest.permits[permitKey{asked.Check, asked.Node}]
		if known && (asked.Last == nil || *asked.Last != state.Permitted) {
			result.Permits = append(result.Permits, PermitSeen{Check: asked.Check, Node: asked.Node, Permitted: state.Permitted})
		}
	}
	result.EndedChecks, result.EndedRemediations = endedOf(w.cluster, latest.ended, w.in)
	slices.SortFunc(result.Checks, func(a, b CheckSeen) int { return strings.Compare(a.Name, b.Name) })
	return result
}
